"""Tangents of a few unknowns, inverted by operations that run along a batch: for pendulums by the thousand."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .base import AbstractLinear, AbstractTangent
from .inverses import inverses
from .layout import Layout


class SmallTangent(AbstractTangent):
    """A matrix beside its inverse; derivatives go through the matrix, solves through the inverse."""

    matrix: Float[Array, "k k"]
    inverse: Float[Array, "k k"]

    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        return jax.lax.custom_linear_solve(lambda x: self.matrix @ x, rhs, lambda _, b: self.inverse @ b, lambda _, b: self.inverse.T @ b)

    def magnitude(self, scale: Float[Array, " k"]) -> Float[Array, " k"]:
        return jnp.abs(self.matrix) @ scale


class Small(AbstractLinear):
    """The solver for up to a dozen unknowns: no library routine has to be called for each member of a batch."""

    def tangent(
        self, fn: Callable, x: Float[Array, " k"], args: PyTree = None, layout: Layout | None = None, valid: Array | bool = True
    ) -> SmallTangent:
        matrix = jnp.where(valid, jax.jacfwd(fn)(x, args), jnp.eye(x.size, dtype=x.dtype))
        return SmallTangent(matrix, inverses(jax.lax.stop_gradient(matrix)[:, :, None])[0])
