r"""Rolling and skating: bodies that may not slip on a plane.

Velocities are held here, not positions alone: the constraint $A(q)\,\dot q = 0$ of a joint's `slip` is the derivative of no function of
positions, so that a coin can roll to any place of a table with any side up. Its force is what keeps the bodies from slipping.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, carried, velocity_at
from ..geometry.rotation import Matrix3, Vector3
from ..numerics import checks
from ..numerics.arrays import known, library
from .base import AbstractAxisJoint, AbstractJoint, check_axis

FLAT = 1e-6
"""The sine of the angle between an axle and the normal of a plane up to which a disc lies on the plane."""


class AbstractRolling(AbstractJoint):
    """A round body on a plane of the first body: one constraint on the height of its centre, and no slip where it touches.

    The plane goes through the origin of the first frame, the centre is the origin of the second. `normal` points from the plane to the
    side on which the body rolls, in the axes of the first frame. The plane holds from both sides: a body that would lift off is held
    back, by a normal force that is negative then.
    """

    radius: eqx.AbstractVar[Any]
    normal: eqx.AbstractVar[Any]

    freedom: ClassVar[int] = 0
    meets: ClassVar[bool] = False

    def plane(self, a: Frame) -> Matrix3:
        """Two directions along the plane, and its normal, as columns."""
        return a.rotation @ rotation.basis(self.normal)

    def slip(self, a: Frame, b: Frame, a_rate: Frame, b_rate: Frame) -> Float[Array, " k"]:
        """The velocity along the plane of the body's material point that touches against that of the plane there."""
        point = self.contact(a, b)
        along = self.plane(a)[:, :2]
        return along.T @ (velocity_at(b, b_rate, point) - velocity_at(a, a_rate, point))

    @abc.abstractmethod
    def contact(self, a: Frame, b: Frame) -> Vector3:
        """The point in which the body touches the plane."""

    def points(self, a: Frame, b: Frame) -> tuple[Vector3, Vector3]:
        return (self.contact(a, b),) * 2

    def settled(self, a: Frame, b: Frame) -> "AbstractJoint":
        apart = known(b.origin - a.origin)
        if apart is not None and not apart.any():
            raise ModelError(
                f"the centre of a {type(self).__name__} is a point of its plane; tell a point of the plane by on_a and the centre by on_b, "
                "each in the axes of its body, and place the body off the plane"
            )
        return self

    def check(self, name: str) -> None:
        radius = known(self.radius)
        if radius is not None and not (radius.shape == () and np.isfinite(radius) and radius > 0):
            raise ModelError(f"joint {name!r} has the radius {radius}; it must be a positive number")
        check_axis(name, self.normal)

    @property
    def moves(self) -> bool:
        return False


class RollingDisc(AbstractRolling):
    r"""A thin disc, or a wheel, that rolls on a plane without slip: one constraint on positions and two on velocities.

    With the normal $n$ of the plane, a point $o$ of it, the disc's centre $c$ and its axle $e$, the lowest point of the rim is at the
    height $(c - o) \cdot n - r \sqrt{1 - (e \cdot n)^2} = 0$. A disc that lies flat touches with all of its rim: there the root has no
    derivative, and steps that lead there fail.

    **Arguments**

    - `radius`: of the disc.
    - `axis`: its axle, in the axes of the second frame.
    - `normal`: of the plane, in the axes of the first frame, towards the side of the disc.
    """

    radius: Any
    axis: Any
    normal: Any

    def __init__(self, radius: Any, axis: Any = (0.0, 1.0, 0.0), normal: Any = (0.0, 0.0, 1.0)):
        self.radius = checks.positive("radius of a RollingDisc", radius)
        self.axis, self.normal = checks.direction("axis of a RollingDisc", axis), checks.direction("normal of a RollingDisc", normal)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        normal, axle = self.plane(a)[:, 2], self.axle(b)
        return ((b.origin - a.origin) @ normal - self.radius * _sine(axle, normal))[None]

    def contact(self, a: Frame, b: Frame) -> Vector3:
        normal, axle = self.plane(a)[:, 2], self.axle(b)
        steepest = (normal - (axle @ normal) * axle) / _sine(axle, normal)
        return b.origin - self.radius * steepest

    def axle(self, b: Frame) -> Vector3:
        """The axle as a unit vector in space."""
        return b.rotation @ rotation.unit(self.axis)

    def rest(self) -> Frame:
        normal, axle = rotation.unit(self.normal), rotation.unit(self.axis)
        return Frame(self.radius * _sine(axle, normal) * normal, np.eye(3))

    def settled(self, a: Frame, b: Frame) -> "AbstractJoint":
        sine = known(_sine(self.axle(b), self.plane(a)[:, 2]))
        if sine is not None and not sine > FLAT:
            raise ModelError("the disc lies flat on its plane and touches it with all of its rim; tilt it, or turn its axis or the normal")
        return super().settled(a, b)

    def check(self, name: str) -> None:
        super().check(name)
        check_axis(name, self.axis)


