"""Admissible and forbidden directions at one configuration: decompositions of the constraint Jacobian, null spaces."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..numerics.lapack import qr, svd
from ..system import Scalar, System, Vector
from .calculus import constraint_jacobian, velocity_jacobian
from .chart import chart_directions, closure_jacobian
from .counts import fulfilled, leaves_open, position_count, rank, rank_tolerance
from .units import least, row_size, sizes, within


class Split(eqx.Module):
    r"""A split of a space of increments at one configuration, constant under differentiation.

    The increments are those of the coordinates, or those that fulfil some constraints already and leave others open: of a chart, or,
    where there are constraints on velocities, in the tangent space of those on positions. `directions` $P^o$ leads from the latter to
    coordinates (`None`: they are the same). `normal` and `tangent` span what constraints on positions forbid and what all constraints
    admit, and are orthonormal if increments are counted in sizes of their own.

    `rows` $B$ picks independent combinations of all constraints (`None`: all are independent), `closing` those of the
    constraints that the increments leave open. Combinations of constraints on positions do not hold any on velocities, so that they are
    fulfilled whatever these are. `regular` says whether the rank is the one that was asked for.
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


def split(system: System, t: Scalar, q: Vector) -> Split:
    """The split at `q` in the smallest space at hand: increments of a chart that is known to fulfil constraints, or coordinates."""
    if system.closures is None:
        return split_coordinates(system, t, q)
    return split_chart(system, t, q)


def split_chart(system: System, t: Scalar, q: Vector) -> Split:
    """The split of the increments of the chart at `q`."""
    system, t, q = jax.lax.stop_gradient((system, t, q))
    if system.has("velocity_constraints"):
        return _narrowed(system, t, q, split_chart(system.holonomic, t, q), system.closures or 0)
    directions = chart_directions(system, t, q)
    if system.closures is None:
        at = split_coordinates(system, t, q)
        free = jnp.eye(directions.shape[1], dtype=q.dtype)
        return Split(at.rows, free[:, :0], free, at.regular, None, directions)
    count, G = fulfilled(system, q), closure_jacobian(system, t, q)
    size = sizes(system, q)
    small = decompose(G @ directions, rank(system, q) - count, within(directions, size), row_size(G * size))
    rows = _beside(None, count, small.rows, 0)
    return Split(rows, small.normal, small.tangent, small.regular, small.rows, directions)


def split_coordinates(system: System, t: Scalar, q: Vector) -> Split:
    """The split of $R^n$ at `q`."""
    system, t, q = jax.lax.stop_gradient((system, t, q))
    if not system.has("velocity_constraints"):
        return decompose(constraint_jacobian(system, t, q), rank(system, q), sizes(system, q))
    return _narrowed(system, t, q, split_coordinates(system.holonomic, t, q))


def _narrowed(system: System, t: Scalar, q: Vector, at: Split, closures: int = 0) -> Split:
    """A split by the constraints on positions, narrowed to what those on velocities admit."""
    further = rank(system, q) - rank(system.holonomic, q)
    return narrow(at, velocity_jacobian(system, t, q), further, sizes(system, q), position_count(system, q), closures)


def narrow(at: Split, A: Float[Array, "k n"], rank: int, size: Float[Array, " n"], count: int, closures: int = 0) -> Split:
    """A split by so many constraints, of which a chart leaves `closures` open, narrowed to what further ones with the rows `A` admit."""
    P = at.basis
    small = decompose(A @ P, rank, within(P, size), row_size(A * size))
    directions, tangent = (P, small.tangent) if at.directions is None else (at.directions, at.tangent @ small.tangent)
    rows, closing = (_beside(first, held, small.rows, len(A)) for first, held in ((at.rows, count), (at.closing, closures)))
    return Split(rows, at.normal, tangent, at.regular & small.regular, closing, directions)


def _beside(first: Array | None, held: int, second: Array | None, further: int) -> Array | None:
    """Combinations of constraints, and of further ones after them; `None` where all count."""
    combinations = [rows for rows in (first, second) if rows is not None]
    if not combinations:
        return None
    whole = lambda rows, count: jnp.eye(count, dtype=combinations[0].dtype) if rows is None else rows
    return jax.scipy.linalg.block_diag(whole(first, held), whole(second, further))


def decompose(G: Float[Array, "m k"], rank: int, size: Float[Array, " k"], lengths: Float[Array, " m"] | None = None) -> Split:
    """A QR decomposition (9), or for redundant constraints a singular value decomposition, for increments of these sizes.

    `lengths` are those that rows have unless they cancel, by default their own.
    """
    (m, k), G = G.shape, G * size
    lengths = row_size(G) if lengths is None else lengths
    if rank == 0:
        rows = jnp.zeros((0, m), G.dtype) if m else None
        return Split(rows, jnp.zeros((k, 0), G.dtype), jnp.diag(size), jnp.array(True))
    if rank == m:
        Q, R = qr((G / lengths[:, None]).T)
        Q, regular = size[:, None] * Q, jnp.abs(jnp.diagonal(R)).min() > rank_tolerance(G.dtype)
        return Split(None, Q[:, :m], Q[:, m:], regular)
    U, values, Vt = svd(G / lengths[:, None])
    found = jnp.sum(values > rank_tolerance(G.dtype) * jnp.maximum(values[0], 1))
    V = size[:, None] * Vt.T
    return Split((U[:, :rank] / lengths[:, None]).T, V[:, :rank], V[:, rank:], found == rank)


def correct_null_space(G: Float[Array, "r k"], N0: Float[Array, "k d"], size: Float[Array, " k"]) -> Float[Array, "k d"]:
    r"""$N = N_0 - S^2 G^T (G S^2 G^T)^{-1} G N_0$: a basis near `N0`, exactly in the null space of $G$ and smooth in $G$."""
    if G.shape[0] == 0:
        return N0
    return N0 - least(G, G @ N0, size)


def null_space(system: System, t: Scalar, q: Vector, source: str, at: Split) -> Float[Array, "n d"]:
    r"""A matrix $P(q)$ with $G P = 0$ (5): the user's, that of the chart, or a corrected orthonormal basis.

    A chart that leaves constraints open gives $P = P^o P^c$ (96), with $P^c$ in the null space of the small matrix $G^c P^o$.
    """
    if source == "user":
        return system.null_space(t, q)
    if source == "chart":
        directions = chart_directions(system, t, q)
        if not leaves_open(system):
            return directions
        K = closure_jacobian(system, t, q) @ directions
        size = jax.lax.stop_gradient(within(directions, sizes(system, q)))
        return directions @ correct_null_space(K if at.closing is None else at.closing @ K, at.tangent, size)
    G = constraint_jacobian(system, t, q)
    return correct_null_space(at.independent(G), at.basis, jax.lax.stop_gradient(sizes(system, q)))
