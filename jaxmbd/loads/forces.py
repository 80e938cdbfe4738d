"""Forces and torques on bodies and joints, constant, as functions of time, or the user's own."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from ..geometry.frame import Frame, twist
from ..numerics.checks import flag, function as checked_function, named, real, whole
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

    def __init__(self, body: Any, force: Any, at: Any = (0.0, 0.0, 0.0), follower: Any = False):
        self.a, self.b = named("body of a Force", body), "ground"
        self.force, self.at = as_history("force of a Force", force, (3,)), real("at of a Force", at, (3,))
        self.follower = flag("follower of a Force", follower)

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        force = at_time(self.force, t)
        return (at[0].rotation @ force if self.follower else force) @ virtual[0].point(self.at)


class Torque(AbstractLoad):
    """A torque, a vector or a function of time that returns one, on a body; dead or follower as for `Force`."""

    a: Any
    b: Any
    torque: Any
    follower: bool = eqx.field(static=True)

    def __init__(self, body: Any, torque: Any, follower: Any = False):
        self.a, self.b = named("body of a Torque", body), "ground"
        self.torque, self.follower = as_history("torque of a Torque", torque, (3,)), flag("follower of a Torque", follower)

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

    def __init__(self, function: Any, body: Any, params: Any = None):
        self.function, self.params = Partial(checked_function("function of a UserForce", function)), params
        self.a, self.b = named("body of a UserForce", body), "ground"

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        force, torque = self.function(t, at[0], *twist(at[0], rates[0]), self.params)
        moving, turning = twist(at[0], virtual[0])
        return jnp.asarray(force) @ moving + jnp.asarray(torque) @ turning


class JointForce(AbstractJointLoad):
    """A force along, or a torque about, a coordinate of a joint: a number or a function of time. It acts on the second body."""

    joint: Any
    force: Any
    index: int = eqx.field(static=True)

    def __init__(self, joint: Any, force: Any, index: Any = 0):
        self.joint, self.index = named("joint of a JointForce", joint), whole("index of a JointForce", index)
        self.force = as_history("force of a JointForce", force, ())

    def power(self, t: Array, c: Array, rate: Array, virtual: Array) -> Array:
        return at_time(self.force, t) * virtual
