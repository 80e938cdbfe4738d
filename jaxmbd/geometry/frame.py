r"""Frames and rigid motions: what joints and loads see of bodies.

A frame is four vectors, a point and three directors (54), (55). Only on the constraint manifold are the directors orthonormal, so that
nothing here relies on it: frames transform linearly.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..numerics.arrays import join, known, library
from . import rotation
from .rotation import Vector3

Rows = Float[Any, "frames 4 3"]
"""Points and directors of several frames, of JAX or NumPy."""


def _floating(value) -> Any:
    """Floating numbers, those of NumPy left to it: frames that place a mechanism are put together without a compiler."""
    try:
        array = library(value).asarray(value)
        return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)
    except (TypeError, ValueError):
        raise ModelError(f"a Frame takes an origin (3,) and a rotation (3, 3) of numbers, not {value!r}") from None


class Frame(eqx.Module):
    """A point `origin` in space and directors, the columns of `rotation`. Frames may be stacked."""

    origin: Float[Any, "*batch 3"] = eqx.field(converter=_floating)
    rotation: Float[Any, "*batch 3 3"] = eqx.field(converter=_floating)

    @classmethod
    def from_rows(cls, rows: Float[Any, "4 3"]) -> "Frame":
        """From the point and the three directors as rows."""
        return cls(rows[0], rows[1:].T)

    @property
    def rows(self) -> Float[Any, "4 3"]:
        """The point and the three directors as rows."""
        return join([self.origin[None], self.rotation.T])

    @property
    def x(self) -> Float[Any, "*batch 3"]:
        """First director."""
        return self.rotation[..., 0]

    @property
    def y(self) -> Float[Any, "*batch 3"]:
        """Second director."""
        return self.rotation[..., 1]

    @property
    def z(self) -> Float[Any, "*batch 3"]:
        """Third director, the axis of a joint that has one."""
        return self.rotation[..., 2]

    def point(self, local: Vector3) -> Vector3:
        """The point with these components in the frame."""
        return self.origin + self.rotation @ local

    def __matmul__(self, local: "Frame") -> "Frame":
        """A frame given by its components in this one."""
        return Frame(self.point(local.origin), self.rotation @ local.rotation)

    def inverse(self) -> "Frame":
        """The fixed frame as seen from this one, which must be orthonormal."""
        return Frame(-self.rotation.T @ self.origin, self.rotation.T)


def check_rigid(name: str, frame: Frame) -> Frame:
    """A frame that a user gives: one, finite, with directors that are orthonormal and right-handed."""
    if frame.origin.shape != (3,) or frame.rotation.shape != (3, 3):
        raise ModelError(f"{name} must be one Frame, but its origin has shape {frame.origin.shape}, its rotation {frame.rotation.shape}")
    origin, R = known(frame.origin), known(frame.rotation)
    if (origin is not None and not np.isfinite(origin).all()) or (R is not None and not np.isfinite(R).all()):
        raise ModelError(f"{name} must be a finite Frame, but {np.asarray(frame.rows).tolist()} was given")
    off = 0.0 if R is None else np.max(np.abs(R.T @ R - np.eye(3, dtype=R.dtype)))
    if R is not None and off > 4 * np.sqrt(jnp.finfo(R.dtype).eps):
        raise ModelError(f"{name} has directors, the columns of its rotation, that are not orthonormal: {R.tolist()} is off by {off:.3g}")
    if R is not None and np.linalg.det(R) < 0:
        raise ModelError(f"{name} has left-handed directors, the columns of its rotation: {R.tolist()}; turn one of them round")
    return frame


def identity(dtype=float) -> Frame:
    """The frame fixed in space."""
    return Frame(np.zeros(3, dtype), np.eye(3, dtype=dtype))


class Motion(eqx.Module):
    r"""A rigid motion of space, $x \mapsto A x + b$."""

    rotation: Float[Array, "*batch 3 3"]
    shift: Float[Array, "*batch 3"]

    @classmethod
    def turn(cls, theta: Vector3, centre: Vector3) -> "Motion":
        """Rotation by a rotation vector about a point."""
        A = rotation.exp(theta)
        return cls(A, centre - A @ centre)

    @classmethod
    def spin(cls, angle: Array, axis: Vector3, centre: Vector3) -> "Motion":
        """Rotation about a unit axis through a point."""
        A = rotation.about(axis, angle)
        return cls(A, centre - A @ centre)

    @classmethod
    def move(cls, shift: Vector3) -> "Motion":
        """Translation."""
        return cls(jnp.eye(3, dtype=shift.dtype), shift)

    def __matmul__(self, earlier: "Motion") -> "Motion":
        """The motion that follows an earlier one."""
        return Motion(self.rotation @ earlier.rotation, self.rotation @ earlier.shift + self.shift)

    def inverse(self) -> "Motion":
        """The motion back."""
        return Motion(self.rotation.T, -self.rotation.T @ self.shift)

    def __call__(self, frame: Frame) -> Frame:
        """A frame carried along."""
        return Frame(self.rotation @ frame.origin + self.shift, self.rotation @ frame.rotation)


def twist(frame: Frame, rate: Frame) -> tuple[Vector3, Vector3]:
    r"""Velocity of the origin and angular velocity of a frame that changes at `rate`: $\omega = \frac12 \sum_I d_I \times \dot d_I$."""
    return rate.origin, 0.5 * jnp.sum(jax.vmap(jnp.cross, 1)(frame.rotation, rate.rotation), axis=0)


def carried(frame: Frame, rate: Frame, vector: Vector3) -> Vector3:
    r"""The rate of a vector that turns with a frame, $\dot D D^{-1} v$; also where its directors are not orthonormal."""
    return rate.rotation @ rotation.solve(frame.rotation, vector)


def velocity_at(frame: Frame, rate: Frame, point: Vector3) -> Vector3:
    """The velocity of the material point of a body that is at a point in space."""
    return rate.origin + carried(frame, rate, point - frame.origin)
