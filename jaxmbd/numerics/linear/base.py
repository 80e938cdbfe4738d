"""What Newton's method asks of a linear solver."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .layout import Layout

CLIMBS = 5
"""Steps of an estimate of a norm; it hardly ever gains by more than the first two or three."""


class AbstractTangent(eqx.Module):
    r"""The factorised Jacobian $J$ of a residual at one point. `lasting` says how many iterations it should serve unless told otherwise."""

    lasting: ClassVar[int] = 1

    @abc.abstractmethod
    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        r"""$J^{-1}$ `rhs`; differentiable, and linear (hence transposable) in `rhs`."""

    @abc.abstractmethod
    def magnitude(self, scale: Float[Array, " k"]) -> Float[Array, " k"]:
        r"""$|J|$ `scale`: how large each row of the residual is when the unknowns are as large as `scale`."""

    def condition(self, size: int, dtype: Any = float) -> Array:
        r"""An estimate from below of the condition number $\|J\|_\infty \|J^{-1}\|_\infty$ for so many unknowns: a few solves each way."""
        rows = self.magnitude(jnp.ones(size, dtype))
        return jnp.max(rows) * _inverse_norm(self.solve, size, rows.dtype)


def _inverse_norm(solve: Callable, size: int, dtype: Any) -> Array:
    r"""$\|J^{-1}\|_\infty = \max_x \|J^{-T} x\|_1$ over the unit vectors $x$, climbed from the mean of all (Hager's method)."""
    transposed = jax.linear_transpose(solve, jnp.zeros(size, dtype))

    def climb(x, _):
        y = transposed(x)[0]
        steepest = jnp.argmax(jnp.abs(solve(jnp.where(y < 0, -1, 1).astype(dtype))))
        return jnp.zeros(size, dtype).at[steepest].set(1), jnp.sum(jnp.abs(y))

    return jnp.max(jax.lax.scan(climb, jnp.full(size, 1 / size, dtype), length=CLIMBS)[1])


class AbstractLinear(eqx.Module):
    """How tangents are formed and factorised. A new linear solver is this one method and its tangent."""

    @abc.abstractmethod
    def tangent(
        self, fn: Callable, x: Float[Array, " k"], args: PyTree = None, layout: Layout | None = None, valid: Array | bool = True
    ) -> AbstractTangent:
        """The tangent of `fn(x, args)` by `x`; the identity where `valid` is false, so that failed solves have harmless derivatives.

        `layout` says what the unknowns are, for solvers that make use of it; `None` that nothing is known of them.
        """
