"""Lower kinematic pairs: revolute, prismatic, cylindrical, spherical, planar, screw, and the rigid connection."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..geometry import rotation
from ..geometry.frame import Frame, Motion
from ..numerics.checks import direction, not_zero
from .base import (
    AbstractAxisJoint,
    AbstractJoint,
    axes_apart,
    check_not_zero,
    directors_apart,
    offset,
    one_and,
    turn_in,
    turned_about,
)


class Fixed(AbstractJoint):
    """A rigid connection: six constraints."""

    freedom: ClassVar[int] = 0

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "6"]:
        return jnp.concatenate([b.origin - a.origin, directors_apart(a, b)])

    def motion(self, u: Float[Array, " 0"], a: Frame, b: Frame) -> Motion:
        return Motion.move(jnp.zeros_like(a.origin))


class Spherical(AbstractJoint):
    """A ball joint (79): three constraints; its coordinates are the rotation vector in the first frame."""

    freedom: ClassVar[int] = 3
    coordinates: ClassVar[tuple[str, ...]] = ("rotation x", "rotation y", "rotation z")
    angular: ClassVar[tuple[bool, ...]] = (True, True, True)
    additive: ClassVar[bool] = False
    orients: ClassVar[tuple[bool, bool]] = (False, False)
    ball: ClassVar[int | None] = 0

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "3"]:
        return b.origin - a.origin

    def motion(self, u: Float[Array, "3"], a: Frame, b: Frame) -> Motion:
        return turn_in(a, u)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, "3"]:
        return rotation.log(a.rotation.T @ b.rotation)


class Revolute(AbstractAxisJoint):
    """A hinge (88): five constraints; its coordinate is the angle about the axis."""

    axis: Any

    freedom: ClassVar[int] = 1
    coordinates: ClassVar[tuple[str, ...]] = ("angle",)
    angular: ClassVar[tuple[bool, ...]] = (True,)

    def __init__(self, axis=(0.0, 0.0, 1.0)):
        self.axis = direction("axis of a Revolute", axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "5"]:
        return jnp.concatenate([b.origin - a.origin, axes_apart(a, b)])

    def motion(self, u: Float[Array, "1"], a: Frame, b: Frame) -> Motion:
        return Motion.spin(u[0], a.z, a.origin)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "1 2"]:
        return turned_about(a, b)[None]


class Prismatic(AbstractAxisJoint):
    """A slider: five constraints; its coordinate is the displacement along the axis."""

    axis: Any

    freedom: ClassVar[int] = 1
    coordinates: ClassVar[tuple[str, ...]] = ("displacement",)
    angular: ClassVar[tuple[bool, ...]] = (False,)

    def __init__(self, axis=(0.0, 0.0, 1.0)):
        self.axis = direction("axis of a Prismatic", axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "5"]:
        return jnp.concatenate([offset(a, b)[:2], directors_apart(a, b)])

    def motion(self, u: Float[Array, "1"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[0] * a.z)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return offset(a, b)[2:]


class Cylindrical(AbstractAxisJoint):
    """Rotation about and displacement along one axis: four constraints."""

    axis: Any

    freedom: ClassVar[int] = 2
    coordinates: ClassVar[tuple[str, ...]] = ("angle", "displacement")
    angular: ClassVar[tuple[bool, ...]] = (True, False)

    def __init__(self, axis=(0.0, 0.0, 1.0)):
        self.axis = direction("axis of a Cylindrical", axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "4"]:
        return jnp.concatenate([offset(a, b)[:2], axes_apart(a, b)])

    def motion(self, u: Float[Array, "2"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[1] * a.z) @ Motion.spin(u[0], a.z, a.origin)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "2 2"]:
        return jnp.stack([turned_about(a, b), one_and(offset(a, b)[2])])


class Planar(AbstractAxisJoint):
    """Motion in a plane, the axis being its normal: three constraints; coordinates are two displacements and the angle."""

    axis: Any

    freedom: ClassVar[int] = 3
    coordinates: ClassVar[tuple[str, ...]] = ("displacement x", "displacement y", "angle")
    angular: ClassVar[tuple[bool, ...]] = (False, False, True)

    def __init__(self, axis=(0.0, 0.0, 1.0)):
        self.axis = direction("axis of a Planar", axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "3"]:
        return jnp.concatenate([offset(a, b)[2:], axes_apart(a, b)])

    def motion(self, u: Float[Array, "3"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[0] * a.x + u[1] * a.y) @ Motion.spin(u[2], a.z, b.origin)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "3 2"]:
        x, y, _ = offset(a, b)
        return jnp.stack([one_and(x), one_and(y), turned_about(a, b)])


class Screw(AbstractAxisJoint):
    r"""A thread: five constraints; the second body advances by `pitch` in each turn. Its coordinate is the angle, all turns counted.

    The angle follows from the displacement $s$, so that no turns need be counted: the frames are turned by $\alpha = 2\pi s/$`pitch` where
    $\sin$ of the difference vanishes.
    """

    pitch: Any
    axis: Any

    freedom: ClassVar[int] = 1
    coordinates: ClassVar[tuple[str, ...]] = ("angle",)
    angular: ClassVar[tuple[bool, ...]] = (False,)
    angles: ClassVar[tuple[bool, ...]] = (True,)

    def __init__(self, pitch, axis=(0.0, 0.0, 1.0)):
        self.pitch, self.axis = not_zero("pitch of a Screw", pitch), direction("axis of a Screw", axis)

    def check(self, name: str) -> None:
        super().check(name)
        check_not_zero(name, "pitch", self.pitch)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "5"]:
        angle = self.coordinate(a, b)[0]
        cosine, sine = turned_about(a, b)
        thread = jnp.cos(angle) * sine - jnp.sin(angle) * cosine
        return jnp.concatenate([offset(a, b)[:2], axes_apart(a, b), thread[None]])

    def motion(self, u: Float[Array, "1"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[0] * self.pitch / (2 * math.pi) * a.z) @ Motion.spin(u[0], a.z, a.origin)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return 2 * math.pi * offset(a, b)[2:] / self.pitch
