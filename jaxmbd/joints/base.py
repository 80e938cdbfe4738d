"""What a joint is: a constraint on two frames and the relative motion that it leaves."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, Motion, identity
from ..geometry.rotation import Matrix3, Vector3
from ..numerics.arrays import known


class AbstractJoint(eqx.Module):
    """A kind of joint between a frame `a` on its first body and a frame `b` on its second.

    The third director of both frames is the axis of the joint. Jacobians, null spaces, nodal reparametrisations and reactions follow
    from `constraint`, `motion` and `slip`. `freedom` counts the increments of the motion, `coordinates` names what can be read and set, by
    `pairs` or `coordinate`, `angular` says which of it returns after a turn, `angles` which of it are angles if not those alone,
    `additive` whether increments simply add to it, `orients` whether the directors of either frame matter, `meets` whether the origins of
    both frames are one point in some position. `ball` is the first of three increments that turn the second frame freely about its own
    origin, by a rotation vector in the directors of the first frame, if there are such; what comes before them is read by `steps`.
    """

    freedom: ClassVar[int]
    coordinates: ClassVar[tuple[str, ...]] = ()
    angular: ClassVar[tuple[bool, ...]] = ()
    angles: ClassVar[tuple[bool, ...]] = ()
    additive: ClassVar[bool] = True
    orients: ClassVar[tuple[bool, bool]] = (True, True)
    meets: ClassVar[bool] = True
    ball: ClassVar[int | None] = None

    @abc.abstractmethod
    def constraint(self, a: Frame, b: Frame) -> Float[Array, " m"]:
        """Zero for admissible positions; independent rows."""

    def slip(self, a: Frame, b: Frame, a_rate: Frame, b_rate: Frame) -> Float[Array, " k"]:
        """Velocities that vanish, beside what `constraint` forbids: linear in the rates of both frames, zero where they move as one."""
        return jnp.zeros(0, a.origin.dtype)

    def motion(self, u: Float[Array, " freedom"], a: Frame, b: Frame) -> Motion:
        """The rigid motion of the second body by increments `u` while the first one rests; none at zero.

        From frames that coincide, `u` are the joint's coordinates.
        """
        raise ModelError(f"{type(self).__name__} has no relative motion of its own")

    def backward(self, u: Float[Array, " freedom"], a: Frame, b: Frame) -> Motion:
        """The rigid motion of the first body by the same increments while the second one rests."""
        return self.motion(u, a, b).inverse()

    def coordinate(self, a: Frame, b: Frame) -> Float[Array, " coordinates"]:
        """The joint's coordinates, zero where the frames coincide; angles within half a turn."""
        if not self.coordinates:
            return jnp.zeros(0, a.origin.dtype)
        if type(self).pairs is AbstractJoint.pairs:
            raise ModelError(f"{type(self).__name__} names the coordinates {self.coordinates}; write its pairs(a, b) or coordinate(a, b)")
        return read(self.pairs(a, b), self.angular)

    def pairs(self, a: Frame, b: Frame) -> Float[Array, "coordinates 2"]:
        """What each coordinate is read from: cosine and sine of an angle, times any positive number, or one and the value of another.

        A joint tells this or its `coordinate`. Scalar products of directors know no branch cut: with them angles pass half a turn in all
        schemes, while an `arctan2` in `coordinate` stops those that take discrete gradients there.
        """
        value, angular = self.coordinate(a, b), np.array(self.angular, bool)
        return jnp.stack([jnp.where(angular, jnp.cos(value), 1), jnp.where(angular, jnp.sin(value), value)], axis=1)

    def steps(self, a: Frame, b: Frame) -> Float[Array, " steps"]:
        """The increments that lead from where the coordinates are zero to these frames, without those of a `ball`."""
        return self.coordinate(a, b)[: self.freedom if self.ball is None else self.ball]

    @property
    def located(self) -> bool:
        """Whether `steps` and the rotation of a `ball` tell the position of the second frame against the first."""
        return self.moves and (self.ball is not None or (self.additive and len(self.coordinates) == self.freedom))

    def points(self, a: Frame, b: Frame) -> tuple[Vector3, Vector3]:
        """Where a picture shows the joint on either body."""
        return a.origin, b.origin

    def orientation(self) -> Matrix3:
        """Directors of the joint's frame in the axes in which the joint was described."""
        return np.eye(3)

    def rest(self) -> Frame:
        """The second frame as seen from the first where all coordinates are zero."""
        return identity()

    def settled(self, a: Frame, b: Frame) -> "AbstractJoint":
        """The joint with what it takes from the position in which it was assembled."""
        return self

    def bare(self) -> "AbstractJoint":
        """The joint without what only its orientation needed."""
        return self

    def check(self, name: str) -> None:
        """Refuse impossible numbers, naming the joint."""

    @property
    def moves(self) -> bool:
        """Whether a relative motion is known, so that the joint can be a branch of the spanning tree."""
        return True


