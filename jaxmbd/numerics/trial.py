"""Functions of users, tried before anything is compiled: what goes wrong in them is told with their name and the line it comes from."""

import contextlib
import inspect
import linecache
import os
import re
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PyTree

from ..errors import ModelError
from .arguments import described
from .bounds import Outside, first_outside
from .jaxpr import walk
from .naming import nearest

OWN = Path(__file__).parents[1]
LIBRARIES = (*(f"{Path(str(module.__file__)).parent}{os.sep}" for module in (jax, np, eqx, jaxtyping)), "<@beartype", "<frozen")
"""Where lines of a traceback are not the user's, besides our own package."""

MOST_SEEN = 64
"""Structures that are remembered as tried."""


class Line(NamedTuple):
    """A line of the user's."""

    file: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"\n  {self.file}, line {self.number}" + (f": {self.text}" if self.text else "")


def is_own(function: Any) -> bool:
    """Whether a function is one of this package."""
    plain = function.func if isinstance(function, Partial) else function
    return (getattr(plain, "__module__", None) or "").split(".")[0] == OWN.name


_SEEN: dict[Hashable, None] = {}


def once(what: Hashable, tree: PyTree, trial: Callable[[], None]) -> None:
    """Run a trial unless that was done before with something of the same structure, shapes and dtypes."""
    leaves, structure = jax.tree.flatten(tree)
    key = (what, structure, *((leaf.shape, leaf.dtype) if hasattr(leaf, "dtype") else (type(leaf), str(leaf)) for leaf in leaves))
    if key in _SEEN:
        return
    trial()
    if len(_SEEN) >= MOST_SEEN:
        _SEEN.pop(next(iter(_SEEN)))
    _SEEN[key] = None


