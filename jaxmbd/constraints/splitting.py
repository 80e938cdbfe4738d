"""Admissible and forbidden directions at one configuration: ranks, null spaces, least-norm multipliers."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..assembly.model import Assembly
from ..numerics.lapack import qr, singular_values, solve, svd
from ..numerics.linear.layout import Layout
from ..system import Scalar, System, Vector
from .calculus import constraint_jacobian

LARGE = 300
"""Coordinates and constraints together beyond which matrices are not decomposed."""


class Split(eqx.Module):
    r"""An orthonormal split of a space of increments at one configuration, constant under differentiation.

    The increments are those of the coordinates, or those of a chart that leaves some constraints to be closed; `directions` $P^o$
    leads from the latter to coordinates (`None`: they are the same). `normal` and `tangent` span what the constraints forbid and what
    they admit. `rows` $B$ picks independent combinations of all constraints (`None`: all are independent), `closing` those of the
    constraints that the chart leaves open. `regular` says whether the rank is the one that was asked for.
    """

    rows: Float[Array, "r m"] | None
    normal: Float[Array, "k c"]
    tangent: Float[Array, "k d"]
    regular: Array
    closing: Float[Array, "c open"] | None = None
    directions: Float[Array, "n k"] | None = None

    @classmethod
    def trivial(cls, q: Vector) -> "Split":
        """For a formulation that needs none: all constraints count, and no directions are known."""
        none = jnp.zeros((q.size, 0), q.dtype)
        return cls(None, none, none, jnp.array(True))

    @property
    def basis(self) -> Float[Array, "n d"]:
        """Admissible directions in coordinates."""
        return self.tangent if self.directions is None else self.directions @ self.tangent

    def independent(self, G: Float[Array, "m n"]) -> Float[Array, "r n"]:
        """The independent combinations of the rows of a constraint Jacobian."""
        return G if self.rows is None else self.rows @ G

    def spread(self, multipliers: Float[Array, "... r"]) -> Float[Array, "... m"]:
        """Multipliers of all constraints from those of the independent combinations."""
        return multipliers if self.rows is None else multipliers @ self.rows

    def pick(self, values: Float[Array, "... m"]) -> Float[Array, "... r"]:
        """The independent combinations of constraint values."""
        return values if self.rows is None else values @ self.rows.T


def rank_tolerance(dtype) -> float:
    """Relative size below which a singular value of the row-normalised $G$ counts as zero."""
    return float(jnp.finfo(dtype).eps) ** (2 / 3)


def constraint_count(system: System, q: Vector) -> int:
    """Number of constraints, redundant ones included."""
    return jax.eval_shape(system.constraints, jnp.zeros((), q.dtype), q).size


def is_large(system: System, q: Vector) -> bool:
    """Whether a system is too large for dense matrices. Its constraints are then all kept, redundant ones made a little soft."""
    return q.size + constraint_count(system, q) > LARGE


def known_independent(system: System, q: Vector) -> bool:
    """Whether all constraints are independent: as those of a tree of joints always are, or as found."""
    return system.closures == 0 or system.rank == constraint_count(system, q)


def saddle_layout(system: System, q: Vector, at: Split, stages: int = 1) -> Layout:
    """The layout of coordinates with the multipliers of the constraints that a split picks."""
    count = constraint_count(system, q)
    if at.rows is not None:
        return Layout(stages, q.size, at.rows.shape[0])
    soft = is_large(system, q) and not known_independent(system, q)
    if not isinstance(system.params, Assembly):
        return Layout(stages, q.size, count, dependent=soft)
    model = system.params
    held = tuple(model.internal_rows()) if model.beams else ()
    return Layout(stages, q.size, count, tuple(model.gauge_rows()), model.parts_of_coordinates(), held, soft)


def rank(system: System, q: Vector) -> int:
    """Number of independent constraints: as found by `find_rank`, or else all of them."""
    return constraint_count(system, q) if system.rank is None else system.rank


def fulfilled(system: System, q: Vector) -> int:
    """Number of constraints that the chart fulfils by itself."""
    return constraint_count(system, q) - (system.closures or 0)


def chart_size(system: System, q: Vector) -> int:
    """Number of increments of the chart: one a degree of freedom, and one for each constraint that it leaves to be closed."""
    return q.size - (rank(system, q) if system.closures is None else fulfilled(system, q))


def chart_directions(system: System, t: Scalar, q: Vector) -> Float[Array, "n k"]:
    r"""$P^o = \partial F_d/\partial u$ at $u = 0$ (94)."""
    return jax.jacfwd(system.chart)(jnp.zeros(chart_size(system, q), q.dtype), q, t, t)


def pull_to_chart(system: System, t: Scalar, q: Vector, force: Vector) -> Float[Array, " k"]:
    r"""$P^{oT}$ times a vector without the matrix: at a cost in proportion to the number of bodies."""
    return jax.vjp(lambda u: system.chart(u, q, t, t), jnp.zeros(chart_size(system, q), q.dtype))[1](force)[0]


def closure_jacobian(system: System, t: Scalar, q: Vector) -> Float[Array, "open n"]:
    r"""$G^c$: the last rows of $G$, of the constraints that the chart leaves open."""
    return jax.jacrev(lambda q: system.constraints(t, q)[fulfilled(system, q) :])(q)


def numerical_rank(system: System, t: Scalar, q: Vector) -> Array:
    """Rank of the constraint Jacobian; where a chart fulfils most constraints, only the others need be looked at."""
    if system.closures == 0:
        return jnp.array(constraint_count(system, q))
    if system.closures is None:
        return matrix_rank(constraint_jacobian(system, t, q))
    G, P = closure_jacobian(system, t, q), chart_directions(system, t, q)
    return fulfilled(system, q) + matrix_rank(G @ P, _row_size(G, P))


def matrix_rank(G: Float[Array, "m k"], size: Float[Array, " m"] | None = None) -> Array:
    """Rank of a Jacobian, its rows brought to comparable length so that units do not matter."""
    if G.size == 0:
        return jnp.array(0)
    values = singular_values(G / (_row_size(G) if size is None else size)[:, None])
    return jnp.sum(values > rank_tolerance(G.dtype) * jnp.maximum(values[0], 1))


def _row_size(G: Float[Array, "m n"], P: Float[Array, "n k"] | None = None) -> Float[Array, " m"]:
    """The length of rows; of a product $G P$ the length that its rows have unless they cancel."""
    size = jnp.linalg.norm(G, axis=1)
    size = size if P is None or P.size == 0 else size * jnp.max(jnp.linalg.norm(P, axis=0))
    return jnp.where(size > 0, size, 1)


def split(system: System, t: Scalar, q: Vector) -> Split:
    """The split at `q` in the smallest space at hand: increments of a chart that is known to fulfil constraints, or coordinates."""
    if system.closures is None:
        return split_coordinates(system, t, q)
    system, t, q = jax.lax.stop_gradient((system, t, q))
    directions = chart_directions(system, t, q)
    count, G = fulfilled(system, q), closure_jacobian(system, t, q)
    small = decompose(G @ directions, rank(system, q) - count, _row_size(G, directions))
    if small.rows is None:
        return Split(None, small.normal, small.tangent, small.regular, None, directions)
    rows = jax.scipy.linalg.block_diag(jnp.eye(count, dtype=q.dtype), small.rows)
    return Split(rows, small.normal, small.tangent, small.regular, small.rows, directions)


def split_coordinates(system: System, t: Scalar, q: Vector) -> Split:
    """The split of $R^n$ at `q`."""
    G = jax.lax.stop_gradient(constraint_jacobian(system, t, q))
    return decompose(G, rank(system, q))


def decompose(G: Float[Array, "m k"], rank: int, size: Float[Array, " m"] | None = None) -> Split:
    """A QR decomposition (9), or for redundant constraints a singular value decomposition."""
    m, k = G.shape
    size = _row_size(G) if size is None else size
    if rank == 0:
        rows = jnp.zeros((0, m), G.dtype) if m else None
        return Split(rows, jnp.zeros((k, 0), G.dtype), jnp.eye(k, dtype=G.dtype), jnp.array(True))
    if rank == m:
        Q, R = qr((G / size[:, None]).T)
        return Split(None, Q[:, :m], Q[:, m:], jnp.abs(jnp.diagonal(R)).min() > rank_tolerance(G.dtype))
    U, values, Vt = svd(G / size[:, None])
    found = jnp.sum(values > rank_tolerance(G.dtype) * jnp.maximum(values[0], 1))
    return Split((U[:, :rank] / size[:, None]).T, Vt[:rank].T, Vt[rank:].T, found == rank)


def correct_null_space(G: Float[Array, "r k"], N0: Float[Array, "k d"]) -> Float[Array, "k d"]:
    r"""$N = N_0 - G^T (G G^T)^{-1} G N_0$: a basis near `N0`, exactly in the null space of $G$ and smooth in $G$."""
    if G.shape[0] == 0:
        return N0
    return N0 - G.T @ solve(G @ G.T, G @ N0)


def null_space(system: System, t: Scalar, q: Vector, source: str, at: Split) -> Float[Array, "n d"]:
    r"""A matrix $P(q)$ with $G P = 0$ (5): the user's, that of the chart, or a corrected orthonormal basis.

    A chart that leaves constraints open gives $P = P^o P^c$ (96), with $P^c$ in the null space of the small matrix $G^c P^o$.
    """
    if source == "user":
        return system.null_space(t, q)
    if source == "chart":
        directions = chart_directions(system, t, q)
        if not system.closures:
            return directions
        K = closure_jacobian(system, t, q) @ directions
        return directions @ correct_null_space(K if at.closing is None else at.closing @ K, at.tangent)
    G = constraint_jacobian(system, t, q)
    return correct_null_space(at.independent(G), at.basis)


def least_norm_multipliers(
    system: System, t: Scalar, q: Vector, reaction: Vector, directions: Float[Array, "m n"] | None = None
) -> Float[Array, " m"]:
    r"""The smallest $\Lambda$ with $G^T \Lambda$ = `reaction` (36)-(38), or with other `directions` of constraint forces near $G(q)$.

    Redundant constraints are written as $G = C \hat G$ with independent rows $\hat G = B G$, so that
    $(G^T)^+ = C (C^T C)^{-1} (\hat G \hat G^T)^{-1} \hat G$ is smooth where the rank is constant.
    """
    G = constraint_jacobian(system, t, q) if directions is None else directions
    if G.shape[0] == 0:
        return jnp.zeros(0, q.dtype)
    if system.rank in (None, G.shape[0]):
        return solve(G @ G.T, G @ reaction)
    if system.rank == 0:
        return jnp.zeros(G.shape[0], q.dtype)
    independent = split(system, t, q).independent(G)
    square = independent @ independent.T
    C = solve(square, independent @ G.T).T
    return C @ solve(C.T @ C, solve(square, independent @ reaction))
