"""Shapes of bodies, apart from their inertia: for pictures, viewers and files.

A shape is a pytree whose leaves are its numbers, so that bodies of different sizes share compiled programs. No step of time sees it.
"""

import abc
import functools
import os
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..errors import ModelError
from ..geometry.frame import Frame, check_rigid, identity
from ..numerics.arrays import known, library
from ..numerics.checks import not_negative, positive, real, whole
from .surfaces import Surface, convex_hull, read_mesh, revolve

FACETS = 32
"""Flat pieces in which a full turn of a round surface is drawn."""


THIN = 0.02
"""Of rods, plates and discs, by their largest size."""


def _pose(value: Any) -> Frame | None:
    """A frame in body axes; a point is one with the directions of the body."""
    if value is None:
        return None
    if isinstance(value, Frame):
        return check_rigid("pose of a shape", value)
    return Frame(real("pose of a shape, a Frame in body axes or a point,", value, (3,)), identity().rotation)


def _sizes(name: str, *shape: tuple[int, ...]) -> Any:
    """A field of numbers that lengths can have."""
    return eqx.field(converter=lambda value: not_negative(name, value, *shape))


def _path(value: Any) -> str:
    if not isinstance(value, str | os.PathLike):
        raise ModelError(f"path of a Mesh must be that of a file, but {value!r} was given")
    return os.fspath(value)


class AbstractShape(eqx.Module):
    """A solid with a place in the axes of its body: `pose` is a `Frame`, a point, or `None` for the frame of the body."""

    pose: Frame | None = eqx.field(converter=_pose, default=None, kw_only=True)

    @abc.abstractmethod
    def triangles(self, facets: int) -> Surface:
        """The surface in axes of its own, from numbers of NumPy."""

    def surface(self, facets: int = FACETS) -> Surface:
        """The surface in body axes as arrays of NumPy, round parts in so many flat pieces a turn."""
        if any(known(leaf) is None for leaf in jax.tree.leaves(self)):
            raise ModelError(f"the surface of a {type(self).__name__} needs its numbers: ask for it outside jit, vmap and grad")
        shape = jax.tree.map(lambda leaf: np.asarray(known(leaf), float), self)
        vertices, faces = shape.triangles(whole("facets", facets, 3))
        if shape.pose is not None:
            vertices = shape.pose.origin + vertices @ shape.pose.rotation.T
        return Surface(vertices, faces)


class Box(AbstractShape):
    """A box with three edges along the axes, its centre at the origin."""

    size: Any = _sizes("size of a Box", (3,))

    def triangles(self, facets: int) -> Surface:
        corners = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
        return Surface(corners * self.size, BOX_FACES)


class Sphere(AbstractShape):
    """A ball about the origin."""

    radius: Any = _sizes("radius of a Sphere")

    def triangles(self, facets: int) -> Surface:
        polar = np.linspace(0, np.pi, facets // 2 + 1)
        profile = np.stack([np.sin(polar), -np.cos(polar)], axis=1)
        profile[[0, -1], 0] = 0.0  # the sine of pi is not quite zero
        return revolve(self.radius * profile, facets)


class Cylinder(AbstractShape):
    """A cylinder along the third axis, its centre at the origin."""

    radius: Any = _sizes("radius of a Cylinder")
    length: Any = _sizes("length of a Cylinder")

    def triangles(self, facets: int) -> Surface:
        profile = np.array([(0, -0.5), (1, -0.5), (1, 0.5), (0, 0.5)])
        return revolve(profile * [self.radius, self.length], facets)


class Tube(AbstractShape):
    """A hollow cylinder along the third axis, its centre at the origin."""

    outer: Any = _sizes("outer radius of a Tube")
    inner: Any = _sizes("inner radius of a Tube")
    length: Any = _sizes("length of a Tube")

    def __check_init__(self):
        outer, inner = known(self.outer), known(self.inner)
        if outer is not None and inner is not None and inner > outer:
            raise ModelError(f"a Tube has the inner radius {inner} and the outer one {outer}; the inner one must be the smaller")

    def triangles(self, facets: int) -> Surface:
        height = 0.5 * self.length
        profile = np.array([(self.inner, -height), (self.outer, -height), (self.outer, height), (self.inner, height)])
        return revolve(profile, facets, closed=True)


class Hull(AbstractShape):
    """The convex hull of points."""

    points: Any = eqx.field(converter=lambda value: real("points of a Hull", value, (None, 3)))

    def triangles(self, facets: int) -> Surface:
        return convex_hull(self.points)


class Mesh(AbstractShape):
    """The triangles of an STL or OBJ file, each length times `scale`. The file is read when its surface is asked for."""

    path: str = eqx.field(converter=_path, static=True)
    scale: Any = eqx.field(converter=lambda value: positive("scale of a Mesh", value), default=1.0)

    def triangles(self, facets: int) -> Surface:
        vertices, faces = read_mesh(self.path)
        return Surface(self.scale * vertices, faces)


def thickness(*sizes: Any) -> Any:
    """That with which pictures show what is thought without one: small beside the largest of its sizes."""
    return THIN * functools.reduce(library(sizes).maximum, sizes)


def as_shapes(value: Any) -> tuple[AbstractShape, ...]:
    """None, one shape or several, as a tuple."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    shapes = () if value is None else tuple(value) if several else (value,)
    for shape in shapes:
        if not isinstance(shape, AbstractShape):
            raise ModelError(f"a shape is a Box, Sphere, Cylinder, Tube, Hull or Mesh, or several of them, not {shape!r}")
    return shapes


def _box_faces() -> np.ndarray:
    """Two triangles on each side; a corner has the number 4 x + 2 y + z."""
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return np.array([triangle for a, b, c, d in sides for triangle in ((a, b, c), (a, c, d))])


BOX_FACES = _box_faces()
