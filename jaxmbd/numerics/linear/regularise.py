r"""Redundant constraints made a little soft: $-\varepsilon$ times its compliance on the diagonal of each multiplier.

They then share their load instead of making the tangent singular. The factors are those of a matrix nearby, and a few corrections take
off what softness left. It must not be too small either: where a guess is off the constraints, redundant ones look almost independent, and
what they contradict each other in must find a way out.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SOFTNESS = 0.4
"""The power of the machine precision by which constraints are soft."""

LONG = 5000
"""Unknowns beyond which softness falls with the square of their number, as the smallest compliance of a long structure does."""

LEAST = 0.6
"""The power of the machine precision below which softness does not fall."""

ACCURACY = 0.75
"""The power of the machine precision to which a solve is corrected; those who ask for more correct the outcome themselves."""

CORRECTIONS = 10
"""The most solves with softened factors that correct each other."""


def softness(rows: Callable, columns: Callable, is_multiplier: np.ndarray, dtype: Any) -> Float[Array, " k"]:
    """What to add to the diagonal: `rows` and `columns` multiply the matrix of absolute values, and its transpose, with a vector.

    The compliance of a constraint is the product of its slopes and of the motions that its multiplier causes, force over inertia.
    """
    sizes = rows(jnp.asarray(~is_multiplier, dtype))
    moved = ~is_multiplier & (sizes > 0)
    inverse = jnp.where(moved, 1 / jnp.where(moved, sizes, 1), 0)
    eps = float(jnp.finfo(dtype).eps)
    share = max(eps**SOFTNESS * min(1.0, (LONG / is_multiplier.size) ** 2), eps**LEAST)
    return jnp.where(is_multiplier, -share * sizes * columns(inverse), 0)


def corrected(once: Callable, multiply: Callable, b: Float[Array, " k"], sizes: Float[Array, " k"]) -> Float[Array, " k"]:
    """Solve a system with the matrix of `multiply` through `once`, a solve with softened factors; `sizes` are those of its rows.

    Generalised conjugate residuals: each correction is the best one along the directions found, so that constraints that are hardly
    stiffer than their softness do not hold the others up.
    """
    weights = 1 / jnp.where(sizes > 0, sizes, 1) ** 2
    enough = float(jnp.finfo(b.dtype).eps) ** (2 * ACCURACY) * jnp.sum(weights * b * b)

    def correct(carry):
        x, rest, moves, images, count = carry
        move = once(rest)
        image = multiply(move)
        known = images @ (weights * image)
        move, image = move - known @ moves, image - known @ images
        length = jnp.sqrt(jnp.sum(weights * image * image))
        scale = jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1), 0)
        move, image = scale * move, scale * image
        share = jnp.sum(weights * rest * image)
        return x + share * move, rest - share * image, moves.at[count].set(move), images.at[count].set(image), count + 1

    none = jnp.zeros((CORRECTIONS, b.size), b.dtype)
    unsolved = lambda carry: (jnp.sum(weights * carry[1] * carry[1]) > enough) & (carry[4] < CORRECTIONS)
    return jax.lax.while_loop(unsolved, correct, (jnp.zeros_like(b), b, none, none, jnp.int32(0)))[0]
