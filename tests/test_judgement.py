"""Starts that are refused where numbers are seen have codes of their own where `jit`, `vmap` and `grad` hide them."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import Result
from jaxmbd.constraints.calculus import constraint_slopes
from jaxmbd.constraints.judgement import judge_start

from .mechanisms import chain, kepler, pendulum, stretched

MEMBERS = 1000
GOOD = {"q": [0.6, 0.8], "v": [-0.8, 0.6], "dt": 0.05, "length": 1.0}
WRONG = {
    0: ({"q": [0.6, 0.81]}, Result.INCONSISTENT_POSITION),
    7: ({"q": [0.6, np.nan]}, Result.NON_FINITE_INPUT),
    11: ({"v": [-0.8, 0.7]}, Result.INCONSISTENT_VELOCITY),
    17: ({"v": [np.inf, 0.6]}, Result.NON_FINITE_INPUT),
    100: ({"dt": -0.05}, Result.BAD_TIME_STEP),
    101: ({"dt": 0.0}, Result.BAD_TIME_STEP),
    102: ({"dt": np.nan}, Result.BAD_TIME_STEP),
    103: ({"dt": np.inf}, Result.BAD_TIME_STEP),
    500: ({"length": np.nan}, Result.NON_FINITE_INPUT),
    999: ({"length": 1.1}, Result.INCONSISTENT_POSITION),
}


def run(q, v, dt, length, **options):
    return mbd.simulate(pendulum(length=length), q, v, dt=dt, steps=4, **options)


def batch_of(changes):
    """As many starts, all the same but for those that are changed, by their places."""
    columns = {name: np.array([value] * MEMBERS) for name, value in GOOD.items()}
    for place, change in changes.items():
        for name, value in change.items():
            columns[name][place] = value
    return columns


together = jax.jit(jax.vmap(functools.partial(run, throw=False)))


@pytest.fixture(scope="module")
def batch():
    return together(**batch_of({place: change for place, (change, _) in WRONG.items()}))


def test_exactly_the_wrong_members_of_a_batch_are_flagged(batch):
    codes = np.zeros(MEMBERS, int)
    codes[list(WRONG)] = [code for _, code in WRONG.values()]
    np.testing.assert_array_equal(batch.results[:, 0], codes)
    np.testing.assert_array_equal(batch.results[:, 1:], np.where(codes, Result.NOT_REACHED, 0)[:, None] * np.ones(4, int))
    np.testing.assert_array_equal(batch.successful, codes == 0)
    np.testing.assert_array_equal(batch.reached, np.where(codes, 0, 4))
    status = batch.final.status
    assert status.worst[0] == 0 and status.violation[0] == pytest.approx(0.5 * (0.6**2 + 0.81**2 - 1))
    assert status.worst[11] == 0 and status.violation[11] == pytest.approx(0.08)
    assert status.worst[100] == status.worst[500] == -1


def test_the_others_are_the_same_to_the_bit(batch):
    good = together(**batch_of({}))
    others = np.delete(np.arange(MEMBERS), list(WRONG))
    for field in ("q", "v", "p", "multipliers", "residuals", "newton_steps"):
        np.testing.assert_array_equal(getattr(batch, field)[others], getattr(good, field)[others])
    assert np.all(good.successful)
    good.check()


def test_check_names_members_codes_and_constraints(batch):
    with pytest.raises(mbd.SimulationError) as failure:
        batch.check(pendulum())
    words = str(failure.value)
    for part in (
        "10 of 1000 batch members failed",
        "0, 999 with INCONSISTENT_POSITION",
        "11 with INCONSISTENT_VELOCITY",
        "100, 101, 102, 103 with BAD_TIME_STEP",
        "7, 17, 500 with NON_FINITE_INPUT",
        "Member 0: the start (t = 0) was refused with INCONSISTENT_POSITION",
        "mbd.project",
        "Worst constraint: number 0, off by 0.00805",
        "No step was taken",
    ):
        assert part in words
    assert "step 0" not in words


def of_member(batch, place):
    """One member of a batch as a trajectory of its own."""
    return jax.tree.map(lambda leaf: leaf[place], batch)


@pytest.mark.parametrize(
    "place, words",
    [(7, r"NON_FINITE_INPUT.*Not finite in its position: \[1\]"), (11, "off at the rate 0.08"), (100, "not a positive finite number")],
)
def test_check_tells_of_single_starts(batch, place, words):
    with pytest.raises(mbd.SimulationError, match=words):
        of_member(batch, place).check()


def test_many_members_are_counted():
    batch = mbd.errors.name_members(np.array([[0] * 20, [Result.SINGULAR] * 20]))
    assert batch == (
        "20 of 40 batch members failed: (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7) and 12 others with SINGULAR"
    )


thrown = jax.jit(lambda **given: run(**given).q)


@pytest.mark.parametrize("place", [0, 11, 100, 500])
def test_throw_raises_inside_jit(place):
    change, code = WRONG[place]
    with pytest.raises(Exception, match=f"the start was refused with {code.name}"):
        jax.block_until_ready(thrown(**jax.tree.map(jnp.asarray, GOOD | change, is_leaf=lambda x: isinstance(x, list))))


@pytest.mark.parametrize("place", [0, 11, 100, 500])
def test_the_same_starts_are_refused_outside(place):
    change, _ = WRONG[place]
    with pytest.raises(mbd.ModelError, match=r"does not fulfil|not tangent|dt must be|non-finite"):
        run(**GOOD | change, throw=False)


def test_the_tolerance_is_the_same_inside_and_outside():
    position = jnp.array([1.0, 0.0])
    slope = constraint_slopes(pendulum(), jnp.array(0.0), position, jnp.ones(2))[0]
    just = float(np.sqrt(np.finfo(float).eps) * slope)
    inside = lambda offset: together(**batch_of({0: {"q": [1 + offset, 0.0], "v": [0.0, 1.0]}})).results[0, 0]
    outside = lambda offset: run([1 + offset, 0.0], [0.0, 1.0], 0.05, 1.0)
    assert inside(0.999 * just) == Result.SUCCESS and outside(0.999 * just).successful
    assert inside(1.001 * just) == Result.INCONSISTENT_POSITION
    with pytest.raises(mbd.ModelError, match="off by"):
        outside(1.001 * just)


def test_rounding_of_float32_passes():
    angles = np.linspace(0, 2 * np.pi, 100)
    direction = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    normal = 3 * np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    single = jax.jit(jax.vmap(lambda q, v: mbd.simulate(pendulum(), q, v, dt=0.05, steps=2, throw=False)))
    trajectory = single(direction, normal)
    assert trajectory.q.dtype == jnp.float32 and np.all(trajectory.successful)
    assert single(1.01 * direction, normal).results[0].tolist() == [Result.INCONSISTENT_POSITION, *[Result.NOT_REACHED] * 2]


def test_gradients_of_good_starts_are_those_of_outside_and_bad_ones_are_finite():
    def end(angle):
        q = jnp.stack([jnp.sin(angle), -jnp.cos(angle)])
        return run(q, jnp.stack([-q[1], q[0]]) * angle, 0.05, 1.0, save="end").q[-1, 0]

    inside, outside = jax.jit(jax.grad(end))(0.4), jax.grad(end)(0.4)
    np.testing.assert_allclose(inside, outside, rtol=1e-13)
    off = jax.jit(jax.grad(lambda x: run(jnp.stack([x, jnp.zeros(())]), None, 0.05, 1.0, save="end", throw=False).q[-1, 0]))
    assert off(1.1) == 1.0


def test_every_saved_row_and_the_end_alone_have_the_code():
    for save, codes in (("end", [Result.BAD_TIME_STEP]), (2, [Result.BAD_TIME_STEP, *[Result.NOT_REACHED] * 2])):
        trajectory = jax.jit(lambda dt, save=save: run(GOOD["q"], None, dt, 1.0, throw=False, save=save))(-1.0)
        np.testing.assert_array_equal(trajectory.results, codes)


DRIVEN = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * q @ q, forces=lambda t, q, v, p, u: p * u, params=1.0)


def test_controls_that_are_not_finite():
    table = jnp.zeros((5, 1)).at[3, 0].set(jnp.nan)
    move = lambda u: mbd.simulate(DRIVEN, [0.0], dt=0.1, steps=5, controls=u, throw=False)
    assert jax.jit(move)(table).results[0] == Result.NON_FINITE_INPUT and jax.jit(move)(0 * jnp.ones((5, 1))).successful
    with pytest.raises(mbd.ModelError, match=r"controls has non-finite entries at \[\[3, 0\]\]"):
        move(table)
    with pytest.raises(mbd.ModelError, match=r"controls returns has non-finite"):
        move(lambda t: jnp.sqrt(0.3 - t)[None])


def test_systems_without_constraints():
    move = jax.jit(lambda q, v, t0: mbd.simulate(kepler(), q, v, dt=0.01, steps=2, t0=t0, throw=False).results)
    q, v = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])
    np.testing.assert_array_equal(move(q, v, 0.0), [0, 0, 0])
    for given in ((q * jnp.nan, v, 0.0), (q, v * jnp.inf, 0.0), (q, v, jnp.nan)):
        np.testing.assert_array_equal(move(*given), [Result.NON_FINITE_INPUT, *[Result.NOT_REACHED] * 2])
    with pytest.raises(mbd.ModelError, match="t0 has non-finite"):
        mbd.simulate(kepler(), q, v, dt=0.01, steps=2, t0=np.inf)


def test_large_systems():
    links = 400
    judge = jax.jit(lambda q, v: judge_start(chain(links), jnp.array(0.0), q, v, jnp.array(0.01)))
    q, v = stretched(links), jnp.zeros(2 * links).at[1].set(1.0)
    assert judge(q, v).result == Result.SUCCESS
    moved = judge(q.at[600].add(1e-3), v)
    assert moved.result == Result.INCONSISTENT_POSITION and moved.worst == 300 and moved.violation == pytest.approx(1e-3, rel=1e-2)
    sheared = judge(q, v.at[600].add(1e-3))
    assert sheared.result == Result.INCONSISTENT_VELOCITY and sheared.worst in (300, 301)


def test_second_positions():
    """One that is off the constraints, and one that is so far that nodes inside the step are not found."""
    scheme, turned = mbd.Galerkin(4), lambda angle: jnp.stack([jnp.cos(angle), jnp.sin(angle)])
    begin = lambda q1, dt, newton: mbd.simulate(pendulum(), [1.0, 0.0], q1=q1, dt=dt, steps=2, scheme=scheme, newton=newton, throw=False)
    inside = jax.jit(lambda q1, dt: begin(q1, dt, mbd.Newton()).results[0])
    assert inside(turned(0.1), 0.05) == Result.SUCCESS
    assert inside(1.1 * turned(0.1), 0.05) == Result.INCONSISTENT_POSITION
    assert inside(turned(0.1) * jnp.nan, 0.05) == Result.NON_FINITE_INPUT
    assert inside(turned(0.1), -0.05) == Result.BAD_TIME_STEP
    hurried = mbd.Newton(max_steps=1)
    assert jax.jit(lambda q1: begin(q1, 0.05, hurried).results[0])(turned(1.0)) == Result.INCONSISTENT_VELOCITY
    with pytest.raises(mbd.ModelError, match="none was found that leads to q1"):
        begin(turned(1.0), 0.05, hurried)


@pytest.fixture(scope="module")
def final():
    return run(**GOOD).final


def test_motions_that_go_on_with_something_else(final):
    onward = jax.jit(lambda state, length, dt: mbd.simulate(pendulum(length=length), start=state, dt=dt, steps=2, throw=False))
    assert onward(final, 1.0, 0.05).successful
    for other in ((1.1, 0.05), (1.0, 0.06)):
        trajectory = onward(final, *other)
        np.testing.assert_array_equal(trajectory.results, [Result.OTHER_MOTION, *[Result.NOT_REACHED] * 2])
        with pytest.raises(mbd.SimulationError, match=r"the start \(step 4, t = 0.2\) was refused with OTHER_MOTION"):
            trajectory.check()
    lost = jax.tree.map(lambda leaf: leaf, final)
    object.__setattr__(lost, "q", final.q * jnp.nan)
    assert onward(lost, 1.0, 0.05).results[0] == Result.NON_FINITE_INPUT
    failed = onward(final, 1.1, 0.05).final
    np.testing.assert_array_equal(onward(failed, 1.0, 0.05).results, [Result.OTHER_MOTION, *[Result.NOT_REACHED] * 2])


def test_single_steps(final):
    take = jax.jit(lambda state, dt: mbd.simulation.step(pendulum(), state, dt)[0])
    assert take(final, 0.05).status.result == Result.SUCCESS
    refused = take(final, -0.05)
    assert refused.status.result == Result.BAD_TIME_STEP and refused.step == final.step
    np.testing.assert_array_equal(refused.q, final.q)
    blank = eqx.tree_at(lambda state: state.q, refused, jnp.nan * refused.q)
    assert take(blank, 0.05).status.result == Result.BAD_TIME_STEP  # what went wrong first is told
    with pytest.raises(mbd.ModelError, match="dt must be a positive"):
        mbd.simulation.step(pendulum(), final, jnp.array(-0.05))


def test_first_states():
    first = lambda q, v: mbd.simulation.initial_state(pendulum(), q, v, jnp.array(0.05), jnp.array(0.0), mbd.Midpoint())
    q, v = jnp.array(GOOD["q"]), jnp.array(GOOD["v"])
    for change, code, words in (
        ((q, v), Result.SUCCESS, None),
        ((1.1 * q, v), Result.INCONSISTENT_POSITION, "does not fulfil"),
        ((q, q), Result.INCONSISTENT_VELOCITY, "not tangent"),
    ):
        assert jax.jit(first)(*change).status.result == code
        if words is not None:
            with pytest.raises(mbd.ModelError, match=words):
                first(*change)


def test_projections_that_fail_are_not_a_number():
    unreachable = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, constraints=lambda t, q, p: jnp.array([q @ q - p]), params=1.0)

    def start(square):
        system = unreachable.with_params(square)
        q, v = mbd.project(system, jnp.array([1.0, 2.0]), jnp.ones(2))
        return q, v, mbd.simulate(system, q, v, dt=0.1, steps=1, throw=False).results[0]

    q, v, results = jax.jit(jax.vmap(start))(jnp.array([1.0, -1.0]))
    np.testing.assert_array_equal(np.isnan(q), [[False] * 2, [True] * 2])
    np.testing.assert_array_equal(np.isnan(v), [[False] * 2, [True] * 2])
    np.testing.assert_array_equal(results, [Result.SUCCESS, Result.NON_FINITE_INPUT])


def test_check_is_for_numbers():
    with pytest.raises(mbd.ModelError, match="call it outside"):
        jax.jit(lambda dt: run(GOOD["q"], None, dt, 1.0, throw=False).check())(0.05)
