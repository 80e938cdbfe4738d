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
EXACT = ["energy-momentum", "conservative", "cayley"]
"""Schemes that keep energy to rounding."""


def pairs(schemes):
    """All pairs; in the quick suite each scheme meets one formulation, another one than its neighbours."""
    quick = {(scheme, list(FORMULATIONS)[i % len(FORMULATIONS)]) for i, scheme in enumerate(schemes)}
    marks = lambda pair: () if pair in quick else pytest.mark.slow
    return [pytest.param(*pair, marks=marks(pair), id="-".join(pair)) for pair in itertools.product(schemes, FORMULATIONS)]


# A wheel on a spring, whose angle passes half a turn: c'' = -w^2 c

RATE = np.sqrt(0.5 / 0.2)


@pytest.fixture(scope="module")
def wheel():
    mechanism = mbd.Mechanism(
        {"wheel": mbd.RigidBody(1.0, (0.15, 0.15, 0.2))},
        {"h": mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0.0, 0.0, 0.0))},
        {"spring": mbd.JointSpring("h", 0.5, 0.0)},
    )
    system, q0 = mbd.assemble(mechanism, {})
    return system, q0, mbd.joint_velocities(system, q0, {"h": 1.0})


def angle(system, trajectory, joint="h"):
    return np.asarray(post.joint_coordinates(system, trajectory)[joint][:, 0])


@pytest.mark.parametrize(("scheme", "formulation"), pairs(EXACT))
def test_a_wheel_on_a_spring_passes_half_a_turn(scheme, formulation, wheel):
    """Slow and fast, with small and large steps: energy is kept, and the motion is that of the oscillator up to an error of order two."""
    system, q0, v = wheel
    for speed, dt in ((5.0, 0.005), (5.0, 0.01), (60.0, 0.005), (60.0, 0.01)):
        run = mbd.simulate(system, q0, speed * v, dt=dt, steps=500, scheme=SCHEMES[scheme], formulation=FORMULATIONS[formulation])
        exact = speed / RATE * np.sin(RATE * np.asarray(run.t))
        assert np.abs(exact).max() > np.pi and np.ptp(post.energy(system, run)) < 1e-12 * 0.1 * speed**2
        np.testing.assert_allclose(angle(system, run), exact, rtol=0, atol=0.4 * (dt * speed) ** 2 * np.abs(exact).max())


LARGE = [("conservative", "joint multipliers"), ("conservative", "chart"), ("energy-momentum", "multipliers")]


@pytest.mark.parametrize(("scheme", "formulation"), LARGE, ids="-".join)
def test_large_steps_are_right_or_say_so(scheme, formulation, wheel):
    """Steps of 2.4 radians, by the speed or by the frequency of the spring: what says SUCCESS counts the turns of the wheel."""
    system, q0, v = wheel
    run = lambda speed, dt: mbd.simulate(
        system, q0, speed * v, dt=dt, steps=40, scheme=SCHEMES[scheme], formulation=FORMULATIONS[formulation], throw=False
    )
    for speed, dt in ((5.0, 2.4 / 5.0), (60.0, 2.4 / 60.0), (5.0, 2.4 / RATE), (0.5, 2.4 / RATE)):
        trajectory = run(speed, dt)
        solved = np.flatnonzero(trajectory.results == mbd.Result.SUCCESS)
        x = np.asarray(post.poses(system, trajectory)["wheel"].rotation[solved, :, 0])
        np.testing.assert_allclose(angle(system, trajectory)[solved], np.unwrap(np.arctan2(x[:, 1], x[:, 0])), rtol=0, atol=1e-9)
        assert np.ptp(post.energy(system, trajectory)[solved]) < 1e-9 * 0.1 * speed**2


# A wheel with a spring and a damper, geared to another one that a motor drives: J c'' + d c' + k c = r M

