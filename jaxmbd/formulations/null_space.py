"""Unknown positions alone: multipliers are projected out by a null space matrix."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..constraints.counts import closed, leaves_open, redundant
from ..constraints.split import Split, correct_null_space, null_space, split, split_chart, split_coordinates
from ..constraints.units import fit, sizes
from ..errors import ModelError
from ..schemes import AbstractScheme, StepInput
from ..system import System
from .base import AbstractFormulation, Moves, Problem, extent
from .multipliers import Multipliers


class NullSpace(AbstractFormulation):
    r"""Unknown nodes alone, $n$ a stage (25): $P^T [D_1 L_d + D_2 L_d] = 0$, $g(q_1) = 0$.

    `source` of $P$: `"user"` (`null_space` of the system), `"chart"` (Jacobian of its chart at $u = 0$), `"qr"`
    (orthonormal complement of $G^T$), or `"auto"`: the first of these that the system has.
    """

    source: Literal["auto", "user", "chart", "qr"] = eqx.field(static=True, default="auto")

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        source = null_space_source(self.source, step.system, ("user", "chart"))
        return with_basis(scheme, step, source, split_for(source, step, redundant(step.system, step.q0)))

    def guess(self, moves: Moves, problem: Problem) -> tuple[Array, Array]:
        return moves.ravel(), jnp.tile(extent(moves, problem), len(moves))

    def residual(self, x: Array, problem: Problem) -> Array:
        moves = self.moves(x, problem)
        source = null_space_source(self.source, problem.step.system, ("user", "chart"))
        return jnp.concatenate([reduced_balance(moves, source, problem), problem.constraints(moves).ravel()])

    def moves(self, x: Array, problem: Problem) -> Moves:
        return x.reshape(-1, problem.step.q0.size)

    def differentiated(self, step: StepInput, problem: Problem) -> tuple[AbstractFormulation, Problem]:
        """The equations with multipliers: they have the same solution, and no null space matrix to differentiate."""
        return Multipliers().differentiated(step, problem)


def null_space_source(wanted: str, system: System, order: tuple[str, ...]) -> str:
    """Where the null space matrix comes from: as wanted, or the first in `order` that the system has, or a decomposition."""
    has = {"user": system.has("null_space"), "chart": system.has("chart"), "qr": True}
    if wanted == "auto":
        return next((source for source in order if has[source]), "qr")
    if not has[wanted]:
        raise ModelError(f"the system has no {'null_space' if wanted == 'user' else 'chart'} to take its null space matrix from")
    return wanted


def split_for(source: str, step: StepInput, combine: bool) -> Split:
    """The split that a null space matrix is built from, or that is asked to combine constraints; a trivial one if neither."""
    system, t, q = step.system, step.t0, step.q0
    if source == "qr":
        return split_coordinates(system, t, q)
    if source == "chart" and (system.closures is not None or leaves_open(system)):
        return split_chart(system, t, q)
    return split(system, t, q) if combine else Split.trivial(q)


def with_basis(scheme: AbstractScheme, step: StepInput, source: str, at: Split) -> Problem:
    """The problem with its null space matrix at $q_0$."""
    return Problem(scheme, step, at, null_space(step.system, step.t0, step.q0, source, at))


def reduced_balance(moves: Moves, source: str, problem: Problem) -> Float[Array, " sd"]:
    r"""$P_i^T$ times each balance; $P_0$ is known, inside the step $P$ is taken at the unknown nodes.

    Where constraint forces act along directions that are known only with the step, so is the null space.
    """
    step, scheme = problem.step, problem.scheme
    if scheme.acting != "start":
        return _balance_on_implicit_null_space(moves, problem)
    balance = problem.balance(moves)
    first = problem.manifold.reduced(problem.basis, balance[0], on_chart=source == "chart" and closed(step.system))
    if scheme.stages == 1:
        return first
    basis = jax.vmap(lambda t, q: null_space(step.system, t, q, source, problem.split))
    inside = jnp.einsum("snd,sn->sd", basis(scheme.times(step)[:-1], step.q0 + moves[:-1]), balance[1:])
    return jnp.concatenate([first, inside.ravel()])


def _balance_on_implicit_null_space(moves: Moves, problem: Problem) -> Float[Array, " d"]:
    r"""$N^T b$ with a null space matrix $N$ of the directions $\bar G$ of constraint forces that act in the step, near `basis`.

    $N^T b = N^T (b - \bar G^T \mu)$ for any $\mu$. With the $\mu$ that fits $b$ best the bracket vanishes in the solution, and
    neither $\mu$ nor $N$ need be differentiated for a tangent that is exact there.
    """
    balance = problem.balance(moves)
    if problem.rank == 0:
        return problem.basis.T @ balance[0]
    rows, b = jax.lax.stop_gradient((problem.split.independent(problem.scheme.directions(moves, problem.step)[0]), balance[0]))
    size = jax.lax.stop_gradient(sizes(problem.step.system, problem.step.q0))
    mu = fit(rows, b, size)
    return correct_null_space(rows, problem.basis, size).T @ (balance - problem.constraint_forces(moves, mu[None]))[0]
