"""All that is worked out once about a Jacobian: pattern, colours, order of elimination. Kept for equations of the same structure."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Float, PyTree

from ..layout import Layout
from .colouring import colour_columns
from .order import eliminate, elimination_work, front_shapes
from .pattern import jacobian_pattern
from .plan import Plan, make_plan


class Lines(NamedTuple):
    """The nonzeros of all rows, or columns: put in `order` (`None`: as they are), where those of each begin, and how many they are."""

    order: Any
    starts: Any
    counts: Any
    most: int

    @classmethod
    def of(cls, lines: np.ndarray, size: int, sort: bool) -> "Lines":
        """From the row or column of each nonzero."""
        counts = np.bincount(lines, minlength=size)
        order = np.argsort(lines, kind="stable") if sort else None
        return cls(order, np.cumsum(counts) - counts, counts, int(counts.max(initial=0)))


class Places(NamedTuple):
    """The colour of each column; where among the elements of all directional derivatives, colour after colour and with a zero behind them,
    each nonzero is found; the row and the column of each nonzero; which ones stand on the diagonal; those of all rows and of all columns.
    """

    colour: Any
    source: Any
    rows: Any
    cols: Any
    diagonal: Any
    by_row: Lines
    by_col: Lines


def _on_device(tree: PyTree) -> PyTree:
    """Arrays of NumPy as arrays of JAX, made once, so that a program that uses one several times holds it only once.

    They are put there as they are: `jnp.asarray` would compile a copy for every shape.
    """
    with jax.ensure_compile_time_eval():
        return jax.tree.map(lambda leaf: jax.device_put(_narrow(leaf)) if isinstance(leaf, np.ndarray | np.integer) else leaf, tree)


def _narrow(places: np.ndarray | np.integer) -> np.ndarray | np.integer:
    return places.astype(np.int32) if places.dtype == np.int64 else places


class Analysis:
    """The structure of a Jacobian. Nonzeros, with all of the diagonal, are counted row by row.

    `rows` and `cols` are their places, and `levels` the order of elimination. What programs use is in `places`.
    """

    def __init__(self, pattern: sp.csr_array, layout: Layout):
        size = pattern.shape[0]
        self.pattern, self.layout, self.size = pattern, layout, size
        colour = colour_columns(pattern)
        self.colours = int(colour.max(initial=-1)) + 1
        full = sp.csr_array(pattern.astype(np.int32) + 2 * sp.eye_array(size, format="csr", dtype=np.int32))
        full.sort_indices()
        self.rows, self.cols = (places.astype(np.int32) for places in full.tocoo().coords)
        source = np.where(full.data == 2, self.colours * size, colour[self.cols] * size + self.rows)
        self.levels = eliminate(full, layout)
        self.plan: Plan = _on_device(make_plan(full, self.levels))
        by_row, by_col = Lines.of(self.rows, size, sort=False), Lines.of(self.cols, size, sort=True)
        diagonal = np.flatnonzero(self.rows == self.cols)
        self.places: Places = _on_device(Places(colour, source, self.rows, self.cols, diagonal, by_row, by_col))

    @property
    def operations(self) -> int:
        """About how many operations a factorisation takes, multiplications and additions."""
        return int(np.sum(2 * self.front_shapes[:, 0] * elimination_work(self.front_shapes)))

    @property
    def front_shapes(self) -> np.ndarray:
        """Numbers of fronts of one shape, of their pivots and of the unknowns of their boundary."""
        return front_shapes([bucket for level in self.levels for bucket in level])

    @property
    def order(self) -> np.ndarray:
        """The unknowns in the order of their elimination."""
        order = np.concatenate([pivots.ravel() for buckets in self.levels for pivots, _ in buckets])
        return order[order >= 0]

    def spy(self, axes: Any = None, ordered: bool = False) -> Any:
        """Draw the nonzeros with Matplotlib, on given axes or new ones, in the order of the unknowns or of their elimination."""
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(5, 5), layout="constrained")[1]
        pattern = self.pattern[self.order][:, self.order] if ordered else self.pattern
        axes.spy(pattern, markersize=max(0.3, min(4.0, 300 / max(self.size, 1))), color="tab:blue")
        axes.xaxis.tick_bottom()
        axes.set_xlabel("unknowns in the order of their elimination" if ordered else "unknowns")
        axes.set_ylabel("equations")
        return axes

    def __str__(self) -> str:
        coo = self.pattern.tocoo()
        band = int(np.abs(coo.row - coo.col).max(initial=0))
        widest = int(self.front_shapes[:, 1:].sum(axis=1).max())
        return (
            f"{self.size} unknowns, {self.pattern.nnz} nonzeros ({self.pattern.nnz / max(self.size, 1) ** 2:.2%}), {self.colours} colours, "
            f"bandwidth {band}, eliminated in {len(self.levels)} levels with fronts of up to {widest}"
        )


REMEMBERED = 64
"""Analyses that are kept, and programs that use them: some for each system, scheme and formulation of a session."""

_of_equations: dict[Hashable, Analysis | None] = {}
_of_patterns: dict[Hashable, Analysis] = {}


def analyse(fn: Callable, x: Float[Array, " k"], args: PyTree, layout: Layout) -> Analysis | None:
    """The structure of the Jacobian of `fn(x, args)` by `x`, or `None` if it is dense."""
    leaves, structure = jax.tree.flatten(args)
    key = (fn, structure, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves), x.size, x.dtype, layout)
    if key not in _of_equations:
        pattern = jacobian_pattern(fn, x, args)
        _remember(_of_equations, key, None if pattern is None else _of_pattern(pattern, layout))
    return _of_equations[key]


def _of_pattern(pattern: sp.csr_array, layout: Layout) -> Analysis:
    """Equations with the same pattern, such as those of a step and of momenta, share their analysis."""
    key = (pattern.indices.tobytes(), pattern.indptr.tobytes(), layout)
    if key not in _of_patterns:
        _remember(_of_patterns, key, Analysis(pattern, layout))
    return _of_patterns[key]


def _remember(cache: dict, key: Hashable, value: Analysis | None) -> None:
    """Keep a value, and forget the oldest of too many."""
    if len(cache) >= REMEMBERED:
        cache.pop(next(iter(cache)))
    cache[key] = value
