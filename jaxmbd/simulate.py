"""The time loop: one step, and a scan over steps."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from .calculus import constraint_jacobian, least_norm_multipliers, momentum, velocity
from .checks import as_coordinates, check_position, check_start, known, vector_like
from .errors import ModelError, Result
from .formulations import AbstractFormulation, Multipliers, Problem
from .newton import Newton, Solution
from .schemes import AbstractScheme, Midpoint, Own, StepInput
from .schemes.quadrature import interpolation
from .start import discrete_momentum, find_rank, start
from .system import Scalar, System, Vector, VectorLike
from .trajectory import State, Status, Trajectory


class Node(eqx.Module):
    """What a step tells of the node it leaves: the impulse of the constraint forces there, and the nodes inside the step."""

    t: Scalar
    q: Vector
    incoming: Vector
    reaction: Vector
    stages: Float[Array, "inside n"]


def step(
    system: System,
    state: State,
    dt: Scalar,
    scheme: AbstractScheme = Midpoint(),
    formulation: AbstractFormulation = Multipliers(),
    newton: Newton = Newton(),
    control: PyTree = None,
) -> tuple[State, Node]:
    """One time step: the state after it, and the node it left.

    A step that fails, and every step after it, leaves position and momentum as they are.
    """
    known_before = StepInput(system, state.t, dt, state.q, state.incoming, control)
    problem = formulation.prepare(scheme, known_before)
    x0, scale = formulation.guess(state.q + state.displacement, problem)
    rest, _ = formulation.guess(jnp.broadcast_to(state.q, state.displacement.shape), problem)
    alive = state.status.result == Result.SUCCESS
    solution = newton(step_residual, x0, (formulation, problem), scale, alive, rest)
    status = _status(solution, problem, state, formulation.nodes(jax.lax.stop_gradient(solution.value), problem)[-1])
    nodes = formulation.nodes(jnp.where(solution.result == Result.SUCCESS, solution.value, rest), problem)
    good = status.result == Result.SUCCESS
    after = State(
        state.step + 1,
        state.t + dt,
        nodes[-1],
        scheme.advance(nodes, known_before),
        _extrapolate(scheme, state.q + state.previous, jnp.vstack([state.q, nodes])) - nodes[-1],
        state.q - nodes[-1],
        status,
    )
    held = eqx.tree_at(lambda s: s.status, state, status)
    reaction = scheme.balance(nodes, known_before)[0]
    left = Node(state.t, state.q, state.incoming, reaction, nodes[:-1])
    return jax.tree.map(lambda new, old: jnp.where(good, new, old), after, held), left


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
    system, start_at, scheme = _prepare(system, q0, v0, q1, dt, t0, steps, scheme, newton)
    table = _control_table(system, controls, start_at, steps)
    trajectory = _run(system, start_at, table, scheme, formulation, newton, steps, _stride(save, steps))
    if save == "end":
        trajectory = trajectory.rows(slice(-1, None))
    if throw:
        if known(trajectory.successful) is None:
            message = "a step failed; call simulate(..., throw=False) and then trajectory.check() outside jit to see which and why"
            return eqx.error_if(trajectory, ~trajectory.successful, message)
        trajectory.check()
    return trajectory


@eqx.filter_jit
def _run(system, start_at, table, scheme, formulation, newton, steps, stride) -> Trajectory:
    """Scan over saved rows, and inside over the steps between them; a row keeps the record of the step that leaves it."""
    q0, v0, dt, t0 = start_at

    def one(carry, inputs):
        state, first, most, largest = carry
        index, control = inputs
        state, left = step(system, state, dt, scheme, formulation, newton, control)
        state = eqx.tree_at(lambda s: s.t, state, t0 + dt * state.step.astype(dt.dtype))
        first = jax.tree.map(lambda new, old: jnp.where(index == 0, new, old), left, first)
        return (state, first, jnp.maximum(most, state.status.newton_steps), jnp.maximum(largest, state.status.residual)), None

    def row(state, inputs):
        none = jnp.zeros_like(q0)
        blank = Node(jnp.zeros_like(t0), none, none, none, jnp.zeros((scheme.stages - 1, q0.size), q0.dtype))
        (state, first, most, largest), _ = jax.lax.scan(one, (state, blank, jnp.int32(0), jnp.zeros((), q0.dtype)), inputs)
        return state, (first, state.status.result, most, largest)

    initial = start(system, q0, v0, dt, t0, scheme)
    count = jnp.arange(steps, dtype=jnp.int32)
    inputs = jax.tree.map(lambda leaf: leaf.reshape(steps // stride, stride, *leaf.shape[1:]), (count % stride, table))
    final, (nodes, results, most, largest) = jax.lax.scan(row, initial, inputs)
    late = (results != Result.SUCCESS) & (count[::stride] > final.step)
    results = jnp.where(late, jnp.int32(Result.NOT_REACHED), results)
    outcome = [jnp.concatenate([jnp.zeros_like(column[:1]), column]) for column in (results, most, largest)]
    return _trajectory(system, final, nodes, outcome, dt, scheme, stride)


def _trajectory(system, final, nodes, outcome, dt, scheme, stride) -> Trajectory:
    """Add the last node, and what follows at every node: velocity, momentum and multipliers."""
    last = Node(final.t, final.q, final.incoming, final.incoming, jnp.broadcast_to(final.q, nodes.stages.shape[1:]))
    nodes = jax.tree.map(lambda many, one: jnp.concatenate([many, one[None]]), nodes, last)
    v = jax.vmap(lambda node: velocity(system, node.t, node.q, node.incoming, dt))(nodes)
    p = jax.vmap(lambda node, v: momentum(system, node.t, node.q, v, dt))(nodes, v)
    reaction = nodes.reaction.at[-1].add(-p[-1])
    impulses = jax.vmap(lambda node, f: least_norm_multipliers(system, node.t, node.q, f))(nodes, reaction)
    before, after = scheme.weights[-1], scheme.weights[0]
    share = jnp.full(nodes.t.shape, before + after, p.dtype).at[0].set(after).at[-1].set(before)
    redundant = 0 if system.rank is None else impulses.shape[1] - system.rank
    results, newton_steps, residuals = outcome
    return Trajectory(
        t=nodes.t,
        q=nodes.q,
        v=v,
        p=p,
        multipliers=impulses / (dt * share[:, None]),
        results=results,
        newton_steps=newton_steps,
        residuals=residuals,
        incoming=nodes.incoming,
        reaction=reaction,
        stages=nodes.stages,
        dt=dt,
        final=final,
        scheme=scheme,
        stride=stride,
        redundant=redundant,
    )


def step_residual(x: Float[Array, " k"], args: tuple[AbstractFormulation, Problem]) -> Float[Array, " k"]:
    """The equations of a step, as Newton's method sees them."""
    formulation, problem = args
    return formulation.residual(x, problem)


