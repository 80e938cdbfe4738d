"""What solvers and messages may know of an assembled mechanism."""

import functools

import jax.numpy as jnp
from jaxtyping import Array

from ..errors import Result
from ..system import Structure, Vector
from .model import Assembly
from .rigid_motion import lost_turns, turned_over
from .sizes import coordinate_sizes


def structure_of(model: Assembly) -> Structure:
    """Parts are bodies and gauges; nodes of beams have inertia only with the constraints that keep their directors orthonormal."""
    return Structure(
        parts=model.parts_of_coordinates(),
        pivots=tuple(model.gauge_rows()),
        internal=tuple(model.internal_rows()),
        held=bool(model.beams),
        owners=tuple(model.owners()),
        quadratic=True,
        leaps=functools.partial(_leap, model),
        sizes=functools.partial(coordinate_sizes, model),
    )


def _leap(model: Assembly, q: Vector, move: Vector) -> Array:
    """The code of a step in which a body or a counted angle went to a root that no equation tells from the right one."""
    lost = jnp.where(lost_turns(model, q, move), jnp.int32(Result.LOST_TURN), jnp.int32(Result.SUCCESS))
    return jnp.where(turned_over(model, q, move), jnp.int32(Result.TURNED_OVER), lost)
