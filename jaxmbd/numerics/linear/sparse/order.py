"""In which order unknowns are eliminated: levels of independent supernodes, so that each level is a batch of small dense operations.

Unknowns are gathered into supernodes (a body, the constraints of a joint), nodes for short. A level eliminates nodes of which no two are
neighbours; their neighbours become neighbours of each other. Halving a chain in every level this is cyclic reduction, on a tree it takes
leaves and every other link, on a general graph it is a nested dissection found from below, with the small degrees first.

A multiplier waits until all coordinates in its constraint are gone. Its pivot is then the compliance that these coordinates have along the
constraint, regular whenever the constraints are independent, so that pivoting inside the nodes is enough.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from ..layout import Layout

SMALL = 24
"""So many coordinates may make one node, and nodes with half as many unknowns around them never wait for smaller ones."""

DEGREES = 2
"""How many times the least degree a node may have to be eliminated in a level: larger ones would make more neighbours of each other."""

ALIKE = 1.25
"""How many times the median size the nodes of a level may have, since all are filled up to the largest."""

MOST = 0.9
"""The part of the nodes of a level that must be alike for the others to wait: for more than a few a level would be lost."""

WORTH = 40_000
"""Operations that are worth being saved by another bucket."""

SAVED = 0.2
"""The part of its operations that cutting a bucket in two must save as well."""


class Bucket(NamedTuple):
    """Nodes of a level with their unknowns (`pivots`) and those of their neighbours (`boundary`), one row a node, filled up with -1."""

    pivots: np.ndarray
    boundary: np.ndarray


def front_shapes(buckets: list[Bucket]) -> np.ndarray:
    """For each bucket a row: the number of its fronts, of their pivots and of the unknowns of their boundary."""
    return np.array([(*bucket.pivots.shape, bucket.boundary.shape[1]) for bucket in buckets])


def elimination_work(shapes: np.ndarray) -> np.ndarray:
    """About how many multiplications eliminate the pivots of a front, for rows that end with its pivots and its boundary."""
    pivots, boundary = shapes[:, -2], shapes[:, -1]
    return pivots * (pivots + boundary) ** 2


def eliminate(pattern: sp.csr_array, layout: Layout) -> list[list[Bucket]]:
    """The levels in which all unknowns are eliminated."""
    nodes, waits_for = _initial_nodes(pattern, layout)
    graph = _Graph(pattern, nodes, waits_for)
    levels = []
    while graph.sizes.size:
        graph.merge_twins()
        levels.append(graph.eliminate_level())
    return levels


def _initial_nodes(pattern: sp.csr_array, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """A node for every unknown, and whether it has to wait for its neighbours."""
    base, n = layout.base, layout.coordinates
    coo = pattern.tocoo()
    folded = _symmetric(base[coo.row], base[coo.col], int(base.max(initial=-1)) + 1)
    label = np.concatenate([_coordinate_nodes(folded[:n, :n], layout), np.full(layout.multipliers, -1)])
    count = int(label.max(initial=-1)) + 1
    incidence = folded[n:, :n] @ sp.csr_array((np.ones(n), (np.arange(n), label[:n])), shape=(n, count))
    label[n:] = count + _same_rows(sp.csr_array(incidence))
    waits = np.arange(label.size) >= n
    for coordinate, constraint in layout.pairs:
        old, new = label[coordinate], label.max() + 1
        if np.count_nonzero(label == old) == 1:
            label[[coordinate, n + constraint]] = new
            waits[n + constraint] = False
    for coordinate, constraint in layout.held:
        label[n + constraint], waits[n + constraint] = label[coordinate], False
    return label[base], waits[base]


def _coordinate_nodes(K: sp.csr_array, layout: Layout) -> np.ndarray:
    """Coordinates that only each other's motion couples; where that is too many, the given groups, or those with the same couplings."""
    _, parts = connected_components(K, directed=False)
    if not layout.held and np.bincount(parts, minlength=1).max(initial=0) <= SMALL:
        return parts
    if layout.groups:
        return np.unique(np.asarray(layout.groups), return_inverse=True)[1]
    return _same_rows(K + sp.eye_array(K.shape[0], format="csr"))


def _same_rows(matrix: sp.csr_array) -> np.ndarray:
    """Numbers that are equal for rows with the same pattern."""
    pattern = sp.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    keys = np.random.default_rng(0).random((matrix.shape[1], 2))
    return np.unique(pattern @ keys, axis=0, return_inverse=True)[1].ravel() if matrix.shape[0] else np.zeros(0, int)


def _symmetric(rows: np.ndarray, cols: np.ndarray, size: int) -> sp.csr_array:
    both = sp.csr_array((np.ones(2 * rows.size, np.int32), (np.r_[rows, cols], np.r_[cols, rows])), shape=(size, size))
    both.data[:] = 1
    return both


