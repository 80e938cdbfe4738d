"""Indices outside of arrays: JAX takes the nearest element instead, without a word, so that a traced program is looked through for them.

Only indices that do not depend on the values of floating inputs are seen: written ones, and those from arrays of whole numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from .jaxpr import called_by
from .linear.sparse import constants


class Outside(NamedTuple):
    """An index outside of an array, and the operations that lead to it, from the program on through those that it calls."""

    place: int
    size: int
    shape: tuple[int, ...]
    writes: bool
    way: tuple[Any, ...]


def first_outside(program: ClosedJaxpr, inputs: Sequence[Any]) -> Outside | None:
    """The first index that is outside of its array. Inputs are known where they are whole numbers, and `None` otherwise."""
    found: list[Outside] = []
    _look(program, list(inputs), (), found)
    return found[0] if found else None


def _look(program: ClosedJaxpr, inputs: list[Any], way: tuple[Any, ...], found: list[Outside]) -> list[Any]:
    """Walk through a program and collect indices outside of arrays; what its outcomes are, as far as they are known."""
    graph = program.jaxpr
    values = dict(zip([*graph.constvars, *graph.invars], [*map(_whole, program.consts), *inputs], strict=True))
    read = lambda atom: _whole(atom.val) if isinstance(atom, Literal) else values[atom]
    for equation in graph.eqns:
        operands, here = [read(atom) for atom in equation.invars], (*way, equation)
        outcomes: list[Any] = [None] * len(equation.outvars)
        called = called_by(equation)
        if called is not None:
            outcomes = _look(called, operands[len(operands) - len(called.jaxpr.invars) :], here, found)
        elif equation.primitive.name in constants.CHEAP and all(operand is not None for operand in operands):
            outcomes = [constants.evaluate(equation, operands)]
        else:
            for inner in _inside(equation):
                _look(inner, [None] * len(inner.jaxpr.invars), here, found)
            found += _outside(equation, operands, here)
        values.update(zip(equation.outvars, outcomes, strict=True))
    return [read(atom) for atom in graph.outvars]


def _whole(value: Any) -> np.ndarray | None:
    """A constant of whole numbers or truth values; others are no indices."""
    seen = not isinstance(value, jax.core.Tracer) and np.dtype(getattr(value, "dtype", type(value))).kind in "iub"
    return np.asarray(value) if seen else None


def _inside(equation: Any) -> Iterator[ClosedJaxpr]:
    """Programs that an operation runs in turns: branches, bodies of loops."""
    for value in equation.params.values():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, ClosedJaxpr | Jaxpr):
                yield one if isinstance(one, ClosedJaxpr) else ClosedJaxpr(one, ())


def _outside(equation: Any, operands: list[Any], way: tuple[Any, ...]) -> Iterator[Outside]:
    """What an operation that reads or writes at known places does outside of its array."""
    name, params = equation.primitive.name, equation.params
    mode, shape = params.get("mode"), equation.invars[0].aval.shape if equation.invars else ()
    if name == "dynamic_slice" and all(start is not None for start in operands[1:]):
        yield from _beyond(np.array([int(start) for start in operands[1:]]), range(len(shape)), params["slice_sizes"], shape, way)
    elif name == "gather" and mode == jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS and operands[1] is not None:  # as in x[i]
        yield from _beyond(operands[1], params["dimension_numbers"].start_index_map, params["slice_sizes"], shape, way)
    elif name.startswith("scatter") and mode != jax.lax.GatherScatterMode.CLIP and operands[1] is not None:
        axes = params["dimension_numbers"].scatter_dims_to_operand_dims
        outside = list(_beyond(operands[1], axes, (1,) * len(shape), shape, way, writes=True))
        if outside and len(outside) == operands[1].size // max(len(axes), 1):  # some may be dropped on purpose, but not all
            yield outside[0]


def _beyond(
    starts: np.ndarray, axes: Sequence[int], sizes: Sequence[int], shape: tuple[int, ...], way: tuple[Any, ...], writes: bool = False
) -> Iterator[Outside]:
    """For each vector of indices along some axes the first that leaves no room for a window of some sizes."""
    for vector in starts.reshape(-1, len(axes)):
        for index, axis in zip(vector.tolist(), axes, strict=True):
            if not 0 <= index <= shape[axis] - sizes[axis]:
                yield Outside(index, shape[axis], shape, writes, way)
                break
