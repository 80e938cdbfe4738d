"""Consecutive rounds of similar size as one loop: filled up to one shape and stacked, so that they compile once."""

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

from .plan import Counts, Front, Round, Sums

SHORT = 30_000
"""Elements of fronts below which it costs less to fill rounds up than to compile them."""


class Segment(NamedTuple):
    """One round, or several of one shape along a leading axis, with the numbers of entries and unknowns that they are filled up to."""

    rounds: Round
    length: int
    entries: int
    unknowns: int


def in_loops(plans: list[Round], counts: Counts) -> tuple[Segment, ...]:
    """All rounds, loop after loop."""
    return tuple(_segment(plans[a:b], counts[a : b + 1]) for a, b in _runs(plans))


def _runs(plans: list[Round]) -> list[tuple[int, int]]:
    """Consecutive rounds that are worth being one loop: single fronts that do not grow much when filled up."""
    cost = lambda shape: shape[0] * (shape[1] + shape[2]) ** 2
    shapes = [(f[0].pivot.shape[2], f[0].pivot.shape[0], f[0].boundary.shape[1]) if len(f) == 1 else None for f, *_ in plans]
    runs, begin = [], 0
    while begin < len(plans):
        end = begin + 1
        while end < len(plans) and None not in shapes[begin : end + 1]:
            part = np.array(shapes[begin : end + 1])
            filled, true = len(part) * cost(part.max(axis=0)), sum(map(cost, part))
            if filled > max(1.6 * true, SHORT) or part[:, 1].max() > 1.3 * part[:, 1].min():
                break
            end += 1
        runs.append((begin, end))
        begin = end
    return runs


def _segment(plans: list[Round], counts: list[tuple[int, int]]) -> Segment:
    entries, unknowns = np.max(counts, axis=0).tolist()
    filled = [
        _filled(plan, plans, *before, *after, entries, unknowns) for plan, before, after in zip(plans, counts, counts[1:], strict=False)
    ]
    if len(plans) == 1:
        return Segment(filled[0], 1, entries, unknowns)
    stack = lambda *parts: np.stack(parts)
    fronts = (Front(*map(stack, *(one.fronts[0] for one in filled))),)
    of_entries, of_vectors = (jax.tree.map(stack, *sums) for sums in zip(*((one.entries, one.vectors) for one in filled), strict=True))
    return Segment(Round(fronts, of_entries, of_vectors, np.stack([one.returns for one in filled])), len(plans), entries, unknowns)


def _filled(plan: Round, plans: list[Round], e0: int, v0: int, e1: int, v1: int, entries: int, unknowns: int) -> Round:
    """A round filled up to the shape of the largest; places behind the last number move to the new last."""
    single = len(plan.fronts) == 1
    p, c, count = (
        max(getattr(one.fronts[0], name).shape[axis] for one in plans) for name, axis in (("pivot", 0), ("boundary", 1), ("pivot", 2))
    )
    fronts = []
    for front in plan.fronts:
        shape = (p, c, count) if single else (front.pivot.shape[0], front.boundary.shape[1], front.pivot.shape[2])
        fronts.append(_filled_front(front, *shape, e0, v0, v1, entries, unknowns))
    inner = _renumber([front.boundary.shape for front in plan.fronts], [front.boundary.shape for front in fronts], square=True)
    outer = _renumber([front.boundary.shape for front in plan.fronts], [front.boundary.shape for front in fronts], square=False)
    of_entries = _filled_sums(plan.entries, e0, entries, inner, _lengths([one.entries for one in plans]))
    of_vectors = _filled_sums(plan.vectors, v0, unknowns, outer, _lengths([one.vectors for one in plans]))
    solved = _renumber([f.unknowns.shape for f in plan.fronts], [f.unknowns.shape for f in fronts], square=False)
    returns = np.concatenate([np.arange(v1), unknowns + solved[:-1]])[plan.returns]
    return Round(tuple(fronts), of_entries, of_vectors, _extended(returns, unknowns, 0))


def _filled_front(front: Front, p: int, c: int, count: int, e0: int, v0: int, v1: int, entries: int, unknowns: int) -> Front:
    to = lambda places, shape, old, new: _extended_to(np.where(places == old, new, places), shape, new)
    return Front(
        to(front.pivot, (p, p, count), e0, entries),
        to(front.right, (count, p, c), e0, entries),
        to(front.below, (count, c, p), e0, entries),
        _extended_to(front.blank, (p, count), True),
        to(front.unknowns, (count, p), v0, unknowns),
        to(front.boundary, (count, c), v1, unknowns),
    )


def _lengths(sums: list[Sums]) -> list[int]:
    """The largest lengths of the layers."""
    return [max(map(len, level)) for level in itertools.zip_longest(*(one.layers for one in sums), fillvalue=())]


def _filled_sums(sums: Sums, old: int, new: int, renumbered: np.ndarray, lengths: list[int]) -> Sums:
    kept = _extended(np.where(sums.kept == old, new, sums.kept), new, new)
    given = [*sums.layers, *(np.zeros(0, np.int32) for _ in lengths[len(sums.layers) :])]
    layers = tuple(_extended(renumbered[layer], length, int(renumbered[-1])) for layer, length in zip(given, lengths, strict=True))
    return Sums(kept, layers)


def _renumber(old: list[tuple[int, int]], new: list[tuple[int, int]], square: bool) -> np.ndarray:
    """New places of the products of fronts that were filled up; the place behind the last goes behind the last."""
    places, begin = [], 0
    for (count, width), (more, wider) in zip(old, new, strict=True):
        shape = (more, wider, wider) if square else (more, wider)
        index = begin + np.arange(np.prod(shape, dtype=int)).reshape(shape)
        places.append((index[:count, :width, :width] if square else index[:count, :width]).ravel())
        begin += index.size
    return np.concatenate([*places, [begin]])


def _extended(values: np.ndarray, length: int, fill: int) -> np.ndarray:
    return np.concatenate([values, np.full(length - values.size, fill, values.dtype)])


def _extended_to(values: Any, shape: tuple[int, ...], fill: int) -> np.ndarray:
    return np.pad(values, [(0, more - have) for have, more in zip(values.shape, shape, strict=True)], constant_values=fill)
