r"""Rotations as matrices: exponential, Cayley map, logarithm, and other descriptions of them.

Rotation vectors $\theta$ have the axis as direction and the angle as length. Quaternions are $(w, x, y, z)$, the scalar first.
Matrices turn components in the rotated basis into components in the fixed one: their columns are the rotated basis vectors. All
maps are smooth at zero, with all derivatives. Those that place bodies stay in NumPy with its numbers, so that nothing is compiled.
"""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..numerics.arrays import library, number, root

Vector3 = Float[Any, "3"]  # of JAX or NumPy
Matrix3 = Float[Any, "3 3"]

_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(13)]
_ARCSINE = [math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in range(16)]


def skew(a: Vector3) -> Matrix3:
    r"""$\hat a$ with $\hat a\,b = a \times b$."""
    x, y, z = a
    xp = library(a)
    zero = xp.zeros_like(x)
    return xp.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def axial(A: Matrix3) -> Vector3:
    r"""The vector $a$ of the skew part of a matrix: `axial(skew(a)) == a`."""
    return 0.5 * jnp.array([A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]])


def determinant(A: Matrix3) -> Array:
    """The triple product of rows."""
    return A[0] @ jnp.cross(A[1], A[2])


def solve(A: Matrix3, b: Vector3) -> Vector3:
    """$A^{-1} b$ by cross products of rows, for well-conditioned matrices."""
    dual = jnp.stack([jnp.cross(A[1], A[2]), jnp.cross(A[2], A[0]), jnp.cross(A[0], A[1])])
    return b @ dual / (A[0] @ dual[0])


def exp(theta: Vector3) -> Matrix3:
    r"""Rodrigues: $I + s(\alpha)\hat\theta + \frac12 s(\frac\alpha2)^2\hat\theta^2$ with $\alpha = |\theta|$, $s(x) = \sin x / x$."""
    xp, square = library(theta), theta @ theta
    whole, half = _near_zero(square * xp.array([1, 0.25], theta.dtype), 0.2, _SINE, lambda x: xp.sin(xp.sqrt(x)) / xp.sqrt(x))
    hat = skew(theta)
    return xp.eye(3, dtype=theta.dtype) + whole * hat + 0.5 * half**2 * hat @ hat


def about(axis: Vector3, angle: Any) -> Matrix3:
    r"""The rotation about a unit axis, $I + \sin\alpha\,\hat n + 2 \sin^2\frac\alpha2\,\hat n^2$."""
    xp, hat = library(axis, angle), skew(axis)
    return xp.eye(3, dtype=axis.dtype) + xp.sin(angle) * hat + 2 * xp.sin(0.5 * angle) ** 2 * hat @ hat


def cayley(theta: Vector3) -> Matrix3:
    r"""$I + (1 + \frac14|\theta|^2)^{-1}(\hat\theta + \frac12\hat\theta^2)$: a rotation by the angle $2\arctan\frac12|\theta|$."""
    hat = skew(theta)
    return jnp.eye(3, dtype=theta.dtype) + (hat + 0.5 * hat @ hat) / (1 + 0.25 * theta @ theta)


def cayley_vector(start: Matrix3, change: Matrix3) -> Vector3:
    r"""The $\theta$ with $R_1 = R_0\,\mathrm{cay}(\theta)$, from $R_0$ and $R_1 - R_0$; not for half a turn.

    From $R_1 - R_0 = \bar R\,\hat\theta$ with the mean $\bar R$; no digits are lost where the change is small. For matrices that are
    no rotations it is a smooth extension.
    """
    mean = start + 0.5 * change
    square = mean.T @ mean
    return 2 * solve(jnp.trace(square) * jnp.eye(3, dtype=start.dtype) - square, axial(mean.T @ change))


