"""The time loop: saving, controls, starts, batches, failure, dtypes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

from .mechanisms import chain, kepler, pendulum, stretched

SYSTEM = pendulum()
START = {"q0": [1.0, 0.0], "v0": [0.0, 0.5]}


@pytest.fixture(scope="module")
def every_step():
    return mbd.simulate(SYSTEM, **START, dt=0.05, steps=40)


@pytest.fixture(scope="module")
def of_fourth_order():
    return mbd.simulate(SYSTEM, **START, dt=0.05, steps=40, scheme=mbd.Galerkin(4))


@pytest.mark.parametrize("save", [1, 5, 40, "end"])
def test_saved_rows_are_the_same_rows(save, every_step):
    trajectory = mbd.simulate(SYSTEM, **START, dt=0.05, steps=40, save=save)
    picked = slice(-1, None) if save == "end" else slice(None, None, save)
    for column in ("t", "q", "v", "p", "multipliers", "incoming", "reaction"):
        np.testing.assert_allclose(getattr(trajectory, column), getattr(every_step, column)[picked], atol=1e-12)
    assert np.all(trajectory.results == mbd.Result.SUCCESS)


def test_saved_rows_tell_of_all_steps_between_them():
    """So fast that the last of five steps is not always that with most iterations."""
    all_rows, some = (mbd.simulate(SYSTEM, [1.0, 0.0], [0.0, 6.0], dt=0.05, steps=40, save=save) for save in (1, 5))
    steps, residuals = (np.asarray(column)[1:].reshape(8, 5) for column in (all_rows.newton_steps, all_rows.residuals))
    assert np.any(steps[:, -1] < steps.max(axis=1))
    np.testing.assert_array_equal(some.newton_steps[1:], steps.max(axis=1))
    np.testing.assert_allclose(some.residuals[1:], residuals.max(axis=1), rtol=1e-6)


def test_time_is_counted_not_summed():
    trajectory = mbd.simulate(kepler(), [1.0, 0.0], [0.0, 1.0], dt=0.1, steps=10_000, save="end", t0=3.0)
    assert trajectory.t[0] == 3.0 + 0.1 * 10_000


def test_a_second_position_instead_of_a_velocity(every_step, of_fourth_order):
    for scheme, given in ((mbd.Midpoint(), every_step), (mbd.Galerkin(4), of_fourth_order)):
        again = mbd.simulate(SYSTEM, given.q[0], q1=given.q[1], dt=0.05, steps=40, scheme=scheme)
        np.testing.assert_allclose(again.q, given.q, atol=1e-11)
        np.testing.assert_allclose(again.v[0], given.v[0], atol=1e-11)


def test_going_on_from_the_last_state(every_step):
    first = mbd.simulate(SYSTEM, **START, dt=0.05, steps=20)
    second = mbd.simulate(SYSTEM, first.q[-1], first.v[-1], dt=0.05, steps=20, t0=first.t[-1])
    np.testing.assert_allclose(second.q, every_step.q[20:], atol=1e-12)


def test_single_steps_are_the_loop(every_step):
    system = mbd.find_rank(SYSTEM, START["q0"])
    dt = jnp.array(0.05)
    state = mbd.simulation.initial_state(system, jnp.array(START["q0"]), jnp.array(START["v0"]), dt, jnp.array(0.0), mbd.Midpoint())
    advance = jax.jit(lambda state: mbd.simulation.step(system, state, dt)[0])
    for row in range(1, 4):
        state = advance(state)
        np.testing.assert_allclose(state.q, every_step.q[row], atol=1e-14)


DRIVEN = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * q @ q, forces=lambda t, q, v, p, u: p * u, params=1.0)


def test_controls_as_table_and_as_function():
    """A driven oscillator against its closed form, and both kinds of controls against each other."""
    dt, steps = 0.01, 200
    middle = dt * (np.arange(steps) + 0.5)
    table = mbd.simulate(DRIVEN, [0.0], dt=dt, steps=steps, controls=np.sin(2 * middle)[:, None])
    function = mbd.simulate(DRIVEN, [0.0], dt=dt, steps=steps, controls=lambda t: jnp.sin(2 * t)[None])
    np.testing.assert_allclose(table.q, function.q, atol=1e-13)
    t = np.asarray(table.t)
    np.testing.assert_allclose(table.q[:, 0], (2 * np.sin(t) - np.sin(2 * t)) / 3, atol=1e-4)


def test_gradient_by_controls():
    loss = jax.jit(jax.value_and_grad(lambda u: mbd.simulate(DRIVEN, [0.0], dt=0.1, steps=5, controls=u, save="end").q[-1, 0]))
    _, gradient = loss(jnp.linspace(0.0, 1.0, 5)[:, None])
    np.testing.assert_allclose([loss(jnp.zeros((5, 1)).at[i].set(1.0))[0] for i in range(5)], gradient[:, 0], atol=1e-12)


def test_batches_equal_loops():
    masses, angles = jnp.array([0.5, 1.0, 2.0]), jnp.array([0.1, 0.2, 0.3])
    system = chain(2)

    def run(g, angle):
        q0 = jnp.array([jnp.sin(angle), -jnp.cos(angle), 2 * jnp.sin(angle), -2 * jnp.cos(angle)])
        params = {**system.params, "g": 9.81 * g}
        return mbd.simulate(system.with_params(params), q0, dt=0.02, steps=20)

    batch = jax.jit(jax.vmap(run))(masses, angles)
    for i in range(3):
        one = run(masses[i], angles[i])
        for column in ("q", "v", "p", "multipliers"):
            np.testing.assert_allclose(getattr(batch, column)[i], getattr(one, column), atol=1e-12)
        assert np.all(batch.results[i] == one.results)


# A point over a floor whose potential ends: the square root has no value below zero.
FALLING = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[0] + 0 * jnp.sqrt(q[0]))


def test_a_failure_names_the_step_and_keeps_the_steps_before():
    with pytest.raises(mbd.SimulationError, match=r"step 15 .*NON_FINITE.* 15 steps before") as failure:
        mbd.simulate(FALLING, [1.0], dt=0.03, steps=30)
    trajectory = failure.value.trajectory
    assert trajectory.reached == 15 and not trajectory.successful
    np.testing.assert_allclose(trajectory.q[:16, 0], 1 - 0.5 * 9.81 * trajectory.t[:16] ** 2, atol=1e-12)
    assert np.all(np.isfinite(trajectory.q)) and np.all(trajectory.q[16:] == trajectory.q[15])
    assert np.all(trajectory.results[:16] == 0) and trajectory.results[16] == mbd.Result.NON_FINITE
    assert np.all(trajectory.results[17:] == mbd.Result.NOT_REACHED)


def test_a_failure_names_the_worst_constraint():
    with pytest.raises(mbd.SimulationError, match=r"NOT_CONVERGED.*relative residual .*Worst constraint .* number \d"):
        mbd.simulate(chain(2), stretched(2), dt=0.5, steps=10, newton=mbd.Newton(max_steps=2))


def test_a_batch_survives_a_bad_member():
    heights = jnp.array([1.0, 100.0, 2.0])
    run = lambda h: mbd.simulate(FALLING, h[None], dt=0.03, steps=30, throw=False)
    batch = jax.jit(jax.vmap(run))(heights)
    np.testing.assert_array_equal(batch.successful, [False, True, False])
    np.testing.assert_array_equal(batch.reached, [15, 30, 21])
    np.testing.assert_allclose(batch.q[1], run(heights[1]).q, atol=1e-12)
    with pytest.raises(mbd.SimulationError, match=r"2 of 3 batch members failed: 0, 2 with NON_FINITE. Member 0: step 15"):
        batch.check()
    gradient = jax.grad(lambda h: jnp.sum(jax.vmap(run)(h).q[:, -1]))(heights)
    assert np.all(np.isfinite(gradient)) and gradient[1] == pytest.approx(1.0)


def test_a_reduction_sees_no_step_that_failed():
    """Steps and the time that they took, of a motion that ends on its way."""
    save = mbd.Save("end", reduce=lambda total, row: (total[0] + 1, row.t), initial=(0, 0.0))
    motion = mbd.simulate(FALLING, [1.0], dt=0.03, steps=30, save=save, throw=False)
    assert motion.reached == motion.reduced[0] == 15 and motion.reduced[1] == pytest.approx(0.45)


def test_a_failure_inside_jit_is_loud():
    with pytest.raises(Exception, match="a step failed"):
        jax.block_until_ready(jax.jit(lambda h: mbd.simulate(FALLING, h, dt=0.03, steps=30).q)(jnp.array([1.0])))


@pytest.mark.parametrize("scheme", [mbd.Midpoint(), mbd.Galerkin(4)])
@pytest.mark.parametrize("formulation", [mbd.Multipliers(), mbd.NullSpace("qr"), mbd.Reparametrised()])
def test_float32(scheme, formulation, every_step, of_fourth_order):
    """Everything stays in float32 and agrees with float64 to its precision, at the tolerances of its dtype."""
    q0, v0 = np.array(START["q0"], np.float32), np.array(START["v0"], np.float32)
    single = mbd.simulate(SYSTEM, q0, v0, dt=0.05, steps=40, scheme=scheme, formulation=formulation)
    double = every_step if isinstance(scheme, mbd.Midpoint) else of_fourth_order
    for column in ("t", "q", "v", "p", "multipliers", "residuals"):
        assert getattr(single, column).dtype == jnp.float32
    np.testing.assert_allclose(single.q, double.q, atol=5e-5)
    assert jnp.max(jnp.abs(post.constraint_residuals(SYSTEM.astype(jnp.float32), single))) < 5e-7
    assert jnp.max(single.newton_steps) <= 5


def test_float32_with_constants_of_float64():
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v @ v - jax.numpy.asarray([0.0, 9.81], jnp.float32) @ q,
        constraints=lambda t, q, p: jnp.array([0.5 * (q.astype(jnp.float64) @ q.astype(jnp.float64) - 1)]),
    )
    assert mbd.simulate(system, np.array([1.0, 0.0], np.float32), dt=0.05, steps=3).q.dtype == jnp.float32


def test_velocity_of_a_relativistic_particle():
    """A Lagrangian that is not quadratic in velocity, whose Legendre transform ends at the speed of light."""
    system = mbd.System.from_functions(lambda t, q, v, p: -jnp.sqrt(1 - v @ v))
    trajectory = mbd.simulate(system, [0.0, 0.0], [0.9, 0.0], dt=0.1, steps=4)
    np.testing.assert_allclose(trajectory.v[:, 0], 0.9, rtol=1e-12)


def test_a_failure_under_grad_is_loud():
    f = lambda h: mbd.simulate(SYSTEM, [1.0, 0.0], dt=h, steps=1).q[-1, 1]
    with pytest.raises(mbd.SimulationError, match="step 0"):
        jax.grad(f)(5.0)
    with pytest.raises(Exception, match="a step failed"):
        jax.block_until_ready(jax.jit(jax.value_and_grad(f))(5.0))


def test_simulate_inside_jit_equals_outside(every_step):
    inside = jax.jit(lambda q, v: mbd.simulate(SYSTEM, q, v, dt=0.05, steps=40))(jnp.array(START["q0"]), jnp.array(START["v0"]))
    np.testing.assert_allclose(inside.q, every_step.q, atol=1e-13)


def test_lowers_for_a_gpu():
    """Nothing in a step is tied to the CPU."""
    run = jax.jit(lambda q: mbd.simulate(SYSTEM, q, dt=0.05, steps=4, throw=False).q)
    exported = jax.export.export(run, platforms=["cuda"])(jax.ShapeDtypeStruct((2,), jnp.float64))
    assert exported.platforms == ("cuda",)


def test_simplified_newton_and_line_search_give_the_same_motion(every_step):
    for newton in (mbd.Newton(reuse=5), mbd.Newton(line_search=True)):
        trajectory = mbd.simulate(SYSTEM, **START, dt=0.05, steps=40, newton=newton)
        np.testing.assert_allclose(trajectory.q, every_step.q, atol=1e-11)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"dt": 0.0}, "dt must be a positive"),
        ({"dt": -0.1}, "dt must be a positive"),
        ({"dt": np.nan}, "dt must be a positive"),
        ({"steps": 0}, "steps must be a positive"),
        ({"save": 7}, "divides steps = 40"),
        ({"q1": [0.0, 1.0]}, "either v0 or q1"),
        ({"controls": lambda t: t}, "no fifth argument"),
    ],
)
def test_bad_calls(change, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.simulate(SYSTEM, **{**START, "dt": 0.05, "steps": 40, **change})


def test_missing_and_misshapen_controls():
    with pytest.raises(mbd.ModelError, match="pass controls"):
        mbd.simulate(DRIVEN, [0.0], dt=0.1, steps=5)
    with pytest.raises(mbd.ModelError, match=r"one row for each of 5 steps.*\(4, 1\)"):
        mbd.simulate(DRIVEN, [0.0], dt=0.1, steps=5, controls=jnp.zeros((4, 1)))
