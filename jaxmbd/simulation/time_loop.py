"""The time loop: one step, and a scan over steps."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..assembly.rigid_motion import turned_over
from ..constraints.calculus import constraint_slopes
from ..constraints.consistency import as_coordinates, check_position, check_start, vector_like
from ..constraints.instant import velocity
from ..errors import ModelError, Result
from ..formulations import AbstractFormulation, Multipliers
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.newton import Newton
from ..numerics.polynomials import interpolation
from ..schemes import AbstractScheme, AbstractVariational, Midpoint, Own, StepInput
from ..system import Scalar, System, Vector, VectorLike
from .record import Departure, read_trajectory
from .solving import SolvedStep, solve_step
from .start import discrete_momentum, find_rank, start, with_rank_if_cheap
from .trajectory import State, Status, Trajectory


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

    A step that fails, and every step after it, leaves position and momentum as they are.
    """
    before = StepInput(system, state.t, dt, state.q, state.incoming, control, state.carried)
    alive = state.status.result == Result.SUCCESS
    guess = scheme.predict(state.displacement, before)
    solution = solve_step(before, guess, alive, scheme, formulation, newton)
    status = _status(*jax.lax.stop_gradient((solution, before, state.status)))
    moves = jnp.where(solution.result == Result.SUCCESS, solution.moves, 0)
    good = status.result == Result.SUCCESS
    prediction = _extrapolate(scheme, state.previous, moves)
    incoming, carried = scheme.advance(moves, before)
    after = State(
        state.step + 1,
        state.t + dt,
        state.q + moves[-1],
        incoming,
        jax.lax.stop_gradient(prediction),
        jax.lax.stop_gradient(-moves[-1]),
        status,
        carried,
    )
    held = eqx.tree_at(lambda s: s.status, state, status)
    return jax.tree.map(lambda new, old: jnp.where(good, new, old), after, held), moves


def simulate(
    system: System,
    q0: VectorLike,
    v0: VectorLike | None = None,
    *,
    dt: ArrayLike,
    steps: int,
    q1: VectorLike | None = None,
    t0: ArrayLike = 0.0,
    scheme: AbstractScheme | None = None,
    formulation: AbstractFormulation = Multipliers(),
    newton: Newton = Newton(),
    controls: PyTree | Callable = None,
    save: int | Literal["end"] | None = None,
    throw: bool = True,
) -> Trajectory:
    r"""Integrate the motion of a system over `steps` steps of length `dt`.

    Pure: it may be called inside `jit`, `vmap` and `grad`. The dtype is that of `q0`; parameters follow it.

    **Arguments**

    - `q0`, `v0`: position and velocity at `t0`, on the constraint manifold and tangent to it (see `project`). No `v0` means rest.
    - `q1`: instead of `v0`, the position after one step.
    - `scheme`: by default the system's own discrete Lagrangian, or else `Midpoint()`.
    - `formulation`: `Multipliers()`, `NullSpace()` or `Reparametrised()`.
    - `controls`: a function of time, taken at the middle of a step, or a pytree of arrays with one row a step; it is passed to forces
      that take a fifth argument.
    - `save`: a row every `save` steps (default 1), or `"end"` for the last state alone.
    - `throw`: raise `SimulationError` when a step fails. Otherwise, look at `trajectory.results`; a batch under `vmap` needs this to
      survive a member that fails.
    """
    system, start_at, scheme = _prepare(system, q0, v0, q1, dt, t0, steps, scheme, formulation, newton)
    table = _control_table(system, controls, start_at, steps)
    trajectory = _run(system, start_at, table, scheme, formulation, newton, steps, _stride(save, steps))
    if save == "end":
        trajectory = trajectory.last_row()
    if throw:
        if known(trajectory.successful) is None:
            message = "a step failed; call simulate(..., throw=False) and then trajectory.check() outside jit to see which and why"
            return eqx.error_if(_poisoned(trajectory), ~trajectory.successful, message)
        trajectory.check(system)
    return trajectory


