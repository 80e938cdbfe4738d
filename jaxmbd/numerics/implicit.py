"""The implicit function theorem: how a root moves with what its equations depend on."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree


def root_derivative(
    equations: Callable,
    y: Float[Array, " k"],
    args: PyTree,
    d_args: PyTree,
    solve: Callable,
    solved: Bool[Array, ""],
) -> Float[Array, " k"] | None:
    r"""The derivative of the root $y(a)$ of $f(y, a) = 0$ along $\dot a$: $\dot y = -(\partial_y f)^{-1} \partial_a f \, \dot a$.

    One solve, however the root was found. `None` where the equations do not depend on what varies.

    **Arguments**

    - `equations`: $f$, which takes everything it depends on through `args`.
    - `y`: the root, or where none was found a point at which the equations can be evaluated.
    - `args`, `d_args`: $a$ and $\dot a$, the latter with `None` for leaves that do not vary.
    - `solve`: $b \mapsto (\partial_y f)^{-1} b$, called at most once; harmless where no root was found.
    - `solved`: whether `y` is a root; the derivative is zero if not.
    """
    _, change = eqx.filter_jvp(lambda args: equations(y, args), (args,), (d_args,))
    return None if change is None else jnp.where(solved, -solve(change), 0)
