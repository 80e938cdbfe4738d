"""Joints from functions of the user's."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from ..geometry.frame import Frame, Motion
from ..numerics import checks
from .base import AbstractJoint


class UserJoint(AbstractJoint):
    """A joint written by the user: `function(a, b, params) -> (m,)` on two frames, zero where admissible.

    Without a `relative_motion(u, a, b, params)` and its number of increments `size` it closes loops only; a body that hangs on nothing
    else is then free in the spanning tree, and the joint an equation. `slip(a, b, a_rate, b_rate, params) -> (k,)` tells velocities that
    vanish as well, linear in the rates of both frames.
    """

    function: Callable
    relative_motion: Callable | None
    params: Any
    size: int = eqx.field(static=True)
    slipping: Callable | None

    def __init__(self, function: Any, params: Any = None, relative_motion: Any = None, size: Any = 0, slip: Any = None):
        self.function = Partial(checks.function("function of a UserJoint", function))
        motion = None if relative_motion is None else checks.function("relative_motion of a UserJoint", relative_motion)
        self.relative_motion = None if motion is None else Partial(motion)
        self.params, self.size = params, checks.whole("size of a UserJoint", size)
        self.slipping = None if slip is None else Partial(checks.function("slip of a UserJoint", slip))

    def constraint(self, a: Frame, b: Frame) -> Float[Array, " m"]:
        return jnp.asarray(self.function(a, b, self.params))

    def slip(self, a: Frame, b: Frame, a_rate: Frame, b_rate: Frame) -> Float[Array, " k"]:
        if self.slipping is None:
            return super().slip(a, b, a_rate, b_rate)
        return jnp.asarray(self.slipping(a, b, a_rate, b_rate, self.params))

    def motion(self, u: Float[Array, " size"], a: Frame, b: Frame) -> Motion:
        if self.relative_motion is None:
            return super().motion(u, a, b)
        return self.relative_motion(u, a, b, self.params)

    @property
    def freedom(self) -> int:  # type: ignore[override]  # of the instance, where others have it of the class
        return self.size

    @property
    def moves(self) -> bool:
        return self.relative_motion is not None
