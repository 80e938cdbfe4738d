"""Dense tangents: one JVP a column, LU with partial pivoting."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax.linalg import lu, triangular_solve
from jaxtyping import Array, Float, Int, PyTree

from .base import AbstractLinear, AbstractTangent
from .soft import corrected, softness
from .structure import Layout


class DenseTangent(AbstractTangent):
    """A matrix beside its LU factors and the order of their rows; derivatives go through the matrix, solves through the factors.

    The factors may be those of a matrix with `soft` constraints.
    """

    matrix: Float[Array, "k k"]
    factors: Float[Array, "k k"]
    order: Int[Array, " k"]
    soft: bool = eqx.field(static=True, default=False)

    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        forward = lambda b: self._upper(self._lower(b[self.order]))
        backward = lambda b: jnp.zeros_like(b).at[self.order].set(self._lower(self._upper(b, True), True))
        through = lambda once, axis: lambda multiply, b: corrected(once, multiply, b, self._sizes(axis)) if self.soft else once(b)
        return jax.lax.custom_linear_solve(lambda x: self.matrix @ x, rhs, through(forward, 1), through(backward, 0))

    def _sizes(self, axis: int) -> Float[Array, " k"]:
        return jax.lax.stop_gradient(jnp.sum(jnp.abs(self.matrix), axis=axis))

    def _lower(self, b: Float[Array, " k"], transposed: bool = False) -> Float[Array, " k"]:
        options = {"left_side": True, "lower": True, "unit_diagonal": True, "transpose_a": transposed}
        return triangular_solve(self.factors, b[:, None], **options)[:, 0]

    def _upper(self, b: Float[Array, " k"], transposed: bool = False) -> Float[Array, " k"]:
        return triangular_solve(self.factors, b[:, None], left_side=True, transpose_a=transposed)[:, 0]

    def magnitude(self, scale: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.abs(self.matrix) @ scale


class Dense(AbstractLinear):
    """The solver for small systems and dense couplings: cost cubic in the number of unknowns."""

    def tangent(
        self, fn: Callable, x: Float[Array, " k"], args: PyTree = None, layout: Layout | None = None, valid: Array | bool = True
    ) -> DenseTangent:
        matrix = jax.jacfwd(fn)(x, args)
        matrix = jnp.where(valid, matrix, jnp.eye(x.size, dtype=x.dtype))
        if layout is None or not layout.dependent:
            factors, _, order = lu(jax.lax.stop_gradient(matrix))
            return DenseTangent(matrix, factors, order)
        factors, _, order = lu(jax.lax.stop_gradient(_softened(matrix, layout)))
        return DenseTangent(matrix, factors, order, soft=True)


def _softened(matrix: Float[Array, "k k"], layout: Layout) -> Float[Array, "k k"]:
    """The matrix with all constraints a little soft."""
    sizes = jnp.abs(matrix)
    return matrix + jnp.diag(softness(lambda w: sizes @ w, lambda w: sizes.T @ w, layout.is_multiplier, matrix.dtype))
