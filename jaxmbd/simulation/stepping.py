"""One time step: its solution, how it ended, and what it predicts of the next one."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..constraints.calculus import constraint_slopes
from ..constraints.counts import position_count, redundant
from ..constraints.driving import cosines, passes_singularity, undriven
from ..constraints.inputs import require_time_step, try_functions
from ..constraints.judgement import judge_inputs, judge_velocity
from ..constraints.manifold import manifold_at
from ..constraints.servo import Servo, with_targets
from ..constraints.units import extents
from ..errors import ModelError, Result
from ..formulations import AbstractFormulation, Multipliers, acting_control
from ..formulations.driven import mean_control
from ..numerics.arguments import checked
from ..numerics.newton import Newton
from ..numerics.polynomials import interpolation
from ..numerics.trial import once
from ..schemes import AbstractScheme, Midpoint, StepInput
from ..system import Scalar, System, Vector
from .solving import Method, SolvedStep, solve_step
from .start import blamed
from .trajectory import State, Status


@checked
def step(
    system: System,
    state: State,
    dt: Scalar,
    scheme: AbstractScheme = Midpoint(),
    formulation: AbstractFormulation = Multipliers(),
    newton: Newton = Newton(),
    control: PyTree = None,
) -> tuple[State, Float[Array, "s n"]]:
    """One time step: the state after it, and the displacements of its nodes from where it began.

    A step that fails, and every step after it, leaves position and momentum as they are. So does a `dt` that is not positive or a number
    that is not finite, with a code of their own; where `dt` is seen it is refused. Positions are judged by `initial_state` and after each
    step.
    """
    if state.q.ndim != 1:
        raise ModelError(f"state is a batch of states of shape {state.q.shape}; use jax.vmap to step each")
    once("functions", (system, state.q), lambda: try_functions(system, state.q, "state"))
    require_time_step(dt)
    state = blamed(state, judge_inputs((system, state.t, state.q, state.incoming, state.carried, state.memory, control), state.q, dt))
    after, moves, _ = advance(system.with_step(dt), state, dt, Method(scheme, formulation, newton), control)
    return after, moves


def advance(
    system: System, state: State, dt: Scalar, method: Method, control: PyTree, servo: Servo | None = None
) -> tuple[State, Float[Array, "s n"], PyTree]:
    """One time step of a system whose Lagrangian is known, with the inputs that a servo took, zero where the step failed."""
    scheme = method.scheme
    before = StepInput(system, state.t, dt, state.q, state.incoming, control, state.carried, state.memory, servo)
    alive = state.status.result == Result.SUCCESS
    guess = scheme.predict(state.displacement, before)
    solution = solve_step(before, guess, alive, method)
    status = _status(scheme, *jax.lax.stop_gradient((solution, before, state.status)))
    moves = jnp.where(solution.result == Result.SUCCESS, solution.moves, 0)
    good = status.result == Result.SUCCESS
    prediction = _extrapolate(scheme, state.previous, moves)
    inputs = jax.tree.map(lambda leaf: jnp.where(good, leaf, 0), solution.inputs)
    if servo is not None:
        before = dataclasses.replace(before, control=acting_control(servo, control, inputs))
    incoming, carried, memory = scheme.passed_on(moves, before)
    after = State(
        state.step + 1,
        state.t + dt,
        state.q + moves[-1],
        incoming,
        jax.lax.stop_gradient(prediction),
        jax.lax.stop_gradient(-moves[-1]),
        status,
        carried,
        memory,
        state.origin,
    )
    held = eqx.tree_at(lambda s: s.status, state, status)
    return jax.tree.map(lambda new, old: jnp.where(good, new, old), after, held), moves, inputs


def _status(scheme: AbstractScheme, solution: SolvedStep, before: StepInput, earlier: Status) -> Status:
    """The code of a step: that of Newton's method, unless the constraints tell of something deeper."""
    system, q1 = before.system.holonomic, before.q0 + solution.moves[-1]
    values = jnp.abs(system.constraints(before.t0 + before.dt, q1))
    worst, violation, result = jnp.int32(-1), jnp.zeros((), q1.dtype), solution.result
    if values.size:
        size = constraint_slopes(system, before.t0, before.q0, extents(system, before.q0, q1))
        off = jnp.any(values > jnp.sqrt(jnp.finfo(q1.dtype).eps) * size)
        redundant = system.rank is not None and system.rank < values.size
        strayed = jnp.int32(Result.RANK_CHANGED if redundant else Result.OFF_MANIFOLD)
        result = jnp.where(off & (result == Result.SUCCESS), strayed, result)
        result = jnp.where(solution.regular | ~jnp.all(jnp.isfinite(size)), result, jnp.int32(Result.RANK_CHANGED))
        worst, violation = jnp.argmax(values).astype(jnp.int32), jnp.max(values)
    if before.system.has("velocity_constraints"):
        result, worst, violation = _of_velocities(scheme, solution, before, result, worst, violation)
    if before.servo is not None:
        result, worst, violation = _of_servo(before, solution, result, worst, violation)
    leaps = system.structure.leaps
    if leaps is not None:
        leapt = jnp.max(jax.vmap(lambda move: leaps(before.q0, move))(solution.moves))
        result = jnp.where(result == Result.SUCCESS, leapt, result)
    now = Status(result, solution.steps, solution.residual, worst, violation)
    return jax.tree.map(lambda new, old: jnp.where(earlier.result == Result.SUCCESS, new, old), now, earlier)