RATIO, INERTIA, SECOND, TIME = -0.5, 0.2, 0.4, 2.0
EFFECTIVE = INERTIA + RATIO**2 * SECOND
DECAY, FREQUENCY = 0.05 * np.pi / TIME, np.pi / TIME
STIFFNESS, DAMPING = EFFECTIVE * (FREQUENCY**2 + DECAY**2), 2 * EFFECTIVE * DECAY
REST = 27.5 * TURN
TORQUE = STIFFNESS * REST / RATIO


def swing(t):
    """The angle of the first wheel that starts from rest: it swings past fifty turns and back."""
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


@pytest.mark.parametrize(("scheme", "formulation"), pairs(SCHEMES))
def test_fifty_turns_against_the_closed_form(scheme, formulation, drive):
    """Order two or better in the angle after fifty turns; the gear holds and exact schemes balance energy in every step."""
    system, q0 = drive
    runs = []

    def run(dt, steps):
        runs.append(mbd.simulate(system, q0, dt=dt, steps=steps, scheme=SCHEMES[scheme], formulation=FORMULATIONS[formulation]))
        return runs[-1]

    assert swing(TIME) > 50 * TURN
    ((coarse, fine),) = errors_after(TIME, (2000, 4000), run, [swing(TIME)], lambda trajectory: [angle(system, trajectory, "axle")])
    print(scheme, formulation, coarse, fine, coarse / fine)
    first, second = (angle(system, runs[-1], name) for name in ("axle", "shaft"))
    np.testing.assert_allclose(second, RATIO * first, rtol=0, atol=1e-11)
    if scheme in EXACT:
        work = TORQUE * np.diff(second) - DAMPING * np.diff(first) ** 2 / float(runs[-1].dt)
        energy = np.asarray(post.energy(system, runs[-1]))
        np.testing.assert_allclose(np.diff(energy), work, rtol=0, atol=1e-12 * energy.max())


# Loops, gradients, batches, float32


@pytest.mark.parametrize("planar", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_the_crank_of_a_four_bar_turns_many_times(planar):
    """Motors on hinges of the tree and on the one that closes the loop: their work is the change of energy in every step."""
    mechanism, placement = gallery.four_bar(planar=planar)
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    torques = {"hinge 1": 3.0, "hinge 4": -0.5}
    loads = [*mechanism.loads.values(), *(mbd.JointForce(name, torque) for name, torque in torques.items())]
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, mechanism.joints, loads), placement)
    assert {gauge.group < len(system.params.tree) for gauge in system.params.gauges} == {True, False}
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 12.0})
    run = mbd.simulate(system, q0, v0, dt=0.01, steps=600, scheme=mbd.EnergyMomentum(), formulation=mbd.NullSpace())
    crank = angle(system, run, "hinge 1")
    x = np.asarray(post.poses(system, run)["crank"].rotation[:, :, 0])
    np.testing.assert_allclose(crank, np.unwrap(np.arctan2(x[:, 1], x[:, 0])), rtol=0, atol=1e-11)
    energy = np.asarray(post.energy(system, run))
    work = sum(torque * np.diff(angle(system, run, name)) for name, torque in torques.items())
    print(crank[-1] / TURN, np.abs(np.diff(energy) - work).max() / energy.max())
    assert crank[-1] > 10 * TURN
    np.testing.assert_allclose(np.diff(energy), work, rtol=0, atol=1e-12 * energy.max())


def test_gradients_through_half_a_turn(wheel):
    """By the stiffness and by the initial speed, of the angle and its rate past half a turn, against differences."""
    system, q0, v = wheel

    def end(x):
        turned = mbd.simulate(
            system.replace({"spring.stiffness": x[0]}), q0, x[1] * v, dt=0.05, steps=20, scheme=mbd.EnergyMomentum(), throw=False
        )
        return turned.q[-1, -1] + turned.v[-1, -1] ** 2

    x, h = jnp.array([0.5, 8.0]), 1e-5
    both = jax.jit(jax.value_and_grad(end))
    value, slope = both(x)
    differences = [(both(x + step)[0] - both(x - step)[0]) / (2 * h) for step in h * jnp.eye(2)]
    print(value, slope, differences)
    np.testing.assert_allclose(slope, differences, rtol=1e-7)


