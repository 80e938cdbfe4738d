"""Arguments of public calls against the annotations of these calls: a wrong kind is told before anything is done with it."""

import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import AbstractArray

from ..errors import ModelError
from .naming import MOST_NAMES, nearest

Function = TypeVar("Function", bound=Callable)


def checked(function: Function) -> Function:
    """A public function that refuses arguments of another kind than its annotations say.

    Instances are asked for where a class is written, not classes or their names. Numbers are whatever becomes an array of real numbers, and
    one number where no array or sequence is admitted; other shapes, and values, are left to the function.
    """
    own_name = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @functools.wraps(function)
    def call(*args, **kwargs):
        signature, kinds = _kinds_of_arguments(function)
        try:
            given = signature.bind_partial(*args, **kwargs).arguments
        except TypeError:  # too many arguments, or unknown ones: Python says so itself
            given = {}
        for name, kind in kinds.items():
            if name in given and not kind.admits(given[name]):
                raise ModelError(f"{own_name}: {name} must be {kind.words}, not {described(given[name])}{kind.hint(given[name])}")
        return function(*args, **kwargs)

    return typing.cast(Function, call)


def check_fields(module: Any) -> None:
    """Refuse fields of another kind than their annotations say."""
    for name, kind in _kinds_of_fields(module.__class__).items():
        value = getattr(module, name)
        if not kind.admits(value):
            raise ModelError(f"{type(module).__name__}: {name} must be {kind.words}, not {described(value)}{kind.hint(value)}")


def described(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if value is None or isinstance(value, bool | int | float | complex | str):
        return repr(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return f"an array of {value.dtype} and shape {value.shape}"
    return "a function" if isinstance(value, types.FunctionType) else _with_article(type(value).__name__)


class Kind(NamedTuple):
    """What an annotation admits: in words, as a test, and as the classes whose instances are asked for."""

    words: str
    admits: Callable[[Any], bool]
    classes: tuple[type, ...] = ()
    names: tuple[str, ...] = ()

    def hint(self, value: Any) -> str:
        """What may have been meant by a value that is not admitted."""
        calls = {one: f"{one.__name__}()" for wanted in self.classes for one in _concrete(wanted) if not _needed(one)}
        if isinstance(value, type) and value in calls:
            return f": write {calls[value]}"
        if isinstance(value, str) and (near := nearest(value, (*self.names, *calls.values()), few=0)):
            return f"; {near}"
        if isinstance(value, tuple | list) and any(isinstance(one, self.classes) for one in value):
            return f": take it out of the {type(value).__name__}"
        instead = getattr(value, "instead", "")
        return f": {instead}" if instead else ""


@functools.cache
def _kinds_of_arguments(function: Callable) -> tuple[inspect.Signature, dict[str, Kind]]:
    signature = inspect.signature(function, eval_str=True)
    annotated = [one for one in signature.parameters.values() if one.annotation is not one.empty and one.kind not in _MANY]
    return signature, _known({one.name: one.annotation for one in annotated})


_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@functools.cache
def _kinds_of_fields(cls: type) -> dict[str, Kind]:
    try:
        hints = typing.get_type_hints(cls)
    except NameError:  # a class of the user's, with annotations that only a type checker can read
        return {}
    return _known({one.name: hints[one.name] for one in dataclasses.fields(cls) if one.name in hints})


def _known(annotations: Mapping[str, Any]) -> dict[str, Kind]:
    kinds = {name: _kind(annotation) for name, annotation in annotations.items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _kind(annotation: Any) -> Kind | None:
    """What an annotation admits, or `None` where that cannot be told."""
    parts = list(_alternatives(annotation))
    numbers = [part for part in parts if _is_number(part)]
    kinds: list[Kind] = []
    if any(part not in (bool, int) for part in numbers):
        single = not any((typing.get_origin(part) or part) is Sequence or _has_axes(part) for part in parts)
        words = "a real number" if single else "an array of real numbers"
        kinds.append(Kind(words, lambda value: _are_real(value) and not (single and np.ndim(value))))
        parts = [part for part in parts if part not in numbers and (typing.get_origin(part) or part) is not Sequence]
    optional = type(None) in parts
    for part in parts:
        kind = None if part is type(None) else _simple_kind(part)
        if kind is not None:
            kinds.append(kind)
        elif part is not type(None):
            return None
    words = " or ".join(dict.fromkeys(kind.words for kind in kinds))
    admits = lambda value: (optional and value is None) or any(kind.admits(value) for kind in kinds)
    gather: Callable = lambda field: tuple(one for kind in kinds for one in getattr(kind, field))
    return Kind(words, admits, gather("classes"), gather("names"))


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The parts of a union, of one within another too."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        for part in typing.get_args(annotation):
            yield from _alternatives(part)
    else:
        yield annotation


def _simple_kind(part: Any) -> Kind | None:
    origin = typing.get_origin(part) or part
    if origin is Literal:
        names = typing.get_args(part)
        return Kind(" or ".join(map(repr, names)), lambda value: isinstance(value, str) and value in names, names=names)
    if part is bool:
        return Kind("True or False", lambda value: isinstance(value, bool | np.bool_))
    if part is int:
        return Kind("a whole number", lambda value: isinstance(value, int | np.integer) and not isinstance(value, bool))
    if origin in _PLAIN:
        return Kind(_PLAIN[origin], callable if origin is Callable else lambda value: isinstance(value, origin))
    if origin is Any or not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return None
    return Kind(_named(origin), lambda value: isinstance(value, origin), (origin,))


_PLAIN: dict[Any, str] = {Callable: "a function", Mapping: "a dictionary", Sequence: "a sequence", str: "a string", tuple: "a tuple"}


def _is_number(part: Any) -> bool:
    """Whether an annotation is one of numbers or arrays."""
    bare = (bool, int, float, complex, np.generic, np.ndarray, jax.Array, AbstractArray)
    return isinstance(part, type) and (issubclass(part, bare) or part.__module__.startswith("jax."))


def _has_axes(part: Any) -> bool:
    """Whether an annotation is one of arrays with axes."""
    return isinstance(part, type) and issubclass(part, AbstractArray) and part.dim_str != ""


def _are_real(value: Any) -> bool:
    """Whether a value is a real number or becomes an array of real numbers."""
    if not hasattr(value, "dtype"):
        if isinstance(value, bool | str) or not isinstance(value, int | float | Sequence):
            return False
        if isinstance(value, int | float):
            return True
        try:
            value = jnp.asarray(value)
        except (TypeError, ValueError):
            return False
    return jnp.issubdtype(value.dtype, jnp.floating) or jnp.issubdtype(value.dtype, jnp.integer)


def _concrete(cls: type) -> Iterator[type]:
    """The classes of a family that instances are made of."""
    if not cls.__name__.startswith(("Abstract", "_")):
        yield cls
    members: list[type] = cls.__subclasses__()
    for member in members:
        yield from _concrete(member)


def _named(cls: type) -> str:
    """A class in words: a family by its members."""
    family = cls.__name__.removeprefix("Abstract")
    if family == cls.__name__:
        return _with_article(family)
    members = [f"{member.__name__}({', '.join(_needed(member))})" for member in dict.fromkeys(_concrete(cls))][:MOST_NAMES]
    return f"{_with_article(re.sub(r'(?<=[a-z])(?=[A-Z])', ' ', family).lower())}, one of {', '.join(members)}"


def _needed(cls: type) -> list[str]:
    """The arguments without which no instance of a class is made."""
    return [name for name, one in inspect.signature(cls).parameters.items() if one.default is one.empty and one.kind not in _MANY]


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
