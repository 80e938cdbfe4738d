"""The number of independent constraints, found where numbers are seen."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike

from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..system import Scalar, System, Vector, VectorLike
from .inputs import as_coordinates, require_finite
from .manifold import DenseManifold, manifold_at


@checked
def find_rank(system: System, q: VectorLike, t: ArrayLike = 0.0) -> System:
    """The system with the rank of its constraints at `q` fixed.

    `simulate` does this by itself where it sees numbers. Redundant constraints need it before `jit` or `vmap`. Take a `q` that
    fulfils the constraints: away from them redundant constraints look independent. Where the constraints of a large system are not
    clearly independent the cost is cubic in its size, so that `assemble` and `simulate` leave such systems as they are unless a
    formulation needs the rank: redundant constraints are then made soft.
    """
    q = as_coordinates(system, q, "q")
    require_finite(t, "t")
    system = system.astype(q.dtype)
    found = with_rank_if_cheap(system.with_rank(None), q, t)
    return found if found.rank is not None else _with_numerical_rank(system, q, t)


def with_rank_if_cheap(system: System, q: Vector, t: ArrayLike = 0.0) -> System:
    """The system with its rank, unless that takes a decomposition of large matrices to find, or numbers are hidden."""
    if system.rank is not None:
        return system
    return _with_found(system, _ranks(*jax.lax.stop_gradient((system, jnp.asarray(t, q.dtype), q))))


def _with_numerical_rank(system: System, q: Vector, t: ArrayLike) -> System:
    return _with_found(system, _numerical_ranks(*jax.lax.stop_gradient((system, jnp.asarray(t, q.dtype), q))))


def _with_found(system: System, ranks: list[Array]) -> System:
    """The system with the ranks of all constraints and of those on positions alone, unless one of them is hidden or was not found."""
    found = [-1 if numbers is None else int(numbers) for numbers in map(known, ranks)]
    return system if min(found) < 0 else system.with_rank(*found)


@compiled
def _ranks(system: System, t: Scalar, q: Vector) -> list[Array]:
    return [manifold_at(part, t, q).rank() for part in _parts(system)]


@compiled
def _numerical_ranks(system: System, t: Scalar, q: Vector) -> list[Array]:
    return [DenseManifold(part, t, q).rank() for part in _parts(system)]


def _parts(system: System) -> list[System]:
    """The system, and without its constraints on velocities if there are some."""
    return [system, system.holonomic] if system.has("velocity_constraints") else [system]
