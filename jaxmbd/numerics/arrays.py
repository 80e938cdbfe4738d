"""Arrays: numbers behind them, NumPy or JAX, several as one, parts of one."""

from collections.abc import Callable, Hashable, Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

Indices = tuple[int, ...]


def library(*values: PyTree) -> ModuleType:
    """What computes with these values: `jax.numpy` if it holds or traces one of them, otherwise NumPy, which keeps all digits."""
    return jnp if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(values)) else np


def number(value: Any) -> Any:
    """A number or array as a parameter: what JAX holds or traces stays with it, the rest keeps all its digits in NumPy."""
    return jnp.asarray(value) if library(value) is jnp else np.asarray(value, float)


def known(value: Any) -> np.ndarray | None:
    """The numbers behind a value, or `None` inside a transformation that hides them."""
    value = jax.lax.stop_gradient(value) if isinstance(value, jax.core.Tracer) else value
    return None if isinstance(value, jax.core.Tracer) else np.asarray(value)


def seen(tree: PyTree) -> PyTree:
    """Numbers in NumPy, which compiles nothing; what a transformation traces stays as it is."""
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.core.Tracer) else np.asarray(leaf), tree)


def root(square: Array) -> Array:
    """The square root of numbers that are not negative, with derivative zero at zero."""
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def stack(elements: Sequence[Any]) -> Any:
    """Elements of one structure as one, each leaf with a leading axis; NumPy stays NumPy, so that digits are kept.

    Numbers that are not hidden are stacked by NumPy in any case: JAX would compile an operation with as many operands as elements.
    """

    def stacked(*leaves):
        if library(*leaves) is np:
            return np.stack(leaves)
        hidden = any(isinstance(leaf, jax.core.Tracer) for leaf in leaves)
        return jnp.stack(leaves) if hidden else jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))

    return jax.tree.map(stacked, *elements)


def join(parts: Sequence[Any]) -> Any:
    """Arrays one after the other; NumPy stays NumPy."""
    return library(*parts).concatenate(parts)


def alike(elements: Sequence[Any], keys: Sequence[Hashable] | None = None) -> list[list[int]]:
    """Indices of elements that can be stacked and share a key, in the order of first appearance."""
    found: dict[Any, list[int]] = {}
    for index, (element, key) in enumerate(zip(elements, keys or [None] * len(elements), strict=True)):
        leaves, structure = jax.tree.flatten(element)
        found.setdefault((structure, tuple(np.shape(leaf) for leaf in leaves), key), []).append(index)
    return list(found.values())


def take(values: Float[Array, "n ..."], indices: Indices) -> Float[Array, "k ..."]:
    """Elements along the first axis; two runs of consecutive ones, as in chains, as slices: the transpose of a gather is slow on CPUs."""
    places = np.asarray(indices, int)
    runs = np.split(places, 1 + np.flatnonzero(np.diff(places) != 1))
    if places.size == 0 or len(runs) > 2:
        return values[places]
    return jnp.concatenate([values[run[0] : run[-1] + 1] for run in runs])


def total(groups: Sequence[Any], function: Callable, like: Array) -> Array:
    """The sum of a scalar over groups."""
    return sum((function(group) for group in groups), jnp.zeros((), like.dtype))


def over_rows(function: Callable, *columns: PyTree) -> PyTree:
    """`function(*row)` for every row, one after the other: a long trajectory never holds the matrices of all its rows at once."""
    return jax.lax.map(lambda row: function(*row), columns)
