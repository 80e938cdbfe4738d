r"""Saddle point problems, in which constraints enter through products with $G$ and $G^T$ alone: the way of large systems.

A vector is split into a part that the constraints admit and one that constraint forces make up. Sparse matrices solve these problems in
linear time, where a decomposition of $G$ would be dense.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .calculus import constraint_forces, constraint_rate
from .newton import Newton, Solution
from .splitting import Split, constraint_count, saddle_layout
from .system import Scalar, System, Vector


def solve_saddle(residual: Callable, start: Vector, args: PyTree, system: System, newton: Newton) -> Solution:
    """Solve equations for a vector near `start` and a multiplier of every constraint."""
    x = jnp.concatenate([start, jnp.zeros(constraint_count(system, start), start.dtype)])
    return newton(residual, x, args, layout=saddle_layout(system, start, Split.trivial(start)))


def least_multipliers(system: System, pull: Callable, args: PyTree, reaction: Vector) -> Float[Array, " m"]:
    r"""Multipliers whose forces `pull(multipliers, args)` come nearest to a reaction; of several the smallest, up to the size of slopes.

    With $A^T$ for `pull`: $y + A^T \lambda = r$ and $A y = 0$, so that $\lambda = (A A^T)^{-1} A r$.
    """
    solution = solve_saddle(_nearest, jnp.zeros_like(reaction), (pull, args, reaction), system, Newton())
    return solution.value[reaction.size :]


def _nearest(x, args):
    pull, inner, reaction = args
    rest, multipliers = x[: reaction.size], x[reaction.size :]
    forces = lambda multipliers: pull(multipliers, inner)
    slope = jax.linear_transpose(forces, multipliers)(rest)[0]
    return jnp.concatenate([rest + forces(multipliers) - reaction, slope])


def nearest_position(system: System, t: Scalar, q: Vector, newton: Newton) -> tuple[Vector, Array]:
    r"""The position $q + G^T(q)\,w$ that fulfils the constraints, and the code of the solve."""
    solution = solve_saddle(_normal_move, jnp.zeros_like(q), (system, t, q), system, newton)
    return q + solution.value[: q.size], solution.result


def _normal_move(x, args):
    system, t, q = args
    move, w = x[: q.size], x[q.size :]
    return jnp.concatenate([move - constraint_forces(system, t, q, w), system.constraints(t, q + move)])


def nearest_velocity(system: System, t: Scalar, q: Vector, v: Vector) -> Vector:
    """The admissible velocity nearest to `v`."""
    return solve_saddle(_normal_change, v, (system, t, q, v), system, Newton()).value[: q.size]


def _normal_change(x, args):
    system, t, q, wanted = args
    v, w = x[: q.size], x[q.size :]
    return jnp.concatenate([v - wanted - constraint_forces(system, t, q, w), constraint_rate(system, t, q, v)])
