"""Constraints on velocities beside others: on positions, redundant ones, moving ones, of random systems, of large ones, with servos."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from jaxmbd import inverse, post

from .mechanisms import rotate

FORMULATIONS = {
    "null space": mbd.NullSpace("qr"),
    "null space of a chart": mbd.NullSpace("chart"),
    "implicit chart": mbd.Reparametrised("implicit"),
    "chart": mbd.Reparametrised("user"),
    "chart with a decomposed null space": mbd.Reparametrised("user", "qr"),
}
GIVEN = ("once", "positions twice", "velocities twice", "both twice")
HEAD = 0.4
P = {"m": 1.2, "I": 0.2, "a": 0.3, "g": 1.0}


@functools.cache
def sleigh_with_centre(given):
    """A sleigh on a slope, whose centre of mass has coordinates of its own: (x, y, heading, X, Y), with constraints given once or more."""

    def centre(t, q, p):
        g = q[3:] - q[:2] - p["a"] * jnp.array([jnp.cos(q[2]), jnp.sin(q[2])])
        return g if given in ("once", "velocities twice") else jnp.array([*g, 2 * g[0] + jnp.sin(q[2]) * g[1]])

    def blade(t, q, v, p):
        c, s = jnp.cos(q[2]), jnp.sin(q[2])
        slip, rate = v[1] * c - v[0] * s, v[3] - v[0] + p["a"] * s * v[2]
        return jnp.array([slip] if given in ("once", "positions twice") else [slip, (2 + q[0]) * slip, rate])

    def chart(u, q, p):
        q = q[:3] + u
        return jnp.concatenate([q, q[:2] + p["a"] * jnp.array([jnp.cos(q[2]), jnp.sin(q[2])])])

    lagrangian = lambda t, q, v, p: 0.5 * p["m"] * v[3:] @ v[3:] + 0.5 * p["I"] * v[2] ** 2 - p["m"] * p["g"] * q[3]
    return mbd.System.from_functions(lagrangian, constraints=centre, velocity_constraints=blade, chart=chart, params=P)


def with_centre(q, v):
    """Position and velocity with those of the centre of mass."""
    ahead = P["a"] * np.array([np.cos(q[2]), np.sin(q[2])])
    return np.append(q, q[:2] + ahead), np.append(v, v[:2] + v[2] * np.array([-ahead[1], ahead[0]]))


START = with_centre(np.array([0.0, 0.0, HEAD]), np.array([-0.5 * np.cos(HEAD), -0.5 * np.sin(HEAD), 1.5]))


@functools.cache
def run(given, scheme=mbd.Midpoint(), formulation=mbd.Multipliers()):
    return mbd.simulate(sleigh_with_centre(given), *START, dt=0.05, steps=20, scheme=scheme, formulation=formulation)


def reduced(t, x):
    """The sleigh on the slope in (x, y, heading, speed, angular velocity), written by hand."""
    m, J, a, g = P["m"], P["I"] + P["m"] * P["a"] ** 2, P["a"], P["g"]
    _, _, angle, u, w = x
    along, across = -g * np.cos(angle), g * np.sin(angle)
    return [u * np.cos(angle), u * np.sin(angle), w, a * w * w + along, m * a * (across - u * w) / J]


def pairs():
    """All formulations of the system with everything twice, three of the others, in the slow run."""
    three = ("null space", "implicit chart", "chart")
    quick = [("both twice", name) for name in three]
    for given in GIVEN:
        for name in FORMULATIONS if given == "both twice" else three:
            yield pytest.param(given, name, marks=() if (given, name) in quick else pytest.mark.slow, id=f"{given}-{name}")


@pytest.mark.parametrize(("given", "name"), list(pairs()))
def test_formulations_agree(given, name):
    """So they do with redundant constraints: on positions, on velocities, and those on velocities that follow from positions."""
    trajectory, reference = run(given, formulation=FORMULATIONS[name]), run(given)
    for column in ("q", "v", "p"):
        np.testing.assert_allclose(getattr(trajectory, column), getattr(reference, column), atol=1e-12)
    np.testing.assert_allclose(trajectory.multipliers, reference.multipliers, atol=1e-9)
    system = sleigh_with_centre(given)
    assert trajectory.redundant == GIVEN.index(given) % 2 + (2 if "velocities" in given else 2 if given == "both twice" else 0)
    assert np.max(np.abs(post.constraint_residuals(system, trajectory))) < 1e-14
    assert np.max(np.abs(post.constraint_rates(system, trajectory))) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [mbd.Galerkin(4), mbd.EnergyMomentum()], ids=["galerkin 4", "energy-momentum"])
@pytest.mark.parametrize("name", ["null space", "implicit chart", "chart"])
def test_formulations_agree_with_other_schemes(scheme, name):
    trajectory, reference = run("both twice", scheme, FORMULATIONS[name]), run("both twice", scheme)
    np.testing.assert_allclose(trajectory.q, reference.q, atol=1e-12)
    np.testing.assert_allclose(trajectory.multipliers, reference.multipliers, atol=1e-9)
    if isinstance(scheme, mbd.EnergyMomentum):
        assert np.ptp(post.energy(sleigh_with_centre("both twice"), trajectory)) < 1e-13


@pytest.mark.parametrize("given", [pytest.param(given, marks=pytest.mark.slow) for given in GIVEN[:3]] + [GIVEN[3]])
def test_motion_against_reduced_equations_written_by_hand(given):
    trajectory = run(given, mbd.Galerkin(4))
    expected = solve_ivp(reduced, (0, 1), [0, 0, HEAD, -0.5, 1.5], method="DOP853", rtol=1e-12, atol=1e-12, t_eval=np.asarray(trajectory.t))
    np.testing.assert_allclose(trajectory.q[:, :3], expected.y[:3].T, atol=2e-7)


@functools.cache
def skate_on_turntable():
    """A blade on a disc that turns with the given rate, and springs to the axis: the constraint moves."""

    def blade(t, q, v, p):
        relative = v[:2] - p["rate"] * jnp.array([-q[1], q[0]])
        return rotate(-q[2], relative)[1:]

    lagrangian = lambda t, q, v, p: 0.5 * v[:2] @ v[:2] + 0.1 * v[2] ** 2 - 0.5 * p["k"] * q[:2] @ q[:2]
    return mbd.System.from_functions(lagrangian, velocity_constraints=blade, params={"rate": 0.7, "k": 2.0})


def on_turntable(t, x, rate=0.7, k=2.0):
    """Its accelerations by hand, with the multiplier from the derivative of the constraint in time."""
    q, v, (s, c) = x[:3], x[3:], (np.sin(x[2]), np.cos(x[2]))
    relative = v[:2] - rate * np.array([-q[1], q[0]])
    turned = -v[2] * (c * relative[0] + s * relative[1])
    carried = -rate * (s * v[1] + c * v[0])
    reaction = -(turned + carried + s * k * q[0] - c * k * q[1])
    return [*v, -k * q[0] - s * reaction, -k * q[1] + c * reaction, 0.0]


def test_a_moving_constraint_against_accelerations_written_by_hand():
    system, q0 = skate_on_turntable(), jnp.array([0.5, 0.2, 0.3])
    _, v0 = mbd.project(system, q0, jnp.array([0.1, 0.2, 1.0]))
    assert abs(system.velocity_constraints(jnp.array(0.0), q0, v0)[0]) < 1e-15
    trajectory = mbd.simulate(system, q0, v0, dt=0.05, steps=40, scheme=mbd.Galerkin(6))
    expected = solve_ivp(on_turntable, (0, 2), np.append(q0, v0), method="DOP853", rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.append(trajectory.q[-1], trajectory.v[-1]), expected.y[:, -1], atol=1e-9)


@functools.cache
def random_system():
    """Two quadratic constraints on positions and two on velocities, affine and moving, with coefficients as parameters."""

    def positions(t, q, p):
        return p["b"] @ q + 0.5 * jnp.einsum("i,kij,j->k", q, p["B"], q) + p["c"] * jnp.sin(t)

    def velocities(t, q, v, p):
        return (p["A0"] + jnp.einsum("kij,j->ki", p["A1"], q)) @ v + p["a"] * jnp.cos(t + q[0])

    lagrangian = lambda t, q, v, p: 0.5 * v @ (p["m"] * v) - 0.5 * q @ q + q[0] * jnp.sin(q[1])
    shapes = {"b": (2, 6), "B": (2, 6, 6), "c": (2,), "A0": (2, 6), "A1": (2, 6, 6), "a": (2,), "m": (6,)}
    return mbd.System.from_functions(lagrangian, constraints=positions, velocity_constraints=velocities, params=shapes), shapes


@pytest.mark.parametrize("formulation", [mbd.Multipliers(), pytest.param(mbd.Reparametrised(), marks=pytest.mark.slow)])
def test_random_constraints_hold_to_rounding(formulation):
    """Each seed other constraints and another start: values and rates at nodes, and the discrete constraints in the middle of steps."""
    plain, shapes = random_system()
    for seed in range(5):
        random = np.random.default_rng(seed)
        scaled = {"B": 0.3, "A1": 0.5, "c": 0.2, "a": 0.3}
        params = {name: scaled.get(name, 1.0) * random.standard_normal(shape) for name, shape in shapes.items()}
        system = plain.with_params(params | {"m": 1 + random.random(6)})
        q0, v0 = mbd.project(system, 0.2 * random.standard_normal(6), random.standard_normal(6))
        trajectory = mbd.simulate(system, q0, v0, dt=0.02, steps=20, formulation=formulation)
        assert np.max(np.abs(post.constraint_residuals(system, trajectory))) < 1e-12
        assert np.max(np.abs(post.constraint_rates(system, trajectory))) < 1e-11
        assert np.max(np.abs(post.hidden_velocity_constraints(system, trajectory)[:, 2:])) < 1e-10


@pytest.mark.slow
def test_mechanisms_from_parts_with_their_charts():
    """A box on a plane whose blade is given as a function of frames, and again with the height that the plane holds already."""
    mechanism = mbd.Mechanism(
        bodies={"sleigh": mbd.RigidBody.box(mass=2.0, size=(1.0, 0.4, 0.2))},
        joints={"floor": mbd.Joint(mbd.joints.Planar(axis=(0, 0, 1)), "ground", "sleigh", at=(0, 0, 0))},
        loads=(mbd.Gravity((1.0, 0, -9.81)),),
    )
    slips = lambda t, q, v, p: jnp.array([q[6:9] @ (v[:3] - 0.3 * v[3:6]), 2 * q[6:9] @ (v[:3] - 0.3 * v[3:6]) + v[2]])
    assembled, q0 = mbd.assemble(mechanism)
    system = dataclasses.replace(assembled, functions=assembled.functions | {"velocity_constraints": Partial(slips)}, rank=None)
    q0, v0 = mbd.project(system, q0, jnp.array([0.5, 0.4, 0, 0, 1.3, 0, -1.3, 0, 0, 0, 0, 0]))
    motions = [
        mbd.simulate(system, q0, v0, dt=0.02, steps=20, formulation=formulation)
        for formulation in (mbd.Multipliers(), mbd.formulations.JointMultipliers(), mbd.NullSpace(), mbd.Reparametrised())
    ]
    assert motions[0].redundant == 1
    assert np.max(np.abs(post.constraint_residuals(system, motions[0]))) < 1e-14
    for motion in motions[1:]:
        np.testing.assert_allclose(motion.q, motions[0].q, atol=1e-12)
        np.testing.assert_allclose(motion.multipliers, motions[0].multipliers, atol=1e-9)


@pytest.mark.slow
def test_a_servo_steers():
    """A torque that holds the heading on a curve, with targets that count before constraints on velocities in a start."""

    def lagrangian(t, q, v, p):
        return 0.5 * v[:2] @ v[:2] + 0.1 * v[2] ** 2

    system = mbd.System.from_functions(
        lagrangian,
        velocity_constraints=lambda t, q, v, p: rotate(-q[2], v[:2])[1:],
        forces=lambda t, q, v, p, torque: jnp.array([0.0, 0.0, 1.0]) * torque,
    )
    servo = inverse.Servo(lambda system, t, q: q[2:] - 0.3 * jnp.sin(2 * t), inputs=0.0)
    q0, v0 = inverse.consistent_start(system, servo, jnp.zeros(3), jnp.array([1.0, 0.2, 0.0]))
    np.testing.assert_allclose(v0, [1.0, 0.0, 0.6], atol=1e-14)
    trajectory = mbd.simulate(system, q0, v0, dt=0.02, steps=20, servo=servo)
    np.testing.assert_allclose(trajectory.q[:, 2], 0.3 * np.sin(2 * trajectory.t), atol=1e-12)
    with pytest.raises(mbd.ModelError, match="does not follow target"):
        mbd.simulate(system, q0, jnp.array([1.0, 0.0, 0.1]), dt=0.02, steps=20, servo=servo)
    with pytest.raises(mbd.ModelError, match="v0 is not tangent to the constraints: number 0"):
        mbd.simulate(system, q0, jnp.array([1.0, 0.2, 0.6]), dt=0.02, steps=20, servo=servo)


@pytest.mark.slow
def test_friction_acts_beside_them():
    """A blade that slips along its heading against friction: exact balance of energy with the energy-momentum scheme."""
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v[:2] @ v[:2] + 0.1 * v[2] ** 2 - 0.5 * q[:2] @ q[:2],
        velocity_constraints=lambda t, q, v, p: rotate(-q[2], v[:2])[1:],
        friction={"turning": (2, mbd.friction.Plasticity(50.0, 0.05))},
    )
    trajectory = mbd.simulate(
        system, jnp.array([1.0, 0.0, 0.3]), jnp.array([0.0, 0.0, 1.0]), dt=0.02, steps=50, scheme=mbd.EnergyMomentum()
    )
    balance = post.energy(system, trajectory) + post.dissipated(system, trajectory)
    np.testing.assert_allclose(balance, balance[0], atol=1e-12)
    assert post.dissipated(system, trajectory)[-1] > 0.01


@pytest.mark.slow
def test_large_systems_with_sparse_steps():
    """A string of sleighs, tied by springs: more than what is decomposed. With every blade given twice it moves as dense matrices say."""
    count = 80

    def lagrangian(t, q, v, p):
        q, v = q.reshape(count, 4), v.reshape(count, 4)
        springs = jnp.sum(jnp.diff(q[:, 2:], axis=0) ** 2)
        return 0.5 * jnp.sum(v[:, 2:] ** 2) + 0.05 * jnp.sum(v[:, 1] ** 2) + 0.5 * jnp.sum(v[:, 0] ** 2) - 5 * springs

    def tied(t, q, p):
        q = q.reshape(count, 4)
        return q[:, 0] - 0.5 * (q[:, 2] ** 2 + q[:, 3])

    def blades(t, q, v, p):
        q, v = q.reshape(count, 4), v.reshape(count, 4)
        return v[:, 3] * jnp.cos(q[:, 1]) - v[:, 2] * jnp.sin(q[:, 1])

    def twice(t, q, v, p):
        slips = blades(t, q, v, p)
        return jnp.concatenate([slips, (2 + q.reshape(count, 4)[:, 0]) * slips])

    once, doubled = (mbd.System.from_functions(lagrangian, constraints=tied, velocity_constraints=given) for given in (blades, twice))
    random = np.random.default_rng(0)
    q0, v0 = mbd.project(once, 0.3 * random.standard_normal(4 * count), random.standard_normal(4 * count))
    dense, sparse = (
        mbd.simulate(system, q0, v0, dt=0.02, steps=10, newton=mbd.Newton(linear=linear))
        for system, linear in ((once, mbd.linear.Dense()), (doubled, mbd.linear.Sparse()))
    )
    np.testing.assert_allclose(sparse.q, dense.q, atol=1e-11)
    for system, trajectory in ((once, dense), (doubled, sparse)):
        assert np.max(np.abs(post.constraint_residuals(system, trajectory))) < 1e-12
        assert np.max(np.abs(post.constraint_rates(system, trajectory))) < 1e-10
