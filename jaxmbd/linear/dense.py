"""Dense tangents: one JVP a column, LU with partial pivoting."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.linalg import lu_factor, lu_solve
from jaxtyping import Array, Float, Int

from .base import AbstractLinear, AbstractTangent


class DenseTangent(AbstractTangent):
    """A matrix beside its LU factors; derivatives go through the matrix, solves through the factors."""

    residual: Float[Array, " k"]
    matrix: Float[Array, "k k"]
    factors: tuple[Float[Array, "k k"], Int[Array, " k"]]

    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        return jax.lax.custom_linear_solve(
            lambda x: self.matrix @ x,
            rhs,
            lambda _, b: lu_solve(self.factors, b),
            lambda _, b: lu_solve(self.factors, b, trans=1),
        )

    def magnitude(self, scale: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.abs(self.matrix) @ scale


class Dense(AbstractLinear):
    """The solver for small systems: cost cubic in the number of unknowns."""

    def tangent(self, fn: Callable, x: Float[Array, " k"], valid: Array | bool = True) -> DenseTangent:
        matrix, residual = jax.jacfwd(lambda y: (fn(y),) * 2, has_aux=True)(x)
        matrix = jnp.where(valid, matrix, jnp.eye(x.size, dtype=x.dtype))
        return DenseTangent(residual, matrix, lu_factor(jax.lax.stop_gradient(matrix)))
