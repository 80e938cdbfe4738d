"""Where the numbers of a sparse factorisation go, worked out beforehand, as arrays of places.

A supernode with its neighbours makes a front: a small matrix with rows and columns for the unknowns of the node, its pivots, and for those
of the neighbours, its boundary. When the pivots are eliminated, what is left on the boundary is the update matrix. It is added to the front
of the parent, the neighbour that is eliminated next: all of the boundary has a place in it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from .batches import Loop, in_loops
from .extend_add import ExtendAdd, Table, Updates, most_children_first
from .order import Bucket


class Batch(NamedTuple):
    """Fronts of one shape, by places; the one behind the last number means zero.

    `pivot`, `right` and `below` are places of nonzeros, `unknowns` and `boundary` those of pivots on the right hand side and of the
    boundary among solutions. `blank` pivots only fill up. Results begin at `matrix_at`, `vector_at` and `solution_at`.
    """

    pivot: Any
    right: Any
    below: Any
    blank: Any
    unknowns: Any
    boundary: Any
    extend_add: tuple[ExtendAdd, ...]
    matrix_at: Any
    vector_at: Any
    solution_at: Any


class Segment(NamedTuple):
    """One batch, or several for a loop along a leading axis."""

    batch: Batch
    length: int


class Plan(NamedTuple):
    """Segments, how many elements all update matrices, update vectors and solutions have, and where the unknowns are."""

    segments: tuple[Segment, ...]
    matrix_elements: int
    vector_elements: int
    solutions: int
    returns: Any


def make_plan(pattern: sp.csr_array, levels: list[list[Bucket]]) -> Plan:
    """The plan of an elimination. Nonzeros are counted row by row."""
    size, coo = pattern.shape[0], pattern.tocoo()
    nonzeros = Table(coo.row, coo.col, np.arange(coo.nnz), coo.nnz)
    loops = in_loops(most_children_first([bucket for buckets in levels for bucket in buckets], size))
    solved = np.empty(size + 1, int)
    pivots = np.concatenate([own.ravel() for own, _ in loops])
    solved[pivots], solved[-1] = np.arange(pivots.size), pivots.size
    updates = Updates(loops, size)
    starts = zip(*(_starts(loops, elements) for elements in (lambda p, c: c * c, lambda p, c: c, lambda p, c: p)), strict=True)
    segments = []
    for (own, near), numbers, (matrix_at, vector_at, solution_at) in zip(loops, updates.fronts, starts, strict=True):
        width = own.shape[-1] + near.shape[-1]
        batch = Batch(
            pivot=np.moveaxis(nonzeros.find(own[..., None], own[..., None, :]), 1, -1),
            right=nonzeros.find(own[..., None], near[..., None, :]),
            below=nonzeros.find(near[..., None], own[..., None, :]),
            blank=np.moveaxis(own < 0, 1, -1),
            unknowns=np.where(own < 0, size, own),
            boundary=solved[near],
            extend_add=updates.extend_add(numbers, width),
            matrix_at=matrix_at,
            vector_at=vector_at,
            solution_at=solution_at,
        )
        segments.append(Segment(jax.tree.map(lambda leaf: leaf[0], batch) if len(own) == 1 else batch, len(own)))
    return Plan(tuple(segments), updates.matrix_elements, updates.vector_elements, pivots.size, solved[:size])


def _starts(loops: list[Loop], elements: Callable) -> list[np.ndarray]:
    """Where the results of all batches begin, with so many `elements` for a node with so many pivots and neighbours."""
    sizes = [own.shape[1] * elements(own.shape[2], near.shape[2]) for own, near in loops]
    begins = np.cumsum([0, *(len(own) * size for (own, _), size in zip(loops, sizes, strict=True))])
    return [begin + size * np.arange(len(own)) for (own, _), size, begin in zip(loops, sizes, begins, strict=False)]
