"""The continuous motion at one instant: the velocity of a momentum, the acceleration with its multipliers."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .calculus import constraint_jacobian, constraint_rate, equations_of_motion, momentum
from .errors import Result
from .newton import Newton
from .splitting import Split, chart_directions, closure_jacobian, least_norm_multipliers, null_space, rank, split
from .system import Scalar, System, Vector


def velocity(system: System, t: Scalar, q: Vector, p: Vector, dt: Scalar, guess: Vector) -> Vector:
    r"""The admissible velocity of a momentum: $\partial L/\partial v + G^T \mu = p$ with $G v + \partial g/\partial t = 0$.

    Its own momentum is the projection $Q p$ (16). The mass matrix may be singular if it is regular on the null space of $G$.
    Not a number where no such velocity is found from the guess.
    """
    if system.closures is not None:
        return _velocity_on_chart(system, t, q, p, dt, guess)
    at = split(system, t, q)
    start = jnp.concatenate([guess, jnp.zeros(rank(system, q), q.dtype)])
    solution = Newton(line_search=True)(_legendre, start, (system, t, q, p, dt, at))
    return jnp.where(solution.result == Result.SUCCESS, solution.value[: q.size], jnp.nan)


def _velocity_on_chart(system: System, t: Scalar, q: Vector, p: Vector, dt: Scalar, guess: Vector) -> Vector:
    r"""The same with as many unknowns as degrees of freedom: $v = P \nu + v_t$, where $v_t$ follows constraints that move."""
    at = split(system, t, q)
    P, drift = null_space(system, t, q, "chart", at), _drift(system, t, q, at)
    start = jnp.linalg.solve(P.T @ P, P.T @ (guess - drift))
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
    return -directions @ K.T @ jnp.linalg.solve(K @ K.T, rates)


def _reduced_legendre(nu, args):
    system, t, q, p, dt, P, drift = args
    return P.T @ (momentum(system, t, q, drift + P @ nu, dt) - p)


def _legendre(x, args):
    system, t, q, p, dt, at = args
    v, mu = x[: q.size], x[q.size :]
    balance = momentum(system, t, q, v, dt) - p
    if mu.size == 0:
        return balance
    rows = at.independent(constraint_jacobian(system, t, q))
    return jnp.concatenate([balance + rows.T @ mu, at.pick(constraint_rate(system, t, q, v))])


def acceleration(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar, control: PyTree = None) -> tuple[Vector, Float[Array, " m"]]:
    r"""Acceleration and multipliers of the continuous motion (3), with the constraints differentiated twice.

    $\frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} + G^T \lambda = f$ and $\ddot g = 0$ are affine in
    $a$ and $\lambda$, so that Newton's method ends after one step; redundant constraints get their smallest multipliers.
    """
    at = split(system, t, q)
    start = jnp.zeros(q.size + rank(system, q), q.dtype)
    x = Newton()(_euler_lagrange, start, (system, t, q, v, dt, control, at)).value
    G = constraint_jacobian(system, t, q)
    rows = at.independent(G)
    return x[: q.size], least_norm_multipliers(system, t, q, rows.T @ x[q.size :])


def _euler_lagrange(x, args):
    system, t, q, v, dt, control, at = args
    a, mu = x[: q.size], x[q.size :]
    balance = equations_of_motion(system, t, q, v, a, dt, control)
    if mu.size == 0:
        return balance
    rows = at.independent(constraint_jacobian(system, t, q))
    curvature = jax.jvp(lambda t, q, v: constraint_rate(system, t, q, v), (t, q, v), (jnp.ones_like(t), v, a))[1]
    return jnp.concatenate([balance + rows.T @ mu, at.pick(curvature)])
