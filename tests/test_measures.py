"""Measured quantities: coordinates that constrain nothing, and what acts on them."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import joints, post
from jaxmbd.friction import LuGre
from jaxmbd.inverse import Coordinate, inverse_dynamics

RUN = {"dt": 0.01, "steps": 50}
ENDS = {"on_a": (0.5, 0.2, 0.0), "on_b": (0.3, 0.1, 0.0)}


def tethered(measures, acting):
    """A rod that hangs in the plane, and a mass point on it by nothing but what is measured."""
    bodies = {"rod": mbd.PlanarBody.rod(1.0, 1.0), "ball": mbd.Particle(0.5)}
    hinge = mbd.Joint(mbd.Revolute(), "ground", "rod", at=(0, 0, 0))
    mechanism = mbd.Mechanism(bodies, {"hinge": hinge} | measures, {"weight": mbd.Gravity((0, -9.81, 0))} | acting)
    return mechanism, {"rod": (0.5, 0, 0), "ball": (1.0, 0.7, 0.2)}


def motion(model, scheme, formulation=mbd.Multipliers(), **rates):
    system, q0 = model
    v0 = mbd.joint_velocities(system, q0, rates)
    return mbd.simulate(system, q0, v0, scheme=scheme, formulation=formulation, **RUN)


def length(at=(0.3, 0.1, 0.0)):
    return mbd.Joint(joints.Length(), "rod", "ball", on_a=at)


@pytest.fixture(scope="module")
def rubber():
    return mbd.assemble(*tethered({"reach": length()}, {"band": mbd.JointSpring("reach", 40.0, 0.6)}))


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), pytest.param(mbd.Trapezoidal(), marks=pytest.mark.slow)], ids=["exact", "nodes"])
def test_spring_on_a_distance_is_a_spring(rubber, scheme):
    """Where the potential is taken at the nodes, or by its discrete gradient, both are the same equations."""
    spring = mbd.Spring("rod", "ball", 40.0, 0.6, at_a=(0.3, 0.1, 0.0))
    plain = motion(mbd.assemble(*tethered({}, {"band": spring})), scheme, ball=(0.5, 0.0, -1.0))
    measured = motion(rubber, scheme, ball=(0.5, 0.0, -1.0))
    assert np.abs(np.diff(plain.q, axis=0)).max() > 0.01
    np.testing.assert_allclose(measured.q[:, :-1], plain.q, atol=1e-12)
    rod, ball = post.poses(rubber[0], measured)["rod"], post.poses(rubber[0], measured)["ball"]
    point = rod.origin + rod.rotation @ jnp.array([0.3, 0.1, 0.0])
    np.testing.assert_allclose(measured.q[:, -1], jnp.linalg.norm(ball.origin - point, axis=1), atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [mbd.NullSpace(), mbd.Reparametrised()], ids=["null space", "chart"])
def test_formulations_agree(rubber, formulation):
    wanted = motion(rubber, mbd.EnergyMomentum(), ball=(0.5, 0.0, -1.0))
    np.testing.assert_allclose(motion(rubber, mbd.EnergyMomentum(), formulation, ball=(0.5, 0.0, -1.0)).q, wanted.q, atol=1e-12)


def stretch(a, b, params):
    """A scalar that no joint has, unchanged by rotations of both bodies together."""
    rod = b.origin - a.origin
    return params["c"] * (rod @ rod) + jnp.sin(a.x @ rod) + 0.1 * jnp.exp(-(rod @ rod))


CONSERVATIVE = pytest.param(mbd.schemes.ConservativeDirector(), marks=pytest.mark.slow, id="conservative")


@pytest.mark.parametrize("scheme", [pytest.param(mbd.EnergyMomentum(), id="basic"), CONSERVATIVE])
def test_energy_and_angular_momentum_with_a_function_of_the_user(scheme):
    measure = mbd.Joint(joints.Measure(stretch, {"c": 0.8}), "first", "second", on_b=(0.1, 0.0, 0.2))
    bodies = {name: mbd.RigidBody.box(mass, (0.2, 0.3, 0.5)) for name, mass in {"first": 1.0, "second": 2.0}.items()}
    mechanism = mbd.Mechanism(bodies, {"shape": measure}, [mbd.JointSpring("shape", 3.0, 0.4)])
    system, q0 = mbd.assemble(mechanism, {"second": (0.4, 0.3, 0.6)})
    trajectory = motion((system, q0), scheme, first=(0.1, 0.2, 0, 2.0, 1.0, -1.0))
    energy, moment = post.energy(system, trajectory), post.angular_momentum(system, trajectory)
    value = post.joint_coordinates(system, trajectory)["shape"][:, 0]
    assert np.ptp(1.5 * (value - 0.4) ** 2) > 0.05
    assert np.abs(energy - energy[0]).max() < 1e-12 * abs(energy[0])
    assert np.abs(moment - moment[0]).max() < 1e-11
    assert float(system.parameters["shape.params.c"]) == 0.8


@pytest.mark.slow
def test_measured_angles_count_turns():
    """Springs on the angle between two wheels: c'' = -2 k c / I, through more than a turn."""
    wheels = {name: mbd.PlanarBody(1.0, 0.2) for name in "ab"}
    hinges = {f"hinge {name}": mbd.Joint(mbd.Revolute(), "ground", name, at=(i, 0, 0)) for i, name in enumerate("ab")}
    own = joints.Measure(lambda a, b: (3.0 * (b.x @ a.x), 3.0 * (b.x @ a.y)), angular=True)
    measured = {"between": mbd.Joint(joints.Angle(), "a", "b"), "own": mbd.Joint(own, "a", "b")}
    springs = [mbd.JointSpring(name, 0.2) for name in measured]
    system, q0 = mbd.assemble(mbd.Mechanism(wheels, hinges | measured, springs), {"b": (1, 0, 0)})
    trajectory = motion((system, q0), mbd.EnergyMomentum(), **{"hinge a": -10.0, "hinge b": 10.0})
    found = post.joint_coordinates(system, trajectory)
    for name in measured:
        np.testing.assert_allclose(found[name], found["hinge b"] - found["hinge a"], atol=1e-12)
        assert np.abs(found[name][:, 0] - 10.0 * np.sin(2.0 * trajectory.t)).max() < 0.02 and found[name].max() > 2.5 * np.pi


def test_measures_change_no_count():
    """Those on which nothing acts are not even coordinates; with a load there are as many more constraints as coordinates."""
    without, pose = tethered({}, {})
    plain, p0 = mbd.assemble(without, pose)
    for acting in ({}, {"band": mbd.JointSpring("reach", 1.0)}):
        mechanism, _ = tethered({"reach": length()}, acting)
        system, q0 = mbd.assemble(mechanism, pose)
        assert q0.size - p0.size == len(acting) and system.params.closures == 0
        assert system.params.increments == plain.params.increments
        text = mechanism.summary(pose)
        assert "degrees of freedom: 4" in text and "measured): reach" in text and "redundant constraints involve" not in text
        assert "degrees of freedom: 4" in without.summary(pose)


@pytest.mark.slow
def test_rates_and_placements_take_measures():
    mechanism, pose = tethered({"reach": length()}, {"band": mbd.JointSpring("reach", 1.0)})
    system, q0 = mbd.assemble(mechanism, pose | {"reach": 1.3})
    assert abs(float(q0[-1]) - 1.3) < 1e-12
    v0 = mbd.joint_velocities(system, q0, {"reach": 0.4, "hinge": 1.0})
    assert abs(float(v0[-1]) - 0.4) < 1e-12
    trajectory = mbd.simulate(system, q0, v0, **RUN)
    assert abs(float(post.joint_rates(system, trajectory)["reach"][0, 0]) - 0.4) < 1e-9
    free = mbd.joint_velocities(system, q0, {"hinge": 1.0})  # the point on the rod moves, the ball does not
    assert abs(float(free[-1])) > 0.1 and np.abs(free[4:7]).max() < 1e-12


@pytest.mark.slow
def test_measures_drive_and_gear():
    """A rope over a pulley, whose length is the angle of a drum, wound up by a motor with the torque that the weight needs."""
    bodies = {"drum": mbd.PlanarBody(1.0, 0.2), "weight": mbd.Particle(2.0)}
    parts = {
        "axle": mbd.Joint(mbd.Revolute(), "ground", "drum", at=(1, 1, 0)),
        "rope": mbd.Joint(joints.Length(), "ground", "weight"),
        "winch": mbd.Gear("axle", "rope", -0.1),
    }
    acting = {"gravity": mbd.Gravity((0, -9.81, 0)), "motor": mbd.Motor("axle")}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, parts, acting), {"drum": (1, 1, 0), "weight": (0, -1.5, 0)})
    trajectory = mbd.simulate(system, q0, scheme=mbd.EnergyMomentum(), controls=lambda t: {"motor": jnp.full_like(t, 2.5)}, **RUN)
    rope, turned = (post.joint_coordinates(system, trajectory)[name][:, 0] for name in ("rope", "axle"))
    np.testing.assert_allclose(rope, 1.5 - 0.1 * turned, atol=1e-13)
    speeding = (2.5 - 0.1 * 2.0 * 9.81) / (0.2 + 2.0 * 0.1**2)
    np.testing.assert_allclose(turned, 0.5 * speeding * trajectory.t**2, atol=1e-5)
    np.testing.assert_allclose(-trajectory.q[:, 5], rope, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["hinge", "reach"])
def test_measures_are_targets(on):
    """A distance that nothing acts on, and one that a motor drives and friction holds: met, and played back."""
    reach = mbd.Joint(joints.Length(), "ground", "rod", on_a=(1.0, 1.0, 0.0), on_b=(0.5, 0.0, 0.0))
    parts = {"hinge": mbd.Joint(mbd.Revolute(), "ground", "rod", at=(0, 0, 0)), "reach": reach}
    rubbing = {"rubbing": mbd.Friction("reach", LuGre(1e3, 1.0, 0.5, 0.3, 0.1))} if on == "reach" else {}
    acting = {"weight": mbd.Gravity((0, -9.81, 0)), "motor": mbd.Motor(on)} | rubbing
    system, q0 = mbd.assemble(mbd.Mechanism({"rod": mbd.PlanarBody.rod(1.0, 1.0)}, parts, acting), {"rod": (0.5, 0, 0)})
    wanted = lambda t: 1.0 - 0.3 * jnp.sin(2 * t) ** 4
    found = inverse_dynamics(system, q0, motion=Coordinate("reach", wanted), **RUN)
    motion = found.trajectory
    np.testing.assert_allclose(post.joint_coordinates(system, motion)["reach"][:, 0], wanted(motion.t), atol=1e-12)
    assert np.abs(found.inputs["motor"]).max() > 1
    back = mbd.simulate(system, motion.q[0], motion.v[0], controls=found.controls, **RUN)
    np.testing.assert_allclose(back.q, motion.q, atol=1e-10)


def test_mistakes_name_the_measure():
    cases = [
        (lambda: joints.Measure(3.0), "function of a Measure"),
        (lambda: joints.Measure(lambda a, b: 0.0, angular=1), "angular of a Measure"),
        (lambda: tethered_by(lambda a, b: None), "joint 'm' must return a scalar"),
        (lambda: tethered_by(lambda a, b: b.origin), "joint 'm' must return a scalar"),
        (lambda: tethered_by(lambda a, b: b.x @ a.x, angular=True), "joint 'm' must return a pair of a cosine and a sine"),
        (lambda: tethered_by(lambda a, b: b.offset), "joint 'm'"),
        (lambda: tethered_by(lambda a, b: b.origin[0], load=mbd.JointForce("m", 1.0, index=1)), "coordinate 1 of joint 'm'"),
        (lambda: mbd.assemble(*tethered({"turn": mbd.Joint(joints.Angle(), "rod", "ball")}, {})), "orients 'ball'"),
    ]
    for call, words in cases:
        with pytest.raises(mbd.ModelError) as failure:
            call()
        assert words in str(failure.value), failure.value


def tethered_by(function, angular=False, load=None):
    measure = mbd.Joint(joints.Measure(function, angular=angular), "rod", "ball")
    return mbd.assemble(*tethered({"m": measure}, {} if load is None else {"load": load}))


@pytest.mark.slow
@pytest.mark.parametrize("formulation", [mbd.Multipliers(), mbd.NullSpace(), mbd.Reparametrised()], ids=["all", "null space", "chart"])
def test_measures_in_loops_and_on_beams(formulation):
    """A cable from a node of a beam to the coupler of a four-bar, whose closures are redundant: energy to rounding."""
    mechanism, pose = mbd.gallery.four_bar()
    section = mbd.Section((10.0, 10.0, 100.0, 1.0, 1.0, 1.0), mass=0.5, second=(1e-3, 1e-3))
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    last = list(bodies)[-1]
    bodies["beam"] = mbd.Beam.line((0, 0, 2.0), (1, 0, 2.0), section, elements=2)
    parts = mechanism.joints | {
        "clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 2.0)),
        "cable": mbd.Joint(joints.Length(), "beam[-1]", last),
    }
    poses = {name: pose[name] for name in bodies if name in pose}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, parts, [mbd.JointSpring("cable", 2.0, 1.0)]), poses)
    trajectory = mbd.simulate(system, q0, scheme=mbd.EnergyMomentum(), formulation=formulation, **RUN)
    energy = post.energy(system, trajectory)
    assert np.abs(energy - energy[0]).max() < 1e-12 * abs(energy[0]) and np.abs(np.diff(trajectory.q[:, -1])).max() > 1e-4
    assert trajectory.redundant == 3
