"""What follows from a Lagrangian and constraints by differentiation: momenta, mass, energy, Jacobians."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..system import Scalar, System, Vector

PROBES = 4
"""Random vectors with which the lengths of rows are estimated."""


def momentum(system: System, t: Scalar, q: Vector, v: Vector) -> Vector:
    r"""Continuous Legendre transform $p = \partial L/\partial v$."""
    return jax.grad(system.lagrangian, 2)(t, q, v)


def mass_matrix(system: System, t: Scalar, q: Vector, v: Vector) -> Float[Array, "n n"]:
    r"""$M = \partial^2 L/\partial v^2$."""
    return jax.hessian(system.lagrangian, 2)(t, q, v)


def energy(system: System, t: Scalar, q: Vector, v: Vector) -> Scalar:
    r"""$p \cdot v - L$, the Hamiltonian in terms of velocities."""
    return momentum(system, t, q, v) @ v - system.lagrangian(t, q, v)


def equations_of_motion(system: System, t: Scalar, q: Vector, v: Vector, a: Vector, control: PyTree = None) -> Vector:
    r"""$\frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} - f$, which constraint forces balance (3)."""
    rate = jax.jvp(lambda t, q, v: momentum(system, t, q, v), (jnp.asarray(t, q.dtype), q, v), (jnp.ones((), q.dtype), v, a))[1]
    return rate - jax.grad(system.lagrangian, 1)(t, q, v) - system.forces(t, q, v, control)


def constraint_jacobian(system: System, t: Scalar, q: Vector) -> Float[Array, "m n"]:
    r"""The rows $G = \partial g/\partial q$, and below them $A = \partial a/\partial v$, by whichever mode is cheaper for their shape."""
    if not system.constrained:
        return jnp.zeros((0, q.size), q.dtype)
    changes = changes_at(system, t, q)
    rows = jax.eval_shape(changes, q).size
    return (jax.jacrev if rows < q.size else jax.jacfwd)(changes)(q)


def constraint_forces(system: System, t: Scalar, q: Vector, multipliers: Float[Array, " m"]) -> Vector:
    r"""$G^T \lambda$, and $A^T \lambda$ of the last ones, without the matrix."""
    if multipliers.size == 0:
        return jnp.zeros_like(q)
    return jax.vjp(changes_at(system, t, q), q)[1](multipliers)[0]


def changes_at(system: System, t: Scalar, q: Vector) -> Callable[[Vector], Float[Array, " m"]]:
    """A function of positions whose derivative at `q` has the rows of all constraints: $g$ itself, and $a$ of displacements from `q`."""
    if not system.has("velocity_constraints"):
        return lambda x: system.constraints(t, x)
    return lambda x: jnp.concatenate([system.constraints(t, x), system.velocity_constraints(t, q, x - q)])


def velocity_jacobian(system: System, t: Scalar, q: Vector) -> Float[Array, "k n"]:
    r"""$A = \partial a/\partial v$."""
    if not system.has("velocity_constraints"):
        return jnp.zeros((0, q.size), q.dtype)
    return jax.jacrev(lambda v: system.velocity_constraints(t, q, v))(jnp.zeros_like(q))


def velocity_forces(system: System, t: Scalar, q: Vector, multipliers: Float[Array, " k"]) -> Vector:
    r"""$A^T \mu$, without the matrix."""
    return jax.vjp(lambda v: system.velocity_constraints(t, q, v), jnp.zeros_like(q))[1](multipliers)[0]


def probes(q: Vector) -> Float[Array, "probes n"]:
    """The random vectors, always the same ones."""
    return jnp.asarray(np.random.default_rng(0).standard_normal((PROBES, q.size)), q.dtype)


def constraint_slopes(system: System, t: Scalar, q: Vector, size: Vector) -> Float[Array, " m"]:
    """About how much each constraint changes when coordinates do by their `size`: the length of each of its rows times $S$, from products
    with a few random vectors.
    """
    if not system.constrained:
        return jnp.zeros(0, q.dtype)
    _, slope = jax.linearize(changes_at(system, t, q), q)
    return jnp.sqrt(jnp.mean(jax.vmap(slope)(size * probes(q)) ** 2, axis=0))


def constraint_rate(system: System, t: Scalar, q: Vector, v: Vector) -> Float[Array, " m"]:
    r"""$\dot g = G v + \partial g/\partial t$, and $a(t, q, v)$ below: zero for admissible velocities."""
    rates = jax.jvp(system.constraints, (t, q), (jnp.ones_like(t), v))[1]
    if not system.has("velocity_constraints"):
        return rates
    return jnp.concatenate([rates, system.velocity_constraints(t, q, v)])
