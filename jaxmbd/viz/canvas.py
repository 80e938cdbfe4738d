"""Axes of Matplotlib, in a plane or in space, and what is drawn on them."""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.collections import LineCollection
from matplotlib.colors import is_color_like, to_rgb
from matplotlib.patches import PathPatch
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from ..errors import ModelError
from .skeleton import Skeleton
from .solids import Solid
from .style import GREY, INK, PALE, PALETTE, dress_space

THICKNESS = 0.25
"""Of the axes on which a line or a flat mechanism is drawn, by its size."""

ZOOM = 1.6
"""Of axes in space without a frame, which needs no room then."""

FITTED = "_fitted_to_mechanism"
"""A mark on axes whose limits were set here."""

Plane = tuple[int, int] | None
"""Two axes of space, the horizontal one first; `None` is space itself."""


def make_axes(axes: Any, plane: Plane, count: int, columns: int = 3) -> list[Any]:
    """The axes that were given, or `count` new ones in a figure of their own."""
    if plane is not None and (len(plane) != 2 or not set(plane) <= {0, 1, 2} or plane[0] == plane[1]):
        raise ModelError(f"a plane is given by two axes of space, such as (0, 2), or None to draw in space; not by {plane!r}")
    if axes is None:
        columns = min(columns, count)
        lines = -(-count // columns)
        figure = plt.figure(figsize=(5 * columns, 4 * lines), layout="constrained")
        kind = {"projection": "3d"} if plane is None else {}
        return [figure.add_subplot(lines, columns, i + 1, **kind) for i in range(count)]
    found: list[Any] = np.asarray(axes, object).ravel().tolist()
    for one in found:
        if not isinstance(one, plt.Axes):
            raise ModelError(f"axes are those of Matplotlib, one or several, not a {type(one).__name__}")
        if (one.name == "3d") != (plane is None):
            raise ModelError("axes with projection='3d' draw in space, with plane=None; others need a plane, such as (0, 2)")
    return found


def draw_lines(axes: Any, plane: Plane, points: Float[np.ndarray, "points 3"], **style: Any) -> Any:
    """A line along which colours may change: a collection of short lines."""
    flat = flatten(points, plane)
    segments = list(np.stack([flat[:-1], flat[1:]], axis=1))
    if plane is None:
        return axes.add_collection3d(Line3DCollection(segments, capstyle="round", **style), autolim=False)
    return axes.add_collection(LineCollection(segments, capstyle="round", **style), autolim=False)


def colours_of(parts: Skeleton, given: Any) -> dict[str, Any]:
    """The colour of every solid: one for all, by name, or by default one after the other of the palette, grey beside beams."""
    names = list(parts.solids)
    if isinstance(given, Mapping):
        if unknown := set(given) - set(names):
            raise ModelError(f"colours are given for {', '.join(sorted(unknown))}, but bodies with a shape are {', '.join(names)}")
        return {name: given.get(name, GREY) for name in names}
    if given is None and not parts.curves:
        return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}
    if given is not None and not is_color_like(given):
        raise ModelError(f"bodies are coloured by a colour of Matplotlib, or by one for each name, not by {given!r}")
    return dict.fromkeys(names, GREY if given is None else given)


def draw_solids(axes: Any, plane: Plane, solids: Mapping[str, Solid], row: int, colours: Mapping[str, Any], strength: float) -> list[Any]:
    """Bodies by their surfaces, pale if `strength` is small: filled outlines in a plane, shaded polygons in space."""
    if plane is None:
        return _draw_in_space(axes, solids, row, colours, strength)
    across = ({0, 1, 2} - set(plane)).pop()
    towards = 1 if (plane[1] - plane[0]) % 3 == 1 else -1
    drawn = []
    for name, solid in sorted(solids.items(), key=lambda one: towards * one[1].points[row, :, across].mean()):
        area, outline = solid.silhouette(flatten(solid.points[row], plane))
        base = np.array(to_rgb(colours[name]))
        fill = PathPatch(area, fc=(*base, 0.45 * strength), lw=0, zorder=2, gid=name)
        line = PathPatch(outline, fc="none", ec=(*0.75 * base, 0.15 + 0.85 * strength), lw=0.5 + 0.6 * strength, zorder=2, capstyle="round")
        drawn += [axes.add_patch(fill), axes.add_patch(line)]
    return drawn


