"""Mechanisms that roll and skate: how they are assembled, and how they move."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import joints, rotation
from jaxmbd.assembly.functions import velocity_constraints
from jaxmbd.viz.skeleton import skeleton

BALL = mbd.RigidBody.sphere(1.0, 1.0)
SCALAR = mbd.Joint(mbd.UserJoint(lambda a, b, p: jnp.zeros(0), slip=lambda a, b, a_rate, b_rate, p: b_rate.origin[0]), "ground", "a")
UP = (-np.pi / 2, 0, 0)
"""The rotation of a cylinder whose axis, its third, is an axle along y."""


def coin(radius=0.05, **options):
    body = mbd.RigidBody(0.3, 0.3 * radius**2 * np.array([0.25, 0.5, 0.25]))
    return mbd.Mechanism({"coin": body}, {"contact": mbd.Joint(joints.RollingDisc(radius), "ground", "coin", **options)}, [mbd.Gravity()])


def cart():
    """Two wheels on one axle and a ball under the front of a deck."""
    wheel = mbd.RigidBody.cylinder(0.3, 0.1, 0.03)
    bodies = {"deck": mbd.RigidBody.box(2.0, (0.6, 0.3, 0.1)), "left": wheel, "right": wheel, "ball": mbd.RigidBody.sphere(0.1, 0.05)}
    places = {"deck": (0, 0, 0.12), "left": ((-0.2, 0.2, 0.1), UP), "right": ((-0.2, -0.2, 0.1), UP), "ball": (0.25, 0, 0.05)}
    hinge, tyre = mbd.Revolute((0, 1, 0)), joints.RollingDisc(0.1, axis=(0, 0, 1))
    connections = {
        "left axle": mbd.Joint(hinge, "deck", "left", at=(-0.2, 0.2, 0.1)),
        "right axle": mbd.Joint(hinge, "deck", "right", at=(-0.2, -0.2, 0.1)),
        "socket": mbd.Joint(mbd.Spherical(), "deck", "ball", at=(0.25, 0, 0.05)),
        "left tyre": mbd.Joint(tyre, "ground", "left"),
        "right tyre": mbd.Joint(tyre, "ground", "right"),
        "ball tyre": mbd.Joint(joints.RollingBall(0.05), "ground", "ball"),
    }
    return mbd.Mechanism(bodies, connections, [mbd.Gravity()]), places


def bicycle(steering):
    """Seen from above: two blades a length of one apart, the front one turned by the steering angle."""
    turned = mbd.Frame((1.0, 0, 0), rotation.exp(np.array([0, 0, steering])))
    blades = {"rear": mbd.Joint(joints.KnifeEdge(), "ground", "frame")}
    blades["front"] = mbd.Joint(joints.KnifeEdge(), "ground", "frame", on_a=mbd.Frame((0, 0, 0), np.eye(3)), on_b=turned)
    return mbd.Mechanism({"frame": mbd.PlanarBody(2.0, 0.3, com=(0.4, 0.0))}, blades)


@pytest.fixture(scope="module")
def assembled_cart():
    mechanism, places = cart()
    return mbd.assemble(mechanism, places)


def slip(system, q, v):
    return velocity_constraints(jnp.zeros(()), q, v, system.params)


def test_bodies_without_a_pose_stand_on_the_plane():
    system, q0 = mbd.assemble(coin())
    np.testing.assert_allclose(q0[:3], [0, 0, 0.05], atol=1e-16)
    assert slip(system, q0, jnp.ones_like(q0)).shape == (2,)


def test_a_disc_is_put_on_its_plane_if_that_is_asked_for():
    with pytest.raises(mbd.ModelError, match="'contact' does not meet"):
        mbd.assemble(coin(), {"coin": (0, 0, 0.07)})
    _, q0 = mbd.assemble(coin(), {"coin": ((0.3, 0, 0.07), (0.4, 0, 0))}, solve=True)
    lean = np.arcsin(abs(float(q0[8])))
    np.testing.assert_allclose(q0[2], 0.05 * np.cos(lean), rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mbd.assemble(coin(), {"coin": ((0, 0, 0.0), (np.pi / 2, 0, 0))}), "'contact'.*lies flat"),
        (lambda: mbd.assemble(coin(at=(0, 0, 0.05)), {"coin": (0, 0, 0.05)}), "'contact'.*on_a.*on_b"),
        (lambda: joints.RollingDisc(-1.0), "radius of a RollingDisc"),
        (lambda: joints.RollingBall(0.0), "radius of a RollingBall"),
        (lambda: joints.KnifeEdge((0, 0, 0)), "axis of a KnifeEdge"),
        (lambda: mbd.Mechanism({"a": BALL}, {"b": mbd.Joint(joints.RollingBall(1.0), "a", "a")}), "'b' connects 'a'"),
        (lambda: mbd.Mechanism({"a": mbd.Particle(1.0)}, {"b": mbd.Joint(joints.KnifeEdge(), "ground", "a")}), "'b' orients 'a'"),
        (lambda: mbd.assemble(mbd.Mechanism({"a": BALL}, {"b": SCALAR})), "joint 'b' must return a vector"),
    ],
    ids=["flat", "at", "radius", "no radius", "no axis", "itself", "mass point", "scalar"],
)
def test_what_cannot_roll_is_refused(make, message):
    with pytest.raises(mbd.ModelError, match=message):
        make()


def test_bodies_in_a_plane_keep_the_rows_that_count():
    """A wheel on a line seen from the side, and blades seen from above; rows across the plane are fulfilled by themselves."""
    wheel = {"wheel": mbd.PlanarBody.disc(1.0, 0.5)}
    side = mbd.Joint(joints.RollingDisc(0.5, axis=(0, 0, 1), normal=(0, 1, 0)), "ground", "wheel")
    system, q0 = mbd.assemble(mbd.Mechanism(wheel, {"side": side}), {"wheel": (0, 0.5, 0)})
    assert [(len(group.kept), len(group.slips)) for group in system.params.closing] == [(1, 1)]
    v = mbd.joint_velocities(system, q0, {"wheel": (1.0, 0, -2.0)})
    assert np.abs(slip(system, q0, v)).max() < 1e-15
    system, _ = mbd.assemble(bicycle(0.3))
    assert sum(len(group.slips) * group.count for group in system.params.closing) == 2 and system.params.owners()[1:] == ["rear", "front"]


def test_rates_of_joints_carry_along_what_rolls(assembled_cart):
    """Two wheels tell how the deck goes: at the mean of their speeds, and turning by their difference over the track."""
    system, q0 = assembled_cart
    v = mbd.joint_velocities(system, q0, {"left axle": 10.0, "right axle": 12.0})
    assert np.abs(slip(system, q0, v)).max() < 1e-13
    rates = dict(zip(system.params.bodies, np.asarray(system.params.frames(v)), strict=True))
    np.testing.assert_allclose(rates["deck"], [[1.1, 0.2 * 0.5, 0], [0, 0.5, 0], [-0.5, 0, 0], [0, 0, 0]], atol=1e-13)


@pytest.mark.parametrize(
    ("rates", "named"), [({"deck": (0, 1.0, 0, 0, 0, 0)}, "left tyre, right tyre"), ({"deck": (0, 0, 1, 0, 0, 0)}, "ball tyre")]
)
def test_rates_with_which_something_would_slip_are_refused(assembled_cart, rates, named):
    with pytest.raises(mbd.ModelError, match=f"rates of deck: the joints.*{named}"):
        mbd.joint_velocities(*assembled_cart, rates)


def test_pictures_mark_where_bodies_touch():
    """A mark that goes along with the body, not one of a joint on the ground; what it touches is not drawn towards it."""
    system, q0 = mbd.assemble(coin(), {"coin": (0.3, 0.2, 0.05)})
    parts = skeleton(system, q0[None])
    np.testing.assert_allclose(parts.pins, [[[0.3, 0.2, 0.0]]], atol=1e-15)
    assert parts.hinges.size == 0 and not parts.bridges


def test_parameters_have_names():
    system, q0 = mbd.assemble(coin())
    assert {"contact.radius", "contact.axis", "contact.normal"} <= set(system.parameters)
    tilted = system.replace({"contact.normal": (0.0, 0.6, 0.8), "contact.radius": 0.1})
    np.testing.assert_allclose(tilted.constraints(0.0, q0), [*np.zeros(6), 0.8 * 0.05 - 0.1 * 0.8], atol=1e-15)


# Motions

FORMULATIONS = {"multipliers": mbd.Multipliers(), "null space": mbd.NullSpace(), "chart": mbd.Reparametrised()}
SLEIGH = {"mass": 1.5, "inertia": 0.06, "ahead": 0.2}


@functools.cache
def sleigh():
    """A planar body on a blade, its centre of mass ahead of it; and its closed form, v = V tanh kt and w = W sech kt."""
    m, inertia, a = SLEIGH.values()
    body, blade = mbd.PlanarBody(m, inertia, com=(a, 0)), mbd.Joint(joints.KnifeEdge(), "ground", "sleigh")
    system, q0 = mbd.assemble(mbd.Mechanism({"sleigh": body}, {"blade": blade}))
    about, energy = inertia + m * a**2, 0.8
    k = a / about * np.sqrt(2 * energy * m)
    rates = lambda t: (np.sqrt(2 * energy / m) * np.tanh(k * t), np.sqrt(2 * energy / about) / np.cosh(k * t))
    v, w = rates(-0.5)
    return system, q0, mbd.joint_velocities(system, q0, {"sleigh": (v, 0, w)}), rates


@functools.cache
def slide(scheme, formulation, dt):
    system, q0, v0, _ = sleigh()
    return mbd.simulate(system, q0, v0, dt=dt, steps=100, scheme=scheme, formulation=FORMULATIONS[formulation])


def sleigh_rates(q, v):
    """Along the blade, across it, and of the angle."""
    return jnp.stack([q[:, 2] * v[:, 0] + q[:, 3] * v[:, 1], q[:, 2] * v[:, 1] - q[:, 3] * v[:, 0], q[:, 2] * v[:, 3] - q[:, 3] * v[:, 2]])


@pytest.mark.parametrize(
    "scheme", [mbd.EnergyMomentum(), pytest.param(mbd.Midpoint(), marks=pytest.mark.slow)], ids=lambda x: type(x).__name__
)
def test_a_sleigh_turns_round_as_its_closed_form_says(scheme):
    rates, errors = sleigh()[3], []
    for dt in (0.02, 0.01):
        motion = slide(scheme, "multipliers", dt)
        row = round(1.0 / dt)
        v, w = rates(0.5)
        found = sleigh_rates(motion.q, motion.v)[:, row]
        errors.append(np.abs(found - np.array([v, 0, w])).max())
    assert errors[1] < 2e-3 and abs(np.log2(errors[0] / errors[1]) - 2) < 0.1


@pytest.mark.slow
def test_the_force_of_the_blade_is_that_of_the_closed_form():
    """Sideways on the centre of mass, $m (v w + a \\dot w) = m v w I/J$; at the blade, with no torque about it."""
    (system, _, _, rates), motion = sleigh(), slide(mbd.Midpoint(), "multipliers", 0.01)
    m, inertia, a = SLEIGH.values()
    v, w = rates(np.asarray(motion.t) - 0.5)
    wrench = mbd.post.reactions(system, motion)["blade"]
    sideways = jnp.stack([-motion.q[:, 3], motion.q[:, 2]], axis=1)
    np.testing.assert_allclose(
        np.sum(wrench.force[:, :2] * sideways, axis=1)[1:-1], (m * v * w * inertia / (inertia + m * a**2))[1:-1], rtol=0, atol=2e-3
    )
    assert np.abs(wrench.torque).max() == 0 and np.abs(wrench.force[:, 2]).max() == 0


@pytest.mark.parametrize("formulation", ["null space", pytest.param("chart", marks=pytest.mark.slow)])
def test_formulations_agree(formulation):
    reference, motion = (slide(mbd.EnergyMomentum(), name, 0.02) for name in ("multipliers", formulation))
    np.testing.assert_allclose(motion.q, reference.q, rtol=0, atol=2e-12)
    np.testing.assert_allclose(motion.multipliers, reference.multipliers, rtol=0, atol=1e-9)


def test_energy_of_the_sleigh_stays():
    system, motion = sleigh()[0], slide(mbd.EnergyMomentum(), "multipliers", 0.02)
    np.testing.assert_allclose(mbd.post.energy(system, motion), 0.8, rtol=1e-13)


def test_parts_move_as_functions_do():
    """The coordinates of a planar body, its point and its direction, with the constraints as functions of them."""
    m, inertia, a = SLEIGH.values()
    J = inertia + m * a**2

    def kinetic(t, q, v, p):
        return 0.5 * m * (v[:2] @ v[:2] + 2 * a * v[:2] @ v[2:]) + 0.5 * J * v[2:] @ v[2:]

    plain = mbd.System.from_functions(
        kinetic=kinetic,
        potential=lambda t, q, p: 0.0,
        constraints=lambda t, q, p: 0.5 * (q[2:] @ q[2:] - 1)[None],
        velocity_constraints=lambda t, q, v, p: (q[2] * v[1] - q[3] * v[0])[None],
    )
    _, q0, v0, _ = sleigh()
    motion = mbd.simulate(plain, q0, v0, dt=0.02, steps=100, scheme=mbd.EnergyMomentum())
    np.testing.assert_allclose(motion.q, slide(mbd.EnergyMomentum(), "multipliers", 0.02).q, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_single_precision():
    system, q0, v0, _ = sleigh()
    single = [jnp.asarray(one, jnp.float32) for one in (q0, v0)]
    motion = mbd.simulate(system, *single, dt=0.02, steps=100, scheme=mbd.EnergyMomentum())
    assert motion.q.dtype == jnp.float32
    np.testing.assert_allclose(motion.q, slide(mbd.EnergyMomentum(), "multipliers", 0.02).q, rtol=0, atol=5e-5)


@pytest.mark.slow
def test_a_bicycle_runs_on_the_circle_of_its_steering():
    """Rear wheel on a circle of radius $l/\\tan$ of the steering angle, about a centre on the line of its axle; with steady speed."""
    steering, speed = 0.4, 1.5
    system, q0 = mbd.assemble(bicycle(steering), {"frame": (0, 0, 0)})
    radius = 1 / np.tan(steering)
    v0 = mbd.joint_velocities(system, q0, {"frame": (speed, 0, speed / radius)})
    motion = mbd.simulate(system, q0, v0, dt=0.02, steps=100, scheme=mbd.EnergyMomentum())
    centre = jnp.array([0.0, radius])
    np.testing.assert_allclose(jnp.linalg.norm(motion.q[:, :2] - centre, axis=1), radius, rtol=1e-12)
    along = sleigh_rates(motion.q, motion.v)[0]
    np.testing.assert_allclose(along[1:], speed, rtol=2e-4)
    forces = {name: wrench.force[1:-1] for name, wrench in mbd.post.reactions(system, motion).items()}
    pull = jnp.linalg.norm(forces["rear"] + forces["front"], axis=1)
    np.testing.assert_allclose(pull, 2.0 * speed**2 / radius**2 * np.hypot(radius, 0.4), rtol=1e-3)


@pytest.mark.slow
def test_a_ball_on_a_turntable_goes_round_at_two_sevenths_of_its_rate():
    """A homogeneous ball, on a table too heavy to feel it: the centre goes round some circle, at $2/7$ of the table's rate."""
    table = mbd.RigidBody(1e9, (1e9, 1e9, 1e9))
    ball = mbd.RigidBody.sphere(0.5, 0.1)
    mechanism = mbd.Mechanism(
        {"table": table, "ball": ball},
        {
            "bearing": mbd.Joint(mbd.Revolute((0, 0, 1)), "ground", "table", at=(0, 0, 0)),
            "contact": mbd.Joint(joints.RollingBall(0.1), "table", "ball"),
        },
        [mbd.Gravity()],
    )
    system, q0 = mbd.assemble(mechanism, {"ball": (0.3, 0, 0.1)})
    rate, slide = 3.0, 0.4
    v0 = mbd.joint_velocities(system, q0, {"bearing": rate, "ball": (0, slide, 0, (0.3 * rate - slide) / 0.1, 0, 0)})
    motion = mbd.simulate(system, q0, v0, dt=0.02, steps=100, scheme=mbd.EnergyMomentum())
    place = mbd.post.point(system, motion, "ball").position
    turn = 2 / 7 * rate * motion.t
    centre = 0.3 - slide / (2 / 7 * rate)
    wanted = jnp.stack([centre + (0.3 - centre) * jnp.cos(turn), (0.3 - centre) * jnp.sin(turn), 0.1 + 0 * turn], axis=1)
    np.testing.assert_allclose(place, wanted, rtol=0, atol=5e-4)


