"""Elements by their places, for places that are known beforehand."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

WRITTEN_OUT = 8
"""Terms of a sum that are written out; more of them are a loop over so many at a time, so that programs do not grow with them."""


def pick(values: Float[Array, " e"], places: Int[Array, "..."] | Int[np.ndarray, "..."]) -> Array:
    """Elements by places that must exist."""
    numbers = jax.lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    index = jnp.asarray(places, jnp.int32)[..., None]
    return jax.lax.gather(values, index, numbers, (1,), mode=jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def when_run(places: Int[Array, "..."]) -> Int[Array, "..."]:
    """Places from which others are computed while a program runs: the compiler would do it once, slowly, and keep the outcome."""
    return jax.lax.optimization_barrier(places)


def with_zero(values: Float[Array, " e"]) -> Float[Array, " e1"]:
    """The values with a zero behind the last."""
    return jnp.concatenate([values, jnp.zeros(1, values.dtype)])


def added(values: Callable, count: int) -> Array:
    """The sum of `values(k)`, one or more of them.

    A sum along the leading axis of a stack would say the same, but compilers for CPUs hand it to a library that takes ten times as long.
    """
    if count <= WRITTEN_OUT:
        return functools.reduce(jnp.add, map(values, range(count)))
    return jax.lax.fori_loop(1, count, lambda k, total: total + values(k), values(0), unroll=WRITTEN_OUT)
