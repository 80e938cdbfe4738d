"""Drives: forces along coordinates of joints that are controls of a motion."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from ..numerics.checks import named, positive, whole
from .base import AbstractOnCoordinate


class Motor(AbstractOnCoordinate):
    r"""A force along, or a torque about, a coordinate of a joint that is a control $u$, called by the name of the load.

    It acts on the second body. With a `limit` $L$ the force is $u\,(1 + (u/L)^4)^{-1/4}$, whose derivative never vanishes.
    """

    joint: Any
    limit: Any
    index: int = eqx.field(static=True)

    def __init__(self, joint: Any, index: Any = 0, limit: Any = None):
        self.joint, self.index = named("joint of a Motor", joint), whole("index of a Motor", index)
        self.limit = as_limit("limit of a Motor", limit)

    def force(self, control: Array) -> Array:
        """The force for a control."""
        return saturated(control, self.limit)


def as_limit(name: str, limit: Any) -> Any:
    """The largest force of a drive, a parameter, or none."""
    return None if limit is None else positive(name, limit)


def saturated(force: Array, limit: Any) -> Array:
    r"""$u\,(1 + (u/L)^4)^{-1/4}$: smooth, and less than 0.4 % from $u$ up to a third of the limit $L$.

    Its derivative falls as $(L/u)^5$ beyond the limit. That of $L \tanh(u/L)$ is lost in rounding at 20 times the limit, and at a third of it
    this is 4 % from $u$.
    """
    if limit is None:
        return force
    times = force / limit
    within = jnp.abs(times) <= 1
    small = jnp.where(within, times, 1 / jnp.where(within, 1, times))  # its fourth power does not overflow
    return limit * jnp.where(within, times, jnp.sign(times)) * (1 + small**4) ** -0.25
