"""What follows from a Lagrangian and constraints by differentiation: momenta, mass, energy, Jacobians."""

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
    r"""$G = \partial g/\partial q$, by whichever mode is cheaper for its shape."""
    if not system.has("constraints"):
        return jnp.zeros((0, q.size), q.dtype)
    rows = jax.eval_shape(system.constraints, t, q).size
    jacobian = jax.jacrev if rows < q.size else jax.jacfwd
    return jacobian(system.constraints, 1)(t, q)


def constraint_forces(system: System, t: Scalar, q: Vector, multipliers: Float[Array, " m"]) -> Vector:
    r"""$G^T \lambda$, without the matrix."""
    if multipliers.size == 0:
        return jnp.zeros_like(q)
    return jax.vjp(lambda q: system.constraints(t, q), q)[1](multipliers)[0]


def probes(q: Vector) -> Float[Array, "probes n"]:
    """The random vectors, always the same ones."""
    return jnp.asarray(np.random.default_rng(0).standard_normal((PROBES, q.size)), q.dtype)


def constraint_slopes(system: System, t: Scalar, q: Vector, size: Vector) -> Float[Array, " m"]:
    """About how much each constraint changes when coordinates do by their `size`: the length of each row of $G S$, from its products with
    a few random vectors.
    """
    if not system.has("constraints"):
        return jnp.zeros(0, q.dtype)
    _, slope = jax.linearize(lambda q: system.constraints(t, q), q)
    return jnp.sqrt(jnp.mean(jax.vmap(slope)(size * probes(q)) ** 2, axis=0))


def constraint_rate(system: System, t: Scalar, q: Vector, v: Vector) -> Float[Array, " m"]:
    r"""$\dot g = G v + \partial g/\partial t$, zero for admissible velocities."""
    return jax.jvp(system.constraints, (t, q), (jnp.ones_like(t), v))[1]