class RollingBall(AbstractRolling):
    r"""A ball that rolls on a plane without slip: $(c - o) \cdot n = r$, and two constraints on velocities.

    **Arguments**

    - `radius`: of the ball, whose centre is the origin of the second frame.
    - `normal`: of the plane, in the axes of the first frame, towards the side of the ball.
    - `pivoting`: whether the ball may spin about the normal against the plane; a third constraint on velocities if not, as for a soft ball.
    """

    radius: Any
    normal: Any
    pivoting: bool = eqx.field(static=True)

    def __init__(self, radius: Any, normal: Any = (0.0, 0.0, 1.0), pivoting: Any = True):
        self.radius = checks.positive("radius of a RollingBall", radius)
        self.normal = checks.direction("normal of a RollingBall", normal)
        self.pivoting = checks.flag("pivoting of a RollingBall", pivoting)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, "1"]:
        return ((b.origin - a.origin) @ self.plane(a)[:, 2] - self.radius)[None]

    def slip(self, a: Frame, b: Frame, a_rate: Frame, b_rate: Frame) -> Float[Array, " k"]:
        sliding = super().slip(a, b, a_rate, b_rate)
        if self.pivoting:
            return sliding
        x, y, _ = self.plane(a).T
        return jnp.append(sliding, (carried(b, b_rate, x) - carried(a, a_rate, x)) @ y)

    def contact(self, a: Frame, b: Frame) -> Vector3:
        return b.origin - self.radius * self.plane(a)[:, 2]

    def rest(self) -> Frame:
        return Frame(self.radius * rotation.unit(self.normal), np.eye(3))


class KnifeEdge(AbstractAxisJoint):
    """A blade, or a wheel seen from above: the second origin does not move sideways. One constraint on velocities, none on positions.

    `axis` is the direction across the blade, the axle of the wheel, and turns with the second body. Velocities count against that of the
    first body there, wherever the point is; a body in space is held on a plane by `Planar` beside it.
    """

    axis: Any

    freedom: ClassVar[int] = 0
    orients: ClassVar[tuple[bool, bool]] = (False, True)
    meets: ClassVar[bool] = False

    def __init__(self, axis: Any = (0.0, 1.0, 0.0)):
        self.axis = checks.direction("axis of a KnifeEdge", axis)

    def constraint(self, a: Frame, b: Frame) -> Float[Array, " 0"]:
        return jnp.zeros(0, a.origin.dtype)

    def slip(self, a: Frame, b: Frame, a_rate: Frame, b_rate: Frame) -> Float[Array, "1"]:
        return (b.z @ (b_rate.origin - velocity_at(a, a_rate, b.origin)))[None]

    def points(self, a: Frame, b: Frame) -> tuple[Vector3, Vector3]:
        return b.origin, b.origin

    @property
    def moves(self) -> bool:
        return False


def _sine(axle: Vector3, normal: Vector3) -> Any:
    """Of the angle between two unit vectors, as a function of their scalar product alone."""
    product = axle @ normal
    return library(product).sqrt(1 - product * product)
