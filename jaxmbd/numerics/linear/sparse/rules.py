"""How each class of operations hands dependences on."""

from typing import Any

import numpy as np

from ...jaxpr import OPERATIONS, Flow
from . import constants, gather_scatter
from .index_sets import MOST, DenseError, IndexSets, Rule, Traced, everything, join, sets_of, take, union, unite, width


def elementwise(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Each element depends on those in the same place, where axes of one element are in every place."""
    shape = eqn.outvars[0].aval.shape
    spread = lambda one: one.sets if one.shape == shape else take(one.sets, np.broadcast_to(one.index(), shape))
    return union([spread(one) for one in inputs if one.sets is not None])


def product(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """As elementwise, but nothing is left where a factor is a constant zero."""
    sets = elementwise(eqn, inputs)
    for one in inputs:
        if one.value is not None and not np.all(one.value):
            kept = np.broadcast_to(one.value != 0, eqn.outvars[0].aval.shape).ravel()
            sets = take(sets, np.where(kept, np.arange(kept.size), -1))
    return sets


def moved(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Elements of the first operand change their places: the operation is run on the places."""
    first, *others = inputs
    places = constants.evaluate(eqn, [first.index(), *(one.value for one in others)]) if first.sets is not None else None
    return everything(inputs, eqn.outvars[0].aval.size) if places is None else take(first.sets, places)


def merged(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Elements of several operands find their places in one array."""
    begins = np.cumsum([0, *(one.size for one in inputs)])
    places = constants.evaluate(eqn, [one.index() + begin for one, begin in zip(inputs, begins, strict=False)])
    return take(join(inputs), places)


def overwritten(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """A block of the first operand is replaced by the second."""
    operand, update, *starts = inputs
    places = constants.evaluate(eqn, [operand.index(), update.index() + operand.size, *(one.value for one in starts)])
    return everything(inputs, operand.size) if places is None else take(join([operand, update]), places)


def selected(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """One of several arrays in each place; a constant choice is known."""
    which, *cases = inputs
    if which.value is None:
        return elementwise(eqn, cases)
    begins = np.cumsum([0, *(one.size for one in cases)])
    places = constants.evaluate(eqn, [which.value, *(one.index() + begin for one, begin in zip(cases, begins, strict=False))])
    return take(join(cases), places)


def reduced(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Sums and other reductions over axes."""
    out, axes = eqn.outvars[0].aval, tuple(int(axis) for axis in eqn.params["axes"])
    targets = np.expand_dims(np.arange(out.size).reshape(out.shape), axes)
    return unite(np.broadcast_to(targets, inputs[0].shape), inputs[0].sets, out.size)


def accumulated(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Cumulative sums and the like: an element depends on those before it."""
    one, axis = inputs[0], eqn.params["axis"]
    lines = np.moveaxis(one.index(), axis, -1).reshape(-1, one.shape[axis])
    later, earlier = np.tril_indices(one.shape[axis])
    if lines.shape[0] * later.size > MOST:
        raise DenseError
    lines = lines[:, ::-1] if eqn.params["reverse"] else lines
    return unite(lines[:, later], one.sets, one.size, lines[:, earlier])


def contracted(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Products of two arrays summed over axes."""
    contract, batch = eqn.params["dimension_numbers"]
    sides = [_by_axes(one, contract[side], batch[side]) for side, one in enumerate(inputs)]
    (batches, left, summed), right = sides[0][0].shape, sides[1][0].shape[1]
    shape = (batches, left, right, summed)
    if int(np.prod(shape)) > MOST:
        raise DenseError
    places = (sides[0][0][:, :, None], sides[1][0][:, None])
    targets = np.broadcast_to(np.arange(batches * left * right).reshape(batches, left, right, 1), shape)
    counts = np.ones(shape, bool)
    for (_, value), view in zip(sides, ((slice(None), slice(None), None), (slice(None), None)), strict=True):
        if value is not None and not np.all(value):
            counts = counts & (value[view] != 0)
    parts = [
        unite(targets[counts], one.sets, targets.size // max(summed, 1), np.broadcast_to(place, shape)[counts])
        for one, place in zip(inputs, places, strict=True)
        if one.sets is not None
    ]
    return union(parts)


def _by_axes(one: Traced, contract: tuple[int, ...], batch: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """Places, and the value if known, as (batch, free, contracted)."""
    free = [axis for axis in range(len(one.shape)) if axis not in (*contract, *batch)]
    sizes = [int(np.prod([one.shape[axis] for axis in axes], dtype=int)) for axes in (batch, free, contract)]
    arrange = lambda array: np.transpose(array, (*batch, *free, *contract)).reshape(sizes)
    return arrange(one.index()), None if one.value is None else arrange(one.value)


def scattered(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Updates that replace, or are added to, elements of an operand."""
    operand, indices, updates = inputs
    if indices.value is None:
        return everything(inputs, operand.size)
    targets = gather_scatter.scattered(eqn.params, operand.shape, indices.value, updates.shape).ravel()
    total = sets_of(operand, width(inputs))
    if eqn.primitive.name == "scatter":
        kept = np.arange(operand.size)
        kept[targets[targets >= 0]] = -1
        total = take(total, kept)
    return total if updates.sets is None else union([total, unite(targets, updates.sets, operand.size)])


def matrices(eqn: Any, inputs: list[Traced]) -> IndexSets:
    """Linear algebra on stacks of matrices: an outcome depends on all of the matrices in its place of the stack."""
    shape = eqn.outvars[0].aval.shape
    stack = shape[:-2]
    if any(one.shape[:-2] != stack for one in inputs):
        return everything(inputs, eqn.outvars[0].aval.size)
    count = int(np.prod(stack, dtype=int))
    of_matrix = union(
        [unite(np.repeat(np.arange(count), one.size // max(count, 1)), one.sets, count) for one in inputs if one.sets is not None]
    )
    return take(of_matrix, np.repeat(np.arange(count), int(np.prod(shape[-2:], dtype=int))))


RULES: dict[Flow, Rule] = {
    Flow.ELEMENTWISE: elementwise,
    Flow.PRODUCT: product,
    Flow.CHOICE: selected,
    Flow.MOVE: moved,
    Flow.MERGE: merged,
    Flow.OVERWRITE: overwritten,
    Flow.SCATTER: scattered,
    Flow.REDUCTION: reduced,
    Flow.ACCUMULATION: accumulated,
    Flow.CONTRACTION: contracted,
    Flow.MATRICES: matrices,
}
"""Rules for operations with one outcome."""


def apply_rule(eqn: Any, inputs: list[Traced]) -> list[IndexSets | None]:
    """The index sets of every outcome of an operation: everything if there is no rule for it, nothing for whole numbers."""
    real = [np.issubdtype(out.aval.dtype, np.inexact) for out in eqn.outvars]
    operation = OPERATIONS.get(eqn.primitive.name)
    if operation is not None and all(real):
        return [RULES[operation.flow](eqn, inputs)]
    return [everything(inputs, out.aval.size) if varies else None for out, varies in zip(eqn.outvars, real, strict=True)]
