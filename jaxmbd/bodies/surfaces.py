"""Surfaces of triangles: turned, as hulls of points, and from files."""

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import ConvexHull, QhullError

from ..errors import ModelError

Points = Float[np.ndarray, "points 3"]


class Surface(NamedTuple):
    """Triangles by the numbers of their corners, counterclockwise as seen from outside."""

    vertices: Points
    faces: Int[np.ndarray, "faces 3"]


def revolve(profile: Float[np.ndarray, "k 2"], facets: int, closed: bool = False) -> Surface:
    """A profile of radii and heights turned about the third axis; upwards is outside on its right. `closed` joins its ends."""
    radius, height = profile.T
    turn = 2 * np.pi * np.arange(facets) / facets
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    around = np.concatenate([radius[:, None, None] * ring, np.broadcast_to(height[:, None, None], (len(height), facets, 1))], axis=2)
    number = np.arange(len(radius))[:, None] * facets + np.where(radius[:, None] > 0, np.arange(facets), 0)
    lower = number if closed else number[:-1]
    upper = np.roll(number, -1, axis=0)[: len(lower)]
    corners = np.stack([lower, np.roll(lower, -1, axis=1), np.roll(upper, -1, axis=1), upper], axis=-1).reshape(-1, 4)
    faces = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
    return _used(around.reshape(-1, 3), faces)


def convex_hull(points: Points) -> Surface:
    """The surface of the convex hull of points that do not lie in a plane."""
    try:
        found = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise ModelError(f"the hull of {len(points)} points has no volume: it takes four that do not lie in a plane") from error
    a, b, c = np.swapaxes(points[found.simplices], 0, 1)
    inwards = np.einsum("fi,fi->f", np.cross(b - a, c - a), found.equations[:, :3]) < 0
    return _used(points, np.where(inwards[:, None], found.simplices[:, ::-1], found.simplices))


def read_mesh(path: str) -> Surface:
    """The triangles of an STL file, of text or of numbers, or of an OBJ file; points that coincide become one."""
    file = Path(path)
    readers = {".stl": _read_stl, ".obj": _read_obj}
    if file.suffix.lower() not in readers:
        raise ModelError(f"meshes are read from files that end in .stl or .obj, not from {path!r}")
    if not file.is_file():
        raise ModelError(f"there is no mesh file {path!r}; a path that is not absolute begins at the folder {str(Path.cwd())!r}")
    try:
        vertices, faces = readers[file.suffix.lower()](file.read_bytes())
        vertices, place = np.unique(vertices, axis=0, return_inverse=True)
        surface = _used(vertices, place.ravel()[faces])
    except (ValueError, IndexError) as error:
        raise ModelError(f"the mesh file {path!r} cannot be read: {error}") from error
    if not len(surface.faces):
        raise ModelError(f"the mesh file {path!r} holds no triangles")
    return surface


def _read_stl(content: bytes) -> Surface:
    """A header of 80 bytes, a count and 50 bytes a triangle; or lines `vertex x y z`."""
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    count = int.from_bytes(content[80:84], "little")
    if len(content) == 84 + record.itemsize * count:
        corners = np.frombuffer(content, record, count, 84)["corners"].astype(float).reshape(-1, 3)
    else:
        lines = (line.split() for line in content.decode(errors="replace").splitlines())
        corners = np.array([words[1:4] for words in lines if words[:1] == ["vertex"]], float).reshape(-1, 3)
    return Surface(corners, np.arange(len(corners)).reshape(-1, 3))


def _read_obj(content: bytes) -> Surface:
    """Lines `v x y z` and `f i j k ...`, counted from 1 or from the end, with whatever follows a slash left out."""
    lines = [line.split() for line in content.decode(errors="replace").splitlines()]
    vertices = np.array([words[1:4] for words in lines if words[:1] == ["v"]], float).reshape(-1, 3)
    faces = []
    for words in (words[1:] for words in lines if words[:1] == ["f"]):
        number = [int(word.partition("/")[0]) for word in words]
        corners = [i - 1 if i > 0 else i + len(vertices) for i in number]
        faces += [(corners[0], *pair) for pair in itertools.pairwise(corners[1:])]
    return Surface(vertices, np.array(faces, int).reshape(-1, 3))


def _used(vertices: Points, faces: Int[np.ndarray, "faces 3"]) -> Surface:
    """Without triangles that name a corner twice, and without points that none names."""
    repeats = (faces == np.roll(faces, 1, axis=1)).any(axis=1)
    number, faces = np.unique(faces[~repeats], return_inverse=True)
    return Surface(vertices[number], faces.reshape(-1, 3))
