"""Index sets: for each element of an array the set of inputs that it depends on.

The sets of an array are kept as a sparse matrix with a row for each element and a column for each input, filled with ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

IndexSets: TypeAlias = Any  # sp.csr_array, of which SciPy tells type checkers nothing
MOST = 30_000_000
"""Entries beyond which a pattern counts as dense."""


class DenseError(Exception):
    """There are too many dependences."""


class Traced:
    """An array of a traced program: its shape, its value where that is a constant, its index sets if it depends on inputs."""

    def __init__(self, shape: Sequence[int], value: np.ndarray | Callable | None = None, sets: IndexSets | None = None):
        self.shape, self.sets = tuple(shape), sets
        self._value = value

    @property
    def value(self) -> np.ndarray | None:
        """The constant, computed when it is first asked for; `None` if it is not known."""
        if callable(self._value):
            self._value = self._value()
        return None if self.sets is not None else self._value  # type: ignore[return-value]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=int))

    def index(self) -> np.ndarray:
        """The place of each element."""
        return np.arange(self.size).reshape(self.shape)


def width(inputs: Sequence[Traced]) -> int:
    """Number of inputs that the elements can depend on."""
    return next(one.sets.shape[1] for one in inputs if one.sets is not None)


def sets_of(one: Traced, columns: int) -> IndexSets:
    """The index sets of an array, empty ones if it depends on nothing."""
    return sp.csr_array((one.size, columns), dtype=np.int8) if one.sets is None else one.sets


def from_pairs(elements: np.ndarray, inputs: np.ndarray, shape: tuple[int, int]) -> IndexSets:
    """Sets from pairs of an element and an input that it depends on."""
    return _checked(sp.csr_array((np.ones(elements.size, np.int32), (elements, inputs)), shape=shape))


def take(sets: IndexSets, places: np.ndarray) -> IndexSets:
    """The sets of elements by their places; a place of -1 depends on nothing."""
    places = places.ravel()
    if (places < 0).any():
        sets = sp.vstack([sets, sp.csr_array((1, sets.shape[1]), dtype=sets.dtype)], format="csr")
    return _checked(sets[places])


def join(inputs: Sequence[Traced]) -> IndexSets:
    """The sets of several arrays, one array after the other."""
    columns = width(inputs)
    return sp.vstack([sets_of(one, columns) for one in inputs], format="csr")


def union(parts: Sequence[IndexSets]) -> IndexSets:
    """Element by element the union of several sets."""
    total = parts[0]
    for part in parts[1:]:
        if part is not total:
            total = _checked(total + part)
    return total


def unite(targets: np.ndarray, sets: IndexSets, size: int, sources: np.ndarray | None = None) -> IndexSets:
    """For every target the union of the sets that go to it, those at `sources` or all in turn; a target of -1 is nowhere."""
    sources = np.arange(targets.size) if sources is None else sources.ravel()
    kept = targets.ravel() >= 0
    pick = from_pairs(targets.ravel()[kept], sources[kept], (size, sets.shape[0]))
    return _checked(sp.csr_array(pick @ sets.astype(np.int32)))


def everything(inputs: Sequence[Traced], size: int) -> IndexSets:
    """Every element depends on all that any element of an input depends on."""
    found = np.unique(np.concatenate([one.sets.indices for one in inputs if one.sets is not None]))
    if size * found.size > MOST:
        raise DenseError
    return from_pairs(np.repeat(np.arange(size), found.size), np.tile(found, size), (size, width(inputs)))


def _checked(sets: IndexSets) -> IndexSets:
    """Entries of one, if they are not too many."""
    if sets.nnz > MOST:
        raise DenseError
    return sp.csr_array((np.ones(sets.nnz, np.int8), sets.indices, sets.indptr), shape=sets.shape)


Rule = Callable[[Any, list[Traced]], IndexSets]
