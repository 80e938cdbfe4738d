"""Surfaces as they are drawn: polygons in space, and in a plane the faces in front with their outline."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.path import Path
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ..bodies import Surface

SHARP = np.cos(np.radians(30.0))
"""Of the angle between the normals of two faces from which on their edge is drawn."""
FLAT = 1 - 1e-9
"""The same, up to which they are one polygon."""
LIGHT = np.array([0.35, -0.75, 0.55])
"""Where light comes from in space."""
DARK = 0.62
"""How bright a face is that light does not reach."""

Points = Float[np.ndarray, "rows vertices 3"]


class Edges(NamedTuple):
    """Edges by the numbers of their ends and of the faces on both sides; where a surface ends, both are the same."""

    ends: Int[np.ndarray, "edges 2"]
    sides: Int[np.ndarray, "edges 2"]
    sharp: Bool[np.ndarray, " edges"]


class Solid(NamedTuple):
    """The surface of a body at several times. `polygons` are its flat parts; those with sharp edges all around are `crisp`."""

    points: Points
    faces: Int[np.ndarray, "faces 3"]
    edges: Edges
    polygons: list[Int[np.ndarray, " corners"]]
    crisp: Bool[np.ndarray, " polygons"]

    def shaded(self, row: int) -> tuple[list[Float[np.ndarray, "corners 3"]], Float[np.ndarray, " polygons"]]:
        """Its polygons in space, and how bright they are."""
        first = np.array([polygon[:3] for polygon in self.polygons])
        brightness = DARK + (1 - DARK) * np.abs(normals(self.points[row], first) @ LIGHT / np.linalg.norm(LIGHT))
        return [self.points[row, polygon] for polygon in self.polygons], brightness

    def silhouette(self, flat: Float[np.ndarray, "vertices 2"]) -> tuple[Path, Path]:
        """The area that the surface covers in a plane, and its outline with the sharp edges in front."""
        a, b, c = np.swapaxes(flat[self.faces], 0, 1)
        area = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
        front = area > 1e-9 * np.abs(area).max()
        one, other = front[self.edges.sides].T
        shown = (one != other) | (self.edges.sharp & one) if front.any() else self.edges.sharp
        return _closed(flat[self.faces[front]]), _strokes(flat[self.edges.ends[shown]])


def solid(surface: Surface, points: Points) -> Solid:
    """A surface whose vertices have been moved to `points`."""
    edges, cosines = _edges(surface)
    polygons = _polygons(surface.faces, edges, cosines)
    smooth = {tuple(ends) for ends in edges.ends[~edges.sharp & (cosines <= FLAT)].tolist()}
    around = ({tuple(sorted(pair)) for pair in zip(p.tolist(), np.roll(p, -1).tolist(), strict=True)} for p in polygons)
    whole = set(map(tuple, edges.ends[cosines > FLAT].tolist()))
    crisp = np.array([not edge & (smooth | whole) for edge in around], bool)
    return Solid(points, surface.faces, edges, polygons, crisp)


def together(surfaces: Sequence[Surface]) -> Surface:
    """Several surfaces as one."""
    begins = np.cumsum([0, *(len(one.vertices) for one in surfaces)])
    faces = [one.faces + begin for one, begin in zip(surfaces, begins, strict=False)]
    return Surface(np.concatenate([one.vertices for one in surfaces]), np.concatenate(faces))


def normals(points: Float[np.ndarray, "points 3"], faces: Int[np.ndarray, "faces 3"]) -> Float[np.ndarray, "faces 3"]:
    """Unit normals of triangles; zero for those without area."""
    a, b, c = np.swapaxes(points[faces], 0, 1)
    across = np.cross(b - a, c - a)
    size = np.linalg.norm(across, axis=1, keepdims=True)
    return across / np.where(size > 0, size, 1)


def _edges(surface: Surface) -> tuple[Edges, Float[np.ndarray, " edges"]]:
    """All edges, and the cosines of the angles between the faces that meet there."""
    around = np.stack([surface.faces, np.roll(surface.faces, -1, axis=1)], axis=-1).reshape(-1, 2)
    face = np.repeat(np.arange(len(surface.faces)), 3)
    ends, first, number = np.unique(np.sort(around, axis=1), axis=0, return_index=True, return_inverse=True)
    last = np.zeros(len(ends), int)
    last[number.ravel()] = face  # of several faces the last one stays
    sides = np.stack([face[first], last], axis=1)
    normal = normals(surface.vertices, surface.faces)
    cosines = np.einsum("ei,ei->e", *normal[sides.T])
    ending = sides[:, 0] == sides[:, 1]
    return Edges(ends, sides, ending | (cosines < SHARP)), np.where(ending, -1.0, cosines)


def _polygons(faces: Int[np.ndarray, "faces 3"], edges: Edges, cosines: Float[np.ndarray, " edges"]) -> list[np.ndarray]:
    """Triangles that lie in one plane side by side as one polygon, unless it has holes."""
    flat = edges.sides[cosines > FLAT].T
    graph = coo_array((np.ones(flat.shape[1]), tuple(flat)), shape=(len(faces), len(faces)))
    part = connected_components(graph, directed=False)[1]
    found: list[np.ndarray] = []
    for members in np.split(np.argsort(part, kind="stable"), np.cumsum(np.bincount(part))[:-1]):
        loop = _loop(faces[members]) if len(members) > 1 else None
        found += [loop] if loop is not None else list(faces[members])
    return found


def _loop(faces: Int[np.ndarray, "faces 3"]) -> Int[np.ndarray, " corners"] | None:
    """The one line around some faces, if there is one alone."""
    pairs = {(a, b) for triangle in faces.tolist() for a, b in zip(triangle, triangle[1:] + triangle[:1], strict=True)}
    follows = {a: b for a, b in pairs if (b, a) not in pairs}
    loop = [next(iter(follows))]
    while (after := follows[loop[-1]]) != loop[0] and len(loop) <= len(follows):
        loop.append(after)
    return np.array(loop) if len(loop) == len(follows) else None


def _closed(triangles: Float[np.ndarray, "faces 3 2"]) -> Path:
    """Triangles as one path, so that the areas where they meet or cover each other are filled once."""
    corners = np.concatenate([triangles, triangles[:, :1]], axis=1).reshape(-1, 2)
    return Path(corners, np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(triangles)))


def _strokes(segments: Float[np.ndarray, "edges 2 2"]) -> Path:
    return Path(segments.reshape(-1, 2), np.tile([Path.MOVETO, Path.LINETO], len(segments)))
