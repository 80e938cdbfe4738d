r"""Friction as plasticity (15)-(26): a spring that holds a coordinate where it stuck, and yields at a limit.

$F = E\,(x - p)$ with the way $x$ of the coordinate since it began, the plastic slip $p$, the free energy
$\Psi = \frac12 E (x - p)^2 + \frac12 H p^2$ and the yield condition $|E (x - p) - H p| \le F_{\max}$. Within the limit $p$ stays where
it is, to the bit: what sticks does not creep.
"""

import abc
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..numerics.checks import not_negative, positive
from .base import AbstractFriction, Slip


class Held(NamedTuple):
    """How far a coordinate has slipped since it began, and where that was."""

    slip: Array
    anchor: Array


class AbstractPlasticity(AbstractFriction):
    r"""Stiffness $E$, hardening $H$, a limit that may depend on the speed of the step, and a viscous part.

    If the limit falls below the tension that is stored, the tension first falls to it, at rest, and what it had stored is lost. From
    there a step slips in the direction of its increment $\Delta c$ alone. With the part $r = |\Delta p| / |\Delta c| \in [0, 1]$ of it
    that slips, the force is $F = (1 - r)\,E\,\overline{x - p} + r\,(H \bar p + F_{\max} \operatorname{sign} \Delta c)$, of means over
    the step: the spring at its middle while it sticks, the limit while it slips, and their mixture in between.
    """

    @property
    @abc.abstractmethod
    def spring(self) -> tuple[Array, Array]:
        """Stiffness and hardening."""

    @abc.abstractmethod
    def limit_at(self, speed: Array) -> Array:
        """The tension that slips at a speed, which is not negative."""

    @abc.abstractmethod
    def viscosity(self) -> Array:
        """Force per speed beside it."""

    def start(self, c: Array) -> Held:
        return Held(jnp.zeros_like(c), c)

    def slide(self, state: Held, c0: Array, c1: Array, dt: Array) -> Slip:
        E, H = self.spring
        move, x0, x1 = c1 - c0, c0 - state.anchor, c1 - state.anchor
        rate, direction, length = move / dt, jnp.sign(move), jnp.abs(move)
        limit = self.limit_at(jnp.abs(rate))
        p0, lost = self._relaxed(state.slip, x0, limit)
        gap = limit - direction * (E * (x0 - p0) - H * p0)
        slip = jax.nn.relu(E * length - gap) / (E + H)
        p1 = p0 + direction * slip
        share = slip / jnp.where(slip > 0, length, 1)
        mean = 0.5 * (p0 + p1)
        held, slipping = E * (0.5 * (x0 + x1) - mean), H * mean + direction * limit
        resistance = self.viscosity() * rate
        force = (1 - share) * held + share * slipping + resistance
        return Slip(force, Held(p1, state.anchor), limit * slip + lost + resistance * move)

    def stored(self, state: Held, c: Array) -> Array:
        E, H = self.spring
        return 0.5 * E * (c - state.anchor - state.slip) ** 2 + 0.5 * H * state.slip**2

    def slipped(self, state: Held, c: Array) -> Array:
        return state.slip

    def force(self, state: Held, c: Array, rate: Array) -> Array:
        return self.spring[0] * (c - state.anchor - state.slip) + self.viscosity() * rate

    def _relaxed(self, p: Array, x: Array, limit: Array) -> tuple[Array, Array]:
        """The slip with a tension within the limit, and the energy that is lost on the way there."""
        E, H = self.spring
        tension = E * (x - p) - H * p
        excess = jax.nn.relu(jnp.abs(tension) - limit)
        slip = excess / (E + H)
        return p + jnp.sign(tension) * slip, (jnp.abs(tension) - 0.5 * excess) * slip


class Plasticity(AbstractPlasticity):
    r"""Dry friction that sticks: perfect plasticity, or with kinematic `hardening` $H$.

    `stiffness` $E$ is that of the contact while it sticks, `limit` $F_{\max}$ the force, or torque, at which it slips.
    """

    stiffness: Any
    limit: Any
    hardening: Any

    def __init__(self, stiffness: Any, limit: Any, hardening: Any = 0.0):
        self.stiffness = positive("stiffness of a Plasticity", stiffness)
        self.limit = not_negative("limit of a Plasticity", limit)
        self.hardening = not_negative("hardening of a Plasticity", hardening)

    @property
    def spring(self) -> tuple[Array, Array]:
        return self.stiffness, self.hardening

    def limit_at(self, speed: Array) -> Array:
        return jnp.broadcast_to(self.limit, speed.shape).astype(speed.dtype)

    def viscosity(self) -> Array:
        return jnp.zeros_like(self.limit)


class Stribeck(AbstractPlasticity):
    r"""Dry friction whose limit falls with speed: $F(v) = F_c + (F_s - F_c)\,e^{-(v/v_s)^2}$, and $\sigma v$ beside it.

    `static` $F_s$ holds what rests, `coulomb` $F_c$ what moves faster than `velocity` $v_s$; `viscous` is $\sigma$, `stiffness` that of the
    contact while it sticks.
    """

    stiffness: Any
    static: Any
    coulomb: Any
    velocity: Any
    viscous: Any

    def __init__(self, stiffness: Any, static: Any, coulomb: Any, velocity: Any, viscous: Any = 0.0):
        self.stiffness = positive("stiffness of a Stribeck", stiffness)
        self.static = not_negative("static of a Stribeck", static)
        self.coulomb = not_negative("coulomb of a Stribeck", coulomb)
        self.velocity = positive("velocity of a Stribeck", velocity)
        self.viscous = not_negative("viscous of a Stribeck", viscous)

    @property
    def spring(self) -> tuple[Array, Array]:
        return self.stiffness, jnp.zeros_like(self.stiffness)

    def limit_at(self, speed: Array) -> Array:
        return self.coulomb + (self.static - self.coulomb) * jnp.exp(-((speed / self.velocity) ** 2))

    def viscosity(self) -> Array:
        return self.viscous
