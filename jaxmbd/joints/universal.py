"""The universal joint."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, Motion
from ..geometry.rotation import Matrix3
from ..numerics.arrays import known, library
from ..numerics.checks import direction
from .base import AbstractJoint, check_axis, turned_about


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
        self.axis, self.second = direction("axis of a Universal", axis), direction("second axis of a Universal", second)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "4"]:
        return jnp.append(b.origin - a.origin, a.z @ b.x)

    def motion(self, u: Float[Array, "2"], a: Frame, b: Frame) -> Motion:
        return Motion.spin(u[0], a.z, a.origin) @ Motion.spin(u[1], b.x, a.origin)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "2 2"]:
        return jnp.stack([turned_about(a, b), jnp.stack([a.z @ b.z, a.z @ b.y])])

    def orientation(self) -> Matrix3:
        xp, z = library(self.axis, self.second), rotation.unit(self.axis)
        x = rotation.unit(self.second - z * (z @ self.second))
        return xp.stack([x, xp.cross(z, x), z], axis=1)

    def check(self, name: str) -> None:
        check_axis(name, self.axis)
        check_axis(name, self.second)
        numbers = known(library(self.axis, self.second).cross(self.axis, self.second))
        if numbers is not None and not np.linalg.norm(numbers) > 0:
            raise ModelError(f"joint {name!r} has two parallel axes {self.axis} and {self.second}; they must cross")

    def bare(self) -> "AbstractJoint":
        return eqx.tree_at(lambda joint: (joint.axis, joint.second), self, (None, None), is_leaf=lambda x: x is None)
