"""Solves with an operator through the factorised tangent of a nearby point."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .base import AbstractTangent

MOST_CORRECTIONS = 20
"""Passes beyond which a solve is left as it is; the two or three of a good tangent never come near it."""

SHRINKS = 0.5
"""The part of the last correction that the next may be: one that is hardly smaller is rounding, or belongs to a tangent too far off."""


def refined_solve(operator: Callable, rhs: Float[Array, " k"], nearby: AbstractTangent, valid: Array) -> Float[Array, " k"]:
    r"""$A^{-1}$ `rhs` for the linear `operator` $A$ by iterative refinement with a `nearby` tangent $J \approx A$.

    $x \leftarrow x + J^{-1}(\mathrm{rhs} - A x)$ gains in each pass as many digits as $J$ and $A$ share: for the last tangent of a
    converged Newton iteration two or three passes reach rounding, each at the cost of one product instead of a new tangent.
    Differentiable and linear in `rhs`; where `valid` is false, $A$ and $J$ are replaced by the identity.
    """
    approximate = lambda b: jnp.where(valid, nearby.solve(b), b)
    transposed = lambda b: jnp.where(valid, jax.linear_transpose(nearby.solve, b)(b)[0], b)
    return jax.lax.custom_linear_solve(
        lambda x: jnp.where(valid, operator(x), x),
        rhs,
        lambda apply, b: _refine(apply, approximate, b),
        lambda apply, b: _refine(apply, transposed, b),
    )


def _refine(apply: Callable, approximate: Callable, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
    """Correct until the next correction, foretold by the rate at which they shrink, is rounding; or until they shrink no more."""
    eps = jnp.finfo(rhs.dtype).eps
    largest = lambda x: jnp.max(jnp.abs(x), initial=0)

    def body(carry):
        x, last, _, count = carry
        correction = approximate(rhs - apply(x))
        size = largest(correction)
        shrinks = size < SHRINKS * last
        x = jnp.where(shrinks, x + correction, x)
        return x, size, shrinks & (size * size > eps * last * largest(x)), count + 1

    x = approximate(rhs)
    start = (x, largest(x), jnp.array(True), jnp.int32(0))
    return jax.lax.while_loop(lambda carry: carry[2] & (carry[3] < MOST_CORRECTIONS), body, start)[0]
