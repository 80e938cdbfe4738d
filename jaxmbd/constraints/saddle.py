r"""Saddle point problems, in which constraints enter through products with $G$ and $G^T$ alone: the way of large systems.

A vector is split into a part that the constraints admit and one that constraint forces make up. Sparse matrices solve these problems in
linear time, where a decomposition of $G$ would be dense.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..numerics.linear import Auto
from ..numerics.newton import Newton, Solution
from ..system import Scalar, System, Vector
from .calculus import constraint_forces, constraint_rate, constraint_slopes
from .splitting import Split, constraint_count, saddle_layout


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


def clearly_independent(system: System, t: Scalar, q: Vector) -> Array:
    r"""Whether no constraint comes near to following from others, at the cost of one factorisation; doubtful ones count as dependent.

    With rows of unit length in $G$, the matrix of the problem above has an inverse of the size of $(G G^T)^{-1}$.
    """
    slopes = constraint_slopes(system, t, q)
    scales = 1 / jnp.where(slopes > 0, slopes, 1)
    x = jnp.zeros(q.size + scales.size, q.dtype)
    layout = saddle_layout(system, q, Split.trivial(q))._replace(dependent=False)
    tangent = Auto().tangent(_nearest, x, (Partial(_scaled_pull), (system, t, q, scales), jnp.zeros_like(q)), layout)
    return tangent.condition(x.size, x.dtype) < float(jnp.finfo(q.dtype).eps) ** -0.75


def _scaled_pull(multipliers, args):
    system, t, q, scales = args
    return constraint_forces(system, t, q, scales * multipliers)


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
