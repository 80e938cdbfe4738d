"""The graph of a mechanism: which joints carry the bodies from the ground, and which ones close loops."""

from collections.abc import Sequence
from typing import NamedTuple


class Edge(NamedTuple):
    """A joint between two bodies, given by index; `branch` says whether it may be part of the tree."""

    a: int
    b: int
    freedom: int
    branch: bool


class Branch(NamedTuple):
    """How a body hangs on its parent: by a joint, traversed against its direction if `reverse`, or freely (`None`)."""

    joint: int | None
    parent: int
    child: int
    reverse: bool


def spanning_tree(count: int, grounded: Sequence[int], edges: Sequence[Edge]) -> list[Branch]:
    """Branches from the ground outwards, one for each body that can move.

    Joints with few freedoms are taken first, so that the tree has as few freedoms as possible, and among equals those that were
    declared first: the last joint of a loop closes it. Bodies that nothing connects to the ground hang freely on it.
    """
    clusters = list(range(count))

    def root(i: int) -> int:
        while clusters[i] != i:
            clusters[i] = clusters[clusters[i]]
            i = clusters[i]
        return i

    for i in grounded:
        clusters[root(i)] = root(grounded[0])
    neighbours: list[list[tuple[int, int, bool]]] = [[] for _ in range(count)]
    for index in sorted((i for i, edge in enumerate(edges) if edge.branch), key=lambda i: edges[i].freedom):
        a, b = edges[index].a, edges[index].b
        if root(a) != root(b):
            clusters[root(a)] = root(b)
            neighbours[a].append((index, b, False))
            neighbours[b].append((index, a, True))
    return _outwards(count, grounded, neighbours)


def _outwards(count: int, grounded: Sequence[int], neighbours: Sequence[Sequence[tuple[int, int, bool]]]) -> list[Branch]:
    """Walk the tree from the ground; where that does not reach, a free body begins another part."""
    branches, reached = [], set(grounded)

    def walk(front: list[int]) -> None:
        for parent in front:  # grows while it is walked
            for joint, child, reverse in neighbours[parent]:
                if child not in reached:
                    reached.add(child)
                    front.append(child)
                    branches.append(Branch(joint, parent, child, reverse))

    walk(list(grounded))
    for body in range(count):
        if body not in reached:
            reached.add(body)
            branches.append(Branch(None, grounded[0], body, False))
            walk([body])
    return branches
