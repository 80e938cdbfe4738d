"""Springs and dampers between points and on joints, and the user's own potentials."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from ..errors import ModelError
from ..geometry.frame import Frame
from ..numerics.checks import function as checked_function, named, not_negative, real, whole
from .base import AbstractJointLoad, AbstractLoad, length


class Spring(AbstractLoad):
    r"""A linear spring with a damper along the line between two points: $\frac12 k\,(l - l_0)^2$ and the force $-c\,\dot l$.

    `at_a` and `at_b` are the points in body axes, `rest` is the length $l_0$.
    """

    a: Any
    b: Any
    stiffness: Any
    rest: Any
    damping: Any
    at_a: Any
    at_b: Any

    def __init__(self, a: Any, b: Any, stiffness=0.0, rest=0.0, damping=None, at_a=(0.0, 0.0, 0.0), at_b=(0.0, 0.0, 0.0)):
        self.a, self.b = named("a, the first body of a Spring,", a), named("b, the second body of a Spring,", b)
        if a == b:
            raise ModelError(f"a Spring goes from {a!r} to itself: a and b must be two bodies")
        self.stiffness, self.rest = real("stiffness of a Spring", stiffness), not_negative("rest of a Spring", rest)
        self.damping = None if damping is None else real("damping of a Spring", damping)
        self.at_a, self.at_b = real("at_a of a Spring", at_a, (3,)), real("at_b of a Spring", at_b, (3,))

    @property
    def has_power(self) -> bool:
        return self.damping is not None

    def elongation(self, a: Frame, b: Frame) -> Array:
        """Length of the spring."""
        return length(b.point(self.at_b) - a.point(self.at_a))

    def potential(self, t: Array, a: Frame, b: Frame) -> Array:
        rod = b.point(self.at_b) - a.point(self.at_a)  # squared here, so that a spring without rest length is smooth where its ends meet
        return 0.5 * self.stiffness * (rod @ rod - 2 * self.rest * length(rod) + self.rest**2)

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        if self.damping is None:
            return jnp.zeros_like(t)
        speed = lambda rates: jax.jvp(self.elongation, at, rates)[1]
        return -self.damping * speed(rates) * speed(virtual)


class JointSpring(AbstractJointLoad):
    r"""A spring and damper on a joint's coordinate, torsional on an angle: $\frac12 k\,(c - c_0)^2$ and $-d\,\dot c$."""

    joint: Any
    stiffness: Any
    rest: Any
    damping: Any
    index: int = eqx.field(static=True)

    def __init__(self, joint: Any, stiffness=0.0, rest=0.0, damping=None, index: Any = 0):
        self.joint, self.index = named("joint of a JointSpring", joint), whole("index of a JointSpring", index)
        self.stiffness, self.rest = real("stiffness of a JointSpring", stiffness), real("rest of a JointSpring", rest)
        self.damping = None if damping is None else real("damping of a JointSpring", damping)

    @property
    def has_power(self) -> bool:
        return self.damping is not None

    def potential(self, t: Array, c: Array) -> Array:
        return 0.5 * self.stiffness * (c - self.rest) ** 2

    def power(self, t: Array, c: Array, rate: Array, virtual: Array) -> Array:
        return jnp.zeros_like(t) if self.damping is None else -self.damping * rate * virtual


class Potential(AbstractLoad):
    """A potential energy written by the user: `function(t, a, b, params)` of the frames of two bodies."""

    function: Callable
    a: Any
    b: Any
    params: Any

    def __init__(self, function: Any, a: Any, b: Any = "ground", params: Any = None):
        self.function, self.params = Partial(checked_function("function of a Potential", function)), params
        self.a, self.b = named("a, the first body of a Potential,", a), named("b, the second body of a Potential,", b)

    @property
    def has_power(self) -> bool:
        return False

    def potential(self, t: Array, a: Frame, b: Frame) -> Array:
        return jnp.asarray(self.function(t, a, b, self.params))
