"""What Newton's method asks of a linear solver."""

import abc
from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array, Float


class AbstractTangent(eqx.Module):
    r"""The factorised Jacobian $J$ of a residual at one point, with the residual there."""

    residual: eqx.AbstractVar[Float[Array, " k"]]

    @abc.abstractmethod
    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        r"""$J^{-1}$ `rhs`; differentiable, and linear (hence transposable) in `rhs`."""

    @abc.abstractmethod
    def magnitude(self, scale: Float[Array, " k"]) -> Float[Array, " k"]:
        r"""$|J|$ `scale`: how large each row of the residual is when the unknowns are as large as `scale`."""


class AbstractLinear(eqx.Module):
    """How tangents are formed and factorised. A new linear solver is this one method and its tangent."""

    @abc.abstractmethod
    def tangent(self, fn: Callable, x: Float[Array, " k"], valid: Array | bool = True) -> AbstractTangent:
        """The tangent of `fn` at `x`; the identity where `valid` is false, so that failed solves have harmless derivatives."""
