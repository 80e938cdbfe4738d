"""Angles that count turns, in every scheme and formulation: springs, motors, dampers and gears through many turns, turns that get lost."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post

from .mechanisms import errors_after
from .pairs import some_pairs

TURN = 2 * np.pi
SCHEMES = {
    "midpoint": mbd.Midpoint(),
    "trapezoidal": mbd.Trapezoidal(),
    "galerkin": mbd.Galerkin(4),
    "energy-momentum": mbd.EnergyMomentum(),
    "conservative": mbd.schemes.ConservativeDirector(),
    "cayley": mbd.schemes.DirectorEnergyMomentum(),
    "exponential": mbd.schemes.DirectorEnergyMomentum("exponential"),
    "generalized alpha": mbd.schemes.GeneralizedAlpha(),
    "newmark": mbd.schemes.Newmark(),
}
FORMULATIONS = {
    "multipliers": mbd.Multipliers(),
    "joint multipliers": mbd.formulations.JointMultipliers(),
    "null space": mbd.NullSpace(),
    "chart": mbd.Reparametrised(),
}
EXACT = ["energy-momentum", "conservative", "cayley"]  # their energy is kept to rounding
QUICK = [*zip(SCHEMES, itertools.cycle(FORMULATIONS), strict=False)]


def pairs(schemes, quick):
    """Pairs of a scheme and a formulation, of which few are quick."""
    marks = lambda pair: () if pair in quick else pytest.mark.slow
    rest = [pair for pair in some_pairs(schemes, FORMULATIONS) if pair not in quick]
    return [pytest.param(*pair, marks=marks(pair), id="-".join(pair)) for pair in [*quick, *rest]]


def angle(system, trajectory, joint="h"):
    """The counted angle of a joint."""
    return np.asarray(post.joint_coordinates(system, trajectory)[joint][:, 0])


def seen(system, trajectory, body="wheel"):
    """The angle that a body turned about the third axis, from row to row."""
    x = np.asarray(post.poses(system, trajectory)[body].rotation[:, :, 0])
    return np.unwrap(np.arctan2(x[:, 1], x[:, 0]))


# A wheel on a spring: c'' = -w^2 c

RATE = np.sqrt(0.5 / 0.2)


def wheel(body):
    joints = {"h": mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0.0, 0.0, 0.0))}
    system, q0 = mbd.assemble(mbd.Mechanism({"wheel": body}, joints, {"spring": mbd.JointSpring("h", 0.5, 0.0)}), {})
    return system, q0, mbd.joint_velocities(system, q0, {"h": 1.0})


@pytest.fixture(scope="module")
def spatial():
    return wheel(mbd.RigidBody(1.0, (0.15, 0.15, 0.2)))


@pytest.fixture(scope="module")
def planar():
    return wheel(mbd.PlanarBody(1.0, 0.2))


SMALL = [(5.0, 0.005), (5.0, 0.01), (60.0, 0.005), (60.0, 0.01)]
LARGE = [(5.0, 2.4 / 5.0), (60.0, 2.4 / 60.0), (5.0, 2.4 / RATE), (0.5, 2.4 / RATE)]
HALF_A_TURN = [("energy-momentum", "multipliers"), ("conservative", "joint multipliers"), ("conservative", "chart")]


@pytest.mark.parametrize(("scheme", "formulation"), pairs(EXACT, HALF_A_TURN))
def test_a_wheel_on_a_spring_passes_half_a_turn(scheme, formulation, spatial):
    """Slow and fast: energy is kept, and the motion is that of the oscillator up to an error of order two.

    Steps of 2.4 radians, by the speed or by the frequency of the spring, may fail; whatever says SUCCESS counts the turns of the wheel.
    """
    system, q0, v = spatial
    for speed, dt in SMALL + LARGE:
        run = mbd.simulate(
            system, q0, speed * v, dt=dt, steps=500, scheme=SCHEMES[scheme], formulation=FORMULATIONS[formulation], throw=False
        )
        solved = np.asarray(run.results) == mbd.Result.SUCCESS
        assert np.abs(angle(system, run) - seen(system, run))[solved].max() < 1e-11
        assert np.ptp(post.energy(system, run)[solved]) < 1e-12 * 0.1 * speed**2
        if (speed, dt) in SMALL:
            exact = speed / RATE * np.sin(RATE * np.asarray(run.t))
            assert solved.all() and np.abs(exact).max() > np.pi
            np.testing.assert_allclose(angle(system, run), exact, rtol=0, atol=0.4 * (dt * speed) ** 2 * np.abs(exact).max())


@pytest.mark.slow
def test_gradients_through_half_a_turn(planar):
    """By the stiffness and by the initial speed, of the angle and its rate beyond half a turn."""
    system, q0, v = planar

    def end(x):
        changed = system.replace({"spring.stiffness": x[0]})
        run = mbd.simulate(changed, q0, x[1] * v, dt=0.05, steps=20, scheme=mbd.EnergyMomentum(), save="end", throw=False)
        return run.q[-1, -1] + run.v[-1, -1] ** 2, run.q[-1, -1]

    x, h = jnp.array([0.5, 8.0]), 1e-5
    both = jax.jit(jax.value_and_grad(end, has_aux=True))
    (_, turned), slope = both(x)
    assert turned > np.pi
    differences = [(both(x + step)[0][0] - both(x - step)[0][0]) / (2 * h) for step in h * jnp.eye(2)]
    np.testing.assert_allclose(slope, differences, rtol=1e-7)


def test_members_of_a_batch_that_lose_turns_are_flagged_alone(planar):
    """Steps that begin near other roots of the constraint, at half and full turns from the right one."""
    system, q0, v = planar
    dt = jnp.array(0.02)

    def member(speed, off):
        state = mbd.simulation.initial_state(system, q0, speed * v, dt, jnp.array(0.0), mbd.Midpoint())
        begun = eqx.tree_at(lambda s: s.displacement, state, state.displacement.at[:, -1].add(off))
        return mbd.simulation.step(system, begun, dt)[0].status.result

    codes = jax.jit(jax.vmap(member))(jnp.array([5.0, 5.0, 5.0, 20.0, 20.0]), TURN * jnp.array([0.0, 0.5, 1.0, 0.0, -3.0]))
    assert [mbd.Result(int(code)).name for code in codes] == ["SUCCESS", "LOST_TURN", "LOST_TURN", "SUCCESS", "LOST_TURN"]


@pytest.mark.slow
def test_of_a_batch_of_speeds_the_one_that_loses_a_turn_is_flagged(spatial):
    system, q0, v = spatial
    options = {"scheme": SCHEMES["exponential"], "formulation": mbd.Reparametrised(), "throw": False}
    batch = jax.vmap(lambda speed: mbd.simulate(system, q0, speed * v, dt=2.4 / RATE, steps=3, **options))(jnp.array([0.5, 5.0]))
    assert batch.results[1, 1] == mbd.Result.LOST_TURN and batch.successful.tolist() == [True, False]


def test_many_turns_in_float32(planar):
    system, q0, v = planar
    system = system.astype(jnp.float32)
    start = (q0.astype(jnp.float32), (60.0 * v).astype(jnp.float32))
    run = mbd.simulate(system, *start, dt=0.005, steps=500, scheme=mbd.EnergyMomentum())
    assert run.q.dtype == jnp.float32 and angle(system, run).max() > 5 * TURN
    assert np.abs(angle(system, run) - seen(system, run)).max() < 2e-5
    assert np.ptp(post.energy(system, run)) < 2e-5 * post.energy(system, run)[0]


# A wheel with a spring and a damper, geared to another one that a motor drives: J c'' + d c' + k c = r M

RATIO, INERTIA, SECOND, TIME = -0.5, 0.2, 0.4, 2.0
EFFECTIVE = INERTIA + RATIO**2 * SECOND
FREQUENCY = np.pi / TIME
DECAY = 0.05 * FREQUENCY
STIFFNESS, DAMPING = EFFECTIVE * (FREQUENCY**2 + DECAY**2), 2 * EFFECTIVE * DECAY
REST = 27.5 * TURN
TORQUE = STIFFNESS * REST / RATIO


ERRORS = {  # in radians after fifty turns in 4000 steps
    **dict.fromkeys(("midpoint", "trapezoidal"), 0.027),
    **dict.fromkeys(EXACT, 0.0172),
    "galerkin": 4.5e-6,
    "exponential": 0.0045,
    "generalized alpha": 0.0095,
    "newmark": 2.5e-6,
}


def swing(t):
    """The angle of the first wheel, which starts from rest and turns back after more than fifty turns."""
    return REST * (1 - np.exp(-DECAY * t) * (np.cos(FREQUENCY * t) + DECAY / FREQUENCY * np.sin(FREQUENCY * t)))


@pytest.fixture(scope="module")
def drive():
    axle = lambda name, x: mbd.Joint(mbd.Revolute(), "ground", name, at=(x, 0.0, 0.0))
    mechanism = mbd.Mechanism(
        {"first": mbd.RigidBody(1.0, (0.15, 0.15, INERTIA)), "second": mbd.PlanarBody(1.0, SECOND)},
        {"axle": axle("first", 0.0), "shaft": axle("second", 1.0), "gear": mbd.Gear("axle", "shaft", RATIO)},
        {"spring": mbd.JointSpring("axle", STIFFNESS, damping=DAMPING), "motor": mbd.JointForce("shaft", TORQUE)},
    )
    return mbd.assemble(mechanism, {"second": (1.0, 0.0, 0.0)})


@pytest.mark.parametrize(("scheme", "formulation"), pairs(SCHEMES, [("energy-momentum", "chart")]))
def test_fifty_turns_against_the_closed_form(scheme, formulation, drive):
    """Order two or better in the angle after fifty turns; the gear holds, and energy changes by the work of motor and damper."""
    system, q0 = drive
    save, runs = mbd.Save(fields=("q", "v", "p") if scheme in EXACT else ("q",)), []

    def run(dt, steps):
        runs.append(mbd.simulate(system, q0, dt=dt, steps=steps, scheme=SCHEMES[scheme], formulation=FORMULATIONS[formulation], save=save))
        return runs[-1]

    assert swing(TIME) > 50 * TURN
    [(coarse, fine)] = errors_after(TIME, (2000, 4000), run, [swing(TIME)], lambda trajectory: [angle(system, trajectory, "axle")])
    assert fine < ERRORS[scheme] and coarse > 3.8 * fine
    first, second = (angle(system, runs[-1], name) for name in ("axle", "shaft"))
    np.testing.assert_allclose(second, RATIO * first, rtol=0, atol=2e-13)
    if scheme in EXACT:
        energy = np.asarray(post.energy(system, runs[-1]))
        work = TORQUE * np.diff(second) - DAMPING * np.diff(first) ** 2 / float(runs[-1].dt)
        np.testing.assert_allclose(np.diff(energy), work, rtol=0, atol=1e-14 * np.ptp(energy))


# Other joints, and loops


@pytest.mark.slow
@pytest.mark.parametrize("planar", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_crank_of_a_four_bar_turns_many_times(planar):
    """Motors on a hinge of the tree and on the one that closes the loop: their work is the change of energy in every step."""
    mechanism, placement = gallery.four_bar(planar=planar)
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    torques = {"hinge 1": 3.0, "hinge 3": 0.2, "hinge 4": -0.5}
    loads = [*mechanism.loads.values(), *(mbd.JointForce(name, torque) for name, torque in torques.items())]
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, mechanism.joints, loads), placement)
    assert {gauge.group < len(system.params.tree) for gauge in system.params.gauges} == {True, False}
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 12.0})
    run = mbd.simulate(system, q0, v0, dt=0.01, steps=600, scheme=mbd.EnergyMomentum())
    assert angle(system, run, "hinge 1")[-1] > 10 * TURN
    np.testing.assert_allclose(angle(system, run, "hinge 1"), seen(system, run, "crank"), rtol=0, atol=1e-11)
    energy = np.asarray(post.energy(system, run))
    work = sum(torque * np.diff(angle(system, run, name)) for name, torque in torques.items())
    np.testing.assert_allclose(np.diff(energy), work, rtol=0, atol=1e-13 * energy.max())


def test_a_load_on_the_second_angle_of_a_joint_counts_that_one():
    """Both angles of a Cardan joint change as their rates say."""
    cross = mbd.Joint(mbd.Universal((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), "ground", "yoke", at=(0.0, 0.0, 0.0))
    bodies, motor = {"yoke": mbd.RigidBody(1.0, (0.2, 0.25, 0.3))}, mbd.JointForce("cross", 0.5, index=1)
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, {"cross": cross}, [motor]), {})
    run = mbd.simulate(system, q0, mbd.joint_velocities(system, q0, {"cross": (3.0, 4.0)}), dt=0.01, steps=4)
    turned, rates = (read(system, run)["cross"] for read in (post.joint_coordinates, post.joint_rates))
    np.testing.assert_allclose(np.diff(turned, axis=0), 0.005 * (rates[1:] + rates[:-1]), rtol=0, atol=1e-4)


@pytest.mark.slow
def test_angles_of_cardan_and_cylindrical_joints_pass_half_a_turn():
    """The work of motors on both angles of a Cardan joint is the change of energy, that of springs on the sleeve included."""
    bodies = {name: mbd.RigidBody(1.0, (0.2, 0.25, 0.3)) for name in ("yoke", "slider")}
    joints = {
        "cross": mbd.Joint(mbd.Universal((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), "ground", "yoke", at=(0.0, 0.0, 0.0)),
        "sleeve": mbd.Joint(mbd.Cylindrical((0.0, 1.0, 0.0)), "yoke", "slider", at=(0.0, 0.0, 0.0)),
    }
    springs = [mbd.JointSpring("sleeve", 0.1, 2.0), mbd.JointSpring("sleeve", 2.0, index=1)]
    motors = [mbd.JointForce("cross", 0.4), mbd.JointForce("cross", 0.5, index=1)]
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints, [*springs, *motors]), {})
    v0 = mbd.joint_velocities(system, q0, {"cross": (3.0, 4.0), "sleeve": (5.0, 0.3)})
    run = mbd.simulate(system, q0, v0, dt=0.02, steps=200, scheme=mbd.EnergyMomentum())
    turned = post.joint_coordinates(system, run)
    assert np.abs(turned["cross"]).max(axis=0).min() > np.pi and turned["sleeve"][:, 0].max() > np.pi
    energy = np.asarray(post.energy(system, run))
    np.testing.assert_allclose(np.diff(energy), np.diff(turned["cross"], axis=0) @ [0.4, 0.5], rtol=0, atol=2e-14 * energy.max())
