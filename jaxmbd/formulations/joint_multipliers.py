"""Unknown positions with the multipliers of joints alone."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..assembly.model import Assembly, as_assembly
from ..assembly.rigid_motion import on_bodies
from ..assembly.sizes import twist_sizes
from ..constraints.calculus import constraint_jacobian, velocity_jacobian
from ..constraints.counts import rank, redundant
from ..constraints.manifold import manifold_at
from ..constraints.split import Split, decompose, narrow
from ..numerics.linear.layout import Layout
from ..schemes import AbstractScheme, StepInput
from .base import AbstractFormulation, Moves, Problem
from .multipliers import leading_moves, with_zero_multipliers


class JointMultipliers(AbstractFormulation):
    r"""Unknown nodes and multipliers of joints: $P_{int}^T (b - h\,G_{ext}^T \lambda) = 0$, $g(q_1) = 0$.

    Multipliers of the internal constraints are eliminated body by body with $P_{int}$ (60), which is exact for every scheme: for $n$ rigid
    bodies and $m$ constraints of joints $12 n + m$ unknowns are left (S1, (29)). For mechanisms from `assemble`.
    """

    needs_rank = False

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        return Problem(scheme, step, _joint_split(step), jnp.zeros((step.q0.size, 0), step.q0.dtype))

    def guess(self, moves: Moves, problem: Problem) -> tuple[Array, Array]:
        return with_zero_multipliers(moves, self._count(problem), problem)

    def residual(self, x: Array, problem: Problem) -> Array:
        step, moves = problem.step, self.moves(x, problem)
        multipliers = x[moves.size :].reshape(moves.shape[0], self._count(problem))
        everything = jnp.pad(problem.split.spread(multipliers), ((0, 0), (_internal(step), 0)))
        balance = problem.balance(moves) - problem.scheme.constraint_forces(moves, everything, step)
        on_each = jax.vmap(lambda q, b: on_bodies(as_assembly(step.system), q, b))(_places(moves, problem), balance)
        values = problem.values(moves)
        joints = problem.split.pick(values[:, _internal(step) :])
        of_bodies = jnp.concatenate([on_each, values[:, : _internal(step)]], axis=1)
        return jnp.concatenate([of_bodies[:, _by_body(as_assembly(step.system))].ravel(), joints.ravel()])

    def layout(self, problem: Problem) -> Layout:
        internal = _internal(problem.step)
        whole = problem.manifold.layout(problem.split, problem.scheme.stages)
        pairs = tuple((coordinate, row - internal) for coordinate, row in whole.pairs)
        return whole._replace(multipliers=self._count(problem), pairs=pairs)

    def differentiated(self, step: StepInput, problem: Problem) -> tuple[AbstractFormulation, Problem]:
        return self, Problem(problem.scheme, step, problem.split, problem.basis)

    def units(self, problem: Problem) -> tuple[np.ndarray, int]:
        stages, step = problem.scheme.stages, problem.step
        balances = np.flatnonzero(_by_body(as_assembly(step.system)) < step.q0.size - _internal(step))
        return (balances + step.q0.size * np.arange(stages)[:, None]).ravel(), stages * self._count(problem)

    def moves(self, x: Array, problem: Problem) -> Moves:
        return leading_moves(x, problem)

    def _count(self, problem: Problem) -> int:
        return problem.rank if problem.split.rows is not None else problem.rank - _internal(problem.step)


def _by_body(model: Assembly) -> np.ndarray:
    """The order that brings balances, and then internal constraints, to the order of the coordinates: body after body."""
    sizes = [(len(kind.twists), kind.internal) for kind, count in model.kinds for _ in range(count)] + [(1, 0)] * len(model.gauges)
    body = np.arange(len(sizes))
    return np.argsort(np.concatenate([np.repeat(body, [size[part] for size in sizes]) for part in range(2)]), kind="stable")


def _internal(step: StepInput) -> int:
    """Number of internal constraints, which come first."""
    return sum(kind.internal * count for kind, count in as_assembly(step.system).kinds)


def _joint_split(step: StepInput) -> Split:
    """Independent combinations of the constraints of joints, if some are redundant, by what bodies can feel of them."""
    if not manifold_at(step.system, step.t0, step.q0).decomposes or not redundant(step.system, step.q0):
        return Split.trivial(step.q0)
    system, t, q = jax.lax.stop_gradient((step.system, step.t0, step.q0))
    model, count = as_assembly(system), _internal(step)
    G, size = constraint_jacobian(system.holonomic, t, q)[count:], twist_sizes(model, q)
    on_each = jax.vmap(lambda row: on_bodies(model, q, row))
    at = decompose(on_each(G), rank=rank(system.holonomic, q) - count, size=size)
    if not system.has("velocity_constraints"):
        return at
    return narrow(at, on_each(velocity_jacobian(system, t, q)), rank(system, q) - rank(system.holonomic, q), size, G.shape[0])


def _places(moves: Moves, problem: Problem) -> Moves:
    """Where the constraint forces of each balance act."""
    step = problem.step
    if problem.scheme.acting == "start":
        return step.q0 + jnp.pad(moves[:-1], ((1, 0), (0, 0)))
    return step.q0 + (0.5 if problem.scheme.acting == "interval" else 1.0) * moves
