"""Where the numbers of a sparse factorisation go, worked out beforehand, as arrays of places.

A node with its neighbours makes a front: a small matrix with rows and columns for the unknowns of the node, its pivots, and for those of
the neighbours, its boundary. When the pivots are eliminated, what is left in the boundary is handed over to one front, that of the
neighbour that is eliminated next: all of the boundary has a place in it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from .elimination import Bucket
from .loops import Loop, in_loops


class Batch(NamedTuple):
    """Fronts of one shape, by places; the one behind the last number means zero.

    `pivot`, `right` and `below` are places of nonzeros, `unknowns` and `boundary` those of pivots on the right hand side and of the
    boundary among solutions. `blank` pivots only fill up. `matrices` and `vectors` are places of what was handed over: the first to each
    front, the second to the leading fronts that have one, and so on. Results begin at `matrix_at`, `vector_at` and `solution_at`.
    """

    pivot: Any
    right: Any
    below: Any
    blank: Any
    unknowns: Any
    boundary: Any
    matrices: tuple[Any, ...]
    vectors: tuple[Any, ...]
    matrix_at: Any
    vector_at: Any
    solution_at: Any


class Segment(NamedTuple):
    """One batch, or several for a loop along a leading axis."""

    batch: Batch
    length: int


class Plan(NamedTuple):
    """Segments, how many numbers are handed over in matrices and vectors and how many solved for, and where the unknowns are."""

    segments: tuple[Segment, ...]
    matrices: int
    vectors: int
    solutions: int
    returns: Any


class _Table:
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


class _Sums:
    """Numbers that are handed over, sorted by where they go: to a front, and there to a place, by one number or two below `width`."""

    def __init__(self, fronts: list[np.ndarray], places: list[tuple[np.ndarray, ...]], width: int):
        self.width, self.axes = width, len(places[0])
        goals = np.concatenate([self._goals(*one).ravel() for one in zip(fronts, places, strict=True)])
        self.count = goals.size
        order = np.argsort(goals, kind="stable")
        self.sources = order[np.searchsorted(goals[order], 0) :]
        self.goals = goals[self.sources]
        self.turns = np.arange(self.goals.size) - np.searchsorted(self.goals, self.goals)

    def _goals(self, fronts: np.ndarray, places: tuple[np.ndarray, ...]) -> np.ndarray:
        goals = fronts.reshape(fronts.shape + (1,) * self.axes)
        for place in places:
            goals = goals * self.width + place
        return np.where(np.all([place >= 0 for place in np.broadcast_arrays(*places)], axis=0), goals, -1)

    def layers(self, fronts: np.ndarray, width: int) -> tuple[np.ndarray, ...]:
        """Which numbers are added up in some fronts: all first ones, then all second ones as far as there are any, and so on."""
        begin, end = np.searchsorted(self.goals, np.array([fronts[0, 0], fronts[-1, -1] + 1]) * self.width**self.axes)
        turns, sources = self.turns[begin:end], self.sources[begin:end]
        front, *place = np.unravel_index(self.goals[begin:end], (fronts[-1, -1] + 1, *self.axes * (self.width,)))
        batch, row = np.divmod(front - fronts[0, 0], fronts.shape[1])
        layers = []
        for turn in range(turns.max(initial=-1) + 1):
            here = turns == turn
            layer = np.full((len(fronts), row[here].max() + 1, *self.axes * (width,)), self.count, np.int32)
            layer[tuple(index[here] for index in (batch, row, *place))] = sources[here]
            layers.append(layer)
        return tuple(layers)


def make_plan(pattern: sp.csr_array, rounds: list[list[Bucket]]) -> Plan:
    """The plan of an elimination. Nonzeros are counted row by row."""
    size, coo = pattern.shape[0], pattern.tocoo()
    nonzeros = _Table(coo.row, coo.col, np.arange(coo.nnz), coo.nnz)
    loops = in_loops(_most_received_first([bucket for buckets in rounds for bucket in buckets], size))
    solved = np.empty(size + 1, int)
    pivots = np.concatenate([own.ravel() for own, _ in loops])
    solved[pivots], solved[-1] = np.arange(pivots.size), pivots.size
    fronts, matrices, vectors = _handed(loops, size)
    starts = zip(*(_starts(loops, elements) for elements in (lambda p, c: c * c, lambda p, c: c, lambda p, c: p)), strict=True)
    segments = []
    for (own, near), numbers, (matrix_at, vector_at, solution_at) in zip(loops, fronts, starts, strict=True):
        width = own.shape[-1] + near.shape[-1]
        batch = Batch(
            pivot=np.moveaxis(nonzeros.find(own[..., None], own[..., None, :]), 1, -1),
            right=nonzeros.find(own[..., None], near[..., None, :]),
            below=nonzeros.find(near[..., None], own[..., None, :]),
            blank=np.moveaxis(own < 0, 1, -1),
            unknowns=np.where(own < 0, size, own),
            boundary=solved[near],
            matrices=matrices.layers(numbers, width),
            vectors=vectors.layers(numbers, width),
            matrix_at=matrix_at,
            vector_at=vector_at,
            solution_at=solution_at,
        )
        segments.append(Segment(jax.tree.map(lambda leaf: leaf[0], batch) if len(own) == 1 else batch, len(own)))
    return Plan(tuple(segments), matrices.count, vectors.count, pivots.size, solved[:size])


def _starts(loops: list[Loop], elements: Callable) -> list[np.ndarray]:
    """Where the results of all batches begin, with so many `elements` for a node with so many pivots and neighbours."""
    sizes = [own.shape[1] * elements(own.shape[2], near.shape[2]) for own, near in loops]
    begins = np.cumsum([0, *(len(own) * size for (own, _), size in zip(loops, sizes, strict=True))])
    return [begin + size * np.arange(len(own)) for (own, _), size, begin in zip(loops, sizes, begins, strict=False)]


def _handed(loops: list[Loop], size: int) -> tuple[list[np.ndarray], _Sums, _Sums]:
    """Numbers of all fronts, and where the elements of the matrices and vectors go that they hand over."""
    fronts, heirs = _numbered(loops), _heirs(loops, size)
    members = [np.concatenate(loop, axis=-1) for loop in loops]
    entries = [np.broadcast_arrays(one[..., None], of, np.arange(of.shape[-1])) for one, of in zip(fronts, members, strict=True)]
    in_front, unknown, position = (np.concatenate([part.ravel() for part in column]) for column in zip(*entries, strict=True))
    positions = _Table(in_front, unknown, position, missing=-1)
    to = [heirs[one] for one in fronts]
    places = [positions.find(heir[..., None], near) for heir, (_, near) in zip(to, loops, strict=True)]
    width = max(one.shape[-1] for one in members)
    matrices = _Sums(to, [(place[..., None], place[..., None, :]) for place in places], width)
    return fronts, matrices, _Sums(to, [(place,) for place in places], width)


Parts = Sequence[Bucket] | Sequence[Loop]


def _numbered(parts: Parts) -> list[np.ndarray]:
    """Numbers for all fronts, in the order of their elimination."""
    shapes = [own.shape[:-1] for own, _ in parts]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    return [np.arange(end - np.prod(shape, dtype=int), end).reshape(shape) for end, shape in zip(ends, shapes, strict=True)]


def _heirs(parts: Parts, size: int) -> np.ndarray:
    """For each front the one that it hands over to, or their number for none."""
    fronts = _numbered(parts)
    owner = np.empty(size + 1, int)
    for (own, _), numbers in zip(parts, fronts, strict=True):
        owner[own] = numbers[..., None]
    owner[-1] = none = sum(map(np.size, fronts))
    return np.concatenate([owner[near].min(axis=-1, initial=none).ravel() for _, near in parts])


def _most_received_first(buckets: list[Bucket], size: int) -> list[Bucket]:
    """Nodes of each bucket in the order of how many fronts hand over to theirs."""
    heirs = _heirs(buckets, size)
    received = np.bincount(heirs, minlength=heirs.size)
    orders = [np.argsort(-received[numbers], kind="stable") for numbers in _numbered(buckets)]
    return [Bucket(own[order], near[order]) for (own, near), order in zip(buckets, orders, strict=True)]
