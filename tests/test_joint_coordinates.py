"""Mechanisms in coordinates of joints: the same mechanics as in directors, and as in Pinocchio."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post, robotics
from jaxmbd.assembly.joint_model import by_doubling, one_by_one
from jaxmbd.assembly.placement import as_frame, joint_frames, reference_poses

GRAVITY = np.array([0.3, -0.2, -9.81])
HINGES, PAIRS, BALLS = ("revolute",), ("revolute", "prismatic"), ("revolute", "spherical", "prismatic")
KINDS = {"revolute": mbd.Revolute, "prismatic": mbd.Prismatic, "spherical": lambda axis: mbd.Spherical()}


def random_tree(seed, count, kinds):
    """A random tree of bodies, branch after branch; every third joint is told from the child to its parent."""
    rng = np.random.default_rng(seed)
    bodies, joints, placement, path = {}, {}, {}, ["ground"]
    for i in range(count):
        inertia = mbd.RigidBody.box(1.0, rng.uniform(0.1, 0.6, 3)).inertia
        bodies[f"b{i}"] = mbd.RigidBody(rng.uniform(0.5, 2), inertia, com=rng.normal(size=3) * 0.1)
        placement[f"b{i}"] = (rng.normal(size=3), rng.normal(size=3))
        path = [*path[: rng.integers(len(path)) + 1], f"b{i}"]
        ends = path[-2:]
        joints[f"j{i}"] = mbd.Joint(
            KINDS[kinds[i % len(kinds)]](rng.normal(size=3)), *ends[:: -1 if i % 3 == 2 else 1], at=rng.normal(size=3)
        )
    return mbd.Mechanism(bodies, joints, [mbd.Gravity(GRAVITY)]), placement


def places_of(system):
    """Where the coordinates of each joint stand."""
    blocks = ((block, system.params.assembly.tree[block.group].names) for block in system.params.blocks)
    return {names[i]: slice(start := block.place(i, 0), start + block.width) for block, names in blocks for i in block.members}


def in_pinocchio(pin, mechanism, placement):
    """The model in Pinocchio, whose joints come in the order of ours, and which of them lead back to the parent."""
    model, ids, origins, back = pin.Model(), {"ground": 0}, {"ground": pin.SE3.Identity()}, {}
    poses = reference_poses(mechanism, {name: as_frame(value, name) for name, value in placement.items()})
    kinds = {"Revolute": pin.JointModelRZ, "Prismatic": pin.JointModelPZ, "Spherical": pin.JointModelSpherical}
    for i, (name, joint) in enumerate(mechanism.connections.items()):
        body = f"b{i}"
        back[name] = joint.a == body
        parent, ends = (joint.b, (1, 0)) if back[name] else (joint.a, (0, 1))
        on_parent, own = (pin.SE3(*map(np.asarray, (f.rotation, f.origin))) for f in (joint_frames(joint, poses)[end] for end in ends))
        ids[body] = model.addJoint(ids[parent], kinds[type(joint.kind).__name__](), origins[parent].actInv(on_parent), name)
        origins[body] = own
        part = mechanism.bodies[body]
        inertia = pin.Inertia(float(part.mass), np.asarray(part.com), np.asarray(part.inertia))
        model.appendBodyToJoint(ids[body], inertia, own.inverse())
    model.gravity.linear = GRAVITY
    return model, back


def product(p, q):
    return jnp.concatenate([(p[0] * q[0] - p[1:] @ q[1:])[None], p[0] * q[1:] + q[0] * p[1:] + jnp.cross(p[1:], q[1:])])


def conjugate(q):
    return q * jnp.array([1.0, -1.0, -1.0, -1.0])


def pinocchio_state(q, v, places, back):
    """Coordinates and velocities of Pinocchio: quaternions with the scalar last, angular velocities in the child."""
    positions, velocities = [], []
    for name, place in places.items():
        c, rate, sign = q[place], v[place], -1 if back[name] else 1
        if c.size == 1:
            positions.append(sign * c), velocities.append(sign * rate)
        else:
            turn = conjugate(c) if back[name] else c
            positions.append(jnp.roll(turn, -1))
            velocities.append(2 * (sign * (product(rate, conjugate(c)) if back[name] else product(conjugate(c), rate)))[1:])
    return jnp.concatenate(positions), jnp.concatenate(velocities)


@pytest.mark.parametrize(("seed", "count", "kinds"), [(0, 6, PAIRS), (1, 5, BALLS), pytest.param(2, 12, BALLS, marks=pytest.mark.slow)])
def test_mass_matrix_bias_and_gravity_are_those_of_pinocchio(seed, count, kinds):
    pin = pytest.importorskip("pinocchio")
    mechanism, placement = random_tree(seed, count, kinds)
    system, q0 = mbd.assemble(mechanism, placement, coordinates="joints")
    model, back = in_pinocchio(pin, mechanism, placement)
    places = {name: places_of(system)[name] for name in mechanism.connections}
    quaternions = system.params.quaternions

    @jax.jit
    @jax.vmap
    def ours(q, v):
        unit = lambda q: q.at[quaternions].set(q[quaternions] / jnp.linalg.norm(q[quaternions], axis=1, keepdims=True))
        tangent = lambda q, v: jax.jvp(unit, (q,), (v,))
        q, v = tangent(q, v)
        q, v = tangent(q, v)  # the second time at the unit quaternion itself
        a = jax.jvp(lambda q, v: tangent(q, v)[1], (q, v), (v, jnp.zeros_like(v)))[1]
        there = lambda q, v: pinocchio_state(q, v, places, back)
        p, w = there(q, v)
        T = jax.jacfwd(lambda v: there(q, v)[1])(v)
        N = jnp.linalg.pinv(T)  # of rates of quaternions those along the sphere
        M, forces, weight = robotics.mass_matrix(system, q), robotics.bias_forces(system, q, v), robotics.bias_forces(system, q)
        w_dot = jax.jvp(lambda q, v: there(q, v)[1], (q, v), (v, a))[1]
        return p, w, w_dot, N.T @ M @ N, N.T @ (M @ a + forces), N.T @ weight

    rng = np.random.default_rng(seed)
    q, v = q0 + rng.normal(size=(100, q0.size)), rng.normal(size=(100, q0.size))
    data = model.createData()
    for p, w, w_dot, M, forces, weight in zip(*map(np.asarray, ours(q, v)), strict=True):
        crba = pin.crba(model, data, p)
        np.testing.assert_allclose(M, np.triu(crba) + np.triu(crba, 1).T, rtol=0, atol=1e-11)
        np.testing.assert_allclose(forces, pin.rnea(model, data, p, w, w_dot), rtol=0, atol=1e-11)
        np.testing.assert_allclose(weight, pin.computeGeneralizedGravity(model, data, p), rtol=0, atol=1e-11)


def test_many_frames_are_composed_as_few_are():
    """Along a tree with long and short branches; the last frame is space."""
    rng = np.random.default_rng(3)
    carriers = (*(9 if i in (0, 5) else int(rng.integers(max(0, i - 2), i)) for i in range(9)), 9)
    turns = np.stack([np.asarray(mbd.rotation.exp(vector)) for vector in rng.normal(size=(10, 3))])
    seen = mbd.Frame(jnp.asarray(rng.normal(size=(10, 3))).at[9].set(0), jnp.asarray(turns).at[9].set(jnp.eye(3)))
    few, many = one_by_one(seen, carriers), by_doubling(seen, carriers)
    np.testing.assert_allclose(many.origin, few.origin, atol=1e-13)
    np.testing.assert_allclose(many.rotation, few.rotation, atol=1e-13)
    assert np.max(np.abs(few.origin - seen.origin)) > 0.1


def four_bar():
    """A four-bar in space with redundant constraints, a motor, a spring over half a turn, and a ball that swings from it."""
    rod = lambda length: mbd.RigidBody.box(length, (length, 0.1, 0.1))
    return mbd.Mechanism(
        {"crank": rod(1.0), "coupler": rod(3.0), "rocker": rod(2.0), "bob": mbd.RigidBody.box(0.5, (0.1, 0.2, 0.4))},
        {
            "left": mbd.Joint(mbd.Revolute(), "ground", "crank", at=(0, 0, 0)),
            "knee": mbd.Joint(mbd.Revolute(), "coupler", "crank", at=(1, 0, 0)),
            "wrist": mbd.Joint(mbd.Revolute(), "coupler", "rocker", at=(4, 0, 0)),
            "right": mbd.Joint(mbd.Revolute(), "ground", "rocker", at=(2, 0, 0)),
            "ball": mbd.Joint(mbd.Spherical(), "coupler", "bob", at=(2, 0, 0)),
        },
        {"gravity": mbd.Gravity((0, -9.81, 0.5)), "spring": mbd.JointSpring("left", 0.5), "motor": mbd.Motor("right")},
    ), {"crank": (0.5, 0, 0), "coupler": (2.5, 0, 0), "rocker": (3, 0, 0), "bob": (2, -0.2, 0), "left": 0.9}


@pytest.fixture(scope="module")
def both():
    """The four-bar in directors and in joints, from the same start, with its motions in steps of 0.01."""
    mechanism, placement = four_bar()
    found = []
    for coordinates in ("directors", "joints"):
        system, q = mbd.assemble(mechanism, placement, coordinates=coordinates)
        v = mbd.joint_velocities(system, q, {"left": 3.0, "ball": (0.5, 0.2, -1.0)})
        formulation = mbd.NullSpace(source="qr")
        run = lambda dt, steps, system=system, q=q, v=v, f=formulation: mbd.simulate(
            system, q, v, dt=dt, steps=steps, controls=motor, formulation=f
        )
        found.append((system, q, v, run))
    return found


def motor(t):
    return {"motor": jnp.sin(3 * t)}


def test_position_and_velocity_of_a_loop_are_those_of_directors(both):
    (_, y, rate, _), (system, q, v, _) = both
    assert (q.size, y.size) == (8, 50)  # three hinges, a quaternion, and the turns of the motor that closes the loop
    at, along = jax.jvp(system.params.position, (q,), (v,))
    np.testing.assert_allclose(at, y, atol=1e-12)
    np.testing.assert_allclose(along, rate, atol=1e-12)
    np.testing.assert_allclose(system.params.lowered(y, q), q, atol=1e-12)


@pytest.mark.slow
def test_motion_and_reactions_approach_those_of_directors_with_order_two(both):
    (full, _, _, by_directors), (system, _, _, by_joints) = both
    off = []
    for dt, row in ((0.01, 40), (0.005, 80)):
        a, b = by_directors(dt, 80), by_joints(dt, 80)
        np.testing.assert_allclose(post.constraint_residuals(system, b), 0, atol=1e-13)
        poses = [post.poses(*pair)["bob"].origin[row] for pair in ((full, a), (system, b))]
        off.append(np.max(np.abs(poses[0] - poses[1])))
    assert off[1] < 1e-5 and off[0] / off[1] == pytest.approx(4, rel=0.05)
    ours, theirs = post.joint_coordinates(system, b), post.joint_coordinates(full, a)
    assert all(np.max(np.abs(ours[name] - theirs[name])) < 1e-3 for name in theirs)
    continuous = dataclasses.replace(a, multipliers=post.multipliers(full, a, motor))
    ours, theirs = post.reactions(system, b, controls=motor), post.reactions(full, continuous)
    for name in theirs:
        np.testing.assert_allclose(ours[name].force, theirs[name].force, atol=1e-3 * np.max(np.abs(theirs[name].force)))


@pytest.fixture(scope="module")
def arm():
    """Two links that hang on hinges at right angles to each other, with a spring, in coordinates of joints."""
    rod = mbd.RigidBody.box(1.0, (0.1, 0.2, 1.0))
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "upper", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 1, 0)), "upper", "lower", at=(0, 0, -1)),
    }
    loads = {"gravity": mbd.Gravity((0, 0, -9.81)), "spring": mbd.JointSpring("elbow", 2.0, 0.1)}
    mechanism = mbd.Mechanism({"upper": rod, "lower": rod}, joints, loads)
    placement = {"upper": (0, 0, -0.5), "lower": (0, 0, -1.5), "shoulder": 1.0, "elbow": 0.4}
    return mbd.assemble(mechanism, placement, coordinates="joints")


def test_angles_are_the_coordinates_and_nothing_is_constrained(arm):
    system, q = arm
    np.testing.assert_allclose(q, [1.0, 0.4], atol=1e-15)
    assert not system.constrained and places_of(system)["elbow"] == slice(1, 2)
    assert "coordinates are those of the joints" in mbd.assembly.report.describe(system, q)


@pytest.mark.slow
def test_energy_schemes_and_adaptive_steps(arm):
    """Energy is exact with an energy-momentum scheme, whose mass matrix varies; it and `Midpoint` go where adaptive steps lead."""
    system, q = arm
    run = mbd.simulate(system, q, dt=0.01, steps=100, scheme=mbd.EnergyMomentum())
    energy = post.energy(system, run)
    assert np.ptp(energy) < 1e-12 * np.max(np.abs(energy))
    exact = mbd.odes.integrate(system, q, t1=1.0, rtol=1e-9, atol=1e-9).q[-1]
    variational = mbd.simulate(system, q, dt=0.01, steps=100, save="end").q[-1]
    assert np.max(np.abs(run.q[-1] - exact)) < 6e-4 and np.max(np.abs(variational - exact)) < 6e-4


@pytest.mark.slow
def test_a_length_moves_what_hangs_on_it(arm):
    """Coordinates stay what they are when a joint moves: no position has to be found anew. The derivative of a motion by it, against
    differences."""
    system, q = arm

    @jax.jit
    @jax.value_and_grad
    def end(length):
        longer = system.replace({"elbow.on_a": jnp.array([0.0, 0.0, 1.0]) * -length})
        trajectory = mbd.simulate(longer, q, dt=0.01, steps=50, save="end")
        return robotics.forward_kinematics(longer, trajectory.q[-1])["lower"].origin[1]

    (above, _), (below, _), (_, slope) = (end(0.5 + h) for h in (1e-5, -1e-5, 0.0))
    np.testing.assert_allclose(slope, (above - below) / 2e-5, rtol=1e-6)


def test_jacobians_are_velocities(arm):
    system, q = arm
    v = jnp.array([0.7, -1.1])
    trajectory = mbd.simulate(system, q, v, dt=1e-4, steps=1)
    moving = post.point(system, trajectory, "lower", (0.1, 0.2, 0.3))
    np.testing.assert_allclose(robotics.point_jacobian(system, q, "lower", (0.1, 0.2, 0.3)) @ v, moving.velocity[0], atol=1e-12)
    np.testing.assert_allclose(
        robotics.point_jacobian(system, q, "lower") @ v, (robotics.body_jacobian(system, q, "lower") @ v)[:3], atol=1e-12
    )
    with pytest.raises(mbd.ModelError, match="did you mean 'lower'"):
        robotics.body_jacobian(system, q, "lowr")


@pytest.mark.slow
def test_float32_stays_float32(arm):
    system, q = arm
    run = mbd.simulate(system, np.asarray(q, np.float32), dt=0.01, steps=10)
    assert run.q.dtype == np.float32
    np.testing.assert_allclose(run.q[-1], mbd.simulate(system, q, dt=0.01, steps=10).q[-1], atol=1e-4)


def test_a_motion_in_other_coordinates_is_refused(both, arm):
    (full, *_), (system, *_) = both
    run = mbd.simulate(*arm, dt=1e-4, steps=1)
    for other, size in ((full, 50), (system, 8)):
        with pytest.raises(mbd.ModelError, match=f"2 coordinates, but this system has {size}"):
            post.poses(other, run)
    with pytest.raises(mbd.ModelError, match="controls are for coordinates of joints"):
        post.reactions(full, run, controls=motor)


def test_schemes_of_directors_are_refused_by_name(arm):
    with pytest.raises(mbd.ModelError, match="coordinates of directors"):
        mbd.simulate(*arm, dt=0.01, steps=2, scheme=mbd.schemes.ConservativeDirector())


@pytest.mark.slow
def test_torques_against_friction_are_those_in_directors_and_return_the_motion():
    """Targets, motors and friction by the names of joints; in every step energy balances with work and what friction takes."""
    rod = mbd.RigidBody.box(1.0, (0.1, 0.2, 1.0))
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "upper", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 1, 0)), "upper", "lower", at=(0, 0, -1)),
    }
    loads = {"gravity": mbd.Gravity((0, 0, -9.81)), "m1": mbd.Motor("shoulder"), "m2": mbd.Motor("elbow")}
    loads |= {"rub": mbd.Friction("elbow", mbd.friction.Plasticity(350.0, 2.0))}
    placement = {"upper": (0, 0, -0.5), "lower": (0, 0, -1.5), "shoulder": 0.6, "elbow": 0.4}
    wanted = {"shoulder": lambda t: 0.6 + t**4, "elbow": lambda t: 0.4 - t**4}
    options, found = {"dt": 0.01, "steps": 40, "scheme": mbd.EnergyMomentum()}, {}
    for coordinates in ("directors", "joints"):
        system, q = mbd.assemble(mbd.Mechanism({"upper": rod, "lower": rod}, joints, loads), placement, coordinates=coordinates)
        motion = {name: mbd.inverse.Coordinate(name, history) for name, history in wanted.items()}
        found[coordinates] = one = mbd.inverse.inverse_dynamics(system, q, motion=motion, **options)
        again = mbd.simulate(system, q, controls=one.controls, **options)
        np.testing.assert_allclose(again.q, one.trajectory.q, rtol=0, atol=1e-13)
    angles, rubbing = post.joint_coordinates(system, one.trajectory), post.friction(system, one.trajectory)["rub"]
    work = sum(one.inputs[motor] * np.diff(angles[name][:, 0]) for motor, name in (("m1", "shoulder"), ("m2", "elbow")))
    balance = np.diff(post.energy(system, one.trajectory)) + np.diff(rubbing.dissipated) - work
    assert np.max(np.abs(balance)) < 1e-13 and rubbing.slip[-1] != 0
    for motor in ("m1", "m2"):
        np.testing.assert_allclose(one.inputs[motor], found["directors"].inputs[motor], rtol=0, atol=3e-4)


@pytest.mark.slow
def test_beams_keep_their_nodes():
    """A link that hangs on the end of a beam. Directors are quadratic in a quaternion, so that in a step they change by twice the product
    of its mean and its change: with the weight at the origin of the link, `Midpoint` moves it as it moves directors, to rounding.
    """
    section = mbd.Section.rectangle(0.05, 0.05, E=1e8, density=1000.0)
    bodies = {"beam": mbd.Beam.line((0, 0, 0), (1, 0, 0), section, elements=2), "link": mbd.RigidBody.box(0.5, (0.1, 0.1, 0.5))}
    joints = {
        "clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0)),
        "pin": mbd.Joint(mbd.Revolute((0, 1, 0)), "beam[-1]", "link", at=(1, 0, 0)),
    }
    mechanism, placement = mbd.Mechanism(bodies, joints, [mbd.Gravity((1.0, 0, -9.81))]), {"link": (1, 0, -0.25)}
    ends = []
    for coordinates in ("directors", "joints"):
        system, q = mbd.assemble(mechanism, placement, coordinates=coordinates)
        ends.append(post.poses(system, mbd.simulate(system, q, dt=0.005, steps=40))["link"])
    np.testing.assert_allclose(ends[1].origin, ends[0].origin, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ends[1].rotation, ends[0].rotation, rtol=0, atol=1e-12)
    assert np.ptp(ends[0].rotation[:, 0, 2]) > 0.01
