"""Drives: forces along coordinates of joints that are controls of a motion, or answer to where and how fast a mechanism moves."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from ..errors import ModelError
from ..numerics.checks import function as checked_function, named, positive, real, whole
from .base import AbstractJointLoad, AbstractOnCoordinate, as_history, at_time

Coordinate = str | tuple[str, int]


class Motor(AbstractOnCoordinate):
    r"""A force along, or a torque about, a coordinate of a joint that is a control $u$, called by the name of the load.

    It acts on the second body. With a `limit` $L$ the force is $u\,(1 + (u/L)^4)^{-1/4}$, whose derivative never vanishes.
    """

    joint: Any
    limit: Any
    index: int = eqx.field(static=True)

    def __init__(self, joint: Any, index: Any = 0, limit: Any = None):
        self.joint, self.index = named("joint of a Motor", joint), whole("index of a Motor", index)
        self.limit = as_limit("limit of a Motor", limit)

    def force(self, control: Array) -> Array:
        """The force for a control."""
        return saturated(control, self.limit)


def as_limit(name: str, limit: Any) -> Any:
    """The largest force of a drive, a parameter, or none."""
    return None if limit is None else positive(name, limit)


def saturated(force: Array, limit: Any) -> Array:
    r"""$u\,(1 + (u/L)^4)^{-1/4}$: smooth, and less than 0.4 % from $u$ up to a third of the limit $L$.

    Its derivative falls as $(L/u)^5$ beyond the limit. That of $L \tanh(u/L)$, which is 4 % from $u$ at a third of the
    limit, is lost in rounding at 20 times the limit.
    """
    if limit is None:
        return force
    times = force / limit
    within = jnp.abs(times) <= 1
    small = jnp.where(within, times, 1 / jnp.where(within, 1, times))  # its fourth power does not overflow
    return limit * jnp.where(within, times, jnp.sign(times)) * (1 + small**4) ** -0.25


class PDDrive(AbstractJointLoad):
    r"""A drive that holds a coordinate $c$ of a joint at a `target` $x$, by the force $k_p\,(x - c) + k_d\,(\dot x - \dot c)$.

    The target is a number or a function of time; its `rate` $\dot x$ is its derivative unless it is given. A `limit` is that of a `Motor`.
    """

    joint: Any
    proportional: Any
    derivative: Any
    target: Any
    rate: Any
    limit: Any
    index: int = eqx.field(static=True)

    def __init__(self, joint: Any, proportional: Any, derivative: Any, target: Any, rate: Any = None, limit: Any = None, index: Any = 0):
        self.joint, self.index = named("joint of a PDDrive", joint), whole("index of a PDDrive", index)
        self.proportional = real("proportional, the gain of a PDDrive,", proportional)
        self.derivative = real("derivative, the gain of a PDDrive,", derivative)
        self.target = as_history("target of a PDDrive", target, ())
        self.rate = None if rate is None else as_history("rate of a PDDrive", rate, ())
        self.limit = as_limit("limit of a PDDrive", limit)

    def power(self, t: Array, c: Array, rate: Array, virtual: Array) -> Array:
        target, derived = jax.jvp(lambda t: at_time(self.target, t), (t,), (jnp.ones_like(t),))
        wanted = derived if self.rate is None else at_time(self.rate, t)
        return saturated(self.proportional * (target - c) + self.derivative * (wanted - rate), self.limit) * virtual


class Controller(AbstractOnCoordinate):
    """A drive of the user's: its force is `function(t, measured)`, or `function(t, measured, params)` if there are some.

    `measured` names the coordinates that it is told, of joints and measured quantities: `"hinge"`, or `("hinge", 1)` where there are
    several; by default the one that it acts on. The function gets a dictionary by these names of pairs of value and rate. A `limit` is
    that of a `Motor`.
    """

    function: Callable
    joint: Any
    params: Any
    limit: Any
    index: int = eqx.field(static=True)
    measured: tuple[Coordinate, ...] = eqx.field(static=True)

    def __init__(self, joint: Any, function: Any, measured: Any = None, params: Any = None, limit: Any = None, index: Any = 0):
        self.joint, self.index = named("joint of a Controller", joint), whole("index of a Controller", index)
        self.function, self.params = Partial(checked_function("function of a Controller", function)), params
        self.limit = as_limit("limit of a Controller", limit)
        own = joint if index == 0 else (joint, index)
        self.measured = tuple(map(_as_coordinate, [own] if measured is None else _listed(measured)))

    @property
    def coordinates(self) -> tuple[tuple[str, int], ...]:
        pairs = ((name, 0) if isinstance(name, str) else name for name in self.measured)
        return ((self.joint, self.index), *pairs)

    def arguments(self, t: Array, values: Array, rates: Array) -> tuple:
        """What the function is called with."""
        told = {name: (value, rate) for name, value, rate in zip(self.measured, values, rates, strict=True)}
        return (t, told) if self.params is None else (t, told, self.params)

    def force(self, t: Array, values: Array, rates: Array) -> Array:
        """The force at values and rates of what it measures."""
        return saturated(jnp.asarray(self.function(*self.arguments(t, values, rates))).astype(t.dtype), self.limit)


def _listed(measured: Any) -> Sequence:
    """What a controller measures, one or several."""
    one = isinstance(measured, str) or (isinstance(measured, tuple) and len(measured) == 2 and isinstance(measured[1], int))
    if not one and not isinstance(measured, tuple | list):
        raise ModelError(f"measured of a Controller must be names of coordinates, ('hinge', ('slide', 1)), but {measured!r} was given")
    return [measured] if one else measured


def _as_coordinate(name: Any) -> Coordinate:
    """The name of a coordinate: that of its joint, or a pair of it and a number."""
    if isinstance(name, tuple) and len(name) == 2:
        number = whole(f"measured of a Controller, the number of a coordinate of {name[0]!r},", name[1])
        return named("measured of a Controller", name[0]), number
    return named("measured of a Controller", name)
