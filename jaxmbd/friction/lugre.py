r"""The LuGre model: bristles that bend, with the Stribeck curve for how far.

$\dot z = v - \sigma_0 |v| z / g(v)$, $F = \sigma_0 z + \sigma_1 \dot z + \sigma_2 v$, $g(v) = F_c + (F_s - F_c)\,e^{-(v/v_s)^2}$.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ..numerics.checks import not_negative, positive
from .base import AbstractFriction, Slip

SERIES_BELOW = 0.02
"""Where a few terms of the series in `phi` and `psi` are exact to rounding."""


class Bristles(NamedTuple):
    """How far bristles are bent, and where the coordinate began."""

    bend: Array
    anchor: Array


class LuGre(AbstractFriction):
    r"""The LuGre model with constant speed in each step, for which its bristles and their work are known in closed form.

    `stiffness` $\sigma_0$ and `damping` $\sigma_1$ are those of the bristles, `viscous` is $\sigma_2$, `static` $F_s$ and `coulomb` $F_c$
    the limits at rest and at speeds beyond `velocity` $v_s$. The energy stored is $\frac12 \sigma_0 z^2$. As is known of the model, its
    bristle damping can give energy back for a moment where the limit falls fast.
    """

    stiffness: Any
    damping: Any
    static: Any
    coulomb: Any
    velocity: Any
    viscous: Any

    def __init__(self, stiffness: Any, damping: Any, static: Any, coulomb: Any, velocity: Any, viscous: Any = 0.0):
        self.stiffness = positive("stiffness of a LuGre", stiffness)
        self.damping = not_negative("damping of a LuGre", damping)
        self.static = positive("static of a LuGre", static)
        self.coulomb = positive("coulomb of a LuGre", coulomb)
        self.velocity = positive("velocity of a LuGre", velocity)
        self.viscous = not_negative("viscous of a LuGre", viscous)

    def start(self, c: Array) -> Bristles:
        return Bristles(jnp.zeros_like(c), c)

    def slide(self, state: Bristles, c0: Array, c1: Array, dt: Array) -> Slip:
        move = c1 - c0
        rate = move / dt
        a = self.stiffness * jnp.abs(move) / self._limit(rate)
        z0 = state.bend
        z1, mean = z0 * jnp.exp(-a) + move * phi(a), z0 * phi(a) + move * psi(a)
        force = self.stiffness * mean + self.damping * (z1 - z0) / dt + self.viscous * rate
        lost = force * move - 0.5 * self.stiffness * (z1 - z0) * (z1 + z0)
        return Slip(force, Bristles(z1, state.anchor), lost)

    def stored(self, state: Bristles, c: Array) -> Array:
        return 0.5 * self.stiffness * state.bend**2

    def slipped(self, state: Bristles, c: Array) -> Array:
        return c - state.anchor - state.bend

    def force(self, state: Bristles, c: Array, rate: Array) -> Array:
        bending = rate - self.stiffness * jnp.abs(rate) * state.bend / self._limit(rate)
        return self.stiffness * state.bend + self.damping * bending + self.viscous * rate

    def _limit(self, rate: Array) -> Array:
        return self.coulomb + (self.static - self.coulomb) * jnp.exp(-((rate / self.velocity) ** 2))


def phi(a: Array) -> Array:
    r"""$(1 - e^{-a})/a$, the mean of $e^{-a s}$ over $s$ from 0 to 1."""
    safe = jnp.where(a > SERIES_BELOW, a, 1)
    return jnp.where(a > SERIES_BELOW, -jnp.expm1(-safe) / safe, 1 - a / 2 * (1 - a / 3 * (1 - a / 4 * (1 - a / 5 * (1 - a / 6)))))


def psi(a: Array) -> Array:
    r"""$(1 - \varphi(a))/a$."""
    safe = jnp.where(a > SERIES_BELOW, a, 1)
    series = 0.5 * (1 - a / 3 * (1 - a / 4 * (1 - a / 5 * (1 - a / 6 * (1 - a / 7)))))
    return jnp.where(a > SERIES_BELOW, (1 + jnp.expm1(-safe) / safe) / safe, series)
