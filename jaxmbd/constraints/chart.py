"""Directions of a chart, and the constraints that it leaves open."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..system import Scalar, System, Vector
from .calculus import changes_at
from .counts import chart_size, fulfilled


def chart_directions(system: System, t: Scalar, q: Vector) -> Float[Array, "n k"]:
    r"""$P^o = \partial F_d/\partial u$ at $u = 0$ (94)."""
    return jax.jacfwd(system.chart)(jnp.zeros(chart_size(system, q), q.dtype), q, t, t)


def pull_to_chart(system: System, t: Scalar, q: Vector, force: Vector) -> Float[Array, " k"]:
    r"""$P^{oT}$ times a vector without the matrix: at a cost in proportion to the number of bodies."""
    return jax.vjp(lambda u: system.chart(u, q, t, t), jnp.zeros(chart_size(system, q), q.dtype))[1](force)[0]


def closure_jacobian(system: System, t: Scalar, q: Vector) -> Float[Array, "open n"]:
    r"""$G^c$: the last rows of all, of the constraints that the chart leaves open."""
    changes = changes_at(system, t, q)
    return jax.jacrev(lambda q: changes(q)[fulfilled(system, q) :])(q)