def _draw_in_space(axes: Any, solids: Mapping[str, Solid], row: int, colours: Mapping[str, Any], strength: float) -> list[Any]:
    """All bodies in one collection, so that what is in front covers what is behind."""
    polygons, faces, lines = [], [], []
    for name, solid in solids.items():
        corners, brightness = solid.shaded(row)
        shades = brightness[:, None] * to_rgb(colours[name])
        polygons += corners
        faces += [(*shade, 0.92 * strength) for shade in shades]
        lines += [(*(0.5 * shade if crisp else shade), strength) for shade, crisp in zip(shades, solid.crisp, strict=True)]
    if not polygons:
        return []
    return [axes.add_collection3d(Poly3DCollection(polygons, facecolors=faces, edgecolors=lines, lw=0.5, gid="bodies"), autolim=False)]


def draw_bodies(axes: Any, plane: Plane, parts: Skeleton, row: int, colour: str, width: float) -> None:
    """Bodies without a shape as stars from the middle of what they reach to, small ones as squares, and bridges between joints."""
    for name, points in parts.bodies.items():
        middle = np.broadcast_to(points[row].mean(axis=0), points[row].shape)
        star = np.stack([middle, points[row]], axis=1).reshape(-1, 3)
        shape = {"marker": "s", "ms": 2.5 * width} if len(points[row]) == 1 else {}
        axes.plot(*flatten(star, plane).T, color=colour, lw=0.7 * width, solid_capstyle="round", zorder=2, gid=name, **shape)
    for pair in parts.bridges:
        axes.plot(*flatten(pair[row], plane).T, color=PALE, lw=0.4 * width, ls="--", zorder=1)


def draw_marks(axes: Any, plane: Plane, parts: Skeleton, row: int, width: float, strength: float = 1.0) -> None:
    """Joints that move and masses on beams."""
    for points, style in ((parts.pins[row], {"mfc": "white", "mew": 0.35 * width}), (parts.weights[row], {"mfc": INK})):
        if len(points):
            axes.plot(*flatten(points, plane).T, "o", color=INK, ms=1.3 * width, zorder=5, alpha=strength, **style)


def draw_ground(axes: Any, plane: Plane, parts: Skeleton, width: float) -> None:
    """Joints on the ground: triangles, and squares for clamps; and the shapes of bodies that rest."""
    draw_solids(axes, plane, parts.scenery, 0, dict.fromkeys(parts.scenery, PALE), 0.6)
    for points, marker in ((parts.hinges[0], "^"), (parts.clamps[0], "s")):
        if len(points):
            axes.plot(*flatten(points, plane).T, marker, color=INK, ms=2 * width, zorder=4)


def fit(axes: Any, plane: Plane, points: Float[np.ndarray, "... 3"], margin: float = 0.06) -> None:
    """Axes as wide as what is drawn on them, now and before, with equal scales."""
    flat = flatten(points.reshape(-1, 3), plane)
    low, high = flat.min(axis=0), flat.max(axis=0)
    reach = np.max(high - low)
    if reach == 0:
        return  # a single point has no size: Matplotlib puts it in the middle
    room = np.maximum(margin * reach, 0.5 * (THICKNESS * reach - (high - low)))
    low, high = low - room, high + room
    names = "xyz"[: len(low)]
    if getattr(axes, FITTED, False):
        before = np.array([getattr(axes, f"get_{name}lim")() for name in names])
        low, high = np.minimum(low, before[:, 0]), np.maximum(high, before[:, 1])
    setattr(axes, FITTED, True)
    for name, begin, end in zip(names, low, high, strict=True):
        getattr(axes, f"set_{name}lim")(begin, end)
    if plane is None:
        axes.set_box_aspect(high - low)
        dress_space(axes)
    else:
        axes.set_aspect("equal")


def without_frame(axes: Iterable[Any]) -> None:
    """Leave the frames and numbers of axes away."""
    for one in axes:
        one.set_axis_off()
        if one.name == "3d":
            size = np.ptp([one.get_xlim(), one.get_ylim(), one.get_zlim()], axis=1)
            one.set_box_aspect(size, zoom=ZOOM)


def flatten(points: Float[np.ndarray, "... 3"], plane: Plane) -> Float[np.ndarray, "... k"]:
    """Points as they are drawn."""
    return points if plane is None else points[..., list(plane)]
