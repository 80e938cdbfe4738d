"""How many arguments functions of users take."""

import inspect
from collections.abc import Callable
from typing import Any

from jax.tree_util import Partial

from ..errors import ModelError


def arity(function: Callable) -> int:
    """Number of positional arguments that a function needs."""
    plain = function.func if isinstance(function, Partial) and not function.args else function
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in kinds and parameter.default is inspect.Parameter.empty
        for parameter in inspect.signature(plain).parameters.values()
    )


def call_with(function: Callable, *arguments: Any) -> Any:
    """Call with as many of the arguments as the function asks for."""
    return function(*arguments[: arity(function)])


def check_signature(name: str, function: Callable, counts: tuple[int, ...]) -> None:
    """Refuse what is no function, or one that takes another number of arguments."""
    if not callable(function):
        raise ModelError(f"{name} must be a function, not {type(function).__name__}")
    if arity(function) not in counts:
        wanted = " or ".join(map(str, counts))
        raise ModelError(f"{name} takes {arity(function)} positional arguments; it must take {wanted} (see System.from_functions)")
