"""Axes of Matplotlib, in a plane or in space, and what is drawn on them."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.collections import LineCollection
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from ..errors import ModelError
from .skeleton import Skeleton

INK, PALE, GREY, BLUE = "#1f2933", "#c5ced8", "#66727f", "#1273b8"

THICKNESS = 0.25
"""Of the axes on which a line or a flat mechanism is drawn, by its size."""

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


def draw_bodies(axes: Any, plane: Plane, parts: Skeleton, row: int, colour: str, width: float) -> None:
    """Bodies as stars from the middle of what they reach to, small ones as squares, and bridges between joints."""
    for name, points in parts.bodies.items():
        middle = np.broadcast_to(points[row].mean(axis=0), points[row].shape)
        star = np.stack([middle, points[row]], axis=1).reshape(-1, 3)
        shape = {"marker": "s", "ms": 2.5 * width} if len(points[row]) == 1 else {}
        axes.plot(*flatten(star, plane).T, color=colour, lw=0.7 * width, solid_capstyle="round", zorder=2, gid=name, **shape)
    for pair in parts.bridges:
        axes.plot(*flatten(pair[row], plane).T, color=PALE, lw=0.4 * width, ls="--", zorder=1)


def draw_marks(axes: Any, plane: Plane, parts: Skeleton, row: int, width: float) -> None:
    """Joints that move and masses on beams."""
    for points, style in ((parts.pins[row], {"mfc": "white", "mew": 0.35 * width}), (parts.weights[row], {"mfc": INK})):
        if len(points):
            axes.plot(*flatten(points, plane).T, "o", color=INK, ms=1.3 * width, zorder=5, **style)


def draw_ground(axes: Any, plane: Plane, parts: Skeleton, width: float) -> None:
    """Joints on the ground: triangles, and squares for clamps."""
    for points, marker in ((parts.hinges[0], "^"), (parts.clamps[0], "s")):
        if len(points):
            axes.plot(*flatten(points, plane).T, marker, color=INK, ms=2 * width, zorder=4)


def fit(axes: Any, plane: Plane, points: Float[np.ndarray, "... 3"], margin: float = 0.06) -> None:
    """Axes as wide as what is drawn on them, with equal scales."""
    flat = flatten(points.reshape(-1, 3), plane)
    low, high = flat.min(axis=0), flat.max(axis=0)
    reach = max(np.max(high - low), np.finfo(float).tiny)
    room = np.maximum(margin * reach, 0.5 * (THICKNESS * reach - (high - low)))
    low, high = low - room, high + room
    for name, begin, end in zip("xyz", low, high, strict=False):
        getattr(axes, f"set_{name}lim")(begin, end)
    if plane is None:
        axes.set_box_aspect(high - low)
        axes.locator_params(nbins=5)
    else:
        axes.set_aspect("equal")


def flatten(points: Float[np.ndarray, "... 3"], plane: Plane) -> Float[np.ndarray, "... k"]:
    """Points as they are drawn."""
    return points if plane is None else points[..., list(plane)]
