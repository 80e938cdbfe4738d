"""Operations of a traced program carried out on known values: on constants, and on the places of elements to see where they go."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import gather_scatter


def evaluate(eqn: Any, values: list[Any]) -> Any:
    """The outcome of an operation on known values, or `None` if one is not known. The frequent ones need no compilation."""
    if any(value is None for value in values):
        return None
    rule = _NUMPY.get(eqn.primitive.name)
    if rule is not None:
        return rule(eqn.params, eqn.outvars[0].aval, *values)
    with jax.ensure_compile_time_eval():
        out = eqn.primitive.bind(*map(jnp.asarray, values), **eqn.params)
    return np.asarray(out[0] if eqn.primitive.multiple_results else out)


def _gather(params: dict, out: Any, operand: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """What lies outside is -1: the place of an element that depends on nothing."""
    places = gather_scatter.gathered(params, operand.shape, indices)
    return np.where(places < 0, -1, operand.ravel()[places]) if operand.size else np.full(places.shape, -1)


def _pad(params: dict, out: Any, operand: np.ndarray, value: Any) -> np.ndarray:
    """Elements at their places in the padded array; those that a negative padding cuts off are left out."""
    result = np.full(out.shape, np.ravel(value)[0])
    axes = [low + (1 + gap) * np.arange(size) for size, (low, _, gap) in zip(operand.shape, params["padding_config"], strict=True)]
    inside = [(places >= 0) & (places < size) for places, size in zip(axes, out.shape, strict=True)]
    result[np.ix_(*(places[kept] for places, kept in zip(axes, inside, strict=True)))] = operand[np.ix_(*inside)]
    return result


def _broadcast(params: dict, out: Any, operand: np.ndarray, *_: Any) -> np.ndarray:
    shape = [1] * len(out.shape)
    for axis, size in zip(params["broadcast_dimensions"], np.shape(operand), strict=True):
        shape[int(axis)] = size
    return np.broadcast_to(np.reshape(operand, shape), out.shape)


def _slice(params: dict, out: Any, operand: np.ndarray) -> np.ndarray:
    strides = params["strides"] or (1,) * operand.ndim
    return operand[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _iota(params: dict, out: Any) -> np.ndarray:
    shape = [1] * len(out.shape)
    shape[params["dimension"]] = -1
    return np.broadcast_to(np.arange(out.shape[params["dimension"]]).reshape(shape), out.shape).astype(out.dtype)


def _select(params: dict, out: Any, which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    return np.asarray(np.choose(np.broadcast_to(which, out.shape).astype(int), cases))


def _reshape(params: dict, out: Any, operand: np.ndarray, *_: Any) -> np.ndarray:
    return np.reshape(operand, out.shape)


def _binary(function: Callable) -> Callable:
    return lambda params, out, a, b: np.broadcast_to(function(a, b), out.shape)


_NUMPY: dict[str, Callable] = {
    **dict.fromkeys(("reshape", "squeeze", "expand_dims"), _reshape),
    "broadcast_in_dim": _broadcast,
    "transpose": lambda params, out, operand: np.transpose(operand, params["permutation"]),
    "slice": _slice,
    "gather": _gather,
    "rev": lambda params, out, operand: np.flip(operand, params["dimensions"]),
    "concatenate": lambda params, out, *parts: np.concatenate(parts, axis=params["dimension"]),
    "pad": _pad,
    "iota": _iota,
    "select_n": _select,
    "convert_element_type": lambda params, out, operand: np.asarray(operand).astype(out.dtype),
    "add": _binary(np.add),
    "sub": _binary(np.subtract),
    "mul": _binary(np.multiply),
    "lt": _binary(np.less),
    "le": _binary(np.less_equal),
    "gt": _binary(np.greater),
    "ge": _binary(np.greater_equal),
    "eq": _binary(np.equal),
    "ne": _binary(np.not_equal),
}

CHEAP = frozenset(_NUMPY)
"""Operations that need no compilation."""
