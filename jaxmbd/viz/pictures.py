"""Snapshots of motions and shapes of vibrations."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly.abstract_model import require_model
from ..assembly.model import as_assembly
from ..errors import ModelError
from ..simulation.trajectory import Trajectory
from ..statics.vibration import Modes
from ..system import System, VectorLike
from .canvas import (
    Plane,
    colours_of,
    draw_bodies,
    draw_ground,
    draw_lines,
    draw_marks,
    draw_solids,
    fit,
    make_axes,
    without_frame,
)
from .colours import scale_of, shades_of
from .skeleton import in_directors, skeleton
from .style import BLUE, GREY, INK, PALE, styled


class Drawing(NamedTuple):
    """What was drawn: the figure, its axes, the lines of beams (row by row and beam by beam), the colour bar if there is
    one, and what shows the shapes of bodies.
    """

    figure: Any
    axes: list[Any]
    beams: list[Any]
    bar: Any
    bodies: list[Any]


@styled
def snapshots(
    system: System,
    motion: Trajectory | VectorLike,
    rows: int | Sequence[int] = 12,
    *,
    colour: Any = BLUE,
    bodies: Any = None,
    axes: Any = None,
    plane: Plane = None,
    frame: bool = True,
    limits: tuple[float, float] | None = None,
    cmap: str | None = None,
    bar: bool | Mapping[str, Any] = True,
    width: float = 4.0,
) -> Drawing:
    r"""Draw a mechanism at some times of a motion.

    Beams are curves by their shape functions, bodies with a shape show it, and any other body is lines between its joints. Circles are
    joints, triangles joints on the ground, squares clamps, dots masses on beams. Of several rows on the same axes the last one stands
    out and earlier ones fade; rows on axes of their own tell their time.

    **Arguments**

    - `motion`: a trajectory, or positions, as those of `Equilibrium.path`.
    - `rows`: which rows to draw, or how many of them at equal distance.
    - `colour`: of beams. `"axial force"`, `"torque"`, `"shear force"` and `"bending moment"` (the size of both components; with `1` or `2`
      behind, the component along or about that director), `"strain energy"` of a unit of length, a colour of Matplotlib, or values: an
      array with a number for each row of the motion, or for each row and each point of integration or node of a beam; or a dictionary of
      such arrays by the names of beams.
    - `bodies`: the colour of those with a shape, or colours by name; by default one after the other, grey beside beams.
    - `axes`: where to draw all rows, or one for each; by default new ones.
    - `plane`: two axes of space, such as `(0, 2)`; by default in space, on axes with `projection="3d"`.
    - `frame`: whether to draw the frame of the axes and its numbers.
    - `limits`, `cmap`, `bar`: ends of the scale of colours, its colours, and whether to draw it, or how: options of `colorbar`.
    - `width`: of lines, in points.
    """
    system, q = in_directors(*_given(system, motion))
    model = as_assembly(system)
    chosen = _rows(rows, q.shape[0])
    parts = skeleton(system, q[chosen])
    colours = colours_of(parts, bodies)
    canvas = make_axes(axes, plane, 1)
    if len(canvas) not in (1, len(chosen)):
        raise ModelError(f"{len(chosen)} rows are drawn on one axes or on one each, not on {len(canvas)}")
    shades, signed = shades_of(model, q, chosen, colour, parts.curves)
    scale = None if shades is None else scale_of(shades, limits, signed, cmap)
    style = {"color": colour} if scale is None else {"cmap": scale.cmap, "norm": scale.norm}
    beams, solids = [], []
    for i in range(len(chosen)):
        one = canvas[i % len(canvas)]
        covered = i + len(canvas) < len(chosen)
        strength = _strength(i // len(canvas), -(-len(chosen) // len(canvas)))
        solids += draw_solids(one, plane, parts.solids, i, colours, strength)
        draw_bodies(one, plane, parts, i, *((PALE, 0.7 * width) if covered else (GREY, width)))
        for name, curve in parts.curves.items():
            beams.append(draw_lines(one, plane, curve.points[i], lw=width, zorder=3, **style))
            if shades is not None:
                beams[-1].set_array(0.5 * (shades[name][i, :-1] + shades[name][i, 1:]))
        draw_marks(one, plane, parts, i, width, strength)
    for one in canvas:
        draw_ground(one, plane, parts, width)
        fit(one, plane, parts.points)
    _finish(canvas, motion, chosen, frame)
    figure = canvas[0].figure
    wanted = None if scale is None or bar is False else {} if bar is True else dict(bar)
    usual = {"ax": canvas, "label": colour if isinstance(colour, str) else ""}
    drawn = None if wanted is None else figure.colorbar(scale, **(usual | wanted))
    return Drawing(figure, canvas, beams, drawn, solids)


@styled
def modes(
    system: System,
    q: VectorLike,
    modes: Modes,
    count: int | None = None,
    *,
    axes: Any = None,
    plane: Plane = None,
    amplitude: float = 0.15,
    colour: Any = BLUE,
    width: float = 3.0,
) -> Drawing:
    """Draw shapes of small vibrations about an equilibrium, each on axes of its own with its frequency.

    **Arguments**

    - `q`, `modes`: the equilibrium, and what `modes` found about it.
    - `count`: how many of them, from the slowest on (default: all, or as many as there are axes).
    - `amplitude`: the largest displacement, by the size of the mechanism. Pale lines are the equilibrium, thin ones the other end of the
      vibration.
    - `axes`, `plane`, `width`: as for `snapshots`. Vibrations out of the plane show nothing in it.
    """
    system, rest = _given(system, q)
    if rest.shape[0] != 1 or modes.shapes.ndim != 2 or modes.shapes.shape[1] != rest.shape[1]:
        raise ModelError(f"modes are drawn about one position: q has {rest.shape[0]} rows, shapes are {modes.shapes.shape}")
    given = None if axes is None else make_axes(axes, plane, 0)
    count = min(modes.shapes.shape[0], count or modes.shapes.shape[0], len(given or modes.shapes))
    canvas = given or make_axes(None, plane, count)
    swing = _swings(system, rest, jnp.asarray(modes.shapes[:count], rest.dtype), amplitude)
    parts = skeleton(system, jnp.concatenate([rest, rest + swing, rest - swing]))
    colours = colours_of(parts, None)
    beams, solids = [], []
    for i, (one, frequency) in enumerate(zip(canvas, np.asarray(modes.frequencies[:count]), strict=False), start=1):
        for row, shade, part in ((0, PALE, 0.5), (i + count, colour, 0.25), (i, colour, 1.0)):
            solids += draw_solids(one, plane, parts.solids, row, colours, part**2)
            draw_bodies(one, plane, parts, row, GREY if row else PALE, part * width)
            drawn = [draw_lines(one, plane, curve.points[row], lw=part * width, color=shade) for curve in parts.curves.values()]
        beams += drawn
        draw_marks(one, plane, parts, i, width)
        draw_ground(one, plane, parts, width)
        fit(one, plane, parts.points)
        one.set_axis_off()
        one.set_title(f"{frequency:.4g} Hz", color=INK, fontsize=10, weight="normal", loc="right")
    return Drawing(canvas[0].figure, canvas[:count], beams, None, solids)


def _strength(row: int, rows: int) -> float:
    """How strongly a row is drawn of several on the same axes: the last one fully."""
    return 1.0 if rows == 1 else 0.15 + 0.45 * row / (rows - 1) + 0.4 * (row == rows - 1)


def _finish(canvas: list[Any], motion: Any, chosen: np.ndarray, frame: bool) -> None:
    """Frames of axes, and times of rows that have axes of their own."""
    alone = len(canvas) == len(chosen) > 1
    if alone or not frame:
        without_frame(canvas)
    if alone and isinstance(motion, Trajectory):
        for one, t in zip(canvas, np.asarray(motion.t)[chosen], strict=True):
            one.annotate(f"t = {t:.4g}", (0.5, 0.0), xycoords="axes fraction", ha="center", va="top", color=GREY, fontsize=10)


def _swings(system: System, rest: Float[Array, "1 n"], shapes: Float[Array, "modes n"], amplitude: float) -> Float[Array, "modes n"]:
    """Changes of coordinates whose largest displacement is `amplitude` times the size of the mechanism; none where lines stay in place."""
    points = skeleton(system, jnp.concatenate([rest, rest + shapes])).points
    size, reach = np.ptp(points[0], axis=0).max(), np.abs(points[1:] - points[0]).max(axis=(1, 2))
    moving = reach > 1e-6 * np.abs(np.asarray(shapes)).max(axis=1)
    return jnp.asarray(np.where(moving, amplitude * size / np.where(moving, reach, 1), 0), rest.dtype)[:, None] * shapes


def _given(system: System, motion: Trajectory | VectorLike) -> tuple[System, Float[Array, "rows n"]]:
    """A mechanism, and positions, in their precision."""
    model = require_model(system)
    given = jnp.asarray(motion.q if isinstance(motion, Trajectory) else motion)
    q = given[None] if given.ndim == 1 else given
    if q.ndim != 2 or q.shape[1] != model.size:
        raise ModelError(f"positions of this mechanism have {model.size} coordinates, one row each, but have shape {given.shape}")
    return system.astype(q.dtype), q


def _rows(rows: int | Sequence[int], count: int) -> np.ndarray:
    """Numbers of rows."""
    if isinstance(rows, int):
        return np.unique(np.linspace(0, count - 1, max(rows, 1)).round().astype(int))
    chosen = np.asarray(rows, int)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.min() < -count or chosen.max() >= count:
        raise ModelError(f"rows are numbers from 0 to {count - 1}, or how many of them to draw, not {rows!r}")
    return chosen % count
