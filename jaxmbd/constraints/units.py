r"""Units in which coordinates and constraints can be compared, so that nothing depends on those of the model.

Origins of bodies are lengths beside directors without a unit: lengths of rows of $G$, nearest vectors and tolerances mean something only if
coordinates are counted in sizes $s$ of their own, $q = S y$. The Jacobian is then $G S$, and forces are $S f$, which is work.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..numerics.arrays import root
from ..numerics.lapack import solve
from ..system import System, Vector


def sizes(system: System, q: Vector) -> Vector:
    """For every coordinate a change that matters as much as those of the others: as the structure of the system tells, or else one."""
    told = system.structure.sizes
    return jnp.ones_like(q) if told is None else told(q)


def extents(system: System, q: Vector, move: Vector | None = None) -> Vector:
    """How large coordinates are before or after a move: each for itself but not below its size, or, without sizes, all as the largest."""
    largest = jnp.abs(q) if move is None else jnp.maximum(jnp.abs(q), jnp.abs(move))
    if system.structure.sizes is not None:
        return jnp.maximum(largest, jax.lax.stop_gradient(sizes(system, q)))
    length = jnp.max(largest)
    return jnp.full(q.shape, jnp.where(length > 0, length, 1))


def row_size(rows: Float[Array, "m n"]) -> Float[Array, " m"]:
    """The lengths of rows; one for those that are zero."""
    size = root(jnp.sum(rows * rows, axis=1))
    return jnp.where(size > 0, size, 1)


def work_sizes(system: System, rows: Float[Array, "m n"]) -> Float[Array, " m"]:
    """What multipliers are counted by where several are possible: their work, the lengths of the rows of $G S$, if sizes are told."""
    return row_size(rows) if system.structure.sizes is not None else jnp.ones(rows.shape[:1], rows.dtype)


def fit(rows: Float[Array, "r n"], vector: Vector, size: Vector) -> Float[Array, " r"]:
    r"""Factors $\mu$ of independent rows $A$ with $|S (f - A^T \mu)|$ smallest, whatever the units of rows and components are."""
    length = jax.lax.stop_gradient(row_size(rows * size))
    scaled = rows * size / length[:, None]
    return solve(scaled @ scaled.T, scaled @ (size * vector)) / length


def least(rows: Float[Array, "r n"], values: Float[Array, "r *columns"], size: Vector) -> Float[Array, "n *columns"]:
    r"""The vector $x$ with $A x$ = `values` for independent rows $A$ whose $|S^{-1} x|$ is smallest."""
    length = jax.lax.stop_gradient(row_size(rows * size))
    scaled = rows * size / length[:, None]
    across = lambda vector, like: vector.reshape(-1, *(1 for _ in like.shape[1:]))
    return across(size, values) * (scaled.T @ solve(scaled @ scaled.T, values / across(length, values)))


def within(directions: Float[Array, "n k"], extent: Vector) -> Float[Array, " k"]:
    """How far one may go along each direction until a coordinate has changed by its extent; one along those that change none."""
    steepest = jnp.max(jnp.abs(directions) / extent[:, None], axis=0, initial=0)
    return 1 / jnp.where(steepest > 0, steepest, 1)
