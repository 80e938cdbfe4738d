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
    found = known(_rank(*jax.lax.stop_gradient((system, jnp.asarray(t, q.dtype), q))))
    return system if found is None or found < 0 else system.with_rank(int(found))


def _with_numerical_rank(system: System, q: Vector, t: ArrayLike) -> System:
    found = known(_numerical_rank(*jax.lax.stop_gradient((system, jnp.asarray(t, q.dtype), q))))
    return system if found is None else system.with_rank(int(found))


@compiled
def _rank(system: System, t: Scalar, q: Vector) -> Array:
    return manifold_at(system, t, q).rank()


@compiled
def _numerical_rank(system: System, t: Scalar, q: Vector) -> Array:
    return DenseManifold(system, t, q).rank()
