"""The time loop: checks, a scan over saved rows and over the steps between them, and the trajectory through them."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, PyTree

from ..constraints.consistency import check_position, check_start
from ..constraints.counts import constraint_count, rank
from ..constraints.functions import try_function
from ..constraints.inputs import as_coordinates, require_finite, require_time_step, vector_like
from ..constraints.judgement import judge_inputs
from ..constraints.manifold import manifold_at
from ..constraints.rank import find_rank, with_rank_if_cheap
from ..errors import ModelError, Result, explanations
from ..formulations import AbstractFormulation, Multipliers
from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.newton import Newton
from ..schemes import AbstractScheme, AbstractVariational, Midpoint, Own, StepInput
from ..system import System, Vector, VectorLike
from .controls import Controls, controls_of
from .record import Departure, Node, Reader, Row, append, read_columns
from .save import Save
from .solving import Method
from .start import Verdicts, blamed, check_resumed, discrete_momentum, fingerprint, unjudged_state
from .stepping import advance
from .trajectory import Origin, State, Trajectory


@checked
def simulate(
    system: System,
    q0: VectorLike | None = None,
    v0: VectorLike | None = None,
    *,
    dt: ArrayLike | None = None,
    steps: int,
    q1: VectorLike | None = None,
    t0: ArrayLike = 0.0,
    start: State | None = None,
    scheme: AbstractScheme | None = None,
    formulation: AbstractFormulation = Multipliers(),
    newton: Newton = Newton(),
    controls: PyTree | Callable = None,
    memory: PyTree = None,
    save: Save | int | Literal["end"] | None = None,
    throw: bool = True,
) -> Trajectory:
    r"""Integrate the motion of a system over `steps` steps of length `dt`.

    Pure: it may be called inside `jit`, `vmap` and `grad`. The dtype is that of `q0`; parameters follow it.

    **Arguments**

    - `q0`, `v0`: position and velocity at `t0`, on the constraint manifold and tangent to it (see `project`). No `v0` means rest.
    - `q1`: instead of `v0`, the position after one step.
    - `start`: instead of all these and of `dt`, the last state of a trajectory, `trajectory.final`: the motion goes on from it to the bit
      as if it had not stopped, with the same system and scheme.
    - `scheme`: by default the system's own discrete Lagrangian, or else `Midpoint()`.
    - `formulation`: `Multipliers()`, `NullSpace()` or `Reparametrised()`.
    - `controls`: a function of time, taken where the scheme balances forces (`scheme.control_at`), or a pytree of arrays with one row a
      step, which holds over the step; it is passed to forces that take a fifth argument. Schemes that balance forces at the end of
      a step take a row as the value in its middle, and continue the line through it and the row before it.
    - `memory`: what friction remembers at the start, a row of `trajectory.memory` of another motion; by default it holds nothing yet.
    - `save`: a row every `save` steps (default 1), `"end"` for the last state alone, or a `Save`, which also says which fields.
    - `throw`: raise `SimulationError` when a step fails. Otherwise, look at `trajectory.results`; a batch under `vmap` needs this to
      survive a member that fails.

    A start that cannot be right is a `ModelError`: off the constraints or not along them, a time step that is not positive, numbers that
    are not finite. Inside `jit` and `vmap`, where numbers are hidden, it is a failure like that of a step: none is taken, the first row
    of `results` has a code that says what is wrong, and `trajectory.check()` names the members of a batch that it concerns. Singular
    mass matrices and charts that do not fit are looked for where numbers are seen alone; inside, steps tell of them.
    """
    _check_steps(steps)
    kept = Save.of(save)
    kept.stride(steps)
    if start is None:
        system, start_at, origin, verdicts = _begin(system, q0, v0, q1, dt, t0, scheme, formulation, newton)
        given = controls_of(system, controls, origin, 0, steps)
        state = _first_state(system, *start_at, _with_last_control(origin, given), given.first, _memory_like(system, start_at[0], memory))
    else:
        system, state, origin, verdicts = _resume(system, start, dt, scheme, formulation, given=(q0, v0, q1, memory))
        given = controls_of(system, controls, origin, start.step, steps)
        state = eqx.tree_at(lambda s: s.origin, state, _with_last_control(origin, given))
    state = blamed(state, *verdicts, judge_inputs(given.table, state.q))
    method = Method(origin.scheme, formulation, newton)
    trajectory = _run(system, state, state.origin or origin, given._replace(last=None), method, steps, kept)
    if not throw:
        return trajectory
    if known(trajectory.successful) is None:
        return eqx.branched_error_if(trajectory.poisoned(), ~trajectory.successful, trajectory.final.status.result, FAILURES)
    trajectory.check(system)
    return trajectory


FAILURES = explanations("a step failed", "call simulate(..., throw=False) and then trajectory.check() outside jit to see which and why")
"""What is told of a motion inside `jit`."""


class _Marks(eqx.Module):
    """What is kept of the steps between two rows: moves of the first, all of the last, the most iterations, the largest residual."""

    moves: Array | None
    last: Departure | None
    newton_steps: Array
    residual: Array

    def with_step(self, index: Array, left: Departure, after: State) -> "_Marks":
        """With one more step, the first one if its index is zero."""
        return _Marks(
            None if self.moves is None else jnp.where(index == 0, left.moves, self.moves),
            None if self.last is None else left,
            jnp.maximum(self.newton_steps, after.status.newton_steps),
            jnp.maximum(self.residual, after.status.residual),
        )


@compiled
def _first_state(system: System, q0: Vector, v0: Vector, origin: Origin, control: PyTree, memory: PyTree) -> State:
    """The state before the first step. It is a program of its own, so that motions that begin and that go on share that of the steps."""
    if system.controlled:
        try_function(system, "forces", q0, control)
    state = unjudged_state(system, q0, v0, origin.dt, origin.t0, origin.scheme, control, memory)
    known_by = eqx.tree_at(lambda o: o.fingerprint, origin, fingerprint(system))
    return eqx.tree_at(lambda s: s.origin, state, known_by, is_leaf=lambda x: x is None)


@compiled
def _run(system: System, state: State, origin: Origin, controls: Controls, method: Method, steps: int, save: Save) -> Trajectory:
    """Scan over saved rows, and inside over the steps between them; a row keeps what its fields follow from."""
    initial = eqx.tree_at(lambda s: s.origin, state, None)
    save.try_reduction(state.t, state.q)
    dt, scheme, stride, only_end = origin.dt, method.scheme, save.stride(steps), save.every == "end"
    system = system.with_step(dt)
    reader = Reader(system, scheme, dt, controls.first)
    leaving = not only_end and save.asks("stages", "multipliers", "reaction")
    arriving = scheme.acting != "start" and save.asks("multipliers")

    def one(now, inputs):
        (state, total, marks), (index, control) = now, inputs
        after, moves = advance(system, state, dt, method, control)
        after = eqx.tree_at(lambda s: s.t, after, origin.t0 + dt * after.step.astype(dt.dtype))
        marks = marks.with_step(index, Departure(Node.of(state), moves, control), after)
        return (after, _reduced(save, total, reader, after), marks), None

    def row(carry, inputs):
        state, total = carry
        first, node = _first(inputs[1]), Node.of(state)
        moves = jnp.zeros((scheme.stages, state.q.size), state.q.dtype)
        blank = Departure(node, moves, first) if arriving else None
        marks = _Marks(moves if leaving else None, blank, jnp.int32(0), jnp.zeros((), dt.dtype))
        begun = (state, total, marks)
        (after, total, marks), _ = jax.lax.scan(one, begun, inputs)
        departure = Departure(node, marks.moves, first) if leaving else None
        kept = None if only_end else node if save.asks(*RICH) else Node(node.t, node.q)
        outcome = (after.status.result, marks.newton_steps, marks.residual)
        return (after, total), (kept, departure, marks.last, outcome)

    count = jnp.arange(steps, dtype=jnp.int32) % stride
    inputs = jax.tree.map(lambda leaf: leaf.reshape(steps // stride, stride, *leaf.shape[1:]), (count, controls.table))
    (final, total), (kept, left, arrived, outcome) = jax.lax.scan(row, (initial, save.initial), inputs)
    nodes = jax.tree.map(lambda leaf: leaf[None], Node.of(final)) if only_end else _with_last(kept, final)
    arrived = left if stride == 1 and leaving else arrived
    columns = read_columns(reader, save, nodes, left, arrived, initial.step)
    results, newton_steps, residuals = _outcomes(outcome, final.step - initial.step, initial.status.result, stride, only_end)
    return Trajectory(
        t=nodes.t,
        results=results,
        newton_steps=newton_steps,
        residuals=residuals,
        dt=dt,
        final=eqx.tree_at(lambda s: s.origin, final, origin, is_leaf=lambda x: x is None),
        scheme=scheme,
        stride=stride,
        fields=save.fields,
        redundant=constraint_count(system, final.q) - rank(system, final.q),
        reduced=total,
        **columns,
    )


RICH = ("v", "p", "multipliers", "incoming", "reaction", "stages", "carried", "memory")
"""Fields that follow from more than positions."""


def _reduced(save: Save, total: PyTree, reader: Reader, after: State) -> PyTree:
    """The total with one more step, unless it failed."""
    if save.reduce is None:
        return total
    good = after.status.result == Result.SUCCESS
    return jax.tree.map(lambda new, old: jnp.where(good, new, old), save.reduce(total, Row(reader, after)), total)


def _with_last(kept: Node, final: State) -> Node:
    """The saved nodes and the last one."""
    last = Node.of(final)
    return jax.tree.map(lambda many, one: None if many is None else append(many, one), kept, last, is_leaf=lambda x: x is None)


def _outcomes(outcome: tuple[Array, ...], reached: Array, begun: Array, stride: int, only_end: bool) -> list[Array]:
    """Codes, iterations and residuals of the steps that led to each row; the first row has the code of the start."""
    if only_end:
        return list(outcome)
    results, *others = outcome
    first_steps = stride * jnp.arange(results.size, dtype=jnp.int32)
    late = (results != Result.SUCCESS) & ((first_steps > reached) | (begun != Result.SUCCESS))
    results = jnp.where(late, jnp.int32(Result.NOT_REACHED), results)
    return [jnp.append(begun, results), *(jnp.concatenate([jnp.zeros_like(column[:1]), column]) for column in others)]


def _with_last_control(origin: Origin, given: Controls) -> Origin:
    """Where a motion comes from, with what its next steps will have to know of its controls."""
    return eqx.tree_at(lambda o: o.control, origin, given.last, is_leaf=lambda x: x is None)


def _first(table: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[0], table)


def _begin(system, q0, v0, q1, dt, t0, scheme, formulation, newton) -> tuple[System, tuple[Vector, Vector], Origin, Verdicts]:
    """Bring all inputs to one dtype, find the rank and the first velocity, and refuse or judge what cannot be right."""
    if q0 is None or dt is None:
        raise ModelError("simulate needs q0 and dt, or start=trajectory.final to go on with a motion")
    if v0 is not None and q1 is not None:
        raise ModelError("give either v0 or q1, not both")
    scheme = _scheme_of(system, scheme)
    q0 = as_coordinates(system, q0)
    v0, q1 = (None if value is None else vector_like(value, q0, name) for name, value in (("v0", v0), ("q1", q1)))
    dt, t0 = jnp.asarray(dt, q0.dtype), jnp.asarray(t0, q0.dtype)
    require_time_step(dt)
    require_finite(t0, "t0")
    system = _with_rank(system.astype(q0.dtype), q0, t0, formulation)
    moving, inputs, towards = system.with_step(dt), judge_inputs((system, q0, v0, q1, t0), q0, dt), None
    if q1 is not None:
        towards = check_position(moving, t0 + dt, q1, "q1")
        v0 = _velocity_towards(moving, q1, q0, dt, t0, scheme, newton)
    v0 = jnp.zeros_like(q0) if v0 is None else v0
    start = check_start(moving, t0, q0, v0, dt)
    return system, (q0, v0), Origin(t0, dt, jnp.zeros((), q0.dtype), scheme), (inputs, towards, start)


def _resume(system, start, dt, scheme, formulation, given) -> tuple[System, State, Origin, Verdicts]:
    """Go on from a state, with the system and the scheme that led to it."""
    if any(value is not None for value in given):
        raise ModelError("give either start, or q0 with v0, q1 or memory, not both: a state has its own position, velocity and memory")
    origin, verdicts = check_resumed(system, start, dt, scheme)
    q = as_coordinates(system, start.q, "start")
    return _with_rank(system.astype(q.dtype), q, start.t, formulation), start, origin, verdicts


def _with_rank(system: System, q: Vector, t: Array, formulation: AbstractFormulation) -> System:
    find = find_rank if system.rank is None and formulation.needs_rank else with_rank_if_cheap
    return find(system, q, t)


def _velocity_towards(system, q1: Vector, q0: Vector, dt: Array, t0: Array, scheme: AbstractScheme, newton: Newton) -> Vector:
    """The velocity with which the first step leads to `q1`."""
    if not isinstance(scheme, AbstractVariational):
        raise ModelError(f"a start from q1 needs a scheme with a discrete Lagrangian; with {type(scheme).__name__} give v0")
    p0 = discrete_momentum(scheme, StepInput(system, t0, dt, q0, jnp.zeros_like(q0), memory=system.memory(q0)), q1, newton)
    return manifold_at(system, t0, q0).sharing().velocity(p0, (q1 - q0) / dt)


def _scheme_of(system: System, scheme: AbstractScheme | None) -> AbstractScheme:
    """The scheme that was given, or the system's own."""
    if scheme is None:
        scheme = Own() if system.has("discrete_lagrangian") else Midpoint()
    if isinstance(scheme, Own) != system.has("discrete_lagrangian") and not system.has("lagrangian") and not system.has("kinetic"):
        raise ModelError("this system has only a discrete Lagrangian, so its scheme is given: leave scheme unset")
    return scheme


def _memory_like(system: System, q0: Vector, memory: PyTree) -> PyTree:
    """A memory that fits the friction of the system, in the dtype of the coordinates."""
    if memory is None:
        return None
    wanted = jax.eval_shape(system.memory, q0)
    if jax.tree.map(jnp.shape, memory) != jax.tree.map(lambda leaf: leaf.shape, wanted):
        row = "jax.tree.map(lambda column: column[row], trajectory.memory)"
        raise ModelError(f"memory must be one row of trajectory.memory of a motion of this system: {row}")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, q0.dtype), memory)


def _check_steps(steps: int) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ModelError(f"steps must be a positive whole number, not {steps!r}")
