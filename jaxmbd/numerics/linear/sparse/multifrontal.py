r"""The multifrontal LU factorisation in numbers: fronts of independent supernodes, eliminated batch by batch.

A front is a matrix $\begin{pmatrix} D & B \\ C & E \end{pmatrix}$ of pivots and boundary, the sum of nonzeros and of the update matrices of
its children; its own update matrix is $E - C D^{-1} B$. All that is done with numbers are gathers, by a plan, and products of stacks of
small matrices: gathers rather than scatters, which are slow on CPUs.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..inverses import inverses
from .extend_add import ExtendAdd
from .gather import added, pick, when_run, with_zero
from .plan import Batch, Plan, Segment


class Eliminated(eqx.Module):
    """What is left of a front: the inverse of $D$, the rows $C$, and $D^{-1} B$."""

    inverse: Float[Array, "*batches count p p"]
    below: Float[Array, "*batches count c p"]
    right: Float[Array, "*batches count p c"]


Factors = list[Eliminated]
"""Fronts of each segment, with a leading axis where it has several batches."""


def factorise(plan: Plan, values: Float[Array, " e"]) -> Factors:
    """Eliminate batch by batch."""
    nonzeros, updates, factors = with_zero(values), jnp.zeros(plan.matrix_elements + 1, values.dtype), []
    for segment in plan.segments:
        updates, done = _through(segment, lambda updates, batch, _: _eliminate(nonzeros, updates, batch), updates, None)
        factors.append(done)
    return factors


def _eliminate(nonzeros: Array, updates: Array, batch: Batch) -> tuple[Array, Eliminated]:
    count, size = batch.unknowns.shape
    assembled = _extend_add(updates, [_places(one, updates) for one in batch.extend_add], (count, *2 * (size + batch.boundary.shape[1],)))
    identity = jnp.asarray(np.eye(size)[:, :, None], nonzeros.dtype)
    pivot = pick(nonzeros, batch.pivot) + jnp.moveaxis(assembled[:, :size, :size], 0, -1)
    D = inverses(jnp.where(batch.blank, identity, pivot))
    C, B = pick(nonzeros, batch.below) + assembled[:, size:, :size], pick(nonzeros, batch.right) + assembled[:, :size, size:]
    right = D @ B
    return _put(updates, assembled[:, size:, size:] - C @ right, batch.matrix_at), Eliminated(D, C, right)


def solve(plan: Plan, factors: Factors, rhs: Float[Array, " k"], transposed: bool = False) -> Float[Array, " k"]:
    """Through the batches and back, with the matrix or its transpose."""
    b, updates, inner = with_zero(rhs), jnp.zeros(plan.vector_elements + 1, rhs.dtype), []
    forward = _transposed_forward if transposed else _forward
    backward = _transposed_backward if transposed else _backward
    for segment, done in zip(plan.segments, factors, strict=True):
        updates, y = _through(segment, lambda updates, batch, done: forward(b, updates, batch, done), updates, done)
        inner.append(y)
    x = jnp.zeros(plan.solutions + 1, rhs.dtype)
    for segment, *given in reversed(list(zip(plan.segments, factors, inner, strict=True))):
        x, _ = _through(segment, lambda x, batch, given: (backward(x, batch, *given), None), x, given, reverse=True)
    return pick(x, plan.returns)


def _forward(b: Array, updates: Array, batch: Batch, done: Eliminated) -> tuple[Array, Array]:
    own, near = _right_hand_sides(b, updates, batch)
    y = _times(done.inverse, own)
    return _put(updates, near - _times(done.below, y), batch.vector_at), y


def _backward(x: Array, batch: Batch, done: Eliminated, y: Array) -> Array:
    return _put(x, y - _times(done.right, pick(x, batch.boundary)), batch.solution_at)


def _transposed_forward(b: Array, updates: Array, batch: Batch, done: Eliminated) -> tuple[Array, Array]:
    own, near = _right_hand_sides(b, updates, batch)
    return _put(updates, near - _transposed_times(done.right, own), batch.vector_at), own


def _transposed_backward(x: Array, batch: Batch, done: Eliminated, y: Array) -> Array:
    return _put(x, _transposed_times(done.inverse, y - _transposed_times(done.below, pick(x, batch.boundary))), batch.solution_at)


def _through(segment: Segment, function: Callable, numbers: Array, given, reverse: bool = False):
    """One batch, or a loop over several."""
    if segment.length == 1:
        return function(numbers, segment.batch, given)
    return jax.lax.scan(lambda now, given: function(now, *given), numbers, (segment.batch, given), reverse=reverse)


def _right_hand_sides(b: Array, updates: Array, batch: Batch) -> tuple[Array, Array]:
    """Right hand sides of fronts: of their pivots, and of their boundaries."""
    count, size = batch.unknowns.shape
    assembled = _extend_add(updates, [one.vector for one in batch.extend_add], (count, size + batch.boundary.shape[1]))
    return pick(b, batch.unknowns) + assembled[:, :size], assembled[:, size:]


def _places(one: ExtendAdd, updates: Array) -> Array:
    """Places of the elements of update matrices; beyond all others is a zero."""
    return jnp.minimum(when_run(one.row)[..., None] + one.column[..., None, :], updates.size - 1)


def _extend_add(updates: Array, places: list[Array], shape: tuple[int, ...]) -> Array:
    """The sum of the updates of all children, in the rows and columns of each front."""
    total = jnp.zeros(shape, updates.dtype)
    for several in places:
        sums = added(functools.partial(_of_sibling, updates, several), len(several))
        total = total + jnp.pad(sums, [(0, shape[0] - sums.shape[0]), *((0, 0) for _ in shape[1:])])
    return total


def _of_sibling(updates: Array, places: Array, k: int | Array) -> Array:
    return pick(updates, places[k])


def _put(numbers: Array, part: Array, place: Array) -> Array:
    return jax.lax.dynamic_update_slice(numbers, part.ravel(), (place,))


def _times(matrices: Array, vectors: Array) -> Array:
    return jnp.einsum("bij,bj->bi", matrices, vectors)


def _transposed_times(matrices: Array, vectors: Array) -> Array:
    return jnp.einsum("bji,bj->bi", matrices, vectors)
