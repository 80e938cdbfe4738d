"""What gives colour to beams: stress resultants, strain energy, or the values of the user."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, is_color_like

from ..assembly.model import Assembly
from ..errors import ModelError
from ..post.beams import AlongBeam, Sections, Strains, energy_density, resultants
from .skeleton import Curve, read_along

PARTS = {
    "shear force": (0, 1),
    "axial force": (2,),
    "bending moment": (3, 4),
    "torque": (5,),
    "shear force 1": (0,),
    "shear force 2": (1,),
    "bending moment 1": (3,),
    "bending moment 2": (4,),
}
"""Stress resultants by name: one component along a director, with its sign, or the size of two."""

ENERGY = "strain energy"


def shades_of(
    model: Assembly, q: Float[Array, "rows n"], chosen: np.ndarray, colour: Any, curves: Mapping[str, Curve]
) -> tuple[dict[str, np.ndarray] | None, bool]:
    """What gives colour to the points of each beam, row by row, and whether it has a sign; nothing for a plain colour."""
    if isinstance(colour, str) and (colour in PARTS or colour == ENERGY):
        along = {name: (np.asarray(part.s), np.asarray(part.values)) for name, part in _read(model, q[chosen], colour).items()}
        return {name: _between(curves[name].s, *along[name]) for name in curves}, len(PARTS.get(colour, (0, 0))) == 1
    if isinstance(colour, str) or is_color_like(colour):
        if not is_color_like(colour):
            raise ModelError(f"beams are coloured by {', '.join([*PARTS, ENERGY])}, by values or by a colour of Matplotlib, not {colour!r}")
        return None, False
    values = colour if isinstance(colour, Mapping) else dict.fromkeys(curves, colour)
    if set(values) != set(curves):
        raise ModelError(f"values are given for {', '.join(values)}, but the beams are {', '.join(curves)}")
    points = {name: np.asarray(part.s) for name, part in _read(model, q[:1], ENERGY).items()}
    return {name: _spread(name, values[name], q.shape[0], points[name], curves[name])[chosen] for name in curves}, False


def _read(model: Assembly, q: Float[Array, "rows n"], name: str) -> dict[str, AlongBeam]:
    """A quantity along all beams."""

    def component(stiffness: Sections, strains: Strains) -> Array:
        values = resultants(stiffness, strains)[..., np.array(PARTS[name])]
        return values[..., 0] if len(PARTS[name]) == 1 else jnp.linalg.norm(values, axis=-1)

    return read_along(model, q, energy_density if name == ENERGY else component)


def _spread(name: str, values: Any, rows: int, s: np.ndarray, curve: Curve) -> np.ndarray:
    """Values that were given, at all points of a curve."""
    values = np.asarray(values, float)
    if values.shape == (rows,):
        return np.repeat(values[:, None], curve.s.size, axis=1)
    for places in (s, curve.nodes):
        if values.shape == (rows, places.size):
            return _between(curve.s, places, values)
    raise ModelError(
        f"values along beam {name!r} have shape {values.shape}; they need {rows} rows, with one number each, with {s.size} for the points "
        f"of integration, or with {curve.nodes.size} for the nodes"
    )


def _between(s: np.ndarray, places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values at some places, row by row, as lines between them."""
    return np.stack([np.interp(s, places, row) for row in values])


def scale_of(shades: Mapping[str, np.ndarray], limits: tuple[float, float] | None, signed: bool, cmap: str | None) -> Any:
    """The scale of colours; where values have a sign, zero is in its middle."""
    if not shades:
        raise ModelError("colours are those of beams, and this mechanism has none")
    every = np.concatenate([part.ravel() for part in shades.values()])
    size = np.abs(every).max()
    low, high = limits or ((-size, size) if signed else (every.min(), every.max()))
    return ScalarMappable(Normalize(low, high), cmap or ("coolwarm" if signed else "turbo"))