def _status(solution: Solution, problem: Problem, state: State, q1: Vector) -> Status:
    """The code of a step: that of Newton's method, unless the constraints tell of something deeper."""
    system, before = problem.step.system, problem.step
    values = jnp.abs(system.constraints(before.t0 + before.dt, q1))
    if values.size == 0:
        worst, violation, result = jnp.int32(-1), jnp.zeros((), q1.dtype), solution.result
    else:
        length = jnp.maximum(jnp.max(jnp.abs(before.q0)), jnp.max(jnp.abs(q1)))
        size = length * jnp.sum(jnp.abs(constraint_jacobian(system, before.t0, before.q0)), axis=1)
        off = jnp.any(values > jnp.sqrt(jnp.finfo(q1.dtype).eps) * size)
        strayed = Result.OFF_MANIFOLD if problem.frame.rows is None else Result.RANK_CHANGED
        solved = jnp.where(off & (solution.result == Result.SUCCESS), jnp.int32(strayed), solution.result)
        result = jnp.where(problem.frame.regular, solved, jnp.int32(Result.RANK_CHANGED))
        worst, violation = jnp.argmax(values).astype(jnp.int32), jnp.max(values)
    now = Status(result, solution.steps, solution.residual, worst, violation)
    alive = state.status.result == Result.SUCCESS
    return jax.tree.map(lambda new, old: jnp.where(alive, new, old), now, state.status)


def _extrapolate(scheme: AbstractScheme, previous: Vector, nodes: Float[Array, "nodes n"]) -> Float[Array, "s n"]:
    """Nodes of the next step by the polynomial through this step's nodes and the position one step earlier."""
    fractions = np.asarray(scheme.fractions)
    matrix = interpolation(np.concatenate([[-1.0], fractions]), 1 + fractions[1:])
    return jnp.asarray(matrix, nodes.dtype) @ jnp.vstack([previous, nodes])


def _prepare(system, q0, v0, q1, dt, t0, steps, scheme, newton):
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
    system = find_rank(system, q0, t0) if system.rank is None else system
    if q1 is not None:
        q1 = vector_like(q1, q0, "q1")
        check_position(system, t0 + dt, q1, "q1")
        p0 = discrete_momentum(scheme, StepInput(system, t0, dt, q0, jnp.zeros_like(q0)), q1, newton)
        v0 = velocity(system, t0, q0, p0, dt)
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
