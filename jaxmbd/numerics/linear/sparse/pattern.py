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

from . import constants as movement
from .index_sets import DenseError, Traced, join, take, union
from .rules import apply_rule


def jacobian_pattern(fn: Callable, x: Any, args: Any) -> sp.csr_array | None:
    """The pattern of the Jacobian of `fn(x, args)` by `x`, both flat vectors; `None` if it is dense."""
    leaves, structure = jax.tree.flatten(args)
    shapes = [jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)) for leaf in (x, *leaves)]
    program = jax.make_jaxpr(lambda x, *leaves: fn(x, jax.tree.unflatten(structure, leaves)))(*shapes)
    inputs = [Traced(x.shape, rows=sp.eye_array(x.size, format="csr", dtype=np.int8)), *(Traced(leaf.shape) for leaf in shapes[1:])]
    try:
        (out,) = _walk(program.jaxpr, program.consts, inputs)
    except DenseError:
        return None
    rows = sp.csr_array((out.size, x.size), dtype=np.int8) if out.rows is None else out.rows
    rows.sort_indices()
    return rows


def _walk(jaxpr: Any, consts: Any, inputs: list[Traced]) -> list[Traced]:
    """Carry dependences through the operations of a program."""
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*map(_constant, consts), *inputs], strict=True))
    read = lambda atom: _constant(atom.val) if isinstance(atom, jex.Literal) else env[atom]
    for eqn in jaxpr.eqns:
        operands = [read(atom) for atom in eqn.invars]
        rule = _PROGRAMS.get(eqn.primitive.name, _operation)
        env.update(zip(eqn.outvars, rule(eqn, operands), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _constant(value: Any) -> Traced:
    return Traced(np.shape(value), None if isinstance(value, jax.core.Tracer) else np.asarray(value))


def _operation(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """One operation: on constants it waits until somebody asks for its value."""
    shapes = [out.aval.shape for out in eqn.outvars]
    if any(one.rows is not None for one in inputs):
        return [Traced(shape, rows=rows) for shape, rows in zip(shapes, apply_rule(eqn, inputs), strict=True)]
    if len(shapes) == 1:
        return [Traced(shapes[0], lambda: movement.evaluate(eqn, [one.value for one in inputs]))]
    return [Traced(shape) for shape in shapes]


def _call(key: str) -> Callable:
    """A program inside the program."""

    def rule(eqn: Any, inputs: list[Traced]) -> list[Traced]:
        inner = eqn.params[key]
        return _walk(inner.jaxpr, inner.consts, inputs) if hasattr(inner, "consts") else _walk(inner, [], inputs)

    return rule


def _branches(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """What the branch that is taken depends on, or any of them."""
    which, branches = inputs[0].value, eqn.params["branches"]
    if which is not None:
        branch = branches[int(np.clip(which, 0, len(branches) - 1))]
        return _walk(branch.jaxpr, branch.consts, inputs[1:])
    outcomes = [_walk(branch.jaxpr, branch.consts, inputs[1:]) for branch in branches]

    def either(*parts: Traced) -> Traced:
        rows = [part.rows for part in parts if part.rows is not None]
        return Traced(parts[0].shape, rows=union(rows) if rows else None)

    return list(map(either, *outcomes))


def _platform(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """Code for platforms differs, but not in what it computes."""
    return [Traced((), np.asarray(eqn.params["platforms"].index(None)))]


def _pieces(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """An array cut into pieces."""
    one, axis, cuts = inputs[0], eqn.params["axis"], np.cumsum(eqn.params["sizes"])[:-1]
    return [_part(one, places) for places in np.split(one.index(), cuts, axis=axis)]


def _slabs(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """An array cut into all its parts along an axis."""
    return [_part(inputs[0], places) for places in map(np.asarray, np.moveaxis(inputs[0].index(), eqn.params["axis"], 0))]


def _part(one: Traced, places: np.ndarray) -> Traced:
    """Some elements of an array."""
    rows = None if one.rows is None else take(one.rows, places)
    return Traced(places.shape, lambda: None if one.value is None else np.asarray(one.value.ravel()[places]), rows)


def _loop(eqn: Any, inputs: list[Traced]) -> list[Traced]:
    """A scan, walked through step by step."""
    program, fixed, carried = eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["num_carry"]
    state, columns, saved = inputs[fixed : fixed + carried], inputs[fixed + carried :], []
    steps = range(eqn.params["length"])
    for i in reversed(steps) if eqn.params["reverse"] else steps:
        outcome = _walk(
            program.jaxpr, program.consts, [*inputs[:fixed], *state, *(_part(one, np.asarray(one.index()[i])) for one in columns)]
        )
        state = outcome[:carried]
        saved.append(outcome[carried:])
    saved = saved[::-1] if eqn.params["reverse"] else saved
    return [*state, *(_stack(column) for column in zip(*saved, strict=True))]


def _stack(parts: tuple[Traced, ...]) -> Traced:
    depends = any(part.rows is not None for part in parts)
    return Traced((len(parts), *parts[0].shape), rows=join(parts) if depends else None)


_PROGRAMS: dict[str, Callable] = {
    **dict.fromkeys(("jit", "pjit", "remat2", "checkpoint"), _call("jaxpr")),
    **dict.fromkeys(("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), _call("call_jaxpr")),
    "cond": _branches,
    "platform_index": _platform,
    "split": _pieces,
    "unstack": _slabs,
    "scan": _loop,
    "optimization_barrier": lambda eqn, inputs: inputs,
}
