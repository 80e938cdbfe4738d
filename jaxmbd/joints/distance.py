"""Two points at a fixed distance."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, Motion
from ..numerics.arrays import known, library
from ..numerics.checks import positive
from .base import AbstractJoint, check_not_zero


class Distance(AbstractJoint):
    r"""A massless rod between two points: $\frac12 (|b - a|^2 - l^2) = 0$. Without a `length` it is that of the assembled position."""

    length: Any = None

    freedom: ClassVar[int] = 5
    orients: ClassVar[tuple[bool, bool]] = (False, False)
    meets: ClassVar[bool] = False

    def __init__(self, length=None):
        self.length = None if length is None else positive("length of a Distance", length)

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
        return Frame(self.length * np.array([0.0, 0.0, 1.0]), np.eye(3))

    def settled(self, a: Frame, b: Frame) -> "AbstractJoint":
        if self.length is not None:
            return self
        length = library(a, b).linalg.norm(b.origin - a.origin)
        if known(length) == 0:
            raise ModelError("a Distance joins two points that coincide; tell them on either body with on_a and on_b")
        return Distance(length)
