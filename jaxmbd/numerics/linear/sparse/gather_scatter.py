"""Which elements of an array gathers and scatters touch: windows that begin at given indices."""

import functools
from collections.abc import Sequence

import jax
import numpy as np

Shape = tuple[int, ...]
Axes = Sequence[int | np.integer]


def gathered(params: dict, shape: Shape, indices: np.ndarray) -> np.ndarray:
    """For every element that is gathered its place in an array of `shape`, or -1 for what lies outside."""
    axes = params["dimension_numbers"]
    pinned, at = axes.operand_batching_dims, axes.start_indices_batching_dims
    starts = _starts(shape, indices, axes.start_index_map, pinned, at)
    return _places(shape, starts, params["slice_sizes"], (*axes.collapsed_slice_dims, *pinned), axes.offset_dims, params["mode"])


def scattered(params: dict, shape: Shape, indices: np.ndarray, updates: Shape) -> np.ndarray:
    """For every update the place in an array of `shape` where it lands, or -1 where it is dropped."""
    axes = params["dimension_numbers"]
    pinned, at = axes.operand_batching_dims, axes.scatter_indices_batching_dims
    single = (*axes.inserted_window_dims, *pinned)
    window = iter(axes.update_window_dims)
    sizes = [1 if axis in single else updates[next(window)] for axis in range(len(shape))]
    starts = _starts(shape, indices, axes.scatter_dims_to_operand_dims, pinned, at)
    return _places(shape, starts, sizes, single, axes.update_window_dims, params["mode"])


def _starts(shape: Shape, indices: np.ndarray, axes: Axes, pinned: Axes, at: Axes) -> np.ndarray:
    """Where each window begins along every axis: by its index vector, and on `pinned` axes by its own place along the axes `at`."""
    starts = np.zeros((*indices.shape[:-1], len(shape)), np.int64)
    starts[..., np.array(axes, int)] = indices
    for axis, own in zip(pinned, at, strict=True):
        starts[..., axis] = np.expand_dims(np.arange(indices.shape[own]), [i for i in range(indices.ndim - 1) if i != own])
    return starts


def _places(
    shape: Shape,
    starts: np.ndarray,
    sizes: Sequence[int],
    single: Axes,
    window_axes: Axes,
    mode: jax.lax.GatherScatterMode,
) -> np.ndarray:
    """Places of the elements of all windows, whose axes, without those of a `single` element, become `window_axes` of the outcome."""
    strides = np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]
    last = np.array(shape, np.int64) - np.array(sizes, np.int64)
    outside = np.any((starts < 0) | (starts > last), axis=-1)
    kept = [axis for axis in range(len(shape)) if axis not in single]
    begins = np.clip(starts, 0, last) @ strides[: len(shape)]
    if mode == jax.lax.GatherScatterMode.FILL_OR_DROP:
        begins = np.where(outside, -1 - np.prod(shape, dtype=np.int64), begins)
    offsets = functools.reduce(np.add.outer, [strides[axis] * np.arange(sizes[axis]) for axis in kept], np.int64(0))
    places = np.asarray(np.maximum(np.add.outer(begins, offsets), -1))
    return np.moveaxis(places, range(begins.ndim, places.ndim), window_axes)