def from_cayley_vector(theta: Vector3) -> Vector3:
    r"""The rotation vector of $\mathrm{cay}(\theta)$, of length $2 \arctan\frac12|\theta|$."""
    return _near_zero(0.25 * theta @ theta, 0.05, _ARCTANGENT, lambda x: jnp.arctan(jnp.sqrt(x)) / jnp.sqrt(x)) * theta


def log(R: Matrix3) -> Vector3:
    r"""The rotation vector of a rotation, of length at most $\pi$; the inverse of `exp`."""
    w, *v = to_quaternion(R)
    vector = jnp.stack(v)
    closed = lambda x: jnp.arctan2(jnp.sqrt(x), w) / jnp.sqrt(x)
    return 2 * _near_zero(vector @ vector, 0.05, _ARCSINE, closed) * vector


def to_quaternion(R: Matrix3) -> Float[Array, "4"]:
    r"""The unit quaternion $(w, x, y, z)$ of a rotation with $w \ge 0$."""
    xx, yy, zz = R[0, 0], R[1, 1], R[2, 2]
    wx, wy, wz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    xy, yz, zx = R[0, 1] + R[1, 0], R[1, 2] + R[2, 1], R[2, 0] + R[0, 2]
    products = jnp.array(
        [
            [1 + xx + yy + zz, wx, wy, wz],
            [wx, 1 + xx - yy - zz, xy, zx],
            [wy, xy, 1 - xx + yy - zz, yz],
            [wz, zx, yz, 1 - xx - yy + zz],
        ]
    )  # four times each product of two components; the row of the largest component is far from zero
    largest = jnp.argmax(jnp.diagonal(products))
    quaternion = products[largest] / (2 * jnp.sqrt(products[largest, largest]))
    return jnp.where(quaternion[0] < 0, -quaternion, quaternion)


def from_quaternion(quaternion: Float[ArrayLike, "4"]) -> Matrix3:
    """The rotation of a quaternion $(w, x, y, z)$ of any length but zero."""
    q = library(quaternion).asarray(quaternion)
    w, v = q[0], q[1:]
    hat = skew(v)
    return library(q).eye(3, dtype=q.dtype) + 2 * (w * hat + hat @ hat) / (q @ q)


def from_axis_angle(axis: Float[ArrayLike, "3"], angle: ArrayLike) -> Matrix3:
    """The rotation about an axis of any length by an angle."""
    return about(unit(axis), number(angle))


def to_axis_angle(R: Matrix3) -> tuple[Vector3, Array]:
    """A unit axis and an angle between zero and half a turn; the axis of no rotation is the third one."""
    theta = log(R)
    square = theta @ theta
    angle = root(square)
    third = jnp.array([0, 0, 1], theta.dtype)
    return jnp.where(square > 0, theta / jnp.where(angle > 0, angle, 1), third), angle


def unit(vector: Float[ArrayLike, "3"]) -> Vector3:
    """The vector brought to length one."""
    xp: Any = library(vector)
    array = xp.asarray(vector)
    array = array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)
    return array / xp.linalg.norm(array)


def basis(axis: Float[ArrayLike, "3"]) -> Matrix3:
    """A rotation whose third column is the axis; its first is horizontal unless the axis is close to the vertical."""
    xp, z = library(axis), unit(axis)
    helper = xp.where(xp.abs(z[2]) < 0.9, xp.array([0, 0, 1], z.dtype), xp.array([0, 1, 0], z.dtype))
    x = xp.cross(helper, z)
    x = x / xp.linalg.norm(x)
    return xp.stack([x, xp.cross(z, x), z], axis=1)


def _near_zero(x: Any, radius: float, series: list[float], closed: Callable) -> Any:
    """A function by its power series near zero, and by its closed form elsewhere, so that no derivative cancels or divides by zero."""
    xp, near = library(x), x < radius
    inside, outside = xp.where(near, x, 0), xp.where(near, 1, x)
    return xp.where(near, xp.polyval(xp.asarray(np.array(series[::-1]), x.dtype), inside), closed(outside))
