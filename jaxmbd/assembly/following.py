"""What goes along with what: free bodies whose motion counts from that of a neighbour.

In the spanning tree nodes of beams hang on joints or are free, as are bodies that only equations hold. Here a free body goes along with the
neighbour to which an element of a beam, or a joint that closes a loop, connects it: what moves the neighbour moves it too, as rigid.
"""

import dataclasses
import heapq
import itertools
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from ..bodies import AbstractBody
from ..joints import Free
from .model import Assembly

Pairs = list[tuple[int, int]]

HELD, ELEMENT, JOINT, ALONE = range(4)
"""Why a part of the tree is reached, in the order in which that counts: it rests or its motion is told, by a neighbour, or by nothing."""


class Following(NamedTuple):
    """A `model` in which free bodies follow their neighbours.

    Neighbouring nodes of beams are in `along`, if the increments of the second are those against the first, or else in `across`.
    """

    model: Assembly
    along: Pairs
    across: Pairs


def following(model: Assembly, told: Collection[int]) -> Following:
    """The mechanism with its free bodies following; those in parts of the tree in which the motion of a body is told stay free."""
    kinds = [kind for kind, count in model.kinds for _ in range(count)]
    free = {child for group in model.tree if isinstance(group.kind, Free) for child in group.children}
    parents, top, elements = np.array(model.parents), _tops(model, free), _neighbouring_nodes(model)
    links: dict[int, list[tuple[int, int, int]]] = {}
    for reason, pairs in ((ELEMENT, elements), (JOINT, [pair for group in model.closing for pair in zip(group.a, group.b, strict=True)])):
        for near, far in (*pairs, *((b, a) for a, b in pairs)):
            if _can_follow(kinds[top[far]], kinds[near]):
                links.setdefault(top[near], []).append((reason, far, near))
    held = {*top} - free | {top[body] for body in told}
    front = [(HELD, body, body) for body in held] + [(ALONE, body, body) for body in free]
    heapq.heapify(front)
    reached, along = set(), set()
    while front:
        reason, far, near = heapq.heappop(front)
        if top[far] in reached:
            continue
        reached.add(top[far])
        if far != near:
            parents[top[far]] = near
        if reason == ELEMENT and top[far] == far:
            along.add((near, far))
        for link in links.get(top[far], []):
            heapq.heappush(front, link)
    across = [(a, b) for a, b in elements if (a, b) not in along and (b, a) not in along]
    return Following(dataclasses.replace(model, parents=tuple(parents.tolist())), sorted(along), across)


def _tops(model: Assembly, free: Collection[int]) -> list[int]:
    """For every body the one in which its part of the tree begins: a free one, or one that rests."""
    places = np.arange(len(model.parents))
    top = np.where(np.isin(places, list(free)), places, model.parents)
    while not np.array_equal(top, top[top]):
        top = top[top]
    return top.tolist()


def _neighbouring_nodes(model: Assembly) -> Pairs:
    """Pairs of nodes that are next to each other in an element of a beam."""
    each = [pair for group in model.beams for pair in itertools.pairwise(group.nodes)]
    return [pair for first, second in each for pair in zip(first, second, strict=True)]


def _can_follow(child: type[AbstractBody], parent: type[AbstractBody]) -> bool:
    """Whether a body has all motions of another one, as far as it has directors."""
    return not ({*parent.twists} - {*child.twists}) & {*range(6 if child.oriented else 3)}
