"""What an integration refuses before it begins, and how it tells why a motion stopped."""

import re

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from tests import mechanisms

odes = mbd.odes
FREE = lambda t, q, v, w, p: jnp.zeros_like(q)
FALLING = lambda t, q, v, w, p: jnp.array([0.0, -9.81])
CIRCLE = lambda t, q, p: jnp.array([q @ q - 1.0])
SPEEDS = lambda t, q, v, p: jnp.array([v[0] - 1, v[1], v[0] - 1 - jnp.maximum(t - 0.5, 0)])
"""Two speeds are prescribed for one coordinate, which are the same until the time 0.5."""


def functions(forces=FREE, mass=1.0, **options):
    return odes.Dynamics.from_functions(mass, forces, **options)


def test_velocities_that_contradict_each_other_are_seen():
    """The nearest one in the sense of least squares fulfils neither; it counts where constraints may be met as well as possible."""
    dynamics = functions(velocity_constraints=SPEEDS)
    y, projection = odes.State(jnp.zeros(3), jnp.array([1.0, 0.0, 2.0])), odes.Projection()

    @jax.jit
    def at(t):
        velocity = lambda dynamics: projection.velocity(dynamics, t, y.q, y.v)
        return velocity(dynamics), velocity(dynamics.reduced(jnp.eye(3))), projection.instant(dynamics, t, y, t).rate.q

    (_, before), _, same = at(jnp.array(0.4))
    (v, after), (_, inexact), none = at(jnp.array(1.0))
    assert before and np.isfinite(same).all()
    assert not after and inexact and np.isnan(none).all()
    np.testing.assert_allclose(v, [1.25, 0, 2], atol=1e-14)


def test_velocities_that_come_to_contradict_each_other_end_the_motion():
    system = mbd.System.from_functions(kinetic=lambda t, q, v, p: 0.5 * v @ v, velocity_constraints=SPEEDS)
    told = r"stopped at t = 0\.5, .* with NO_VELOCITY: .* Worst constraint at the last iterate: number [02], off at the rate"
    with pytest.raises(mbd.SimulationError, match=told) as caught:
        odes.integrate(system, [0.0, 0.0, 0.0], [1.0, 0.0, 2.0], t1=1.0, saveat=11)
    motion = caught.value.trajectory
    assert [mbd.Result(int(code)).name for code in motion.results[5:8]] == ["SUCCESS", "NO_VELOCITY", "NOT_REACHED"]
    np.testing.assert_allclose(motion.q[:6, 0], motion.t[:6], atol=1e-12)
    assert motion.final.status.violation > 0.01


@pytest.mark.slow
def test_rates_of_positions_against_velocities():
    dynamics = functions(
        constraints=lambda t, q, p: q[:1] - t - jnp.maximum(t - 0.5, 0) ** 2, velocity_constraints=lambda t, q, v, p: v[:1] - 1.0
    )
    with pytest.raises(mbd.SimulationError, match=r"stopped at t = 0\.5, .* with NO_VELOCITY"):
        odes.integrate(dynamics, [0.0, 0.0], [1.0, 0.0], t1=1.0)


def test_a_projection_that_does_not_converge_is_the_cause_of_too_many_steps():
    dynamics = functions(FALLING, constraints=CIRCLE, independent=True)
    with pytest.raises(mbd.SimulationError, match=r"NOT_PROJECTED: .* may need more max_steps"):
        odes.integrate(dynamics, [1.0, 0.0], t1=1.0, method=odes.Projection(max_steps=1), max_steps=400)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [False, True], ids=["of all coordinates", "reduced"])
def test_blame_is_a_number_that_matters(exact):
    """A link that would have to be longer than it is: whatever became of the last iterate, what is told of it is a number."""
    dynamics = functions(constraints=lambda t, q, p: jnp.array([q @ q - 1, q[0] - jnp.sin(2 * t) - 0.1 * t]))
    dynamics = dynamics.reduced(jnp.eye(2), exact=True) if exact else dynamics
    motion = odes.integrate(
        dynamics, [0.0, 1.0], [2.1, 0.0], t1=1.0, dt0=0.05, controller=diffrax.ConstantStepSize(), saveat=2, throw=False
    )
    assert motion.status.result == mbd.Result.NOT_PROJECTED
    assert motion.status.worst in (0, 1) and 1e-3 < motion.status.violation < 1