class _Graph:
    """Nodes that are still to be eliminated, as rows of matrices: their unknowns, their couplings, and which of those they wait for."""

    def __init__(self, pattern: sp.csr_array, nodes: np.ndarray, waits: np.ndarray):
        _, nodes = np.unique(nodes, return_inverse=True)
        coo = pattern.tocoo()
        count = int(nodes.max()) + 1
        self.members = sp.csr_array((np.ones(nodes.size, np.int32), (nodes, np.arange(nodes.size))))
        self.couplings = _without_diagonal(_symmetric(nodes[coo.row], nodes[coo.col], count))
        waiting = np.zeros(count, bool)
        waiting[nodes] = waits
        self.waits_for = sp.csr_array(sp.diags_array(waiting.astype(np.int32), dtype=np.int32) @ self.couplings)
        self.waits_for = sp.csr_array(self.waits_for @ sp.diags_array((~waiting).astype(np.int32), dtype=np.int32))

    @property
    def sizes(self) -> np.ndarray:
        """How many unknowns each node has."""
        return np.diff(self.members.indptr)

    def merge_twins(self) -> None:
        """Make one node of nodes that are coupled with each other and with the same others."""
        size = self.sizes.size
        twins = _same_rows(self.couplings + sp.eye_array(size, format="csr", dtype=np.int32))
        key = np.where(self._ready(), twins, size + np.arange(size))
        _, group = np.unique(key, return_inverse=True)
        if group.max(initial=-1) + 1 == size:
            return
        join = sp.csr_array((np.ones(size, np.int32), (group, np.arange(size))))
        self.members = sp.csr_array(join @ self.members)
        self.couplings = _without_diagonal(join @ self.couplings @ join.T)
        self.waits_for = _ones(join @ self.waits_for @ join.T)

    def _ready(self) -> np.ndarray:
        return np.diff(self.waits_for.indptr) == 0

    def eliminate_level(self) -> list[Bucket]:
        """Take out independent nodes of small degree."""
        chosen = self._alike(self._independent())
        buckets = _buckets(self.members[chosen], sp.csr_array(self.couplings[chosen] @ self.members))
        self._remove(chosen)
        return buckets

    def _independent(self) -> np.ndarray:
        """A maximal set of nodes, no two of them neighbours, among those with small degree that need not wait."""
        ready = np.flatnonzero(self._ready())
        degree = (self.couplings @ self.sizes)[ready]
        few = degree <= max(DEGREES * degree.min(), SMALL // 2)
        order = ready[few][np.argsort(degree[few], kind="stable")]
        indices, starts = self.couplings.indices, self.couplings.indptr
        taken, blocked = [], np.zeros(self.sizes.size, bool)
        for i in order.tolist():
            if not blocked[i]:
                taken.append(i)
                blocked[indices[starts[i] : starts[i + 1]]] = True
        return np.array(taken)

    def _alike(self, chosen: np.ndarray) -> np.ndarray:
        """Without the few that are much larger than most, or have more neighbours: they wait for a level of their like."""
        sizes = np.stack([self.sizes, self.couplings @ self.sizes])[:, chosen]
        most = np.all(sizes <= ALIKE * np.median(sizes, axis=1, keepdims=True), axis=0)
        return chosen if np.mean(most) < MOST else chosen[most]

    def _remove(self, chosen: np.ndarray) -> None:
        rest = np.setdiff1d(np.arange(self.sizes.size), chosen)
        outer = self.couplings[rest]
        fill = outer[:, chosen]
        self.couplings = _without_diagonal(outer[:, rest] + fill @ fill.T)
        self.waits_for = sp.csr_array(self.waits_for[rest][:, rest])
        self.members = self.members[rest]


def _ones(matrix: sp.csr_array) -> sp.csr_array:
    matrix = sp.csr_array(matrix)
    matrix.data[:] = 1
    return matrix


def _without_diagonal(matrix: sp.csr_array) -> sp.csr_array:
    coo = sp.coo_array(matrix)
    off = coo.row != coo.col
    return _ones(sp.csr_array((np.ones(off.sum(), np.int32), (coo.row[off], coo.col[off])), shape=matrix.shape))


def _buckets(pivots: sp.csr_array, boundaries: sp.csr_array) -> list[Bucket]:
    """Nodes of similar size side by side."""
    sizes = np.stack([np.diff(pivots.indptr), np.diff(boundaries.indptr)], axis=1)
    order = np.lexsort((-sizes[:, 1], -sizes[:, 0]))
    parts = _cut(sizes[order], order)
    return [Bucket(_padded(pivots[part]), _padded(boundaries[part])) for part in parts]


def _cut(sizes: np.ndarray, order: np.ndarray) -> list[np.ndarray]:
    """Cut sorted nodes in two, and again, where filling up to the largest would be much more work."""
    work = lambda part: len(part) * int(elimination_work(part.max(axis=0, keepdims=True))[0])
    steps = np.flatnonzero(np.any(np.diff(sizes, axis=0) != 0, axis=1)) + 1
    costs = [work(sizes[:cut]) + work(sizes[cut:]) for cut in steps]
    if not costs or work(sizes) - min(costs) < max(SAVED * work(sizes), WORTH):
        return [order]
    cut = steps[int(np.argmin(costs))]
    return _cut(sizes[:cut], order[:cut]) + _cut(sizes[cut:], order[cut:])


def _padded(rows: sp.csr_array) -> np.ndarray:
    """The columns of the entries of each row."""
    counts = np.diff(rows.indptr)
    out = np.full((counts.size, counts.max(initial=0)), -1)
    out[np.arange(out.shape[1]) < counts[:, None]] = rows.indices
    return out
