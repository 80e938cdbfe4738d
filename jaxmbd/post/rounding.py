r"""What rounding leaves of multipliers.

Positions are known to their last digit, $\varepsilon |q|$, so that the impulses of constraint forces, which are differences of momenta
$M\,\Delta q/h$, are known to $\varepsilon M |q|/h$, and multipliers to $\varepsilon M |q|/h^2$. The motion does not suffer from it.
"""

import functools
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.calculus import constraint_slopes, momentum
from ..constraints.units import extents, sizes
from ..numerics.arrays import known, over_rows
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory

FEWEST = 3
"""Digits of multipliers below which reactions come with a warning."""

LOOKED_AT = 16
"""Rows of a trajectory from which the digits are estimated."""


@along_trajectory("q", "v", "multipliers")
def multiplier_digits(system: System, trajectory: Trajectory) -> Float[Array, ""]:
    r"""About how many decimal digits of the largest discrete multipliers rounding leaves: they fall with the square of a small time step.

    Compared are the work of multipliers, or of other forces where that is larger, on changes of coordinates by their sizes, and that of
    $\varepsilon M |q|/h^2$. `multipliers` of the continuous equations do not lose these digits.
    """
    rows = np.unique(np.linspace(0, trajectory.t.size - 1, LOOKED_AT).astype(int))

    def at(t, q, v, multipliers):
        size, zero = sizes(system, q), jnp.zeros_like(q)
        inertia = momentum(system, t, q, extents(system, q)) - momentum(system, t, q, zero)
        p = momentum(system, t, q, v) - momentum(system, t, q, zero)
        acting = jnp.max(size * jnp.abs(jax.grad(system.lagrangian, 1)(t, q, v)))
        holding = jnp.max(jnp.abs(constraint_slopes(system, t, q, size) * multipliers), initial=0)
        return jnp.max(size * jnp.abs(inertia)), jnp.maximum(jnp.maximum(acting, holding), jnp.abs(p @ v))

    columns = (trajectory.t, trajectory.q, trajectory.v, trajectory.multipliers)
    inertia, work = (jnp.max(values) for values in over_rows(at, *(column[rows] for column in columns)))
    noise = jnp.finfo(work.dtype).eps * inertia / trajectory.dt**2
    return jnp.log10(jnp.maximum(work, jnp.finfo(work.dtype).tiny)) - jnp.log10(jnp.maximum(noise, jnp.finfo(work.dtype).tiny))


def telling_digits(function: Callable) -> Callable:
    """A function of a system and a trajectory that reads multipliers, with a warning where rounding leaves few digits of them."""

    @functools.wraps(function)
    def call(system: System, trajectory: Trajectory, *args, **kwargs):
        found, name = function(system, trajectory, *args, **kwargs), function.__name__.lstrip("_")
        if known(trajectory.t) is not None and trajectory.v is not None and system.constrained:
            digits = known(multiplier_digits(system, trajectory))
            if digits is not None and digits < FEWEST:
                warnings.warn(
                    f"{name}: with dt = {trajectory.dt:.3g} rounding leaves about {max(0, int(digits))} digits of multipliers "
                    "(eps M |q| / dt^2), while the motion is right; take a longer dt, or the multipliers of post.multipliers",
                    stacklevel=2,
                )
        return found

    return call