REFUSED = {
    "forces": (functions(lambda t, q, v, w, p: -q / jnp.sqrt(q[1] - 1)), {}, r"forces is not finite at the start.*\n.*jnp.sqrt\(q"),
    "mass": (functions(mass=[1.0, 0.0]), {}, "mass matrix is singular for an admissible velocity .mostly of coordinate 1"),
    "norm": (
        functions(constraints=lambda t, q, p: jnp.linalg.norm(q - jnp.array([1.0, 0]))[None]),
        {},
        "derivative of the constraint number 0",
    ),
    "dependent": (
        functions(constraints=lambda t, q, p: jnp.append(q[1], 2 * CIRCLE(t, q, p).repeat(2)), independent=True),
        {},
        "independent=True, but the constraint number [12] follows from the others",
    ),
    "shapes": (
        functions(states=lambda t, q, v, w, p: {"a": w["a"][:1]}),
        {"w0": {"a": jnp.zeros(2)}},
        r"shapes of w0, \{'a': \(2,\)\}, not \{'a': \(1,\)\}",
    ),
    "branch": (
        functions(states=lambda t, q, v, w, p: w if q[0] > 0 else -w),
        {"w0": 0.0},
        r"states decides by the value of an array(.|\n)*test_odes_failures",
    ),
    "rates": (functions(states=lambda t, q, v, w, p: jnp.log(w)), {"w0": 0.0}, "states is not finite at the start"),
    "position": (functions(constraints=CIRCLE), {"q0": [1.5, 0.0]}, r"number 0 is off by 1.25; use mbd.project\(dynamics.system, q, v\)"),
    "velocity": (functions(constraints=CIRCLE), {"v0": [1.0, 0.0]}, r"at the rate 2; use mbd.project\(dynamics.system, q0, v0\)"),
    "reduced position": (
        functions(constraints=CIRCLE).reduced(jnp.eye(2)),
        {"q0": [1.5, 0.0]},
        r"q0 does not fulfil .* moves it by 0.5; start from odes.Projection\(\).state\(dynamics",
    ),
    "reduced velocity": (functions(constraints=CIRCLE).reduced(jnp.eye(2)), {"v0": [1.0, 0.0]}, "v0 does not fulfil .* moves it by 1;"),
    "reduced and bent": (
        functions(velocity_constraints=lambda t, q, v, p: jnp.array([v[0] * v[1]])).reduced(jnp.eye(2)),
        {},
        "must be affine in v",
    ),
    "controller": (
        functions(),
        {"rtol": 1e-3, "dtmin": 1e-9, "controller": diffrax.PIDController(1e-9, 1e-9)},
        r"controller and rtol, dtmin were given: set them in the controller",
    ),
}


@pytest.mark.parametrize("dynamics, options, told", REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_at_the_start_is_named(dynamics, options, told):
    with pytest.raises(mbd.ModelError) as caught:
        odes.integrate(dynamics, **({"q0": [1.0, 0.0], "t1": 1.0} | options))
    assert re.search(told, str(caught.value))


def test_reduced_starts_inside_jit_have_codes():
    reduced = functions(constraints=CIRCLE).reduced(jnp.eye(2))
    check = jax.jit(lambda q, v: odes.checks.check(reduced, jnp.array(0.0), q, v, None, jnp.array(1e-3)).result)
    right, along = jnp.array([0.6, 0.8]), jnp.array([-0.8, 0.6])
    codes = [check(right, along), check(1.1 * right, along), check(right, right)]
    assert [mbd.Result(int(code)).name for code in codes] == ["SUCCESS", "INCONSISTENT_POSITION", "INCONSISTENT_VELOCITY"]


def floating(tree):
    return jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))


def test_after_a_failure_no_number_and_no_derivative_is_silent():
    """Of a motion of functions, and of the trajectory of a system, which carries its other states and what corrected velocities."""
    dynamics = odes.Dynamics.of(mechanisms.pendulum().with_rank(1), states=lambda t, q, v, w, p: -w)
    run = lambda w, **options: odes.integrate(dynamics, jnp.array([1.0, 0.0]), w0=w, t1=1.0, saveat=3, max_steps=3, **options)
    failed = run(1.0, throw=False)
    assert failed.carried.w.shape == (3,) and failed.carried.velocity_multipliers.shape == (3, 1)
    assert failed.final.status.result == mbd.Result.STEPS_EXHAUSTED
    assert all(np.isnan(leaf).all() for leaf in floating(failed.poisoned()))
    factor = jax.jit(jax.grad(lambda x: mbd.simulation.trajectory.poison({"w": x, "n": 1}, jnp.array(True))["w"]))
    assert np.isnan(factor(1.0))
    motion = odes.Motion(
        *([jnp.ones(2)] * 7), jnp.array(1.0), odes.State(jnp.ones(1), jnp.ones(1), 1.0), failed.final.status, failed.scheme
    )
    assert all(np.isnan(leaf).all() for leaf in floating(motion.poisoned()))


def test_controllers_that_clip_steps_and_meters_of_progress(capsys):
    """A force that begins at t = 0.5, which a step ends at: none is refused. The meter has told the end."""
    dynamics = functions(lambda t, q, v, w, p: jnp.where(t > 0.5, 2.0, 0.0) * jnp.ones(1))
    controller = diffrax.ClipStepSizeController(diffrax.PIDController(1e-9, 1e-9), jump_ts=jnp.array([0.5]))
    motion = odes.integrate(dynamics, [0.0], t1=1.0, saveat=3, controller=controller, progress_meter=diffrax.TextProgressMeter())
    jax.effects_barrier()
    np.testing.assert_allclose(motion.q[:, 0], [0, 0, 0.25], atol=1e-12)
    assert motion.scheme.rejected == 0
    assert "100.00%" in capsys.readouterr().out