def returned(name: str, function: Callable, arguments: tuple, read: Callable = jnp.asarray, params: Any = None) -> PyTree:
    """Shapes and dtypes of what a function returns, as `read` takes it; `None` where it returns nothing.

    An error if it fails, if it reads or writes outside of arrays, or if what it returns is no array.
    """
    arrays, others = eqx.partition(arguments, lambda leaf: isinstance(leaf, np.ndarray | jax.Array))
    leaves, structure = jax.tree.flatten(arrays)
    nothing: list[bool] = []

    def run(leaves):
        with explained(name, params):
            value = function(*eqx.combine(jax.tree.unflatten(structure, leaves), others))
        nothing.append(value is None)
        try:
            return None if value is None else read(value)
        except (TypeError, ValueError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ModelError(f"{name} returned {described(value)}, which is no array: {reason}{_definition(function)}") from error

    program, shapes = jax.make_jaxpr(run, return_shape=True)(leaves)
    outside = first_outside(program, [_whole_numbers(leaf) for leaf in leaves])
    if outside is not None:
        raise ModelError(f"{name} {_told(outside)}{_line_of(outside.way) or _definition(function)}")
    return None if nothing[-1] else shapes


def require_shape(name: str, function: Callable, found: Any, shape: tuple[int | None, ...], wanted: str) -> None:
    """Refuse what was returned unless it has a shape, of which `None` may be any number."""
    if found is None:
        raise ModelError(f"{name} must return {wanted}, but returned None: is a return missing?{_definition(function)}")
    if len(found.shape) != len(shape) or any(want not in (None, have) for want, have in zip(shape, found.shape, strict=True)):
        advice = "; wrap it in jnp.array([...])" if found.shape == () else ""
        raise ModelError(f"{name} must return {wanted}, but returned shape {found.shape}{advice}{_definition(function)}")
    if jnp.issubdtype(found.dtype, jnp.complexfloating):
        raise ModelError(f"{name} must return real numbers, but returned {found.dtype}{_definition(function)}")


@contextlib.contextmanager
def explained(name: str, params: Any = None) -> Iterator[None]:
    """Tell what went wrong in a function of the user's."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        line = _users_line(traceback.extract_tb(error.__traceback__))
        raise ModelError(f"{name} {_advice(error, line.text if line else '', params)}{line or ''}") from error


def line_of_first_non_finite(function: Callable, arguments: tuple) -> Line | str:
    """The line of the operation that first makes something infinite, or not a number, of finite numbers."""
    found: list[Any] = []
    finite = lambda values: all(bool(jnp.all(jnp.isfinite(value))) for value in values if jnp.issubdtype(value.dtype, jnp.inexact))

    def apply(equation, operands):
        outcomes = equation.primitive.bind(*operands, **equation.params)
        outcomes = outcomes if equation.primitive.multiple_results else [outcomes]
        if not finite(outcomes) and finite(operands):
            found.append(equation)
        return outcomes

    leaves, structure = jax.tree.flatten(arguments)
    program = jax.make_jaxpr(lambda leaves: function(*jax.tree.unflatten(structure, leaves)))(leaves)
    walk(program, list(map(jnp.asarray, leaves)), apply, jnp.asarray)
    return (_line_of(found[:1]) if found else None) or _definition(function)


def _users_line(frames: list[traceback.FrameSummary]) -> Line | None:
    """The innermost line of the user's below the last one of ours."""
    ours = [i for i, frame in enumerate(frames) if frame.filename.startswith(f"{OWN}{os.sep}")]
    below = frames[ours[-1] + 1 :] if ours else frames
    users = [frame for frame in below if not frame.filename.startswith(LIBRARIES)]
    return Line(users[-1].filename, users[-1].lineno or 0, users[-1].line or "") if users else None


def _line_of(way: Sequence[Any]) -> Line | None:
    """The line from which operations come, the outermost first: inside of functions that were traced before, lines may be older."""
    for equation in way:
        line = _users_line(list(traceback.extract_tb(equation.source_info.traceback.as_python_traceback())))
        if line is not None:
            return line
    return None


def _definition(function: Any) -> Line | str:
    """The line in which a function begins."""
    plain = inspect.unwrap(getattr(function, "func", function))
    code = getattr(plain, "__code__", None) or getattr(type(plain).__call__, "__code__", None)
    if code is None:
        return ""
    return Line(code.co_filename, code.co_firstlineno, linecache.getline(code.co_filename, code.co_firstlineno).strip())


def _whole_numbers(leaf: Any) -> np.ndarray | None:
    whole = not isinstance(leaf, jax.core.Tracer) and np.asarray(leaf).dtype.kind in "iub"
    return np.asarray(leaf) if whole else None


def _told(outside: Outside) -> str:
    index = outside.place if outside.place >= 0 else outside.place - outside.size
    if outside.writes:
        return f"writes at index {index} of an array of shape {outside.shape}, which JAX leaves out without a word"
    return (
        f"reads index {index} of an array of shape {outside.shape}, for which JAX takes another element without a word; "
        "are there too few coordinates?"
    )


def _advice(error: Exception, text: str, params: Any) -> str:
    """What went wrong, and what to do instead."""
    jnp_name = re.search(r"\b((?:np|numpy|math|scipy)(?:\.\w+)*)\.(\w+)\(", text)
    instead = f"write jnp.{jnp_name[2]} instead of {jnp_name[1]}.{jnp_name[2]}" if jnp_name else "write jnp instead of np or math"
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return "decides by the value of an array, which JAX does not know when it traces: write jnp.where(condition, a, b) instead of if"
    if isinstance(error, jax.errors.NonConcreteBooleanIndexError):
        return "picks elements by a condition, so that their number is not known: write jnp.where(condition, x, 0) instead of x[condition]"
    if isinstance(error, jax.errors.TracerIntegerConversionError):
        return "takes an array for a number that must be known, such as an index of a list or a length: keep that out of arrays"
    if isinstance(error, jax.errors.TracerArrayConversionError | jax.errors.ConcretizationTypeError):
        return f"asks for the numbers of an array, which JAX does not know when it traces: {instead}"
    if isinstance(error, KeyError) and isinstance(params, Mapping) and error.args:
        return f"asks for the parameter {error.args[0]!r}, which is not in params; {nearest(error.args[0], map(str, params))}"
    if params is None and "NoneType" in str(error):
        return f"reads params, but none were given ({error})"
    first = str(error).strip().partition("\n")[0]
    return f"fails with {type(error).__name__}: {first}"
