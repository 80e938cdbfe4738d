"""Paths of points in a plane, in space and on a sphere, and arrows along them."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import post
from ..errors import ModelError
from ..simulation.trajectory import Trajectory
from ..system import System
from .canvas import Plane, draw_lines, fit, flatten
from .plots import LINES
from .style import BLUE, INK, PALE, PALETTE, legend_above, new_axes, styled

Points = Float[Array, "rows k"] | Float[np.ndarray, "rows k"]


@styled
def paths(
    points: Points | Mapping[str, Points],
    *,
    axes: Any = None,
    plane: Plane = None,
    times: Float[Array, " rows"] | Float[np.ndarray, " rows"] | None = None,
    style: str | Mapping[str, str] = "line",
    colours: Sequence[Any] | Mapping[str, Any] = PALETTE,
    **settings: Any,
) -> Any:
    """Draw paths with equal scales, and return the axes.

    **Arguments**

    - `points`: one path (rows, 3), or (rows, 2) in a plane, or several by label.
    - `plane`: two axes of space in which paths in space are drawn; by default they are drawn in space.
    - `times`: colours paths from early, dark, to late, bright.
    - `style`, `colours`, `settings`: as for `curves`.
    """
    named = {label: np.asarray(one, float) for label, one in (points if isinstance(points, Mapping) else {"": points}).items()}
    flat = {one.shape[-1] for one in named.values()}
    if not flat <= {2, 3} or len(flat) > 1 or any(one.ndim != 2 for one in named.values()):
        raise ModelError(f"paths have points (rows, 2) or (rows, 3), not {', '.join(str(one.shape) for one in named.values())}")
    in_space = flat == {3} and plane is None
    axes = new_axes(axes, in_space, (6.0, 6.0))
    for number, (label, one) in enumerate(named.items()):
        drawn = flatten(one, plane) if flat == {3} else one
        options = dict(LINES[style if isinstance(style, str) else style.get(label, "line")])
        options.setdefault("color", colours.get(label, INK) if isinstance(colours, Mapping) else colours[number % len(colours)])
        if times is None:
            axes.plot(*drawn.T, label=label or None, **options)
        else:
            space = drawn if drawn.shape[1] == 3 else np.pad(drawn, ((0, 0), (0, 1)))
            shade = draw_lines(axes, None if in_space else (0, 1), space, lw=options.get("lw", 1.4), cmap="plasma", label=label or None)
            shade.set_array(np.asarray(times)[1:])
            shade.set_clim(np.min(times), np.min(times) + 1.12 * np.ptp(np.asarray(times)))
    every = np.concatenate(list(named.values()))
    fit(axes, plane if flat == {3} else (0, 1), every if flat == {3} else np.pad(every, ((0, 0), (0, 1))))
    axes.set(**settings)
    legend_above(axes)
    return axes


def trails(system: System, motion: Trajectory, points: Mapping[str, tuple[str, Any]], rows: slice = slice(None), **options: Any) -> Any:
    """Draw the paths of points of bodies during some rows of a motion.

    `points` are pairs of a body and a point in its axes, by label; options as for `paths`.
    """
    poses = post.poses(system, motion)
    follow = lambda frame, point: (frame.origin + frame.rotation @ jnp.asarray(point, frame.origin.dtype))[rows]
    return paths({label: follow(poses[body], point) for label, (body, point) in points.items()}, **options)


@styled
def globe(
    points: Points | Mapping[str, Points], *, axes: Any = None, reach: float = np.pi, view: tuple[float, float] = (30, 60), **options: Any
) -> Any:
    """Paths on the unit sphere, drawn from its pole down to the angle `reach`; options as for `paths`. A line leads to each start."""
    axes = new_axes(axes, True, (6.0, 6.0))
    polar, turn = np.meshgrid(np.linspace(0, reach, 13), np.linspace(0, 2 * np.pi, 37))
    axes.computed_zorder = False
    axes.plot_wireframe(np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar), color=PALE, lw=0.5, zorder=1)
    for one in points.values() if isinstance(points, Mapping) else [points]:
        axes.plot(*np.transpose([np.zeros(3), one[0]]), color=INK, lw=3.0, zorder=2)
        axes.plot(*np.asarray(one)[:1].T, "o", color=INK, ms=6, zorder=4)
    paths(points, axes=axes, **options)
    side, low = (1.0 if reach > np.pi / 2 else np.sin(reach)), min(0.0, np.cos(reach))
    axes.set(xlim=(-side, side), ylim=(-side, side), zlim=(low, 1))
    axes.set_box_aspect((2 * side, 2 * side, 1 - low), zoom=1.4)
    axes.view_init(*view)
    axes.set_axis_off()
    return axes


@styled
def arrows(
    at: Points,
    vectors: Points,
    *,
    axes: Any,
    scale: float = 1.0,
    colour: Any = BLUE,
    label: str = "",
    middle: bool = False,
    thin: bool = False,
) -> Any:
    """Vectors (rows, 2) at points of a plane, `scale` long for a vector of length one; from the point on, or with it in their middle."""
    head = {"headwidth": 3.6, "headlength": 4.5, "headaxislength": 4.1, "units": "inches", "width": 0.018 if thin else 0.032, "zorder": 3}
    pivot = "mid" if middle else "tail"
    axes.quiver(
        *np.transpose(at), *np.transpose(vectors), color=colour, angles="xy", scale_units="xy", scale=1 / scale, pivot=pivot, **head
    )
    ends = np.asarray(at) + scale * np.asarray(vectors)
    fit(axes, (0, 1), np.pad(np.concatenate([at, ends]), ((0, 0), (0, 1))))
    if label:
        axes.plot([], [], color=colour, lw=2.4, label=label)
        legend_above(axes)
    return axes
