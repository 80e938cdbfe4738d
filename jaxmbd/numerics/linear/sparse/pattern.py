"""Which entries of a Jacobian can be nonzero: found from the operations of a function, without evaluating it.

A function is traced, and its operations are walked through once. Each element of an array carries the set of inputs it depends on.
Operations that move elements move these sets, those that combine elements unite them. Nothing depends on the values of inputs, so that a
pattern holds for all of them.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.extend import core as jex

from ...jaxpr import OPERATIONS, Flow, walk
from . import constants
from .index_sets import DenseError, Traced, join, take, union
from .rules import apply_rule


def jacobian_pattern(fn: Callable, x: Any, args: Any) -> sp.csr_array | None:
    """The pattern of the Jacobian of `fn(x, args)` by `x`, both flat vectors; `None` if it is dense."""
    leaves, structure = jax.tree.flatten(args)
    shapes = [jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)) for leaf in (x, *leaves)]
    program = jax.make_jaxpr(lambda x, *leaves: fn(x, jax.tree.unflatten(structure, leaves)))(*shapes)
    inputs = [Traced(x.shape, sets=sp.eye_array(x.size, format="csr", dtype=np.int8)), *(Traced(leaf.shape) for leaf in shapes[1:])]
    try:
        (out,) = _carried(program, inputs)
    except DenseError:
        return None
    found = sp.csr_array((out.size, x.size), dtype=np.int8) if out.sets is None else out.sets
    found.sort_indices()
    return found


def _carried(program: jex.ClosedJaxpr, inputs: list[Traced]) -> list[Traced]:
    """What the outcomes of a program depend on."""
    return walk(program, inputs, _operation, _constant)


def _constant(value: Any) -> Traced:
    return Traced(np.shape(value), None if isinstance(value, jax.core.Tracer) else np.asarray(value))


def _operation(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """One operation: on constants it waits until somebody asks for its value."""
    name = eqn.primitive.name
    if name in _CONTROL_FLOW:
        return _CONTROL_FLOW[name](eqn, inputs)
    if name in OPERATIONS and OPERATIONS[name].flow in OF_SEVERAL_OUTCOMES:
        return OF_SEVERAL_OUTCOMES[OPERATIONS[name].flow](eqn, inputs)
    shapes = [out.aval.shape for out in eqn.outvars]
    if any(one.sets is not None for one in inputs):
        return [Traced(shape, sets=sets) for shape, sets in zip(shapes, apply_rule(eqn, inputs), strict=True)]
    if len(shapes) == 1:
        return [Traced(shapes[0], lambda: constants.evaluate(eqn, [one.value for one in inputs]))]
    return [Traced(shape) for shape in shapes]


def _branches(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """What the branch that is taken depends on, or any of them."""
    which, branches = inputs[0].value, eqn.params["branches"]
    if which is not None:
        branch = branches[int(np.clip(which, 0, len(branches) - 1))]
        return _carried(branch, inputs[1:])
    outcomes = [_carried(branch, inputs[1:]) for branch in branches]

    def either(*parts: Traced) -> Traced:
        sets = [part.sets for part in parts if part.sets is not None]
        return Traced(parts[0].shape, sets=union(sets) if sets else None)

    return list(map(either, *outcomes))


def _pieces(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """An array cut into pieces, or into all its parts along an axis."""
    places, axis = inputs[0].index(), eqn.params["axis"]
    if eqn.primitive.name == "unstack":
        return [_part(inputs[0], np.asarray(part)) for part in np.moveaxis(places, axis, 0)]
    return [_part(inputs[0], part) for part in np.split(places, np.cumsum(eqn.params["sizes"])[:-1], axis=axis)]


def _part(one: Traced, places: np.ndarray) -> Traced:
    """Some elements of an array."""
    sets = None if one.sets is None else take(one.sets, places)
    return Traced(places.shape, lambda: None if one.value is None else np.asarray(one.value.ravel()[places]), sets)


def _loop(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """A scan, walked through step by step."""
    program, fixed, carried = eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["num_carry"]
    state, columns, saved = inputs[fixed : fixed + carried], inputs[fixed + carried :], []
    steps = range(eqn.params["length"])
    for i in reversed(steps) if eqn.params["reverse"] else steps:
        now = [_part(one, np.asarray(one.index()[i])) for one in columns]
        outcome = _carried(program, [*inputs[:fixed], *state, *now])
        state = outcome[:carried]
        saved.append(outcome[carried:])
    saved = saved[::-1] if eqn.params["reverse"] else saved
    return [*state, *(_stack(column) for column in zip(*saved, strict=True))]


def _stack(parts: tuple[Traced, ...]) -> Traced:
    depends = any(part.sets is not None for part in parts)
    return Traced((len(parts), *parts[0].shape), sets=join(parts) if depends else None)


_CONTROL_FLOW: dict[str, Callable] = {"cond": _branches, "scan": _loop}

OF_SEVERAL_OUTCOMES: dict[Flow, Callable] = {Flow.CUT: _pieces, Flow.PASS: lambda eqn, inputs: inputs}
"""Rules for operations with several outcomes, which pass constants on as well."""
