"""Rigid bodies that move in the plane of the first two axes."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..numerics.arrays import known
from ..numerics.checks import positive, real
from .base import AbstractBody, Inertia, Rows, check_mass, moments
from .shapes import Box, Cylinder, thickness


class PlanarBody(AbstractBody):
    r"""A rigid body in the plane $z = 0$: coordinates $(x, y)$ and one director $(c, s)$, one constraint.

    The other director is the first turned by a right angle. Joints are those of space: of their constraints only those count that
    the plane does not fulfil already, so that a revolute joint about $z$ has two and a prismatic one along an axis in the plane two.

    `inertia` is the moment of inertia about the centre of mass, `com` its place in body axes, `shape` one shape or several for pictures.
    """

    mass: Any
    inertia: Any
    com: Any

    size: ClassVar[int] = 4
    internal: ClassVar[int] = 1
    twists: ClassVar[tuple[int, ...]] = (0, 1, 5)

    def __init__(self, mass, inertia, com=(0.0, 0.0), shape=None):
        self.mass, self.inertia = real("mass of a PlanarBody", mass), real("inertia of a PlanarBody", inertia)
        self.com, self.shape = real("com of a PlanarBody", com, (2,)), shape

    @staticmethod
    def lift(q: Float[Array, "4"]) -> Rows:
        x, y, c, s = q
        zero, one = jnp.zeros_like(x), jnp.ones_like(x)
        return jnp.array([[x, y, zero], [c, s, zero], [-s, c, zero], [zero, zero, one]])

    @staticmethod
    def lower(rows: Rows) -> Float[Array, "4"]:
        return rows[:2, :2].ravel()

    @staticmethod
    def constraint(q: Float[Array, "4"]) -> Float[Array, "1"]:
        return 0.5 * (q[2:] @ q[2:] - 1)[None]

    @property
    def inertia_matrix(self) -> Inertia:
        """Half of the moment of inertia falls on each director."""
        com = np.array([[1.0, 0, 0], [0, 1.0, 0]]).T @ self.com
        first = self.mass * com
        return moments(self.mass, first, 0.5 * self.inertia * np.diag([1.0, 1.0, 0.0]) + first[:, None] * com)

    @classmethod
    def from_inertia_matrix(cls, theta: Inertia) -> "PlanarBody":
        first = theta[0, 1:3]
        com = first / theta[0, 0]
        return cls(theta[0, 0], theta[1, 1] + theta[2, 2] - first @ com, com)

    def check(self, name: str) -> None:
        check_mass(name, self.mass)
        inertia = known(self.inertia)
        if inertia is not None and not (np.isfinite(inertia) and inertia >= 0):
            raise ModelError(f"body {name!r} has moment of inertia {inertia}; it must not be negative")

    @classmethod
    def rod(cls, mass, length) -> "PlanarBody":
        """A homogeneous slender rod, its centre at the origin, along the first body axis."""
        mass, length = real("mass of a rod", mass), positive("length of a rod", length)
        thin = thickness(length)
        return cls(mass, _from("length", mass * length**2 / 12), shape=Box((length, thin, thin)))

    @classmethod
    def plate(cls, mass, size) -> "PlanarBody":
        """A homogeneous rectangle with edges along the body axes."""
        mass, size = real("mass of a plate", mass), positive("size of a plate", size, (2,))
        shape = Box((size[0], size[1], thickness(*size)))
        return cls(mass, _from("size", mass * (size[0] ** 2 + size[1] ** 2) / 12), shape=shape)

    @classmethod
    def disc(cls, mass, radius) -> "PlanarBody":
        """A homogeneous disc."""
        mass, radius = real("mass of a disc", mass), positive("radius of a disc", radius)
        return cls(mass, _from("radius", mass * radius**2 / 2), shape=Cylinder(radius, thickness(radius)))


def _from(size: str, inertia: Any) -> Any:
    """An inertia that may be too large for a number is told by what it came from."""
    return real(f"inertia of a PlanarBody, from its mass and {size},", inertia)
