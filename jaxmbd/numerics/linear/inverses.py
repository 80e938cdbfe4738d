"""Inverses of many small matrices at once."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..lapack import inverse

LARGEST = 12
"""Matrices larger than this are inverted one after the other."""


def inverses(matrices: Float[Array, "p p count"]) -> Float[Array, "count p p"]:
    """The inverse of each matrix, the matrices being stacked along the last axis.

    Gauss-Jordan elimination with partial pivoting, all matrices in step, in operations that run along the stack; a batch of batches is
    just a longer stack. A library routine would take the matrices one at a time.
    """
    size = matrices.shape[0]
    if size > LARGEST:
        return jax.lax.map(inverse, jnp.moveaxis(matrices, -1, 0))
    if size == 1:
        return jnp.moveaxis(1 / matrices, -1, 0)
    swept, order = _sweep(matrices)
    hot = jax.nn.one_hot(order, size, axis=1, dtype=matrices.dtype)
    rows = jax.lax.optimization_barrier(sum(hot[:, i, None] * swept[None, i] for i in range(size)))
    return jnp.moveaxis(sum(rows[:, i, None] * hot[None, i] for i in range(size)), -1, 0)


def _sweep(matrices: Float[Array, "p p count"]):
    """The inverses with rows and columns out of order, and the row that was the pivot of each column."""
    size, _, count = matrices.shape
    places = jnp.arange(size, dtype=jnp.int32)
    separate = jax.lax.optimization_barrier  # keeps the compiler from computing pivots anew for every element

    def body(k, carry):
        M, used, order = carry
        column = jax.lax.dynamic_index_in_dim(M, k, 1, keepdims=False)
        column, candidates = separate((column, jnp.where(used, -1, jnp.abs(column))))
        largest, row, pivot = candidates[0], jnp.zeros(count, jnp.int32), column[0]
        for i in range(1, size):
            better = candidates[i] > largest
            largest, pivot = jnp.where(better, candidates[i], largest), jnp.where(better, column[i], pivot)
            row = jnp.where(better, i, row)
        row, scale = separate((row, 1 / pivot))
        values = M[0]
        for i in range(1, size):
            values = jnp.where(row == i, M[i], values)
        here, chosen = places == k, places[:, None] == row
        values = jnp.where(here[:, None], 1, values) * scale
        values, factors, chosen = separate((values, jnp.where(chosen, 0, column), chosen))
        M = jnp.where(here[None, :, None], jnp.where(chosen, 1.0, 0.0).astype(M.dtype)[:, None], M)
        M = jnp.where(chosen[:, None], values[None], M - factors[:, None] * values[None])
        return M, used | chosen, jax.lax.dynamic_update_index_in_dim(order, row, k, 0)

    start = (matrices, jnp.zeros((size, count), bool), jnp.zeros((size, count), jnp.int32))
    swept, _, order = jax.lax.fori_loop(0, size, body, start)
    return swept, order
