"""What the user gives, as arrays of one dtype, with shapes checked and numbers finite where they are seen."""

from collections.abc import Hashable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from ..errors import MOST_NAMED, ModelError
from ..numerics.arrays import known
from ..numerics.naming import is_parameter
from ..system import System, Vector, VectorLike

MOST_SEEN = 32
"""Structures of systems that are remembered as checked."""


def as_coordinates(system: System, q: VectorLike, name: str = "q0") -> Vector:
    """`q` as a floating vector, with the shapes of all functions of the system checked against it."""
    q = jnp.asarray(q)
    if q.ndim != 1 or q.size == 0:
        raise ModelError(f"{name} must be a vector of coordinates, but has shape {q.shape}; use jax.vmap for batches")
    q = q if jnp.issubdtype(q.dtype, jnp.floating) else q.astype(float)
    require_finite(q, name)
    for leaf in jax.tree.leaves(eqx.filter(system, is_parameter)):
        require_finite(leaf, "a parameter of the system")
    _check_once(system.astype(q.dtype), q)
    return q


def vector_like(value: VectorLike, q: Vector, name: str) -> Vector:
    """`value` as a finite vector of the shape and dtype of `q`."""
    value = jnp.asarray(value)
    if value.shape != q.shape:
        raise ModelError(f"{name} has shape {value.shape}, but q0 has shape {q.shape}")
    require_finite(value, name)
    return value.astype(q.dtype)


_SEEN: dict[Hashable, None] = {}
"""Systems whose functions were tried with coordinates of some shape, the last ones of them."""


def _check_once(system: System, q: Vector) -> None:
    """Check shapes, unless that was done before for functions, parameters and coordinates of the same structure."""
    leaves, structure = jax.tree.flatten((system, q))
    key = (structure, *((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves))
    if key in _SEEN:
        return
    _check_shapes(system, q)
    if len(_SEEN) >= MOST_SEEN:
        _SEEN.pop(next(iter(_SEEN)))
    _SEEN[key] = None


def _check_shapes(system: System, q: Vector) -> None:
    scalar = jnp.zeros((), q.dtype)
    if system.has("constraints"):
        shape = jax.eval_shape(system.constraints, scalar, q).shape
        if len(shape) != 1:
            raise ModelError(f"constraints must return a vector (m,), but returned shape {shape}; wrap it in jnp.array([...])")
    if system.has("forces") and not system.controlled:
        shape = jax.eval_shape(system.forces, scalar, q, q).shape
        if shape != q.shape:
            raise ModelError(f"forces must return a vector of shape {q.shape}, but returned {shape}")
    shape = jax.eval_shape(system.with_step(1.0).lagrangian, scalar, q, q).shape
    if shape != ():
        raise ModelError(f"the Lagrangian must be a scalar, but has shape {shape}")


def require_time_step(dt: ArrayLike) -> None:
    """Refuse time steps that are not one positive number."""
    numbers = known(dt)
    if np.ndim(dt) or (numbers is not None and not (numbers > 0 and np.isfinite(numbers))):
        raise ModelError(f"dt must be a positive number, not {dt}")


def require_finite(value: ArrayLike, name: str) -> None:
    """Refuse what is seen to be infinite or not a number."""
    numbers = known(value)
    if numbers is not None and not np.isfinite(numbers).all():
        places = np.argwhere(~np.isfinite(numbers))[:MOST_NAMED].tolist()
        where = f" at {[place[0] if len(place) == 1 else place for place in places]}" if numbers.ndim else ""
        raise ModelError(f"{name} has non-finite entries{where}")
