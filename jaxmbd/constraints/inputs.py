"""What the user gives, as arrays of one dtype, with shapes checked and numbers finite where they are seen."""

import sys
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import ArrayLike

from ..errors import MOST_NAMED, ModelError
from ..numerics.arrays import known
from ..numerics.compile import inside_jit
from ..numerics.naming import is_parameter
from ..numerics.trial import OWN, once
from ..system import System, Vector, VectorLike
from .functions import EVALUATED, evaluated, try_affine, try_friction, try_function


def as_coordinates(system: System, q: VectorLike, name: str = "q0") -> Vector:
    """`q` as a floating vector, with which the functions of the system are tried once."""
    _warn_of_lost_digits(q, name)
    q = jnp.asarray(q)
    if q.ndim != 1 or q.size == 0:
        raise ModelError(f"{name} must be a vector of coordinates, but has shape {q.shape}; use jax.vmap for batches")
    q = q if jnp.issubdtype(q.dtype, jnp.floating) else q.astype(float)
    require_finite(q, name)
    for leaf in jax.tree.leaves(eqx.filter(system, is_parameter)):
        require_finite(leaf, "a parameter of the system")
    system = system.astype(q.dtype)
    once("functions", (system, q), lambda: try_functions(system, q, name))
    if system.has("velocity_constraints") and not inside_jit():
        once("affine", (system, q), lambda: try_affine(system, q))
    return q


def vector_like(value: VectorLike, q: Vector, name: str, of: str = "q0") -> Vector:
    """`value` as a finite vector of the shape and dtype of the coordinates `q`, which were given as `of`."""
    value = jnp.asarray(value)
    if value.shape != q.shape:
        raise ModelError(f"{name} has shape {value.shape}, but {of} has shape {q.shape}")
    require_finite(value, name)
    return value.astype(q.dtype)


def try_functions(system: System, q: Vector, what: str) -> None:
    """Try the functions of a system, and count its coordinates where that can be done without them."""
    count = len(system.structure.parts)
    if count not in (0, q.size):
        raise ModelError(f"{what} has {q.size} coordinates, but this system has {count}")
    for name in EVALUATED:
        if evaluated(system, name):
            try_function(system, name, q)
    if system.has("friction"):
        try_friction(system, q)


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


def _warn_of_lost_digits(value: Any, name: str) -> None:
    """Say, once for every line that calls us, that an array of float64 is about to become one of float32."""
    if getattr(value, "dtype", None) != np.float64 or jax.dtypes.canonicalize_dtype(np.float64) == np.float64:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(str(OWN)):
        level, frame = level + 1, frame.f_back
    advice = "write jax.config.update('jax_enable_x64', True) after import jax, or give float32 on purpose"
    warnings.warn(f"{name} is float64, but JAX computes in float32 unless told otherwise: {advice}", stacklevel=level)
