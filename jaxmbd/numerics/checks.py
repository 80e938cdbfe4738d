"""What arguments of parts must be. Errors name the argument; numbers that a transformation hides are judged by their shape alone."""

import reprlib
from collections.abc import Callable, Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..errors import ModelError
from .arrays import known, library
from .naming import nearest

Shape = tuple[int | None, ...]

LARGEST = 1e100
"""Numbers beyond this overflow where they are squared and multiplied, and no quantity that is meant is as large."""


def real(name: str, *given: Any, holds: Callable[[np.ndarray], Any] = np.isfinite, what: str = "finite") -> Any:
    """A value, the first that is `given`, as a parameter: finite numbers of one of the shapes that follow it (default: one number).

    `None` in a shape is any length. What JAX holds or traces stays with it, the rest keeps all its digits in NumPy.
    """
    value, shapes = given[0], given[1:] or ((),)
    try:
        array = _floating(value)
    except (TypeError, ValueError, OverflowError):
        array = None
    numbers = None if array is None else known(array)
    right = numbers is None or (np.isfinite(numbers).all() and np.all(holds(numbers)))
    if right and numbers is not None and np.any(np.abs(numbers) > LARGEST):
        right, what = False, f"{what} and not beyond {LARGEST:.0e}"
    if array is None or not any(_fits(array.shape, shape) for shape in shapes) or not right:
        raise ModelError(f"{name} must be {_needed(shapes, what)}, but {_shown(value, array)} was given")
    return array


def positive(name: str, *given: Any) -> Any:
    """Numbers above zero, as `real`."""
    return real(name, *given, holds=lambda numbers: numbers > 0, what="positive")


def not_negative(name: str, *given: Any) -> Any:
    """Numbers from zero on, as `real`."""
    return real(name, *given, holds=lambda numbers: numbers >= 0, what="finite and not negative")


def not_zero(name: str, value: Any) -> Any:
    """A number other than zero, as `real`."""
    return real(name, value, holds=lambda numbers: numbers != 0, what="finite and other than zero")


def direction(name: str, value: Any) -> Any:
    """A vector in space that has a direction, as `real`."""
    return real(name, value, (3,), holds=np.any, what="finite and not all zero")


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number from some number on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ModelError(f"{name} must be a whole number, at least {least}, but {_shown(value)} was given")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool | np.bool_):
        raise ModelError(f"{name} must be True or False, but {_shown(value)} was given")
    return bool(value)


def named(name: str, value: Any) -> str:
    """The name of a part, which stands for it."""
    if not isinstance(value, str) or not value:
        raise ModelError(f"{name} must be a name, a string that is not empty, but {_shown(value)} was given")
    return value


def function(name: str, value: Any) -> Callable:
    """Something to be called, but not a class."""
    if not callable(value) or isinstance(value, type):
        raise ModelError(f"{name} must be a function, but {_shown(value)} was given")
    return value


def nearest_names(name: Any, names: Iterable[str]) -> str:
    """Which names may have been meant, as the end of a message: those that are near, or all of them if they are few."""
    words = nearest(name, dict.fromkeys(names))
    return f"; {words}" if words else ""


def _floating(value: Any) -> Any:
    """Numbers as floating ones; what only looks like them, as text does and truth values do, is an error."""
    array = library(value).asarray(value)
    if not (jnp.issubdtype(array.dtype, jnp.integer) or jnp.issubdtype(array.dtype, jnp.floating)):
        raise TypeError
    if isinstance(array, np.ndarray):
        return array.astype(float)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def _fits(shape: tuple[int, ...], wanted: Shape) -> bool:
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))


def _needed(shapes: tuple[Shape, ...], what: str) -> str:
    if shapes == ((),):
        return f"a number that is {what}"
    words = " or ".join(str(shape).replace("None", "k") for shape in shapes)
    return f"numbers of shape {words} that are {what}"


def _shown(value: Any, array: Any = None) -> str:
    """What was given, in short."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if array is None:
        return reprlib.repr(value)
    numbers = known(array)
    shown = "an array" if numbers is None or numbers.size > 9 else str(numbers.tolist())
    return f"{shown} of shape {array.shape}" if array.shape else shown