def _of_velocities(
    scheme: AbstractScheme, solution: SolvedStep, before: StepInput, result: Array, worst: Array, violation: Array
) -> tuple[Array, Array, Array]:
    """The same with constraints on velocities, which count after those on positions. Redundant ones must not contradict each other."""
    system, slips = before.system, jnp.max(jnp.abs(scheme.slips(solution.moves, before)), axis=0)
    if slips.size:
        place, most = position_count(system, before.q0) + jnp.argmax(slips).astype(jnp.int32), jnp.max(slips)
        worst, violation = jnp.where(most > violation, place, worst), jnp.maximum(most, violation)
    result = jnp.where(solution.regular, result, jnp.int32(Result.RANK_CHANGED))
    if not redundant(system, before.q0):
        return result, worst, violation
    t1, q1 = before.t0 + before.dt, before.q0 + solution.moves[-1]
    v1 = manifold_at(system, t1, q1).nearest_velocity(solution.moves[-1] / before.dt)
    verdict = judge_velocity(system, t1, q1, v1, before.dt)
    broken = (result == Result.SUCCESS) & (verdict.result != Result.SUCCESS)
    or_else = lambda new, old: jnp.where(broken, new, old)
    return or_else(jnp.int32(Result.RANK_CHANGED), result), or_else(verdict.worst, worst), or_else(verdict.violation, violation)


def _of_servo(before: StepInput, solution: SolvedStep, result: Array, worst: Array, violation: Array) -> tuple[Array, Array, Array]:
    """The same with targets, which count downwards from -2: where a step that is not found misses one or a constraint, inputs lose their
    hold of them on the way, or what is wanted is no number, one of them is to blame. Nothing is off where only the hold is lost.
    """
    system, servo, given, move = before.system, before.servo, mean_control(before.control), solution.moves[-1]
    t, q, v = before.t0 + jnp.stack([0 * before.dt, before.dt]), before.q0 + jnp.stack([0 * move, move]), move / before.dt
    both, blank = with_targets(system.holonomic, servo, before.q0), ~jnp.isfinite(servo.residual(system, t[1], q[0]))
    missed = jnp.abs(both.constraints(t[1], q[1]))
    off = missed > jnp.sqrt(jnp.finfo(q.dtype).eps) * constraint_slopes(both, t[0], q[0], extents(system, q[0], q[1]))
    of_target, astray = missed[-blank.size :], jnp.any(off[-blank.size :])
    start, end = jax.vmap(lambda t, q: cosines(system, t, q, v, servo, given, solution.inputs))(t, q)
    unsolved = (result == Result.NOT_CONVERGED) | (result == Result.SINGULAR)
    failed = jnp.where(unsolved, jnp.any(off) | undriven(end), (result == Result.SUCCESS) & passes_singularity(start, end))
    without = (result == Result.NON_FINITE) & jnp.any(blank)
    least_held = jnp.argmin(jnp.max(jnp.abs(end), axis=1))
    place = jnp.where(without, jnp.argmax(blank), jnp.where(astray, jnp.argmax(of_target), least_held)).astype(jnp.int32)
    by = jnp.where(astray | without, of_target[place], jnp.max(jnp.where(off, missed, 0)))
    named = lambda target, constraint: jnp.where(failed | without, target, constraint)
    return jnp.where(failed, jnp.int32(Result.NOT_DRIVEN), result), named(-2 - place, worst), named(by, violation)


def _extrapolate(scheme: AbstractScheme, previous: Vector, moves: Float[Array, "s n"]) -> Float[Array, "s n"]:
    """Displacements of the next step by the polynomial through this step's nodes and the position one step earlier."""
    fractions = np.asarray(scheme.fractions)
    matrix = interpolation(np.concatenate([[-1.0], fractions]), 1 + fractions[1:])
    return jnp.asarray(matrix, moves.dtype) @ jnp.vstack([previous, jnp.zeros_like(previous), moves]) - moves[-1]
