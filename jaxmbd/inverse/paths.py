"""Paths through samples: splines that are differentiable in their values."""

import math
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.interpolate import BSpline, make_interp_spline

from ..errors import ModelError
from ..numerics.arrays import known, library
from ..numerics.checks import flag, real
from ..system import Scalar


class Path(eqx.Module):
    """A function of time through samples: a spline of degree $d$, 3, 5 or 7, whose derivatives are continuous up to that of order $d - 1$.

    **Arguments**

    - `times`: increasing numbers, not hidden by a transformation; `values`, one row a time, may be traced and differentiated.
    - `degree`: by default 5, and 7 with `rest`.
    - `rest`: begin and end at rest: there the first $(d - 1)/2$ derivatives vanish, with degree 7 acceleration and jerk too. Otherwise the
      pieces next to the ends are one polynomial.

    Outside of the times the polynomial of the first or last piece goes on.
    """

    breaks: Any
    pieces: Any

    def __init__(self, times: Any, values: Any, degree: Literal[3, 5, 7] | None = None, rest: bool = False):
        degree = (7 if rest else 5) if degree is None else degree
        moments = known(real("times of a Path", times, (None,)))
        if moments is None:
            raise ModelError("times of a Path must be numbers that no transformation hides")
        if degree not in (3, 5, 7):
            raise ModelError(f"degree of a Path must be 3, 5 or 7, but {degree!r} was given")
        if moments.size <= (1 if flag("rest of a Path", rest) else degree) or not np.all(np.diff(moments) > 0):
            raise ModelError(f"times of a Path must increase, and be more than {1 if rest else degree} for degree {degree}")
        samples = real("values of a Path", values, (moments.size,), (moments.size, None), (moments.size, None, None))
        ends = [(order, np.zeros(moments.size)) for order in range(1, (degree + 1) // 2)] if rest else None
        spline = make_interp_spline(moments, np.eye(moments.size), degree, bc_type=None if ends is None else (ends, ends))
        self.breaks = np.unique(spline.t)
        first = np.searchsorted(spline.t, self.breaks[:-1], "right") - 1 - degree
        coefficients = library(samples).tensordot(spline.c, samples, 1)[first[:, None] + np.arange(degree + 1)]
        self.pieces = library(samples).einsum("ijk,ik...->ij...", _pieces(spline.t, degree, first), coefficients)

    def __call__(self, t: Scalar) -> Array:
        """The value at a time."""
        breaks = jnp.asarray(self.breaks)
        place = jnp.clip(jnp.searchsorted(breaks, t, side="right") - 1, 0, len(breaks) - 2)
        return jnp.polyval(jnp.asarray(self.pieces)[place], t - breaks[place])


def _pieces(knots: np.ndarray, degree: int, first: np.ndarray) -> Float[np.ndarray, "pieces powers basis"]:
    """The basis functions that do not vanish on a piece, from the `first` on, in powers of the time from its begin, highest first.

    Of every `degree + 1` neighbouring basis functions one is taken into a spline; it is alone on each piece.
    """
    several = BSpline(knots, np.eye(degree + 1)[np.arange(len(knots) - degree - 1) % (degree + 1)], degree)
    taylor = [several(knots[first + degree], order) / math.factorial(order) for order in range(degree, -1, -1)]
    chosen = (first[:, None] + np.arange(degree + 1)) % (degree + 1)
    return np.take_along_axis(np.stack(taylor, axis=1), chosen[:, None], axis=2)
