r"""What a load is: a potential of two frames, or the virtual power of a force on them.

Virtual power $\mathcal P(w)$ is linear in virtual rates $w$ of the frames; the generalised forces are its derivative by $w$, whatever the
coordinates of the bodies are.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array

from ..geometry.frame import Frame
from ..geometry.rotation import Vector3
from ..numerics.arrays import root
from ..numerics.checks import real


class Gravity(eqx.Module):
    """Uniform gravity on all bodies."""

    acceleration: Any

    def __init__(self, acceleration=(0.0, 0.0, -9.81)):
        self.acceleration = real("acceleration of Gravity", acceleration, (3,))


class AbstractLoad(eqx.Module):
    """A load between the frames of a body `a` and a body `b`, given by name; the frames are those of the bodies themselves."""

    a: eqx.AbstractVar[Any]
    b: eqx.AbstractVar[Any]

    def potential(self, t: Array, a: Frame, b: Frame) -> Array:
        """Potential energy."""
        return jnp.zeros_like(t)

    def power(self, t: Array, at: tuple[Frame, Frame], rates: tuple[Frame, Frame], virtual: tuple[Frame, Frame]) -> Array:
        """Virtual power of forces without a potential, linear in the virtual rates of both frames."""
        return jnp.zeros_like(t)

    @property
    def has_power(self) -> bool:
        """Whether there are forces without a potential."""
        return True

    def bare(self) -> "AbstractLoad":
        """The load without names, so that loads of one kind can be stacked."""
        return eqx.tree_at(lambda load: (load.a, load.b), self, (None, None))


class AbstractOnCoordinate(eqx.Module):
    """What acts on a coordinate of a joint; angles count all turns. `index` says which, where a joint has several."""

    joint: eqx.AbstractVar[Any]
    index: eqx.AbstractVar[int]

    @property
    def coordinates(self) -> tuple[tuple[str, int], ...]:
        """The coordinates that it needs, by joint and number; the one that it acts on is the first."""
        return ((self.joint, self.index),)

    def bare(self) -> "AbstractOnCoordinate":
        """The same without names, so that those of one kind can be stacked."""
        return eqx.tree_at(lambda load: load.joint, self, None)


class AbstractJointLoad(AbstractOnCoordinate):
    """A load on a coordinate of a joint: its potential, or the virtual power of its force."""

    def potential(self, t: Array, c: Array) -> Array:
        """Potential energy at the coordinate `c`."""
        return jnp.zeros_like(t)

    def power(self, t: Array, c: Array, rate: Array, virtual: Array) -> Array:
        """Virtual power of forces without a potential."""
        return jnp.zeros_like(t)

    @property
    def has_power(self) -> bool:
        """Whether there are forces without a potential."""
        return True


def as_history(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A function of time as a pytree, which `assemble` tries, or a constant as a parameter; `shape` is that of its values."""
    if not callable(value) or isinstance(value, type):
        return real(f"{name}, or a function of time that returns it,", value, shape)
    return value if isinstance(value, eqx.Module | Partial) else Partial(value)


def at_time(history: Any, t: Array) -> Array:
    """The value of a function of time, or of a constant."""
    return jnp.asarray(history(t) if callable(history) else history).astype(t.dtype)


def length(vector: Vector3) -> Array:
    """The norm, with derivative zero at zero."""
    return root(vector @ vector)
