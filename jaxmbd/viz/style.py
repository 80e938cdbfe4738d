"""The house style: colours, fonts, a light grid, legends that stand above the data, and sheets of several panels."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler

INK, PALE, GREY = "#1f2933", "#c5ced8", "#66727f"
BLUE, ORANGE, GREEN, PURPLE, YELLOW, RED = "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5", "#e8a33d", "#c8385a"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, RED)
PANE, GRID = "#f7f9fb", "#e9eef3"

STYLE: Any = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.titlesize": 13,
    "axes.titlecolor": INK,
    "axes.titlepad": 9,
    "axes.prop_cycle": cycler(color=PALETTE),
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "legend.borderaxespad": 0.3,
    "legend.borderpad": 0.0,
    "legend.fontsize": 10,
    "lines.solid_capstyle": "round",
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.1,
}
LEGEND_COLUMNS = 4
FORMULA = re.compile(r"[$_^{}]|\\[a-zA-Z]+")
"""What of a label does not take room."""
CHARACTER = 5.5
"""The usual width of a letter in a legend, in points."""

P = ParamSpec("P")
R = TypeVar("R")


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """A function that draws in the house style, and leaves the settings of Matplotlib as it found them."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with plt.rc_context(STYLE):
            return function(*args, **kwargs)

    return call


@styled
def sheet(
    layout: str,
    headings: Mapping[str, str],
    *,
    space: str = "",
    size: tuple[float, float] | None = None,
    widths: Sequence[float] | None = None,
    heights: Sequence[float] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """A figure with several panels, and its axes by letter.

    **Arguments**

    - `layout`: letters as the panels lie, rows parted by semicolons: `"AB;AC"` is one high panel beside two. Blocks side by side that
      share no rows are parted by bars: `"A;B;C|D;E"`.
    - `headings`: by letter; panels that have one are numbered.
    - `space`: the letters of panels that are drawn in space.
    - `size`: in inches. `widths`, `heights`: those of columns (or blocks) and rows, relative to each other.
    """
    blocks = [[list(row) for row in block.split(";")] for block in layout.split("|")]
    columns, rows = sum(len(block[0]) for block in blocks), max(map(len, blocks))
    figure = plt.figure(figsize=size or (min(6.0 * columns, 17.0), min(3.4 * rows + 1.0, 12.0)), layout="constrained")
    mosaic: Any = [blocks] if len(blocks) > 1 else blocks[0]
    in_space: Any = {letter: {"projection": "3d"} for letter in space}
    axes = figure.subplot_mosaic(mosaic, width_ratios=widths, height_ratios=heights, per_subplot_kw=in_space)
    for number, (letter, heading) in enumerate(headings.items(), start=1):
        axes[letter].set_title(f"{number}  {heading}", loc="left")
    return figure, axes


def new_axes(axes: Any, space: bool = False, size: tuple[float, float] = (7.0, 4.5)) -> Any:
    """The axes that were given, or new ones in a figure of their own."""
    if axes is not None:
        return axes
    return plt.figure(figsize=size, layout="constrained").add_subplot(**({"projection": "3d"} if space else {}))


def legend_above(axes: Any) -> None:
    """A legend that stands between the axes and their heading, if anything has a label."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        width = 72 * axes.get_position().width * axes.figure.get_size_inches()[0]
        columns = int(np.clip(width // (CHARACTER * (max(len(FORMULA.sub("", label)) for label in labels) + 6)), 1, LEGEND_COLUMNS))
        lines = -(-len(labels) // columns)
        axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=-(-len(labels) // lines), markerscale=1.5)
        axes.set_title(axes.get_title(loc="left"), loc="left", pad=STYLE["axes.titlepad"] + 17 * lines)


def dress_space(axes: Any) -> None:
    """Pale walls and few numbers for axes in space."""
    for side in (axes.xaxis, axes.yaxis, axes.zaxis):
        side.set_pane_color(PANE)
        side._axinfo["grid"]["color"] = GRID
    axes.locator_params(nbins=5)
