"""Where the numbers of a sparse factorisation go, worked out beforehand, as arrays of places.

Numbers are those of one round: entries of the matrix of what remains, or elements of a right hand side. Each round takes fronts out of
them, and the numbers of the next round are some that are kept, less products of the fronts.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .elimination import Bucket


class Sums(NamedTuple):
    """Where the numbers of the next round come from: `kept` ones of this round, less products, the `m`-th of each in `layers[m]`.

    Numbers with many products come first, so that each layer is shorter than the one before. A place behind the last means zero.
    """

    kept: np.ndarray
    layers: tuple[np.ndarray, ...]


class Front(NamedTuple):
    """Nodes of one bucket: places of their entries, which of their unknowns only fill up, places of the unknowns and of the boundary.

    Unknowns stand among those of the round, the boundary among those of the next.
    """

    pivot: np.ndarray
    right: np.ndarray
    below: np.ndarray
    blank: np.ndarray
    unknowns: np.ndarray
    boundary: np.ndarray


class Round(NamedTuple):
    """Fronts, the ways of matrix entries and right hand sides, and where among (rest, eliminated) the solution of each unknown stands."""

    fronts: tuple[Front, ...]
    entries: Sums
    vectors: Sums
    returns: np.ndarray


class Entries(NamedTuple):
    """Entries of what remains of a matrix, by sorted codes, and where the number of each stands."""

    codes: np.ndarray
    where: np.ndarray

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """Where the numbers of entries stand, or the place behind the last."""
        at = np.searchsorted(self.codes, wanted)
        found = np.append(self.codes, -2)[at] == wanted
        return np.where(found, np.append(self.where, self.codes.size)[at], self.codes.size).astype(np.int32)


Counts = list[tuple[int, int]]
"""How many entries and unknowns there are before each round, and after the last."""


def make_plan(pattern: sp.csr_array, rounds: list[list[Bucket]]) -> tuple[list[Round], Counts]:
    """All rounds. Entries are counted row by row in the first."""
    size = pattern.shape[0]
    coo = pattern.tocoo()
    left = Entries(coo.row.astype(np.int64) * size + coo.col, np.arange(coo.nnz))
    alive = np.arange(size)
    plans, counts = [], [(coo.nnz, size)]
    for buckets in rounds:
        gone = np.concatenate([bucket.pivots.ravel() for bucket in buckets])
        rest = np.setdiff1d(alive, gone)
        left, entries = _next_entries(before := left, buckets, rest, size)
        outer = np.concatenate([bucket.boundary.ravel() for bucket in buckets])
        order, layers = _layers(rest, outer)
        rest = rest[order]
        now, after = _places(alive, size), _places(rest, size)
        fronts = tuple(_front(bucket, before, now, after, size) for bucket in buckets)
        plans.append(Round(fronts, entries, Sums(now[rest], layers), _places(np.concatenate([rest, gone]), size)[alive]))
        counts.append((left.codes.size, rest.size))
        alive = rest
    return plans, counts


def _places(members: np.ndarray, size: int) -> np.ndarray:
    """Where each unknown stands among members; others, and -1, stand behind the last."""
    place = np.full(size + 1, members.size, np.int32)
    place[members] = np.arange(members.size)
    place[-1] = members.size
    return place


def _front(bucket: Bucket, left: Entries, now: np.ndarray, after: np.ndarray, size: int) -> Front:
    pivots, boundary = bucket
    find = lambda rows, cols: left.find(_codes(rows, cols, size))
    square = find(pivots.T[:, None], pivots.T[None])
    right, below = find(pivots[:, :, None], boundary[:, None]), find(boundary[:, :, None], pivots[:, None])
    return Front(square, right, below, (pivots < 0).T, now[pivots], after[boundary])


def _codes(rows: np.ndarray, cols: np.ndarray, size: int) -> np.ndarray:
    """One number for each entry, -1 where there is none."""
    return np.where((rows >= 0) & (cols >= 0), rows.astype(np.int64) * size + cols, -1)


def _next_entries(left: Entries, buckets: list[Bucket], rest: np.ndarray, size: int) -> tuple[Entries, Sums]:
    """The entries that remain, with fill, and where their numbers come from."""
    stays = np.zeros(size, bool)
    stays[rest] = True
    kept = left.codes[stays[left.codes // size] & stays[left.codes % size]]
    products = np.concatenate([_codes(b[:, :, None], b[:, None], size).ravel() for _, b in buckets])
    codes = _sorted_once(np.concatenate([kept, products[products >= 0]]))
    order, layers = _layers(codes, products)
    where = np.empty(codes.size, np.int64)
    where[order] = np.arange(codes.size)
    return Entries(codes, where), Sums(left.find(codes[order]), layers)


def _sorted_once(values: np.ndarray) -> np.ndarray:
    """Each value once, in order; NumPy's own function hashes, which takes many times as long here."""
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])[: values.size]]


def _layers(targets: np.ndarray, products: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """An order of sorted targets, and layers of products for them; products with a target below zero go nowhere."""
    used = np.flatnonzero(products >= 0)
    source = used[np.argsort(products[used], kind="stable")]
    goal = np.searchsorted(targets, products[source])
    counts = np.bincount(goal, minlength=targets.size)
    order = np.argsort(-counts, kind="stable")
    place = np.empty(targets.size, int)
    place[order] = np.arange(targets.size)
    depth = np.arange(goal.size) - np.searchsorted(goal, goal)
    layers = []
    for level in range(int(counts.max(initial=0))):
        layer = np.empty(int(np.count_nonzero(counts > level)), np.int32)
        here = depth == level
        layer[place[goal[here]]] = source[here]
        layers.append(layer)
    return order, tuple(layers)
