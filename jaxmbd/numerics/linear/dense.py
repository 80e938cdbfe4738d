"""Dense tangents: one JVP a column, LU with partial pivoting."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..lapack import LU
from .base import AbstractLinear, AbstractTangent
from .layout import Layout
from .regularise import corrected, softness


class DenseTangent(AbstractTangent):
    """A matrix beside its LU factors; derivatives go through the matrix, solves through the factors.

    The factors may be those of a matrix with `soft` constraints.
    """

    matrix: Float[Array, "k k"]
    factors: LU
    soft: bool = eqx.field(static=True, default=False)

    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        forward, backward = self._through(self.factors.solve, 1), self._through(lambda b: self.factors.solve(b, transposed=True), 0)
        return jax.lax.custom_linear_solve(lambda x: self.matrix @ x, rhs, forward, backward)

    def _through(self, once: Callable, axis: int) -> Callable:
        """A solve with the matrix, whose slopes lie along `axis`, by solves with the factors."""
        if not self.soft:
            return lambda _, b: once(b)
        sizes = jax.lax.stop_gradient(jnp.sum(jnp.abs(self.matrix), axis=axis))
        return lambda multiply, b: corrected(once, multiply, b, sizes)

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
            return DenseTangent(matrix, LU.of(matrix))
        return DenseTangent(matrix, LU.of(_softened(matrix, layout)), soft=True)


def _softened(matrix: Float[Array, "k k"], layout: Layout) -> Float[Array, "k k"]:
    """The matrix with all constraints a little soft."""
    sizes = jnp.abs(matrix)
    return matrix + jnp.diag(softness(lambda w: sizes @ w, lambda w: sizes.T @ w, layout.is_multiplier, matrix.dtype))