def test_summaries_tell_positions_and_velocities_apart(assembled_cart):
    """Two wheels on one axle hold it sideways twice."""
    text = mbd.assembly.describe(*assembled_cart)
    assert "constraints: 40 on positions and 6 on velocities (45 independent, 1 redundant)" in text
    assert "degrees of freedom: 8 of positions, 3 of velocities" in text
    assert "RollingDisc (1 constraints and 2 on velocities each, closes a loop): left tyre, right tyre" in text
    assert text.endswith("redundant constraints involve: left axle, right axle, left tyre, right tyre")


@pytest.mark.slow
def test_a_cart_runs_with_its_redundant_constraints_in_all_formulations(assembled_cart):
    """The same motion however it is found, without slip, and with the weight on three points."""
    system, q0 = assembled_cart
    v0 = mbd.joint_velocities(system, q0, {"left axle": 10.0, "right axle": 12.0})
    runs = [
        mbd.simulate(system, q0, v0, dt=0.01, steps=30, scheme=mbd.EnergyMomentum(), formulation=formulation)
        for formulation in FORMULATIONS.values()
    ]
    for motion in runs:
        np.testing.assert_allclose(motion.q, runs[0].q, rtol=0, atol=1e-10)
        np.testing.assert_allclose(mbd.post.energy(system, motion), mbd.post.energy(system, runs[0])[0], rtol=1e-11)
        assert motion.redundant == 1 and np.abs(mbd.post.constraint_residuals(system, motion)).max() < 1e-12
    force = {name: wrench.force for name, wrench in mbd.post.reactions(system, runs[0]).items()}
    carried = sum(force[f"{name} tyre"][1:-1, 2] for name in ("left", "right", "ball"))
    np.testing.assert_allclose(carried, 9.81 * 2.7, rtol=1e-9)
    q, rate = runs[0].q, jnp.diff(runs[0].q, axis=0) / 0.01
    assert np.abs(jax.vmap(functools.partial(slip, system))(0.5 * (q[1:] + q[:-1]), rate)).max() < 1e-11


@pytest.mark.slow
def test_gradients_by_the_radius_are_those_of_differences():
    """Where a coin ends that rolls down a slope, by its radius and by the direction of the slope; started anew for each."""
    system, q0 = mbd.assemble(coin(), {"coin": ((0, 0, 0.05), (0, 0, 0.4))})

    def end(values):
        other = system.replace({"contact.radius": values[0], "gravity.acceleration": jnp.array([values[1], 0.0, -9.0])})
        q, v = mbd.project(other, q0, jnp.zeros_like(q0))
        motion = mbd.simulate(other, q, v, dt=0.02, steps=20, scheme=mbd.EnergyMomentum(), save="end", throw=False)
        return motion.q[-1, :3] @ jnp.array([1.0, 2.0, 3.0])

    value = jax.jit(jax.value_and_grad(end))
    at = jnp.array([0.05, 2.0])
    gradient = value(at)[1]
    for i, h in enumerate((1e-5, 1e-4)):
        step = jnp.zeros(2).at[i].set(h)
        np.testing.assert_allclose(gradient[i], (value(at + step)[0] - value(at - step)[0]) / (2 * h), rtol=2e-6)
