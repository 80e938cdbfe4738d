"""The continuous motion at one instant: the velocity of a momentum, the acceleration with its multipliers."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..assembly.model import Assembly
from ..errors import Result
from ..numerics.lapack import solve
from ..numerics.linear import AbstractTangent, Auto
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector
from .calculus import constraint_forces, constraint_rate, equations_of_motion, momentum
from .saddle import least_multipliers
from .splitting import (
    Split,
    chart_directions,
    closure_jacobian,
    constraint_count,
    is_large,
    least_norm_multipliers,
    null_space,
    saddle_layout,
    split,
)


class Instant(eqx.Module):
    r"""A position at one time, from which velocities and multipliers are read.

    For a mechanism too large for dense matrices both come from one sparse `tangent`, that of $p - \partial L/\partial v$ and $\dot g$ by
    velocities and multipliers: its kinetic energy is quadratic.
    """

    system: System
    t: Scalar
    q: Vector
    dt: Scalar
    tangent: AbstractTangent | None

    @classmethod
    def of(cls, system: System, t: Scalar, q: Vector, dt: Scalar) -> "Instant":
        """The instant, with its tangent where one serves all."""
        if not (is_large(system, q) and isinstance(system.params, Assembly)):
            return cls(system, t, q, dt, None)
        at = Split.trivial(q)
        layout, args = saddle_layout(system, q, at), (system, t, q, jnp.zeros_like(q), dt, at)
        x = jnp.zeros(q.size + layout.multipliers, q.dtype)
        return cls(system, t, q, dt, Auto().tangent(_legendre, x, args, layout))

    def velocity(self, p: Vector, guess: Vector) -> Vector:
        r"""The admissible velocity of a momentum: $\partial L/\partial v + G^T \mu = p$ with $G v + \partial g/\partial t = 0$.

        Its own momentum is the projection $Q p$ (16). The mass matrix may be singular if it is regular on the null space of $G$.
        Not a number where no such velocity is found from the guess.
        """
        system, t, q, dt = self.system, self.t, self.q, self.dt
        if self.tangent is not None:
            return self._corrected(self.tangent, p, guess)
        large = is_large(system, q)
        if system.closures is not None and not large:
            return _velocity_on_chart(system, t, q, p, dt, guess)
        at = Split.trivial(q) if large else split(system, t, q)
        layout = saddle_layout(system, q, at)
        start = jnp.concatenate([guess, jnp.zeros(layout.multipliers, q.dtype)])
        solution = Newton(line_search=True)(_legendre, start, (system, t, q, p, dt, at), layout=layout)
        return jnp.where(solution.result == Result.SUCCESS, solution.value[: q.size], jnp.nan)

    def _corrected(self, tangent: AbstractTangent, p: Vector, guess: Vector) -> Vector:
        """Two corrections of the guess, of which the second takes off what rounding left of the first."""
        args = (self.system, self.t, self.q, p, self.dt, Split.trivial(self.q))
        x = jnp.pad(guess, (0, constraint_count(self.system, self.q)))

        def correct(carry, _):
            x, _ = carry
            change = tangent.solve(_legendre(x, args))
            return (x - change, change), None

        (found, change), _ = jax.lax.scan(correct, (x, x), length=2)
        size = lambda x: jnp.max(jnp.abs(x[: p.size]))
        settled = size(change) <= jnp.sqrt(jnp.finfo(p.dtype).eps) * jnp.maximum(size(x), size(found))
        return jnp.where(settled, found[: p.size], jnp.nan)

    def multipliers(self, reaction: Vector) -> Float[Array, " m"]:
        r"""Multipliers with $G^T \lambda$ = `reaction` (36)-(38), for redundant constraints the smallest ones."""
        if self.tangent is not None:
            rhs = jnp.pad(reaction, (0, constraint_count(self.system, self.q)))
            return self.tangent.solve(rhs)[reaction.size :]
        if is_large(self.system, self.q):
            return least_multipliers(self.system, Partial(_pull), (self.system, self.t, self.q), reaction)
        return least_norm_multipliers(self.system, self.t, self.q, reaction)


def _pull(multipliers, args):
    system, t, q = args
    return constraint_forces(system, t, q, multipliers)


def velocity(system: System, t: Scalar, q: Vector, p: Vector, dt: Scalar, guess: Vector) -> Vector:
    """The admissible velocity of a momentum, near a guess."""
    return Instant.of(system, t, q, dt).velocity(p, guess)


def _velocity_on_chart(system: System, t: Scalar, q: Vector, p: Vector, dt: Scalar, guess: Vector) -> Vector:
    r"""The same with as many unknowns as degrees of freedom: $v = P \nu + v_t$, where $v_t$ follows constraints that move."""
    at = split(system, t, q)
    P, drift = null_space(system, t, q, "chart", at), _drift(system, t, q, at)
    start = solve(P.T @ P, P.T @ (guess - drift))
    solution = Newton()(_reduced_legendre, start, (system, t, q, p, dt, P, drift))
    return jnp.where(solution.result == Result.SUCCESS, drift + P @ solution.value, jnp.nan)


def _drift(system: System, t: Scalar, q: Vector, at: Split) -> Vector:
    """The smallest velocity on the chart with which moving closures stay fulfilled."""
    if not system.closures:
        return jnp.zeros_like(q)
    directions = chart_directions(system, t, q)
    K, rates = closure_jacobian(system, t, q) @ directions, constraint_rate(system, t, q, jnp.zeros_like(q))[-system.closures :]
    if at.closing is not None:
        K, rates = at.closing @ K, at.closing @ rates
    return -directions @ K.T @ solve(K @ K.T, rates)


def _reduced_legendre(nu, args):
    system, t, q, p, dt, P, drift = args
    return P.T @ (momentum(system, t, q, drift + P @ nu, dt) - p)


def _legendre(x, args):
    system, t, q, p, dt, at = args
    v, mu = x[: q.size], x[q.size :]
    balance = momentum(system, t, q, v, dt) - p
    if mu.size == 0:
        return balance
    forces = constraint_forces(system, t, q, at.spread(mu))
    return jnp.concatenate([balance + forces, at.pick(constraint_rate(system, t, q, v))])


def acceleration(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar, control: PyTree = None) -> tuple[Vector, Float[Array, " m"]]:
    r"""Acceleration and multipliers of the continuous motion (3), with the constraints differentiated twice.

    $\frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} + G^T \lambda = f$ and $\ddot g = 0$ are affine in
    $a$ and $\lambda$, so that Newton's method ends after one step; redundant constraints get their smallest multipliers.
    """
    large = is_large(system, q)
    at = Split.trivial(q) if large else split(system, t, q)
    layout = saddle_layout(system, q, at)
    start = jnp.zeros(q.size + layout.multipliers, q.dtype)
    x = Newton()(_euler_lagrange, start, (system, t, q, v, dt, control, at), layout=layout).value
    return x[: q.size], Instant.of(system, t, q, dt).multipliers(constraint_forces(system, t, q, at.spread(x[q.size :])))


def _euler_lagrange(x, args):
    system, t, q, v, dt, control, at = args
    a, mu = x[: q.size], x[q.size :]
    balance = equations_of_motion(system, t, q, v, a, dt, control)
    if mu.size == 0:
        return balance
    forces = constraint_forces(system, t, q, at.spread(mu))
    curvature = jax.jvp(lambda t, q, v: constraint_rate(system, t, q, v), (t, q, v), (jnp.ones_like(t), v, a))[1]
    return jnp.concatenate([balance + forces, at.pick(curvature)])
