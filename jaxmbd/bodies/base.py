r"""What a body is: coordinates that lift linearly to a frame, internal constraints, and an inertia matrix.

A material point with components $X$ lies at $x = \varphi + X_I d_I$ (54). With $\Theta_{00} = \int dm$, $\Theta_{0I} = \int X_I\,dm$ and
$\Theta_{IJ} = \int X_I X_J\,dm$ the kinetic energy is $\frac12 \Theta_{ab}\,\dot r_a \cdot \dot r_b$, where
$r = (\varphi, d_1, d_2, d_3)$ are the rows of the frame: one formula for every kind of body, whatever its coordinates. $\Theta_{IJ}$ is the
Euler tensor (57), (58).
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry.rotation import Vector3
from ..numerics.arrays import known, library
from ..numerics.checks import real
from .shapes import AbstractShape, as_shapes

Rows = Float[Array, "4 3"]
Inertia = Float[Array, "4 4"] | Float[np.ndarray, "4 4"]
IDENTITY = np.concatenate([np.zeros((1, 3)), np.eye(3)])


MOTIONS = ("along x", "along y", "along z", "about x", "about y", "about z")
"""Components of velocity and angular velocity in space."""


class AbstractBody(eqx.Module):
    """A kind of body. The functions of coordinates are of the class, the inertia of the instance.

    `size` counts coordinates, none of a body that is fixed in space, and `internal` their constraints. `twists` are the components of
    velocity and angular velocity in space that it can have, 0 to 5. One that is not `oriented` has no directors of its own.
    `shape` is what pictures show of it: one shape or several, apart from its inertia.
    """

    shape: tuple[AbstractShape, ...] = eqx.field(converter=as_shapes, default=(), kw_only=True)

    size: ClassVar[int]
    internal: ClassVar[int]
    twists: ClassVar[tuple[int, ...]]
    oriented: ClassVar[bool] = True

    @staticmethod
    @abc.abstractmethod
    def lift(q: Float[Array, " k"]) -> Rows:
        r"""The rows $(\varphi, d_1, d_2, d_3)$ of the frame: an affine function of the coordinates."""

    @staticmethod
    @abc.abstractmethod
    def lower(rows: Rows) -> Float[Array, " k"]:
        """The coordinates of a frame that such a body can take."""

    @staticmethod
    @abc.abstractmethod
    def constraint(q: Float[Array, " k"]) -> Float[Array, " internal"]:
        """Internal constraints, independent of each other."""

    @property
    @abc.abstractmethod
    def inertia_matrix(self) -> Inertia:
        r"""$\Theta$."""

    @classmethod
    def is_spatial(cls) -> bool:
        """Whether it has all motions of a rigid body, or none: then every constraint and every increment of a joint matters to it."""
        return cls.size == 0 or len(cls.twists) == len(MOTIONS)

    @classmethod
    def can_carry(cls, other: type["AbstractBody"]) -> bool:
        """Whether one of two such bodies can go along with the other: they translate, and as far as directors matter turn, alike."""
        if cls.size == 0 or other.size == 0:
            return True
        different = set(cls.twists) ^ set(other.twists)
        return not (different if cls.oriented and other.oriented else different & {0, 1, 2})

    @classmethod
    def from_inertia_matrix(cls, theta: Inertia) -> Any:
        r"""The body with this $\Theta$, of whose leaves names of parameters are made; `None` for kinds without any."""
        return None

    def check(self, name: str) -> None:
        """Refuse impossible numbers, naming the body."""


class Ground(AbstractBody):
    """A body that does not move; every mechanism has one called `"ground"`."""

    size: ClassVar[int] = 0
    internal: ClassVar[int] = 0
    twists: ClassVar[tuple[int, ...]] = ()

    @staticmethod
    def lift(q: Float[Array, " 0"]) -> Rows:
        return jnp.asarray(IDENTITY, q.dtype)

    @staticmethod
    def lower(rows: Rows) -> Float[Array, " 0"]:
        return jnp.zeros(0, rows.dtype)

    @staticmethod
    def constraint(q: Float[Array, " 0"]) -> Float[Array, " 0"]:
        return q

    @property
    def inertia_matrix(self) -> Inertia:
        return np.zeros((4, 4))


class Particle(AbstractBody):
    """A mass point: three coordinates, no orientation."""

    mass: Any

    size: ClassVar[int] = 3
    internal: ClassVar[int] = 0
    twists: ClassVar[tuple[int, ...]] = (0, 1, 2)
    oriented: ClassVar[bool] = False

    def __init__(self, mass, shape=None):
        self.mass, self.shape = real("mass of a Particle", mass), shape

    @staticmethod
    def lift(q: Vector3) -> Rows:
        return jnp.concatenate([q[None], jnp.eye(3, dtype=q.dtype)])

    @staticmethod
    def lower(rows: Rows) -> Vector3:
        return rows[0]

    @staticmethod
    def constraint(q: Vector3) -> Float[Array, " 0"]:
        return q[:0]

    @property
    def inertia_matrix(self) -> Inertia:
        return moments(self.mass, (0.0, 0.0, 0.0), np.zeros((3, 3)))

    @classmethod
    def from_inertia_matrix(cls, theta: Inertia) -> "Particle":
        return cls(theta[0, 0])

    def check(self, name: str) -> None:
        check_mass(name, self.mass)


def moments(mass: Any, first: Any, second: Any) -> Inertia:
    r"""$\Theta$ from mass, first moment and second moment."""
    xp = library(mass, first, second)
    mass, first, second = (xp.asarray(part) for part in (mass, first, second))
    return xp.concatenate([xp.concatenate([mass[None], first])[None], xp.concatenate([first[:, None], second], axis=1)])


def check_mass(name: str, mass: Any) -> None:
    """Refuse masses that are not positive."""
    value = known(mass)
    if value is not None and not (value.ndim == 0 and np.isfinite(value) and value > 0):
        raise ModelError(f"body {name!r} has mass {value}; it must be a positive number")
