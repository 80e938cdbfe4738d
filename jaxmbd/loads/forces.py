"""Forces and torques on bodies and joints, constant, as functions of time, or the user's own."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from ..geometry.frame import Frame, twist
from ..numerics.arrays import number
from .base import AbstractJointLoad, AbstractLoad, as_history, at_time


class Force(AbstractLoad):
    """A force, a vector or a function of time that returns one, on a point `at` (in body axes) of a body.

    Dead: the components are in space. `follower=True`: they are in body axes and turn with the body.
    """

    a: Any
    b: Any
    force: Any
    at: Any
    follower: bool = eqx.field(static=True)

    def __init__(self, body: str, force: Any, at=(0.0, 0.0, 0.0), follower: bool = False):
        self.a, self.b, self.force, self.at, self.follower = body, "ground", as_history(force), number(at), follower

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        force = at_time(self.force, t)
        return (at[0].rotation @ force if self.follower else force) @ virtual[0].point(self.at)


class Torque(AbstractLoad):
    """A torque, a vector or a function of time that returns one, on a body; dead or follower as for `Force`."""

    a: Any
    b: Any
    torque: Any
    follower: bool = eqx.field(static=True)

    def __init__(self, body: str, torque: Any, follower: bool = False):
        self.a, self.b, self.torque, self.follower = body, "ground", as_history(torque), follower

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        torque = at_time(self.torque, t)
        _, turning = twist(at[0], virtual[0])
        return (at[0].rotation @ torque if self.follower else torque) @ turning


class UserForce(AbstractLoad):
    """A force written by the user: `function(t, frame, velocity, angular_velocity, params) -> (force, torque)`.

    Both act on the body at its origin and are given in space, as are the velocity of that origin and the angular velocity.
    """

    function: Callable
    a: Any
    b: Any
    params: Any

    def __init__(self, function: Callable, body: str, params: Any = None):
        self.function, self.a, self.b, self.params = Partial(function), body, "ground", params

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        force, torque = self.function(t, at[0], *twist(at[0], rates[0]), self.params)
        moving, turning = twist(at[0], virtual[0])
        return jnp.asarray(force) @ moving + jnp.asarray(torque) @ turning


class JointForce(AbstractJointLoad):
    """A force along, or a torque about, a coordinate of a joint: a number or a function of time. It acts on the second body."""

    joint: Any
    force: Any
    index: int = eqx.field(static=True)

    def __init__(self, joint: str, force: Any, index: int = 0):
        self.joint, self.force, self.index = joint, as_history(force), index

    def power(self, t: Array, c: Array, rate: Array, virtual: Array) -> Array:
        return at_time(self.force, t) * virtual
