"""What fronts hand over to each other: whom to, and where its numbers go."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .batches import Loop
from .order import Bucket

NOWHERE = 2**30 - 1
"""A place beyond all others; two of them still make a number."""


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


class Received(NamedTuple):
    """What the leading fronts of a batch receive from several others, one after the other along the first axis.

    For each unknown of a front: where its `row` begins among the matrices that were handed over and its `column` within rows, both
    `NOWHERE` if the giver does not know it, and its place among the vectors.
    """

    row: Any
    column: Any
    vector: Any


class Handover:
    """All that fronts hand over, an entry for each unknown of their boundaries, sorted by the front that receives it.

    `turn` counts those that hand over to the same front, `place` is that of the unknown in it; the others are as in `Received`.
    """

    def __init__(self, loops: list[Loop], size: int):
        self.fronts, heirs = _numbered(loops), _heirs(loops, size)
        widths = np.concatenate([np.full(one.size, near.shape[-1]) for one, (_, near) in zip(self.fronts, loops, strict=True)])
        self.matrices, self.vectors = int(np.sum(widths**2)), int(np.sum(widths))
        giver, unknown = np.repeat(np.arange(widths.size), widths), np.concatenate([near.ravel() for _, near in loops])
        place = _positions(loops, self.fronts).find(heirs[giver], unknown)
        order = np.argsort(heirs[giver], kind="stable")
        order = order[place[order] >= 0]
        giver, self.place = giver[order], place[order]
        self.heir, self.turn = heirs[giver], _turns(heirs)[giver]
        self.vector = order
        self.column = order - (np.cumsum(widths) - widths)[giver]
        self.row = (np.cumsum(widths**2) - widths**2)[giver] + self.column * widths[giver]

    def received(self, fronts: np.ndarray, width: int) -> tuple[Received, ...]:
        """What some fronts of so many unknowns receive: first ones from all, then further ones as far as there are any."""
        here = slice(*np.searchsorted(self.heir, [fronts[0, 0], fronts[-1, -1] + 1]))
        batch, element = np.divmod(self.heir[here] - fronts[0, 0], fronts.shape[1])
        turn = self.turn[here]
        counts = [int(element[turn == k].max()) + 1 for k in range(turn.max(initial=-1) + 1)]
        found = []
        for turns in _alike(counts):
            mine = np.isin(turn, turns)
            shape = (len(fronts), len(turns), counts[turns[0]], width)
            at = (batch[mine], turn[mine] - turns[0], element[mine], self.place[here][mine])
            values = ((self.row, NOWHERE), (self.column, NOWHERE), (self.vector, self.vectors))
            found.append(Received(*(_filled(shape, missing, at, one[here][mine]) for one, missing in values)))
        return tuple(found)


def most_received_first(buckets: list[Bucket], size: int) -> list[Bucket]:
    """Nodes of each bucket in the order of how many fronts hand over to theirs."""
    heirs = _heirs(buckets, size)
    received = np.bincount(heirs, minlength=heirs.size)
    orders = [np.argsort(-received[numbers], kind="stable") for numbers in _numbered(buckets)]
    return [Bucket(own[order], near[order]) for (own, near), order in zip(buckets, orders, strict=True)]


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


def _positions(loops: list[Loop], fronts: list[np.ndarray]) -> Table:
    """The places of unknowns in fronts."""
    members = [np.concatenate(loop, axis=-1) for loop in loops]
    entries = [np.broadcast_arrays(one[..., None], of, np.arange(of.shape[-1])) for one, of in zip(fronts, members, strict=True)]
    in_front, unknown, place = (np.concatenate([part.ravel() for part in column]) for column in zip(*entries, strict=True))
    return Table(in_front, unknown, place, missing=-1)


def _turns(heirs: np.ndarray) -> np.ndarray:
    """How many fronts before hand over to the same one."""
    order = np.argsort(heirs, kind="stable")
    turns = np.empty_like(order)
    turns[order] = np.arange(order.size) - np.searchsorted(heirs[order], heirs[order])
    return turns


def _alike(counts: list[int]) -> list[list[int]]:
    """Turns in a row that serve almost as many fronts."""
    groups: list[list[int]] = []
    for turn, count in enumerate(counts):
        if groups and count > 0.8 * counts[groups[-1][0]]:
            groups[-1].append(turn)
        else:
            groups.append([turn])
    return groups


def _filled(shape: tuple[int, ...], missing: int, places: tuple[np.ndarray, ...], numbers: np.ndarray) -> np.ndarray:
    out = np.full(shape, missing, np.int32)
    out[places] = numbers
    return out
