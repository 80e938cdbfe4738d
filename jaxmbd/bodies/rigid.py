"""Rigid bodies in twelve director coordinates (55), and the inertia of common shapes."""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.spatial import ConvexHull, QhullError

from ..errors import ModelError
from ..numerics.arrays import known, library
from ..numerics.checks import not_negative, positive, real
from .base import AbstractBody, Inertia, Rows, check_mass, moments
from .shapes import AbstractShape, Box, Cylinder, Hull, Sphere, Tube, thickness

PRODUCTS = np.array([[0.5, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0.5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 0.5],
                     [0, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 0, 0, 0]])  # fmt: skip
"""The products of directors that are prescribed, out of all nine; a product with a matrix is faster than picking elements."""


class RigidBody(AbstractBody):
    r"""A rigid body: coordinates $(\varphi, d_1, d_2, d_3)$, six constraints of orthonormal directors (56).

    **Arguments**

    - `mass`.
    - `inertia`: the inertia tensor about the centre of mass in body axes, a full 3x3 matrix or three principal values.
    - `com`: the centre of mass in body axes; the origin of the body is where its coordinates $\varphi$ are.
    - `shape`: one shape or several, for pictures. Bodies that are built as boxes, spheres and so on remember theirs.

    An inertia that no distribution of mass has (one that violates the triangle inequality) warns and runs.
    """

    mass: Any
    inertia: Any
    com: Any

    size: ClassVar[int] = 12
    internal: ClassVar[int] = 6
    twists: ClassVar[tuple[int, ...]] = (0, 1, 2, 3, 4, 5)

    def __init__(self, mass, inertia, com=(0.0, 0.0, 0.0), shape=None):
        inertia = real("inertia of a RigidBody", inertia, (3,), (3, 3))
        if inertia.shape == (3,):
            inertia = inertia * np.eye(3) if isinstance(inertia, np.ndarray) else jnp.diag(inertia)
        self.mass, self.inertia, self.shape = real("mass of a RigidBody", mass), inertia, shape
        self.com = real("com of a RigidBody", com, (3,))

    @staticmethod
    def lift(q: Float[Array, "12"]) -> Rows:
        return q.reshape(4, 3)

    @staticmethod
    def lower(rows: Rows) -> Float[Array, "12"]:
        return rows.ravel()

    @staticmethod
    def constraint(q: Float[Array, "12"]) -> Float[Array, "6"]:
        directors = q[3:].reshape(3, 3)
        return jnp.asarray(PRODUCTS, q.dtype) @ (directors @ directors.T - jnp.eye(3, dtype=q.dtype)).ravel()

    @property
    def inertia_matrix(self) -> Inertia:
        euler = 0.5 * library(self.inertia).trace(self.inertia) * np.eye(3) - self.inertia
        first = self.mass * self.com
        return moments(self.mass, first, euler + first[:, None] * self.com)

    def check(self, name: str) -> None:
        check_mass(name, self.mass)
        inertia = known(self.inertia)
        if inertia is None:
            return
        if not np.isfinite(inertia).all() or not np.allclose(inertia, inertia.T, rtol=0, atol=1e-6 * np.abs(inertia).max()):
            raise ModelError(f"body {name!r} has an inertia tensor that is not symmetric and finite")
        principal = np.linalg.eigvalsh(inertia)
        if principal[0] < 0:
            raise ModelError(f"body {name!r} has negative moments of inertia {principal}")
        if principal.sum() / 2 - principal[2] < -1e-6 * principal[2]:
            warnings.warn(
                f"body {name!r}: principal moments {principal} violate the triangle inequality; no distribution of mass has them",
                stacklevel=2,
            )

    @classmethod
    def from_euler_tensor(cls, mass, euler, com=(0.0, 0.0, 0.0), shape=None) -> "RigidBody":
        r"""From the second moment of mass $E = \int (X - c)(X - c)^T dm$ about the centre of mass, $J = \mathrm{tr}(E) I - E$ (57)."""
        euler = real("euler tensor of a RigidBody", euler, (3, 3))
        return cls(mass, library(euler).trace(euler) * np.eye(3) - euler, com, shape)

    @classmethod
    def from_inertia_matrix(cls, theta, shape=None) -> "RigidBody":
        r"""From $\Theta$ (4, 4), the mass with its first and second moments about the origin."""
        theta = real("theta of a RigidBody", theta, (4, 4))
        mass, com = theta[0, 0], theta[0, 1:] / theta[0, 0]
        return cls.from_euler_tensor(mass, theta[1:, 1:] - mass * com[:, None] * com, com, shape)

    @classmethod
    def box(cls, mass, size: Any) -> "RigidBody":
        """A homogeneous box with edges along the body axes."""
        size = positive("size of a box", size, (3,))
        return cls._principal(mass, [edge**2 / 12 for edge in size], Box(size))

    @classmethod
    def sphere(cls, mass, radius) -> "RigidBody":
        """A homogeneous ball."""
        radius = positive("radius of a sphere", radius)
        return cls._principal(mass, [radius**2 / 5] * 3, Sphere(radius))

    @classmethod
    def cylinder(cls, mass, radius, length) -> "RigidBody":
        """A homogeneous cylinder along the third body axis."""
        radius, length = positive("radius of a cylinder", radius), positive("length of a cylinder", length)
        return cls._principal(mass, [radius**2 / 4, radius**2 / 4, length**2 / 12], Cylinder(radius, length))

    @classmethod
    def tube(cls, mass, outer, inner, length) -> "RigidBody":
        """A homogeneous hollow cylinder along the third body axis, by its outer and inner radius."""
        outer, inner = positive("outer radius of a tube", outer), not_negative("inner radius of a tube", inner)
        length = positive("length of a tube", length)
        across = (outer**2 + inner**2) / 4
        return cls._principal(mass, [across, across, length**2 / 12], Tube(outer, inner, length))

    @classmethod
    def rod(cls, mass, length) -> "RigidBody":
        """A slender rod along the third body axis: no inertia about it, so that joints must determine that rotation."""
        length = positive("length of a rod", length)
        return cls._principal(mass, [0.0, 0.0, length**2 / 12], Cylinder(0.5 * thickness(length), length))

    @classmethod
    def tetrahedron(cls, vertices: Any, density) -> "RigidBody":
        """A homogeneous tetrahedron with these vertices (4, 3) in body axes."""
        vertices = jnp.asarray(real("vertices of a tetrahedron", vertices, (4, 3)))
        return cls._solid(vertices[None], density, Hull(vertices))

    @classmethod
    def from_vertices(cls, vertices: Any, density) -> "RigidBody":
        """The homogeneous convex hull of points (k, 3) in body axes; differentiable by points that stay its corners."""
        vertices = real("vertices of a RigidBody", vertices, (None, 3))
        points = known(vertices)
        if points is None:
            raise ModelError("from_vertices finds the hull of points from their numbers: call it outside jit and vmap")
        try:
            corners = jnp.asarray(vertices)[ConvexHull(points).simplices]
        except (QhullError, ValueError) as error:
            raise ModelError(f"vertices of a RigidBody are {len(points)} points without a volume: it takes four not in a plane") from error
        centre = jnp.broadcast_to(corners.mean(axis=(0, 1)), (len(corners), 1, 3))
        return cls._solid(jnp.concatenate([centre, corners], axis=1), density, Hull(vertices))

    @classmethod
    def _principal(cls, mass, second: Sequence, shape: AbstractShape) -> "RigidBody":
        """From the principal values of the Euler tensor for unit mass."""
        mass = real("mass of a RigidBody", mass)
        euler, sizes = library(mass, *second).stack(second), ", ".join(vars(shape))
        return cls(mass, real(f"inertia of a RigidBody, from its mass and {sizes}", mass * (sum(second) - euler), (3,)), shape=shape)

    @classmethod
    def _solid(cls, tetrahedra: Float[Array, "t 4 3"], density, shape: AbstractShape) -> "RigidBody":
        r"""A union of tetrahedra: $\int x x^T dV = \frac{V}{20}(\sum_i v_i v_i^T + \sum_i v_i \sum_j v_j^T)$ for each."""
        density = positive("density of a RigidBody", density)
        volumes = jnp.abs(jnp.linalg.det(tetrahedra[:, 1:] - tetrahedra[:, :1])) / 6
        masses, total = density * volumes, tetrahedra.sum(axis=1)
        if known(volumes.sum()) == 0:
            raise ModelError("vertices of a RigidBody lie in a plane, so that it has no volume")
        mass = positive("mass of a RigidBody, from its density and vertices,", masses.sum())
        com = masses @ total / (4 * mass)
        second = jnp.einsum("t,tia,tib->ab", masses, tetrahedra, tetrahedra) + jnp.einsum("t,ta,tb->ab", masses, total, total)
        euler = real("euler tensor of a RigidBody, from its density and vertices", second / 20 - mass * jnp.outer(com, com), (3, 3))
        return cls.from_euler_tensor(mass, euler, com, shape)