class AbstractAxisJoint(AbstractJoint):
    """A joint with an axis."""

    axis: eqx.AbstractVar[Any]

    def orientation(self) -> Matrix3:
        return rotation.basis(self.axis)

    def check(self, name: str) -> None:
        check_axis(name, self.axis)

    def bare(self) -> "AbstractJoint":
        return eqx.tree_at(lambda joint: joint.axis, self, None, is_leaf=lambda x: x is None)


class Free(AbstractJoint):
    """No joint: three translations, then three rotations about the second frame's own origin (61)."""

    freedom: ClassVar[int] = 6
    orients: ClassVar[tuple[bool, bool]] = (False, False)
    ball: ClassVar[int | None] = 3

    def constraint(self, a: Frame, b: Frame) -> Float[Array, " 0"]:
        return jnp.zeros(0, a.origin.dtype)

    def steps(self, a: Frame, b: Frame) -> Float[Array, "3"]:
        return offset(a, b)

    def motion(self, u: Float[Array, "6"], a: Frame, b: Frame) -> Motion:
        return Motion.move(u[:3]) @ Motion.turn(u[3:], b.origin)


def check_axis(name: str, axis: Any) -> None:
    """Refuse what is not a direction."""
    if axis.shape != (3,):
        raise ModelError(f"joint {name!r} has an axis of shape {axis.shape}; it must have three components")
    numbers = known(axis)
    if numbers is not None and not (np.isfinite(numbers).all() and np.linalg.norm(numbers) > 0):
        raise ModelError(f"joint {name!r} has the axis {numbers}, which has no direction")


def check_not_zero(name: str, what: str, value: Any) -> None:
    """Refuse numbers that are zero or not finite."""
    numbers = known(value)
    if numbers is not None and not (numbers.shape == () and np.isfinite(numbers) and numbers != 0):
        raise ModelError(f"joint {name!r} has the {what} {numbers}; it must be a number other than zero")


def read(pairs: Float[Array, "coordinates 2"], angular: Sequence[bool]) -> Float[Array, " coordinates"]:
    """Coordinates from their pairs, angles within half a turn."""
    return jnp.where(np.array(angular, bool), jnp.arctan2(pairs[:, 1], pairs[:, 0]), pairs[:, 1])


def turned_about(a: Frame, b: Frame) -> Float[Array, "2"]:
    """Cosine and sine of the angle by which `b` is turned against `a` about their common third director."""
    return jnp.stack([b.x @ a.x, b.x @ a.y])


def one_and(value: Array) -> Float[Array, "2"]:
    """The pair of a coordinate that is not an angle."""
    return jnp.stack([jnp.ones_like(value), value])


def axes_apart(a: Frame, b: Frame) -> Float[Array, "2"]:
    """Zero where the third directors are parallel (88)."""
    return jnp.array([a.z @ b.x, a.z @ b.y])


def directors_apart(a: Frame, b: Frame) -> Float[Array, "3"]:
    """Zero where all directors are parallel."""
    return jnp.array([a.x @ b.y, a.y @ b.z, a.z @ b.x])


def offset(a: Frame, b: Frame) -> Float[Array, "3"]:
    """Components of the second origin along the directors of the first frame."""
    return a.rotation.T @ (b.origin - a.origin)


def turn_in(a: Frame, components: Float[Array, "3"]) -> Motion:
    """Rotation about the origin of a frame by a rotation vector given in its directors."""
    return Motion.turn(a.rotation @ components, a.origin)
