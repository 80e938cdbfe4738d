r"""How constraints enter a differential equation: by projection, or by one of the ways to compare it with."""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..errors import ModelError
from ..numerics.arguments import check_fields
from ..numerics.checks import not_negative
from ..numerics.lapack import solve
from ..system import Scalar, Vector
from .directions import Directions
from .dynamics import Dynamics, State
from .position import Tolerance, project_position

Rows = Float[Array, " m"]


class Instant(NamedTuple):
    r"""What a method makes of a state: the state that the forces see, its rate, and the multipliers $\lambda$ and $\mu$ (14)."""

    state: State
    rate: State
    multipliers: Rows
    velocity_multipliers: Rows


class AbstractMethod(eqx.Module):
    """How constraints enter. `projects` says that states are brought back onto them, `stepped` that the length of the step counts."""

    projects: ClassVar[bool] = False
    stepped: ClassVar[bool] = False

    def __check_init__(self):
        check_fields(self)

    @abc.abstractmethod
    def instant(self, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> Instant:
        """The rate of a state in a step of length `dt`, and the multipliers."""


class Projection(AbstractMethod):
    r"""Positions, velocities and accelerations are projected, in this order, before forces are evaluated (11)-(17).

    **Arguments**

    - `tolerance`: how small constraints become, as numbers; by default they do to rounding.
    - `max_steps`: Newton's iterations before a position counts as not found.
    - `inside`: whether positions are projected in every evaluation, or else at the end of steps alone, where the last slope of a step is
      then evaluated anew.
    """

    tolerance: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=20)
    inside: bool = eqx.field(static=True, default=True)
    projects: ClassVar[bool] = True

    def position(self, dynamics: Dynamics, t: Scalar, q: Vector) -> tuple[Vector, Bool[Array, ""]]:
        """The position on the constraints near another (16), (17), and whether it was found."""
        return project_position(dynamics, t, q, Tolerance(self.tolerance, self.max_steps))

    def velocity(self, dynamics: Dynamics, t: Scalar, q: Vector, v: Vector) -> tuple[Vector, Bool[Array, ""]]:
        """The velocity that the constraints admit near another (11a), and whether there is one: they may contradict each other."""
        v, _, admitted = _along(dynamics, dynamics.directions(t, q, v), t, q, v)
        return v, admitted

    @eqx.filter_jit
    def state(self, dynamics: Dynamics, t: Scalar, y: State) -> tuple[State, Bool[Array, ""]]:
        """Position and velocity on the constraints, and whether they were found."""
        q, reached = self.position(dynamics, t, y.q)
        v, admitted = self.velocity(dynamics, t, q, y.v)
        return State(q, v, y.w), reached & admitted

    @eqx.filter_jit
    def tangent(self, dynamics: Dynamics, t: Scalar, y: State, change: State) -> State:
        """What of a small change of a state on the constraints they admit: the derivative of the projection."""
        W = dynamics.weight(t, y.q)
        _, across = jax.jvp(lambda q: dynamics.constraints(t, q), (y.q,), (change.q,))
        dq = change.q + dynamics.position_directions(t, y.q).correction(across, W)[0]
        _, across = jax.jvp(lambda q, v: dynamics.rate(t, q, v), (y.q, y.v), (dq, change.v))
        dv = change.v + dynamics.directions(t, y.q, y.v).correction(across, W)[0]
        return State(dq, dv, change.w)

    def instant(self, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> Instant:
        q, reached = self.position(dynamics, t, y.q) if self.inside else (y.q, True)
        q = jnp.where(reached, q, jnp.nan)
        at = dynamics.directions(t, q, y.v)
        v, mu, admitted = _along(dynamics, at, t, q, y.v)
        v = jnp.where(admitted, v, jnp.nan)
        a, multipliers = at.constrained(dynamics.mass(t, q, v), dynamics.forces(t, q, v, y.w), -dynamics.curvature(t, q, v))
        return Instant(State(q, v, y.w), State(v, a, dynamics.states(t, q, v, y.w)), multipliers, mu)


class Baumgarte(AbstractMethod):
    r"""Accelerations alone are constrained, with violations fed back: $\ddot\varphi + 2 \alpha \dot\varphi + \beta^2 \varphi = 0$.

    Constraints on velocities get $\dot a + 2 \alpha a = 0$.
    """

    alpha: Any
    beta: Any

    def __init__(self, alpha: Any = 2.0, beta: Any = 2.0):
        self.alpha, self.beta = not_negative("alpha of Baumgarte", alpha), not_negative("beta of Baumgarte", beta)

    def instant(self, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> Instant:
        rate, values = dynamics.rate(t, y.q, y.v), dynamics.constraints(t, y.q)
        alpha, beta = (jnp.asarray(gain, y.q.dtype) for gain in (self.alpha, self.beta))
        fed_back = 2 * alpha * rate + beta**2 * jnp.pad(values, (0, rate.size - values.size))
        return _accelerated(dynamics, t, y, -dynamics.curvature(t, y.q, y.v) - fed_back)


class Baseline(AbstractMethod):
    """Accelerations alone are constrained (8), so that constraints drift away."""

    def instant(self, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> Instant:
        return _accelerated(dynamics, t, y, -dynamics.curvature(t, y.q, y.v))


class BraunGoldfarb(AbstractMethod):
    r"""Velocities and accelerations are constrained with violations fed back at the rate $1/\Delta t$ of the current step (Braun and
    Goldfarb 2009): $\dot\varphi = -\varphi/\Delta t$, and $\ddot\varphi = -\dot\varphi/\Delta t$ for the velocity that is integrated.
    """

    stepped: ClassVar[bool] = True

    def instant(self, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> Instant:
        at, rate, values = dynamics.directions(t, y.q, y.v), dynamics.rate(t, y.q, y.v), dynamics.constraints(t, y.q)
        wanted = jnp.pad(values, (0, rate.size - values.size)) / dt
        change, mu = at.correction(rate + wanted, dynamics.weight(t, y.q))
        b = -dynamics.curvature(t, y.q, y.v) - rate / dt
        a, multipliers = at.constrained(dynamics.mass(t, y.q, y.v), dynamics.forces(t, y.q, y.v, y.w), b)
        return Instant(y, State(y.v + change, a, dynamics.states(t, y.q, y.v, y.w)), multipliers, mu)


class Penalty(AbstractMethod):
    r"""No constraints, but springs and dampers across them: $M \dot v = f - A^T (k \varphi + c \dot\varphi)$; $M$ must be regular."""

    stiffness: Any
    damping: Any

    def __init__(self, stiffness: Any, damping: Any = 0.0):
        self.stiffness, self.damping = not_negative("stiffness of a Penalty", stiffness), not_negative("damping of a Penalty", damping)

    def instant(self, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> Instant:
        rate, pull = jax.vjp(lambda v: dynamics.rate(t, y.q, v), y.v)
        values = dynamics.constraints(t, y.q)
        if rate.size > values.size:
            raise ModelError("a Penalty holds positions, not constraints on velocities: take a Projection")
        multipliers = jnp.asarray(self.stiffness, y.q.dtype) * values + jnp.asarray(self.damping, y.q.dtype) * rate
        f = dynamics.forces(t, y.q, y.v, y.w) - pull(multipliers)[0]
        a = solve(dynamics.mass(t, y.q, y.v), f)
        return Instant(y, State(y.v, a, dynamics.states(t, y.q, y.v, y.w)), multipliers, jnp.zeros_like(rate))


def _along(dynamics: Dynamics, at: Directions, t: Scalar, q: Vector, v: Vector) -> tuple[Vector, Rows, Bool[Array, ""]]:
    r"""The velocity nearest to another that the constraints admit, the multipliers $\mu$ of that, and whether it fulfils them.

    Accelerations are not asked: constraints that contradict each other there do so in velocities too, an instant later.
    """
    residual = dynamics.rate(t, q, v)
    change, mu = at.correction(residual, dynamics.weight(t, q))
    return v + change, mu, at.met(residual, v, change) | dynamics.inexact


def _accelerated(dynamics: Dynamics, t: Scalar, y: State, b: Rows) -> Instant:
    r"""Accelerations with $A \dot v = b$, at a state as it is."""
    at = dynamics.directions(t, y.q, y.v)
    a, multipliers = at.constrained(dynamics.mass(t, y.q, y.v), dynamics.forces(t, y.q, y.v, y.w), b)
    return Instant(y, State(y.v, a, dynamics.states(t, y.q, y.v, y.w)), multipliers, jnp.zeros_like(b))


class Field(eqx.Module):
    """The vector field of a method, as diffrax calls it: of methods that count steps, `args` is the length of the current one."""

    dynamics: Dynamics
    method: AbstractMethod = Projection()

    def __call__(self, t: Scalar, y: State, args: Any = None) -> State:
        t = jnp.asarray(t, y.q.dtype)
        dt = args if self.method.stepped and args is not None else jnp.full_like(t, jnp.inf)
        return _rate(self.method, self.dynamics.astype(y.q.dtype), t, y, dt)


@eqx.filter_jit
def _rate(method: AbstractMethod, dynamics: Dynamics, t: Scalar, y: State, dt: Scalar) -> State:
    """A program of its own, which is traced once for all the places from which diffrax evaluates fields."""
    return method.instant(dynamics, t, y, dt).rate
