"""How many constraints there are, how many of them are independent, and how many increments a chart has."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..numerics.lapack import singular_values
from ..system import System, Vector
from .units import row_size


def constraint_count(system: System, q: Vector) -> int:
    """Number of constraints, on positions and on velocities, redundant ones included."""
    return position_count(system, q) + velocity_count(system, q)


def position_count(system: System, q: Vector) -> int:
    """Number of constraints on positions."""
    return jax.eval_shape(system.constraints, jnp.zeros((), q.dtype), q).size


def velocity_count(system: System, q: Vector) -> int:
    """Number of constraints on velocities."""
    return jax.eval_shape(system.velocity_constraints, jnp.zeros((), q.dtype), q, q).size


def rank(system: System, q: Vector) -> int:
    """Number of independent constraints: as found by `find_rank`, or else all of them."""
    return constraint_count(system, q) if system.rank is None else system.rank


def known_independent(system: System, q: Vector) -> bool:
    """Whether all constraints are independent: as those of a tree of joints always are, or as found."""
    return closed(system) or system.rank == constraint_count(system, q)


def closed(system: System) -> bool:
    """Whether the chart is known to fulfil all constraints, which are independent then."""
    return system.closures == 0 and not system.has("velocity_constraints")


def leaves_open(system: System) -> bool:
    """Whether the chart, if there is one, leaves constraints open: closures, and those on velocities."""
    return bool(system.closures) or system.has("velocity_constraints")


def redundant(system: System, q: Vector) -> bool:
    """Whether some constraints are known to follow from others."""
    return rank(system, q) < constraint_count(system, q)


def fulfilled(system: System, q: Vector) -> int:
    """Number of constraints that the chart fulfils by itself; they come first."""
    return position_count(system, q) - (system.closures or 0)


def chart_size(system: System, q: Vector) -> int:
    """Number of increments of the chart: one a degree of freedom, and one for each constraint that it leaves to be closed."""
    return q.size - (rank(system.holonomic, q) if system.closures is None else fulfilled(system, q))


def rank_tolerance(dtype) -> float:
    """Relative size below which a singular value of the row-normalised $G$ counts as zero."""
    return float(jnp.finfo(dtype).eps) ** (2 / 3)


def matrix_rank(G: Float[Array, "m k"], size: Float[Array, " m"] | None = None) -> Array:
    """Rank of a Jacobian by coordinates of one unit, its rows brought to comparable length; `size` is what they have unless they cancel."""
    if G.size == 0:
        return jnp.array(0)
    values = singular_values(G / (row_size(G) if size is None else size)[:, None])
    return jnp.sum(values > rank_tolerance(G.dtype) * jnp.maximum(values[0], 1))
