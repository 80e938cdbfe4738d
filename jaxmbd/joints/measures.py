"""Measured quantities: scalars of two frames that are coordinates, as those of joints are, and constrain nothing."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from ..geometry.frame import Frame
from ..numerics import checks
from ..numerics.arrays import root
from .base import AbstractAxisJoint, AbstractJoint, one_and, turned_about


class AbstractMeasure(AbstractJoint):
    """A quantity of two frames, told by its `pairs`. It is no joint of the spanning tree, and no constraint."""

    freedom: ClassVar[int] = 0
    orients: ClassVar[tuple[bool, bool]] = (False, False)
    meets: ClassVar[bool] = False

    def constraint(self, a: Frame, b: Frame) -> Float[Array, " 0"]:
        return jnp.zeros(0, a.origin.dtype)

    @property
    def moves(self) -> bool:
        return False


class Measure(AbstractMeasure):
    """A quantity written by the user: `function(a, b)` of two frames, or `function(a, b, params)` if there are some, returns a scalar.

    `angular=True`: an angle, of which the function returns the cosine and the sine, both times any positive number; its turns are counted.
    """

    function: Callable
    params: Any
    turns: bool = eqx.field(static=True)

    coordinates: ClassVar[tuple[str, ...]] = ("value",)

    def __init__(self, function: Any, params: Any = None, angular: Any = False):
        self.function, self.params = Partial(checks.function("function of a Measure", function)), params
        self.turns = checks.flag("angular of a Measure", angular)

    @property
    def angular(self) -> tuple[bool, ...]:  # type: ignore[override]  # of the instance, where others have it of the class
        return (self.turns,)

    def arguments(self, a: Frame, b: Frame) -> tuple:
        """What the function is called with."""
        return (a, b) if self.params is None else (a, b, self.params)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "1 2"]:
        value = jnp.asarray(self.function(*self.arguments(a, b)))
        return (value if self.turns else one_and(value))[None]


class Length(AbstractMeasure):
    """The distance of two points, with derivative zero where they meet."""

    coordinates: ClassVar[tuple[str, ...]] = ("length",)
    angular: ClassVar[tuple[bool, ...]] = (False,)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "1 2"]:
        rod = b.origin - a.origin
        return one_and(root(rod @ rod))[None]


class Angle(AbstractMeasure, AbstractAxisJoint):
    """The angle by which the second frame is turned against the first about an `axis` fixed in the first, of bodies that no hinge joins.

    It is that of a direction across the axis, fixed in the second body, as seen along the axis; which must not come to lie along it.
    """

    axis: Any

    orients: ClassVar[tuple[bool, bool]] = (True, True)
    coordinates: ClassVar[tuple[str, ...]] = ("angle",)
    angular: ClassVar[tuple[bool, ...]] = (True,)

    def __init__(self, axis: Any = (0.0, 0.0, 1.0)):
        self.axis = checks.direction("axis of an Angle", axis)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "1 2"]:
        return turned_about(a, b)[None]
