"""A point on a line."""

from typing import Any, ClassVar

from jaxtyping import Array, Float

from ..geometry.frame import Frame, Motion
from ..numerics.checks import direction
from .base import AbstractAxisJoint, offset


class PointOnLine(AbstractAxisJoint):
    """The origin of the second frame stays on the axis of the first: two constraints; displacement and three rotations are free."""

    axis: Any

    freedom: ClassVar[int] = 4
    coordinates: ClassVar[tuple[str, ...]] = ("displacement",)
    angular: ClassVar[tuple[bool, ...]] = (False,)
    orients: ClassVar[tuple[bool, bool]] = (True, False)
    ball: ClassVar[int | None] = 1

    def __init__(self, axis=(0.0, 0.0, 1.0)):
        self.axis = direction("axis of a PointOnLine", axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "2"]:
        return offset(a, b)[:2]

    def motion(self, u: Float[Array, "4"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[0] * a.z) @ Motion.turn(a.rotation @ u[1:], b.origin)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return offset(a, b)[2:]
