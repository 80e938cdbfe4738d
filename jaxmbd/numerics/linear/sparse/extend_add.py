"""The extend-add: to which front the update matrix of each front is added, and in which rows and columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .batches import Loop
from .order import Bucket

NOWHERE = 2**30 - 1
"""A place beyond all others; two of them still make a number."""

ALIKE = 0.8
"""The part of the fronts with a first sibling of a group that must have the others too: for the rest of them zeros are added."""


class Table:
    """Numbers of entries by their places; there are none in rows or columns below zero."""

    def __init__(self, rows: np.ndarray, cols: np.ndarray, numbers: np.ndarray, missing: int):
        self.missing, self.size = missing, int(cols.max(initial=0)) + 1
        exists = (rows >= 0) & (cols >= 0)
        codes = rows[exists].astype(np.int64) * self.size + cols[exists]
        order = np.argsort(codes, kind="stable")
        self.codes, self.numbers = np.append(codes[order], -2), np.append(numbers[exists][order], missing)

    def find(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The numbers of entries, or that of what is missing."""
        wanted = np.where((rows >= 0) & (cols >= 0), rows.astype(np.int64) * self.size + cols, -1)
        at = np.searchsorted(self.codes[:-1], wanted)
        return np.where(self.codes[at] == wanted, self.numbers[at], self.missing)


class ExtendAdd(NamedTuple):
    """Update matrices and vectors that are added to the leading fronts of a batch, those of one child each along the first axis.

    For each unknown of a front: where its `row` begins among all update matrices and its `column` within rows, both `NOWHERE` if it is not
    in the boundary of the child, and its place among the update vectors.
    """

    row: Any
    column: Any
    vector: Any


class Updates:
    """The updates of all fronts, an entry for each unknown of their boundaries, sorted by the parents.

    `sibling` counts the children of one parent, `place` is that of the unknown in the front of the parent; `row`, `column` and `vector` are
    as in `ExtendAdd`. `matrix_elements` and `vector_elements` are the sizes of all update matrices and vectors together.
    """

    def __init__(self, loops: list[Loop], size: int):
        self.fronts, parents = _numbered(loops), _parents(loops, size)
        widths = np.concatenate([np.full(one.size, near.shape[-1]) for one, (_, near) in zip(self.fronts, loops, strict=True)])
        self.matrix_elements, self.vector_elements = int(np.sum(widths**2)), int(np.sum(widths))
        child, unknown = np.repeat(np.arange(widths.size), widths), np.concatenate([near.ravel() for _, near in loops])
        place = _positions(loops, self.fronts).find(parents[child], unknown)
        order = np.argsort(parents[child], kind="stable")
        order = order[place[order] >= 0]
        child, self.place = child[order], place[order]
        self.parent, self.sibling = parents[child], _siblings(parents)[child]
        self.vector = order
        self.column = order - (np.cumsum(widths) - widths)[child]
        self.row = (np.cumsum(widths**2) - widths**2)[child] + self.column * widths[child]

    def extend_add(self, fronts: np.ndarray, width: int) -> tuple[ExtendAdd, ...]:
        """What is added to some fronts of so many unknowns: first the first child of all, then further ones as far as there are any."""
        here = slice(*np.searchsorted(self.parent, [fronts[0, 0], fronts[-1, -1] + 1]))
        batch, element = np.divmod(self.parent[here] - fronts[0, 0], fronts.shape[1])
        sibling = self.sibling[here]
        counts = [int(element[sibling == k].max()) + 1 for k in range(sibling.max(initial=-1) + 1)]
        found = []
        for group in _alike(counts):
            mine = np.isin(sibling, group)
            shape = (len(fronts), len(group), counts[group[0]], width)
            at = (batch[mine], sibling[mine] - group[0], element[mine], self.place[here][mine])
            values = ((self.row, NOWHERE), (self.column, NOWHERE), (self.vector, self.vector_elements))
            found.append(ExtendAdd(*(_filled(shape, missing, at, one[here][mine]) for one, missing in values)))
        return tuple(found)


def most_children_first(buckets: list[Bucket], size: int) -> list[Bucket]:
    """Nodes of each bucket in the order of how many children they have."""
    parents = _parents(buckets, size)
    children = np.bincount(parents, minlength=parents.size)
    orders = [np.argsort(-children[numbers], kind="stable") for numbers in _numbered(buckets)]
    return [Bucket(own[order], near[order]) for (own, near), order in zip(buckets, orders, strict=True)]


Parts = Sequence[Bucket] | Sequence[Loop]


def _numbered(parts: Parts) -> list[np.ndarray]:
    """Numbers for all fronts, in the order of their elimination."""
    shapes = [own.shape[:-1] for own, _ in parts]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    return [np.arange(end - np.prod(shape, dtype=int), end).reshape(shape) for end, shape in zip(ends, shapes, strict=True)]


def _parents(parts: Parts, size: int) -> np.ndarray:
    """The parent of each front: that of the unknown of its boundary which is eliminated first, or the number of fronts for none."""
    fronts = _numbered(parts)
    owner = np.empty(size + 1, int)
    for (own, _), numbers in zip(parts, fronts, strict=True):
        owner[own] = numbers[..., None]
    owner[-1] = none = sum(map(np.size, fronts))
    return np.concatenate([owner[near].min(axis=-1, initial=none).ravel() for _, near in parts])


def _positions(loops: list[Loop], fronts: list[np.ndarray]) -> Table:
    """The places of unknowns in fronts."""
    members = [np.concatenate(loop, axis=-1) for loop in loops]
    entries = [np.broadcast_arrays(one[..., None], of, np.arange(of.shape[-1])) for one, of in zip(fronts, members, strict=True)]
    in_front, unknown, place = (np.concatenate([part.ravel() for part in column]) for column in zip(*entries, strict=True))
    return Table(in_front, unknown, place, missing=-1)


def _siblings(parents: np.ndarray) -> np.ndarray:
    """How many fronts before have the same parent."""
    order = np.argsort(parents, kind="stable")
    before = np.empty_like(order)
    before[order] = np.arange(order.size) - np.searchsorted(parents[order], parents[order])
    return before


def _alike(counts: list[int]) -> list[list[int]]:
    """Siblings in a row that almost as many fronts have."""
    groups: list[list[int]] = []
    for sibling, count in enumerate(counts):
        if groups and count > ALIKE * counts[groups[-1][0]]:
            groups[-1].append(sibling)
        else:
            groups.append([sibling])
    return groups


def _filled(shape: tuple[int, ...], missing: int, places: tuple[np.ndarray, ...], numbers: np.ndarray) -> np.ndarray:
    out = np.full(shape, missing, np.int32)
    out[places] = numbers
    return out
