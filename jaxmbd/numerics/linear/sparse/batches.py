"""Levels of any number of nodes as loops over batches of one shape, so that a program does not grow with the number of levels."""

from typing import NamedTuple

import numpy as np

from .order import Bucket, elimination_work, front_shapes

BATCH = 60_000
"""Operations that another batch costs beside its own: it pays to have fewer of them with more nodes."""

MOST = 384
"""Nodes of a batch beyond which its numbers leave the cache of a processor."""

LOOP = (100_000, 0.115, 7_000_000)
"""Operations that are worth being saved by another loop, which has to be compiled: so many, and at least this part of so many in all.

The part grows with the root of all operations, so that programs of large systems take not much longer to compile than those of small ones.
"""

HALVINGS = 12
"""How often the nodes of a bucket are halved in search of the best size of a batch."""

LAST = 24
"""Unknowns that may be eliminated at once at the end."""


class Loop(NamedTuple):
    """Unknowns of nodes and of their neighbours, as in buckets, batch after batch along a leading axis."""

    pivots: np.ndarray
    boundary: np.ndarray


def in_loops(buckets: list[Bucket]) -> list[Loop]:
    """All buckets, cut into batches, in the loops that cost least; what the last buckets eliminate may be one node instead."""
    price = _price(front_shapes(buckets))
    _, loops = min((_packed(way, price) for way in (buckets, _ended_at_once(buckets))), key=lambda found: found[0])
    return loops


def _price(shapes: np.ndarray) -> float:
    """What a loop costs beside its batches."""
    total = sum(_cheapest(shapes[i : i + 1])[0] for i in range(len(shapes)))
    return max(float(LOOP[0]), LOOP[1] * total * (total / LOOP[2]) ** 0.5)


def _ended_at_once(buckets: list[Bucket]) -> list[Bucket]:
    """The same with one node of all the last ones that have few enough unknowns."""
    left = np.cumsum([np.sum(bucket.pivots >= 0) for bucket in buckets][::-1])[::-1]
    first = int(np.sum(left > LAST))
    last = np.concatenate([np.zeros(0, int), *(bucket.pivots.ravel() for bucket in buckets[first:])])
    return [*buckets[:first], Bucket(last[None, last >= 0], np.zeros((1, 0), int))] if last.size else buckets


def _packed(buckets: list[Bucket], price: float) -> tuple[float, list[Loop]]:
    """The least cost of all loops, and the loops."""
    shapes = front_shapes(buckets)
    best: list[tuple[float, int, int]] = [(0.0, 0, 0)]  # for the first buckets: the least cost, where its last loop begins, its batches
    for end in range(1, len(buckets) + 1):
        options = ((begin, *_cheapest(shapes[begin:end])) for begin in range(end))
        best.append(min((best[begin][0] + cost + price, begin, size) for begin, cost, size in options))
    loops, end = [], len(buckets)
    while end:
        _, begin, size = best[end]
        loops.append(Loop(*(_batches(parts, size) for parts in zip(*buckets[begin:end], strict=True))))
        end = begin
    return best[-1][0], loops[::-1]


def _cheapest(shapes: np.ndarray) -> tuple[float, int]:
    """The cost of one loop over buckets of these shapes, and how many nodes a batch should have."""
    counts, work = shapes[:, 0], int(elimination_work(shapes.max(axis=0, keepdims=True))[0])
    sizes = {min(-(-int(counts.max()) // 2**halvings), MOST) for halvings in range(HALVINGS)}
    return min((float(np.sum(-(-counts // size)) * (size * work + BATCH)), size) for size in sizes)


def _batches(parts: tuple[np.ndarray, ...], size: int) -> np.ndarray:
    """Rows of all parts, filled up with -1 to one width and to batches of one size that belong to one part each."""
    width = max(part.shape[1] for part in parts)
    fill = lambda part: np.pad(part, ((0, -len(part) % size), (0, width - part.shape[1])), constant_values=-1)
    return np.concatenate([fill(part).reshape(-(-len(part) // size), size, width) for part in parts])
