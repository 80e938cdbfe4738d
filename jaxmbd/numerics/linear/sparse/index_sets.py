"""Arrays whose elements depend on inputs: each element is a row of a sparse matrix, with an entry for every input it depends on."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

Rows: TypeAlias = Any  # sp.csr_array, of which SciPy tells type checkers nothing
MOST = 30_000_000
"""Entries beyond which a pattern counts as dense."""


class DenseError(Exception):
    """There are too many dependences."""


class Traced:
    """An array of a traced program: its shape, its value where that is a constant, and the rows of its elements if it depends on inputs."""

    def __init__(self, shape: Sequence[int], value: np.ndarray | Callable | None = None, rows: Rows | None = None):
        self.shape, self.rows = tuple(shape), rows
        self._value = value

    @property
    def value(self) -> np.ndarray | None:
        """The constant, computed when it is first asked for; `None` if it is not known."""
        if callable(self._value):
            self._value = self._value()
        return None if self.rows is not None else self._value  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=int))

    def index(self) -> np.ndarray:
        """The place of each element."""
        return np.arange(self.size).reshape(self.shape)


def width(inputs: Sequence[Traced]) -> int:
    """Number of inputs that the elements can depend on."""
    return next(one.rows.shape[1] for one in inputs if one.rows is not None)


def rows_of(one: Traced, columns: int) -> Rows:
    """The rows of an array, empty ones if it depends on nothing."""
    return sp.csr_array((one.size, columns), dtype=np.int8) if one.rows is None else one.rows


def from_pairs(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Rows:
    """Rows with entries in given places."""
    return _checked(sp.csr_array((np.ones(rows.size, np.int32), (rows, columns)), shape=shape))


def take(rows: Rows, places: np.ndarray) -> Rows:
    """Rows by their places; a place of -1 depends on nothing."""
    places = places.ravel()
    if (places < 0).any():
        rows = sp.vstack([rows, sp.csr_array((1, rows.shape[1]), dtype=rows.dtype)], format="csr")
    return _checked(rows[places])


def join(inputs: Sequence[Traced]) -> Rows:
    """The rows of several arrays below each other."""
    columns = width(inputs)
    return sp.vstack([rows_of(one, columns) for one in inputs], format="csr")


def union(parts: Sequence[Rows]) -> Rows:
    """Rows that depend on what any part depends on."""
    total = parts[0]
    for part in parts[1:]:
        if part is not total:
            total = _checked(total + part)
    return total


def unite(targets: np.ndarray, rows: Rows, size: int, sources: np.ndarray | None = None) -> Rows:
    """For every target the union of the rows that go to it, those at `sources` or all in turn; a target of -1 is nowhere."""
    sources = np.arange(targets.size) if sources is None else sources.ravel()
    kept = targets.ravel() >= 0
    pick = from_pairs(targets.ravel()[kept], sources[kept], (size, rows.shape[0]))
    return _checked(sp.csr_array(pick @ rows.astype(np.int32)))


def everything(inputs: Sequence[Traced], size: int) -> Rows:
    """Every element depends on all that any element of an input depends on."""
    found = np.unique(np.concatenate([one.rows.indices for one in inputs if one.rows is not None]))
    if size * found.size > MOST:
        raise DenseError
    return from_pairs(np.repeat(np.arange(size), found.size), np.tile(found, size), (size, width(inputs)))


def _checked(rows: Rows) -> Rows:
    """Entries of one, if they are not too many."""
    if rows.nnz > MOST:
        raise DenseError
    return sp.csr_array((np.ones(rows.nnz, np.int8), rows.indices, rows.indptr), shape=rows.shape)


Rule = Callable[[Any, list[Traced]], Rows]
