"""Curves over time, what motions keep, errors against sizes, fields of colour: one call each, drawn on given axes or on new ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Array, Float
from matplotlib.ticker import NullFormatter

from .. import post
from ..errors import ModelError
from ..simulation.trajectory import Trajectory
from ..system import System
from .style import BLUE, GREY, INK, PALE, PALETTE, legend_above, new_axes, styled

Values = Float[Array, "..."] | Float[np.ndarray, "..."] | Sequence[float]
Motions = Trajectory | Mapping[str, Trajectory]

LINES: dict[str, dict[str, Any]] = {
    "line": {"lw": 1.6},
    "dashed": {"lw": 1.4, "ls": "--"},
    "dotted": {"lw": 1.4, "ls": ":"},
    "points": {"ls": "none", "marker": "o", "ms": 2.6, "mew": 0},
    "joined": {"lw": 1.6, "marker": "o", "ms": 4.5},
    "band": {"lw": 5.0, "zorder": 1, "color": PALE},
}
"""How a curve may be drawn; a `band` is a pale reference behind the others."""
TINY = 1e-17
"""Instead of zero, where a curve has nothing else to show on a logarithmic scale."""


@styled
def curves(
    x: Values | None,
    values: Any,
    *,
    axes: Any = None,
    style: str | Mapping[str, str] = "line",
    colours: Sequence[Any] | Mapping[str, Any] = PALETTE,
    log: bool = False,
    xlabel: str = "time",
    ylabel: str = "",
    **settings: Any,
) -> Any:
    """Draw curves and return the axes.

    **Arguments**

    - `x`: of all curves. Curves with one value less stand in the middle between, as values of steps do.
    - `values`: an array, or a dictionary of arrays by label; a pair of arrays brings its own `x`.
    - `style`: `"line"`, `"dashed"`, `"dotted"`, `"points"`, `"joined"` or `"band"` (a pale reference), for all or by label.
    - `colours`: one after the other, or by label.
    - `log`: sizes on a logarithmic scale.
    - `settings`: of the axes, such as `ylim=(0, 1)`.
    """
    axes = new_axes(axes)
    named = values if isinstance(values, Mapping) else {"": values}
    taken = longest = 0
    for label, one in named.items():
        options = _line(style if isinstance(style, str) else style.get(label, "line"))
        if "color" not in options:
            options["color"] = colours.get(label, INK) if isinstance(colours, Mapping) else colours[taken % len(colours)]
            taken += 1
        along, across = _pair(x, one, label)
        longest = max(longest, len(along))
        axes.plot(along, _sizes(across) if log else across, label=label or None, **options)
    axes.margins(x=0.0 if longest > 20 else 0.03)
    axes.set(xlabel=xlabel, ylabel=ylabel, **{"yscale": "log" if log else "linear"} | settings)
    if log and np.ptp(np.log10(axes.get_ylim())) > 1:
        axes.yaxis.set_minor_formatter(NullFormatter())
    legend_above(axes)
    return axes


def mark(axes: Any, *, x: float | tuple[float, float] | None = None, y: float | None = None, text: str = "") -> Any:
    """A pale line at `x` or `y` with a word beside it, or a pale band between two `x`."""
    style = {"color": PALE, "lw": 1.4, "zorder": 0.5}
    note = {"color": GREY, "fontsize": 9.5, "textcoords": "offset points"}
    if isinstance(x, tuple):
        axes.axvspan(*x, color=PALE, alpha=0.35, lw=0, zorder=0)
        axes.annotate(text, (x[0], 1.0), xycoords=axes.get_xaxis_transform(), xytext=(4, -3), va="top", **note)
    elif x is not None:
        axes.axvline(x, **style)
        axes.annotate(text, (x, 1.0), xycoords=axes.get_xaxis_transform(), xytext=(4, -3), va="top", **note)
    elif y is not None:
        axes.axhline(y, **style)
        axes.annotate(text, (1.0, y), xycoords=axes.get_yaxis_transform(), xytext=(-3, 3), ha="right", **note)
    return axes


def energies(system: System, motions: Motions, *, axes: Any = None, relative: bool = False, **options: Any) -> Any:
    """How far the energy of one motion, or of several by label, is from that at the start: sizes on a logarithmic scale."""
    changes = {}
    for label, motion in _named(motions).items():
        energy = np.asarray(post.energy(system, motion))
        changes[label] = (np.asarray(motion.t), (energy - energy[0]) / (abs(energy[0]) if relative else 1))
    usual: dict[str, Any] = {"log": True, "ylabel": "change of energy"}
    return curves(None, changes, axes=axes, **usual | options)


def residuals(system: System, motions: Motions, *, axes: Any = None, **options: Any) -> Any:
    """The largest constraint at each time of one motion, or of several by label."""
    found = {}
    for label, motion in _named(motions).items():
        found[label] = (np.asarray(motion.t), np.abs(np.asarray(post.constraint_residuals(system, motion))).max(axis=1))
    usual: dict[str, Any] = {"log": True, "style": "points", "ylabel": "largest constraint"}
    return curves(None, found, axes=axes, **usual | options)


@styled
def convergence(
    sizes: Values,
    errors: Mapping[str, Values],
    *,
    axes: Any = None,
    slopes: Sequence[int] = (),
    xlabel: str = "step",
    ylabel: str = "error",
) -> Any:
    """Errors against sizes on logarithmic scales, by label, with lines of some slopes beside them."""
    sizes = np.asarray(sizes, float)
    axes = curves(sizes, errors, axes=axes, style="joined", log=True, xlabel=xlabel, ylabel=ylabel, xscale="log")
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    ends = np.array([sizes[0], sizes[-1]])
    for slope in slopes:
        values = [np.abs(np.asarray(one)) for one in errors.values()]
        nearest = min(values, key=lambda one: abs(np.polyfit(np.log(sizes), np.log(np.maximum(one, TINY)), 1)[0] - slope))
        line = 1.6 * nearest[0] * (ends / ends[0]) ** slope
        axes.plot(ends, line, color=PALE, lw=1.4, ls="--", zorder=1)
        right = int(np.argmax(ends))
        note = {"textcoords": "offset points", "color": GREY, "fontsize": 9.5, "ha": "right"}
        axes.annotate(f"order {slope}", (ends[right], line[right]), xytext=(0, 5), **note)
    return axes


@styled
def field(
    x: Values,
    y: Values,
    values: Values,
    *,
    axes: Any = None,
    label: str = "",
    limits: tuple[float, float] | None = None,
    log: bool = False,
    cmap: str | None = None,
    bar: bool = True,
    xlabel: str = "time",
    ylabel: str = "",
) -> Any:
    """Values (x, y) as colours over two axes; where they have a sign, zero is in the middle of the scale."""
    axes = new_axes(axes)
    values = np.asarray(values).T
    size, signed = np.abs(values).max(), bool(values.min() < 0 < values.max())
    low, high = limits or ((-size, size) if signed else (values.min(), size))
    scale: Any = {"norm": "log", "vmin": low, "vmax": high} if log else {"vmin": low, "vmax": high}
    mesh = axes.pcolormesh(x, y, values, cmap=cmap or ("coolwarm" if signed else "magma"), shading="gouraud", rasterized=True, **scale)
    if bar:
        drawn = axes.figure.colorbar(mesh, ax=axes, label=label, extend="both" if limits else "neither")
        drawn.outline.set_visible(False)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(False)
    return axes


@styled
def bars(x: Values, values: Values, deviations: Values, *, axes: Any, label: str = "", colour: Any = BLUE) -> Any:
    """Points with bars of their deviations, upon what the axes show already."""
    axes.errorbar(x, values, deviations, fmt="o", color=colour, ms=6, capsize=4, label=label or None)
    legend_above(axes)
    return axes


def _line(style: str) -> dict[str, Any]:
    if style not in LINES:
        raise ModelError(f"curves are drawn as {', '.join(LINES)}, not as {style!r}")
    return dict(LINES[style])


def _pair(x: Any, values: Any, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Both coordinates of the points of a curve."""
    along, across = values if isinstance(values, tuple) and len(values) == 2 else (x, values)
    if along is None:
        raise ModelError(f"curve {label!r} has no x: give one for all curves, or a pair of arrays for this one")
    along, across = np.asarray(along, float), np.asarray(across, float)
    if across.ndim == 1 and len(across) == len(along) - 1:
        along = 0.5 * (along[1:] + along[:-1])
    if across.ndim != 1 or across.shape != along.shape:
        raise ModelError(f"curve {label!r} has values of shape {across.shape} over an x of shape {along.shape}")
    return along, across


def _sizes(values: np.ndarray) -> np.ndarray:
    """Sizes for a logarithmic scale, which would lose zeros: they become as small as the smallest other one."""
    sizes = np.abs(values)
    return np.maximum(sizes, np.min(sizes, where=sizes > 0, initial=1.0)) if sizes.any() else sizes + TINY


def _named(motions: Motions) -> Mapping[str, Trajectory]:
    return {"": motions} if isinstance(motions, Trajectory) else motions
