"""The first state of a motion: its momentum, from a velocity or from two positions, and what is wrong with it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, PyTree

from ..constraints.calculus import constraint_slopes
from ..constraints.consistency import check_motion
from ..constraints.judgement import Verdict, first_wrong, judge_belonging, judge_inputs
from ..constraints.units import extents, row_size
from ..errors import ModelError, Result
from ..formulations import Multipliers, Problem
from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..numerics.naming import is_parameter
from ..numerics.newton import Newton
from ..schemes import AbstractScheme, StepInput
from ..system import System, Vector
from .trajectory import Origin, State, Status

Verdicts = tuple[Verdict | None, ...]
"""Of hidden numbers, in the order in which they are told; `None` where numbers are seen and right."""


def discrete_momentum(scheme: AbstractScheme, step: StepInput, q1: Vector, newton: Newton) -> Vector:
    r"""$-D_1 L_d(q_0, q_1)$, the momentum with which a step from `q0` leads to `q1`; nodes inside it are solved for.

    Not a number where those are not found, or where constraints on velocities do not let a step lead there.
    """
    problem = Multipliers().prepare(scheme, step)
    fractions = jnp.asarray(scheme.fractions[1:-1], q1.dtype)[:, None]
    inside = fractions * (q1 - step.q0)
    if inside.size:
        multipliers = jnp.zeros(inside.shape[0] * problem.rank, q1.dtype)
        x = jnp.concatenate([inside.ravel(), multipliers])
        layout = problem.manifold.layout(problem.split, scheme.stages - 1)
        solution = newton(_inside_residual, x, (problem, q1 - step.q0), layout=layout)
        found = jnp.where(solution.result == Result.SUCCESS, solution.value, jnp.nan)
        inside = found[: inside.size].reshape(inside.shape)
    moves = jnp.vstack([inside, q1 - step.q0])
    p0 = -scheme.balanced(moves, step)[0]
    return jnp.where(_led_to(moves, problem), p0, jnp.nan) if step.system.has("velocity_constraints") else p0


def _led_to(moves: Float[Array, "s n"], problem: Problem) -> Bool[Array, ""]:
    """Whether the last of the discrete constraints on velocities holds, which does not let the end of a step be anywhere."""
    system, q, rows = problem.step.system, problem.step.q0, problem.split.rows
    lengths = constraint_slopes(system, problem.step.t0, q, extents(system, q))
    lengths = lengths if rows is None else row_size(rows * lengths)
    return jnp.all(jnp.abs(problem.constraints(moves)[-1]) <= jnp.sqrt(jnp.finfo(q.dtype).eps) * lengths)


def _inside_residual(x, args):
    """Equations (22) of the nodes inside a step whose ends are given."""
    problem, whole = args
    count = problem.scheme.stages - 1
    inside, multipliers = x[: count * whole.size].reshape(count, -1), x[count * whole.size :].reshape(count, -1)
    moves = jnp.vstack([inside, whole])
    forces = problem.constraint_forces(moves, jnp.vstack([jnp.zeros_like(multipliers[:1]), multipliers]))
    return jnp.concatenate([(problem.balance(moves) - forces)[1:].ravel(), problem.constraints(moves)[:-1].ravel()])


@checked
def initial_state(system: System, q0: Vector, v0: Vector, dt: Array, t0: Array, scheme: AbstractScheme, control: PyTree = None) -> State:
    """The state before the first step, with a straight line as the first guess.

    An inconsistent start is refused as in `simulate`; inside `jit` its code is in `status`, and no step is taken from it.
    """
    hidden = judge_inputs((system, q0, v0, t0, control), q0, dt)
    return blamed(unjudged_state(system, q0, v0, dt, t0, scheme, control), hidden, check_motion(system.with_step(dt), t0, q0, v0, dt))


def unjudged_state(
    system: System, q0: Vector, v0: Vector, dt: Array, t0: Array, scheme: AbstractScheme, control: PyTree, memory: PyTree = None
) -> State:
    """The same of a start that is judged elsewhere."""
    zero = jnp.zeros((), q0.dtype)
    status = Status(jnp.int32(Result.SUCCESS), jnp.int32(0), zero, jnp.int32(-1), zero)
    fractions = jnp.asarray(scheme.fractions[1:], q0.dtype)[:, None]
    p0, carried = scheme.start(system.with_step(dt), t0, q0, v0, control)
    return State(jnp.int32(0), t0, q0, p0, fractions * dt * v0, -dt * v0, status, carried, system.memory(q0) if memory is None else memory)


def memory_like(system: System, q0: Vector, memory: PyTree) -> PyTree:
    """A memory that fits the friction of the system, in the dtype of the coordinates."""
    if memory is None:
        return None
    wanted = jax.eval_shape(system.memory, q0)
    if jax.tree.map(jnp.shape, memory) != jax.tree.map(lambda leaf: leaf.shape, wanted):
        row = "jax.tree.map(lambda column: column[row], trajectory.memory)"
        raise ModelError(f"memory must be one row of trajectory.memory of a motion of this system: {row}")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, q0.dtype), memory)


def blamed(state: State, *verdicts: Verdict | None) -> State:
    """The state with the code of the first thing that is wrong with it, unless it has failed before: no step is taken from it."""
    hidden = [verdict for verdict in verdicts if verdict is not None]
    if not hidden:
        return state
    verdict, before = first_wrong(*hidden), state.status
    wrong = (verdict.result != Result.SUCCESS) & (before.result == Result.SUCCESS)
    status = Status(verdict.result, jnp.zeros_like(before.newton_steps), jnp.zeros_like(before.residual), verdict.worst, verdict.violation)
    return eqx.tree_at(lambda s: s.status, state, jax.tree.map(lambda new, old: jnp.where(wrong, new, old), status, before))


def fingerprint(system: System) -> Float[Array, ""]:
    """A number that changes with every parameter of a system, up to rounding."""
    leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(system, is_parameter))]
    if not leaves:
        return jnp.zeros(())
    values = jax.lax.stop_gradient(jnp.concatenate(leaves))
    return jnp.sum(values * jnp.cos(jnp.arange(values.size, dtype=values.dtype)))


def check_resumed(system: System, state: State, dt: ArrayLike | None, scheme: AbstractScheme | None) -> tuple[Origin, Verdicts]:
    """Where a motion comes from; to go on with another system, scheme or time step than it began with is refused."""
    if not isinstance(state, State) or state.origin is None:
        raise ModelError("start must be the last state of a trajectory: simulate(system, start=trajectory.final, steps=...)")
    if state.q.ndim != 1:
        raise ModelError(f"start is a batch of states of shape {state.q.shape}; use jax.vmap to go on with each")
    origin = state.origin
    if scheme is not None and not eqx.tree_equal(scheme, origin.scheme):
        raise ModelError(f"the motion was begun with {origin.scheme}; it cannot go on with {scheme}. Start anew from its q and v instead")
    given, system = origin.dt if dt is None else jnp.asarray(dt, origin.dt.dtype), system.astype(state.q.dtype)
    if known(given != origin.dt):
        raise ModelError(f"the motion was begun with dt = {origin.dt}; it cannot go on with dt = {dt}: leave dt out, or start anew")
    if differs(system, state):
        raise ModelError(
            "start is the state of another system than this one: their parameters differ; go on with the system that the motion began "
            "with, or start anew from q and v"
        )
    hidden = any(known(leaf) is None for leaf in jax.tree.leaves((eqx.filter(system, is_parameter), origin, given)))
    belongs = judge_belonging(_belongs(*jax.lax.stop_gradient((system, origin, given))), state.q) if hidden else None
    return origin, (judge_inputs((system, state.q, state.incoming, state.carried, state.memory), state.q), belongs)


def _belongs(system: System, origin: Origin, dt: Array) -> Array:
    """Whether a motion would go on with its own time step and system, told where numbers are hidden."""
    leaves = jax.tree.leaves(eqx.filter(system, is_parameter))
    size = sum((jnp.sum(jnp.abs(leaf)) for leaf in leaves), jnp.zeros((), dt.dtype))
    change = jnp.abs(fingerprint(system) - origin.fingerprint).astype(dt.dtype)
    return (dt == origin.dt) & (change <= float(jnp.finfo(dt.dtype).eps) ** 0.75 * size)


def differs(system: System, state: State) -> bool:
    """Whether the parameters of a system are seen to be others than those of the motion that a state belongs to."""
    values = [known(leaf) for leaf in jax.tree.leaves(eqx.filter(system, is_parameter))]
    there = None if state.origin is None else known(state.origin.fingerprint)
    seen = [np.ravel(value) for value in values if value is not None]
    if there is None or len(seen) < len(values):
        return False
    flat = np.concatenate([np.zeros(0, there.dtype), *seen])
    here = np.sum(flat * np.cos(np.arange(flat.size, dtype=flat.dtype)))
    tolerance = float(jnp.finfo(state.q.dtype).eps) ** 0.75
    return bool(np.any(abs(here - there) > tolerance * np.sum(np.abs(flat))))
