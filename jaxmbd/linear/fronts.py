r"""A sparse factorisation in numbers: fronts of independent nodes, eliminated round by round.

In each round the matrix of what remains is $\begin{pmatrix} D & B \\ C & E \end{pmatrix}$ with $D$ block diagonal, and goes on as
$E - C D^{-1} B$. All that is done with numbers are gathers, by a plan, and products of stacks of small matrices: gathers rather than
scatters, which are slow on CPUs.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .gather import pick, with_zero
from .inverse import inverses
from .structure.loops import Segment
from .structure.plan import Front, Round, Sums

Plan = tuple[Segment, ...]


class Eliminated(eqx.Module):
    """What is left of a front: the inverse of $D$, the rows $C$, and $D^{-1} B$."""

    inverse: Float[Array, "*rounds count p p"]
    below: Float[Array, "*rounds count c p"]
    right: Float[Array, "*rounds count p c"]


Factors = list[list[Eliminated]]
"""Fronts of each segment, with a leading axis where it has several rounds."""


def factorise(plan: Plan, values: Float[Array, " e"]) -> Factors:
    """Eliminate round by round."""
    factors = []
    for segment in plan:
        values, done = _through(segment, _eliminate, _resized(values, segment.entries), ())
        factors.append(done)
    return factors


def _eliminate(values: Float[Array, " e"], turn: Round, _: tuple) -> tuple[Float[Array, " e"], list[Eliminated]]:
    padded = with_zero(values)
    done = []
    for front in turn.fronts:
        D = inverses(jnp.where(front.blank, _identity(front, values.dtype), pick(padded, front.pivot)))
        done.append(Eliminated(D, pick(padded, front.below), D @ pick(padded, front.right)))
    return _add_up(turn.entries, padded, [one.below @ one.right for one in done]), done


def _identity(front: Front, dtype) -> Array:
    """What fills nodes up that are smaller than their bucket."""
    return jnp.asarray(np.eye(front.blank.shape[0])[:, :, None], dtype)


def solve(plan: Plan, factors: Factors, rhs: Float[Array, " k"], transposed: bool = False) -> Float[Array, " k"]:
    """Through the rounds and back, with the matrix or its transpose."""
    b, inner = rhs, []
    for segment, done in zip(plan, factors, strict=True):
        forward = _transposed_forward if transposed else _forward
        b, y = _through(segment, forward, _resized(b, segment.unknowns), (done,))
        inner.append(y)
    backward = _transposed_backward if transposed else _backward
    for segment, done, y in reversed(list(zip(plan, factors, inner, strict=True))):
        b, _ = _through(segment, backward, _resized(b, segment.unknowns), (done, y), reverse=True)
    return b[: rhs.size]


def _forward(b: Array, turn: Round, given: tuple) -> tuple[Array, list[Array]]:
    (done,), padded = given, with_zero(b)
    y = [_times(one.inverse, pick(padded, front.unknowns)) for front, one in zip(turn.fronts, done, strict=True)]
    return _add_up(turn.vectors, padded, [_times(one.below, part) for one, part in zip(done, y, strict=True)]), y


def _backward(x: Array, turn: Round, given: tuple) -> tuple[Array, None]:
    (done, y), padded = given, with_zero(x)
    found = [part - _times(one.right, pick(padded, front.boundary)) for front, one, part in zip(turn.fronts, done, y, strict=True)]
    return pick(jnp.concatenate([x, *(part.ravel() for part in found)]), turn.returns), None


def _transposed_forward(b: Array, turn: Round, given: tuple) -> tuple[Array, list[Array]]:
    (done,), padded = given, with_zero(b)
    y = [pick(padded, front.unknowns) for front in turn.fronts]
    return _add_up(turn.vectors, padded, [_turned(one.right, part) for one, part in zip(done, y, strict=True)]), y


def _transposed_backward(x: Array, turn: Round, given: tuple) -> tuple[Array, None]:
    (done, y), padded = given, with_zero(x)
    outer = [pick(padded, front.boundary) for front in turn.fronts]
    found = [_turned(one.inverse, part - _turned(one.below, o)) for one, part, o in zip(done, y, outer, strict=True)]
    return pick(jnp.concatenate([x, *(part.ravel() for part in found)]), turn.returns), None


def _through(segment: Segment, function: Callable, numbers: Array, given: tuple, reverse: bool = False):
    """One round, or a loop over those that were stacked."""
    if segment.length == 1:
        return function(numbers, segment.rounds, given)
    rounds = jax.tree.map(jnp.asarray, segment.rounds)
    return jax.lax.scan(lambda now, turn: function(now, *turn), numbers, (rounds, given), reverse=reverse)


def _add_up(sums: Sums, padded: Array, products: list[Array]) -> Array:
    """The numbers of the next round."""
    outer = with_zero(jnp.concatenate([part.ravel() for part in products]))
    total = pick(padded, sums.kept)
    for layer in sums.layers:
        total = total - jnp.pad(pick(outer, layer), (0, total.size - layer.size))
    return total


def _times(matrices: Array, vectors: Array) -> Array:
    return jnp.einsum("bij,bj->bi", matrices, vectors)


def _turned(matrices: Array, vectors: Array) -> Array:
    return jnp.einsum("bji,bj->bi", matrices, vectors)


def _resized(values: Array, size: int) -> Array:
    """Cut off what only filled up, or fill up."""
    return values[:size] if values.size >= size else jnp.pad(values, (0, size - values.size))
