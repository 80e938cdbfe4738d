"""Sizes of coordinates: a length of the mechanism for those that are lengths, one for directors and angles."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..numerics.arrays import root
from ..system import Vector
from .model import Assembly


def coordinate_sizes(model: Assembly, q: Vector) -> Vector:
    """Changes of the coordinates that matter alike."""
    length = mechanism_length(model, q)
    return jnp.concatenate([*(group.sizes(length).ravel() for group in model.groups), _gauge_sizes(model, length)])


def twist_sizes(model: Assembly, q: Vector) -> Float[Array, " d"]:
    """The same of the velocities and angular velocities of all bodies, and of the gauges."""
    length = mechanism_length(model, q)
    turns = np.concatenate([np.tile(np.array(kind.twists, int) >= 3, count) for kind, count in model.kinds])
    return jnp.concatenate([jnp.where(turns, jnp.ones_like(length), length), _gauge_sizes(model, length)])


def _gauge_sizes(model: Assembly, length: Array) -> Float[Array, " g"]:
    kinds = [model.joints[gauge.group].kind for gauge in model.gauges]
    turns = [(kind.angles or kind.angular)[gauge.coordinate] for kind, gauge in zip(kinds, model.gauges, strict=True)]
    return jnp.where(np.array(turns, bool), jnp.ones_like(length), length)


def mechanism_length(model: Assembly, q: Vector) -> Array:
    """The largest distance of a joint from the origin of a body that moves, of the mass of a body from it, or within a beam.

    Wherever the mechanism is placed; if it has no length of its own, the largest coordinate, or one.
    """
    moves = np.array([kind.size > 0 for kind, count in model.kinds for _ in range(count)])
    offsets = [
        jnp.max(jnp.abs(jnp.asarray(frame.origin, q.dtype)[np.flatnonzero(moves[np.asarray(places)])]), initial=0)
        for group in model.joints
        for frame, places in ((group.on_a, group.a), (group.on_b, group.b))
    ]
    inertia = jnp.asarray(model.inertia, q.dtype)
    mass = inertia[:, 0, 0]
    spread = jnp.trace(inertia[:, 1:, 1:], axis1=1, axis2=2) / jnp.where(mass > 0, mass, 1)
    within = [jnp.max(group.measures(q.dtype)) for group in model.beams] + [jnp.asarray(group.length, q.dtype) for group in model.groups]
    own = jnp.max(jnp.stack([*offsets, root(jnp.max(spread)), *within]))
    largest = jnp.max(jnp.abs(q))
    return jnp.where(own > 0, own, jnp.where(largest > 0, largest, 1))
