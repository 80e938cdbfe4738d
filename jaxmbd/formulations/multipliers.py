"""Unknown positions with multipliers."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.counts import closed
from ..constraints.manifold import manifold_at
from ..constraints.split import Split
from ..constraints.units import fit, sizes
from ..numerics.linear.layout import Layout
from ..schemes import AbstractScheme, StepInput
from .base import AbstractFormulation, Moves, Problem, extent


class Multipliers(AbstractFormulation):
    r"""Unknown nodes and multipliers, $n + m$ a stage (22): $D_1 L_d + D_2 L_d - h\,G^T \lambda = 0$, $g(q_1) = 0$."""

    needs_rank = False

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        system, q = step.system, step.q0
        at = Split.trivial(q) if closed(system) else manifold_at(system, step.t0, q).split()
        return Problem(scheme, step, at, jnp.zeros((q.size, 0), q.dtype))

    def guess(self, moves: Moves, problem: Problem) -> tuple[Array, Array]:
        return with_zero_multipliers(moves, problem.rank, problem)

    def residual(self, x: Array, problem: Problem) -> Array:
        moves = self.moves(x, problem)
        multipliers = x[moves.size :].reshape(moves.shape[0], -1)
        balance = problem.balance(moves) - problem.constraint_forces(moves, multipliers)
        return jnp.concatenate([balance.ravel(), problem.constraints(moves).ravel()])

    def differentiated(self, step: StepInput, problem: Problem) -> tuple[AbstractFormulation, Problem]:
        return self, Problem(problem.scheme, step, problem.split, problem.basis)

    def unknowns(self, moves: Moves, problem: Problem) -> Float[Array, " k"]:
        """Moves with the multipliers that belong to them (38)."""
        balance, directions = problem.balance(moves), problem.scheme.directions(moves, problem.step)
        if directions.shape[1] == 0:
            return moves.ravel()

        size = sizes(problem.step.system, problem.step.q0)
        recovered = jax.vmap(lambda G, balance: fit(problem.split.independent(G), balance, size))(directions, balance)
        return jnp.concatenate([moves.ravel(), recovered.ravel()])

    def units(self, problem: Problem) -> tuple[np.ndarray, int]:
        return np.arange(problem.scheme.stages * problem.step.q0.size), problem.scheme.stages * problem.rank

    def layout(self, problem: Problem) -> Layout | None:
        layout = problem.manifold.layout(problem.split, problem.scheme.stages)
        if not problem.scheme.rigid:
            return layout
        return layout._replace(held=problem.step.system.structure.internal) if problem.split.rows is None else None

    def moves(self, x: Array, problem: Problem) -> Moves:
        return leading_moves(x, problem)


def with_zero_multipliers(moves: Moves, count: int, problem: Problem) -> tuple[Array, Array]:
    """Moves followed by `count` multipliers a stage, all zero, and the size of these unknowns."""
    multipliers = jnp.zeros(moves.shape[0] * count, moves.dtype)
    return jnp.concatenate([moves.ravel(), multipliers]), jnp.concatenate([jnp.tile(extent(moves, problem), len(moves)), multipliers])


def leading_moves(x: Array, problem: Problem) -> Moves:
    """The moves at the head of unknowns."""
    n = problem.step.q0.size
    return x[: problem.scheme.stages * n].reshape(-1, n)
