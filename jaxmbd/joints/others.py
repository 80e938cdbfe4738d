"""Joints that are not lower pairs: universal, rod, point on a line, and the user's own."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, Motion
from ..geometry.rotation import Matrix3
from ..numerics.arrays import known, number
from .base import AbstractAxisJoint, AbstractJoint, check_axis, check_not_zero, offset


class Universal(AbstractJoint):
    """A Cardan joint: four constraints. It turns about `axis`, fixed in the first body, and about `second`, fixed in the second body.

    The axes cross at right angles; a `second` that is not at a right angle to `axis` is made so. Coordinates are the two angles.
    """

    axis: Any
    second: Any

    freedom: ClassVar[int] = 2
    coordinates: ClassVar[tuple[str, ...]] = ("first angle", "second angle")
    angular: ClassVar[tuple[bool, ...]] = (True, True)

    def __init__(self, axis=(0.0, 0.0, 1.0), second=(1.0, 0.0, 0.0)):
        self.axis, self.second = number(axis), number(second)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "4"]:
        return jnp.append(b.origin - a.origin, a.z @ b.x)

    def motion(self, u: Float[Array, "2"], a: Frame, b: Frame) -> Motion:
        return Motion.spin(u[0], a.z, a.origin) @ Motion.spin(u[1], b.x, a.origin)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, "2"]:
        return jnp.stack([jnp.arctan2(b.x @ a.y, b.x @ a.x), jnp.arctan2(a.z @ b.y, a.z @ b.z)])

    def orientation(self) -> Matrix3:
        z = rotation.unit(self.axis)
        x = rotation.unit(jnp.asarray(self.second) - z * (z @ jnp.asarray(self.second)))
        return jnp.stack([x, jnp.cross(z, x), z], axis=1)

    def check(self, name: str) -> None:
        check_axis(name, self.axis)
        check_axis(name, self.second)
        numbers = known(jnp.cross(jnp.asarray(self.axis), jnp.asarray(self.second)))
        if numbers is not None and not np.linalg.norm(numbers) > 0:
            raise ModelError(f"joint {name!r} has two parallel axes {self.axis} and {self.second}; they must cross")

    def bare(self) -> "AbstractJoint":
        return eqx.tree_at(lambda joint: (joint.axis, joint.second), self, (None, None), is_leaf=lambda x: x is None)


class Distance(AbstractJoint):
    r"""A massless rod between two points: $\frac12 (|b - a|^2 - l^2) = 0$. Without a `length` it is that of the assembled position."""

    length: Any = None

    freedom: ClassVar[int] = 5
    orients: ClassVar[tuple[bool, bool]] = (False, False)
    meets: ClassVar[bool] = False

    def __init__(self, length=None):
        self.length = None if length is None else number(length)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        rod = b.origin - a.origin
        return 0.5 * (rod @ rod - self.length**2)[None]

    def motion(self, u: Float[Array, "5"], a: Frame, b: Frame) -> Motion:
        """Two rotations about the first point at right angles to the rod, three of the second body about its own point."""
        across = rotation.basis(b.origin - a.origin)[:, :2]
        return Motion.turn(across @ u[:2], a.origin) @ Motion.turn(a.rotation @ u[2:], b.origin)

    def backward(self, u: Float[Array, "5"], a: Frame, b: Frame) -> Motion:
        return self.motion(u, b, a)

    def check(self, name: str) -> None:
        if self.length is not None:
            check_not_zero(name, "length", self.length)

    def rest(self) -> Frame:
        if self.length is None:
            raise ModelError("a Distance without a length takes it from the positions of its bodies: place both, or give the length")
        return Frame(jnp.asarray(self.length) * jnp.array([0.0, 0.0, 1.0]), jnp.eye(3))

    def settled(self, a: Frame, b: Frame) -> "AbstractJoint":
        if self.length is not None:
            return self
        length = jnp.linalg.norm(b.origin - a.origin)
        if known(length) == 0:
            raise ModelError("a Distance joins two points that coincide; tell them on either body with on_a and on_b")
        return Distance(length)


class PointOnLine(AbstractAxisJoint):
    """The origin of the second frame stays on the axis of the first: two constraints; displacement and three rotations are free."""

    axis: Any

    freedom: ClassVar[int] = 4
    coordinates: ClassVar[tuple[str, ...]] = ("displacement",)
    angular: ClassVar[tuple[bool, ...]] = (False,)
    orients: ClassVar[tuple[bool, bool]] = (True, False)

    def __init__(self, axis=(0.0, 0.0, 1.0)):
        self.axis = number(axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "2"]:
        return offset(a, b)[:2]

    def motion(self, u: Float[Array, "4"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[0] * a.z) @ Motion.turn(a.rotation @ u[1:], b.origin)

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return offset(a, b)[2:]


class UserJoint(AbstractJoint):
    """A joint written by the user: `function(a, b, params) -> (m,)` on two frames, zero where admissible.

    Without a `relative_motion(u, a, b, params)` and its number of increments `size` it closes loops only; a body that hangs on nothing
    else is then free in the spanning tree, and the joint an equation.
    """

    function: Callable
    relative_motion: Callable | None
    params: Any
    size: int = eqx.field(static=True)

    def __init__(self, function: Callable, params: Any = None, relative_motion: Callable | None = None, size: int = 0):
        self.function = Partial(function)
        self.relative_motion = None if relative_motion is None else Partial(relative_motion)
        self.params, self.size = params, size

    def constraint(self, a: Frame, b: Frame) -> Float[Array, " m"]:
        return jnp.asarray(self.function(a, b, self.params))

    def motion(self, u: Float[Array, " size"], a: Frame, b: Frame) -> Motion:
        if self.relative_motion is None:
            return super().motion(u, a, b)
        return self.relative_motion(u, a, b, self.params)

    @property
    def freedom(self) -> int:  # type: ignore[override]  # of the instance, where others have it of the class
        return self.size

    @property
    def moves(self) -> bool:
        return self.relative_motion is not None