def test_one_of_a_batch_loses_a_turn(wheel):
    """Started near other roots of the constraint, at half and full turns from the right one: those members alone are flagged."""
    system, q0, v = wheel
    dt = jnp.array(0.02)
    state = mbd.simulation.initial_state(system, q0, 5.0 * v, dt, jnp.array(0.0), mbd.EnergyMomentum())
    near = state.displacement.at[:, -1].add(0.1)

    def member(off):
        begun = eqx.tree_at(lambda s: s.displacement, state, near.at[:, -1].add(off))
        return mbd.simulation.step(system, begun, dt, mbd.EnergyMomentum())[0].status.result

    results = jax.jit(jax.vmap(member))(TURN * jnp.array([0.0, 0.5, 1.0, 0.0, -3.0]))
    assert [mbd.Result(int(code)).name for code in results] == ["SUCCESS", "LOST_TURN", "LOST_TURN", "SUCCESS", "LOST_TURN"]


def test_of_a_batch_of_speeds_those_that_lose_turns_are_flagged(wheel):
    system, q0, v = wheel
    speeds = jnp.array([0.5, 5.0, 60.0])
    run = lambda speed: mbd.simulate(
        system, q0, speed * v, dt=2.4 / RATE, steps=3, scheme=SCHEMES["exponential"], formulation=mbd.Reparametrised(), throw=False
    )
    batch = jax.vmap(run)(speeds)
    print(batch.results)


def test_many_turns_in_float32(wheel):
    system, q0, v = wheel
    single = lambda x: x.astype(jnp.float32)
    run = mbd.simulate(system, single(q0), single(60.0 * v), dt=0.005, steps=500, scheme=mbd.EnergyMomentum())
    energy = np.asarray(post.energy(system.astype(jnp.float32), run))
    x = np.asarray(post.poses(system.astype(jnp.float32), run)["wheel"].rotation[:, :, 0])
    off = angle(system, run) - np.unwrap(np.arctan2(x[:, 1], x[:, 0]))
    print(np.ptp(energy) / energy[0], np.abs(off).max(), run.q.dtype)
    assert run.q.dtype == jnp.float32


def test_a_cardan_shaft_and_a_cylindrical_joint_count_turns():
    """Both angles of a Cardan joint and the angle of a cylindrical one pass half a turn; work of the motors is the change of energy."""
    bodies = {name: mbd.RigidBody(1.0, (0.2, 0.25, 0.3)) for name in ("yoke", "slider")}
    joints = {
        "cross": mbd.Joint(mbd.Universal((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), "ground", "yoke", at=(0.0, 0.0, 0.0)),
        "sleeve": mbd.Joint(mbd.Cylindrical((0.0, 1.0, 0.0)), "yoke", "slider", at=(0.0, 0.0, 0.0)),
    }
    loads = {
        "first": mbd.JointForce("cross", 0.4, 0),
        "second": mbd.JointForce("cross", 0.5, 1),
        "third": mbd.JointSpring("sleeve", 0.1, 2.0),
        "fourth": mbd.JointSpring("sleeve", 2.0, index=1),
    }
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints, loads), {})
    v0 = mbd.joint_velocities(system, q0, {"cross": (3.0, 4.0), "sleeve": (5.0, 0.3)})
    run = mbd.simulate(system, q0, v0, dt=0.02, steps=200, scheme=mbd.EnergyMomentum())
    turned = np.asarray(post.joint_coordinates(system, run)["cross"])
    energy = np.asarray(post.energy(system, run))
    work = np.diff(turned, axis=0) @ [0.4, 0.5]
    print(np.abs(turned).max(axis=0), np.asarray(post.joint_coordinates(system, run)["sleeve"]).max(axis=0), np.abs(np.diff(energy) - work).max())
