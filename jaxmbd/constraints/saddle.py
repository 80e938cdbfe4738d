r"""Saddle point problems, in which constraints enter through products with $G$ and $G^T$ alone.

A vector is split into a part that the constraints admit and one that constraint forces make up. Sparse matrices solve these problems in
linear time, where a decomposition of $G$ would be dense. All functions are residuals as Newton's method sees them: unknowns are a vector
of the size of the coordinates and then multipliers.
"""

import jax
import jax.numpy as jnp

from .calculus import constraint_forces, constraint_rate, equations_of_motion, momentum


def in_units(x, args):
    """Another problem, given by its residual and its arguments, for unknowns in `columns` units and with residuals in `rows` units."""
    residual, columns, rows, given = args
    return residual(columns * x, given) / rows


def nearest(x, args):
    r"""With $A^T$ for `pull`: $y + A^T \lambda = r$ and $A y = 0$, so that $\lambda = (A A^T)^{-1} A r$."""
    pull, reaction = args
    rest, multipliers = x[: reaction.size], x[reaction.size :]
    slope = jax.linear_transpose(pull, multipliers)(rest)[0]
    return jnp.concatenate([rest + pull(multipliers) - reaction, slope])


def normal_move(x, args):
    r"""A displacement $S^2 G^T(q)\,w$ that leads to the constraint manifold."""
    system, t, q, size = args
    move, w = x[: q.size], x[q.size :]
    return jnp.concatenate([move - size**2 * constraint_forces(system, t, q, w), system.constraints(t, q + move)])


def normal_change(x, args):
    """The admissible velocity nearest to a wanted one."""
    system, t, q, size, wanted = args
    v, w = x[: q.size], x[q.size :]
    return jnp.concatenate([v - wanted - size**2 * constraint_forces(system, t, q, w), constraint_rate(system, t, q, v)])


def legendre(x, args):
    r"""$\partial L/\partial v + G^T \mu = p$ with $G v + \partial g/\partial t = 0$, for the constraints that a split picks."""
    system, t, q, p, at = args
    v, mu = x[: q.size], x[q.size :]
    balance = momentum(system, t, q, v) - p
    if mu.size == 0:
        return balance
    forces = constraint_forces(system, t, q, at.spread(mu))
    return jnp.concatenate([balance + forces, at.pick(constraint_rate(system, t, q, v))])


def euler_lagrange(x, args):
    r"""$\frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} + G^T \lambda = f$ and $\ddot g = 0$ (3).

    `force` is a part of $f$ that the system does not tell.
    """
    system, t, q, v, control, force, at = args
    a, mu = x[: q.size], x[q.size :]
    balance = equations_of_motion(system, t, q, v, a, control) - force
    if mu.size == 0:
        return balance
    forces = constraint_forces(system, t, q, at.spread(mu))
    curvature = jax.jvp(lambda t, q, v: constraint_rate(system, t, q, v), (t, q, v), (jnp.ones_like(t), v, a))[1]
    return jnp.concatenate([balance + forces, at.pick(curvature)])