def _poisoned(trajectory: Trajectory) -> Trajectory:
    """Not a number wherever a step failed, so that a derivative taken without its value is loud too."""
    motion = lambda tree: (tree.q, tree.v, tree.p, tree.multipliers)
    factor = jnp.where(trajectory.successful, 1.0, jnp.nan).astype(trajectory.q.dtype)
    return eqx.tree_at(motion, trajectory, tuple(factor * column for column in motion(trajectory)))


@compiled
def _run(system, start_at, table, scheme, formulation, newton, steps, stride) -> Trajectory:
    """Scan over saved rows, and inside over the steps between them; a row keeps the steps that leave it and arrive at it."""
    q0, v0, dt, t0 = start_at

    def one(carry, inputs):
        state, first, _, most, largest = carry
        index, control = inputs
        after, moves = step(system, state, dt, scheme, formulation, newton, control)
        after = eqx.tree_at(lambda s: s.t, after, t0 + dt * after.step.astype(dt.dtype))
        left = Departure(state.t, state.q, state.incoming, moves, control, state.carried)
        first = jax.tree.map(lambda new, old: jnp.where(index == 0, new, old), left, first)
        last = None if scheme.acting == "start" else left
        return (after, first, last, jnp.maximum(most, after.status.newton_steps), jnp.maximum(largest, after.status.residual)), None

    def row(state, inputs):
        control = jax.tree.map(lambda leaf: leaf[0], inputs[1])
        moves = jnp.zeros((scheme.stages, q0.size), q0.dtype)
        blank = Departure(state.t, state.q, state.incoming, moves, control, state.carried)
        last = None if scheme.acting == "start" else blank
        (after, *left, most, largest), _ = jax.lax.scan(one, (state, blank, last, jnp.int32(0), jnp.zeros((), q0.dtype)), inputs)
        return after, (left, after.status.result, most, largest)

    initial = start(system, q0, v0, dt, t0, scheme, jax.tree.map(lambda leaf: leaf[0], table))
    count = jnp.arange(steps, dtype=jnp.int32)
    inputs = jax.tree.map(lambda leaf: leaf.reshape(steps // stride, stride, *leaf.shape[1:]), (count % stride, table))
    final, ((leaving, arriving), results, most, largest) = jax.lax.scan(row, initial, inputs)
    late = (results != Result.SUCCESS) & (count[::stride] > final.step)
    results = jnp.where(late, jnp.int32(Result.NOT_REACHED), results)
    outcome = [jnp.concatenate([jnp.zeros_like(column[:1]), column]) for column in (results, most, largest)]
    return read_trajectory(system, final, leaving, arriving, outcome, dt, scheme, stride)


def _status(solution: SolvedStep, before: StepInput, earlier: Status) -> Status:
    """The code of a step: that of Newton's method, unless the constraints tell of something deeper."""
    system, q1 = before.system, before.q0 + solution.moves[-1]
    values = jnp.abs(system.constraints(before.t0 + before.dt, q1))
    worst, violation, result = jnp.int32(-1), jnp.zeros((), q1.dtype), solution.result
    if values.size:
        length = jnp.maximum(jnp.max(jnp.abs(before.q0)), jnp.max(jnp.abs(q1)))
        size = length * constraint_slopes(system, before.t0, before.q0)
        off = jnp.any(values > jnp.sqrt(jnp.finfo(q1.dtype).eps) * size)
        redundant = system.rank is not None and system.rank < values.size
        strayed = jnp.int32(Result.RANK_CHANGED if redundant else Result.OFF_MANIFOLD)
        result = jnp.where(off & (result == Result.SUCCESS), strayed, result)
        result = jnp.where(solution.regular | ~jnp.all(jnp.isfinite(size)), result, jnp.int32(Result.RANK_CHANGED))
        worst, violation = jnp.argmax(values).astype(jnp.int32), jnp.max(values)
    result = jnp.where(
        (result == Result.SUCCESS) & turned_over(system, before.q0, solution.moves[-1]), jnp.int32(Result.TURNED_OVER), result
    )
    now = Status(result, solution.steps, solution.residual, worst, violation)
    return jax.tree.map(lambda new, old: jnp.where(earlier.result == Result.SUCCESS, new, old), now, earlier)


def _extrapolate(scheme: AbstractScheme, previous: Vector, moves: Float[Array, "s n"]) -> Float[Array, "s n"]:
    """Displacements of the next step by the polynomial through this step's nodes and the position one step earlier."""
    fractions = np.asarray(scheme.fractions)
    matrix = interpolation(np.concatenate([[-1.0], fractions]), 1 + fractions[1:])
    return jnp.asarray(matrix, moves.dtype) @ jnp.vstack([previous, jnp.zeros_like(previous), moves]) - moves[-1]


def _prepare(system, q0, v0, q1, dt, t0, steps, scheme, formulation, newton):
    """Bring all inputs to one dtype, find the rank and the first velocity, and refuse what cannot be right."""
    if scheme is None:
        scheme = Own() if system.has("discrete_lagrangian") else Midpoint()
    if isinstance(scheme, Own) != system.has("discrete_lagrangian") and not system.has("lagrangian") and not system.has("kinetic"):
        raise ModelError("this system has only a discrete Lagrangian, so its scheme is given: leave scheme unset")
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ModelError(f"steps must be a positive whole number, not {steps!r}")
    if v0 is not None and q1 is not None:
        raise ModelError("give either v0 or q1, not both")
    q0 = as_coordinates(system, q0)
    system = system.astype(q0.dtype)
    dt, t0 = jnp.asarray(dt, q0.dtype), jnp.asarray(t0, q0.dtype)
    bad = known(~(dt > 0) | ~jnp.isfinite(dt))
    if dt.ndim or (bad is not None and bad):
        raise ModelError(f"dt must be a positive number, not {dt}")
    find = find_rank if system.rank is None and formulation.needs_rank else with_rank_if_cheap
    system = find(system, q0, t0)
    if q1 is not None:
        q1 = vector_like(q1, q0, "q1")
        check_position(system, t0 + dt, q1, "q1")
        if not isinstance(scheme, AbstractVariational):
            raise ModelError(f"a start from q1 needs a scheme with a discrete Lagrangian; with {type(scheme).__name__} give v0")
        p0 = discrete_momentum(scheme, StepInput(system, t0, dt, q0, jnp.zeros_like(q0)), q1, newton)
        v0 = velocity(system, t0, q0, p0, dt, (q1 - q0) / dt)
    v0 = jnp.zeros_like(q0) if v0 is None else vector_like(v0, q0, "v0")
    check_start(system, t0, q0, v0, dt)
    return system, (q0, v0, dt, t0), scheme


def _stride(save: int | str | None, steps: int) -> int:
    if save is None:
        return 1
    if save == "end":
        return steps
    if isinstance(save, bool) or not isinstance(save, int | np.integer) or save < 1 or steps % save:
        raise ModelError(f"save must be 'end' or a whole number that divides steps = {steps}, not {save!r}")
    return int(save)


def _control_table(system: System, controls, start_at: tuple, steps: int):
    """One control a step, or `None`."""
    *_, dt, t0 = start_at
    if controls is None:
        if system.controlled:
            raise ModelError("the forces of this system take a control: pass controls to simulate")
        return None
    if not system.controlled:
        raise ModelError("controls were given, but forces takes no fifth argument to receive them")
    if callable(controls):
        return jax.vmap(controls)(t0 + dt * (jnp.arange(steps, dtype=dt.dtype) + 0.5))
    controls = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(dt.dtype), controls)
    for leaf in jax.tree.leaves(controls):
        if leaf.shape[:1] != (steps,):
            raise ModelError(f"controls need one row for each of {steps} steps, but an array has shape {leaf.shape}")
    return controls
