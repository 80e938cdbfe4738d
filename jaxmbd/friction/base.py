r"""What friction on one coordinate is: a force over a step, from the coordinate at both ends of it and from what was remembered.

The force $F$ of a step, with which the coordinate is held back from $c_0$ to $c_1$, meets the balance of energy to rounding,

$$F\,(c_1 - c_0) = \Psi_1 - \Psi_0 + \Delta D,$$

with the energy $\Psi$ that is stored in the memory and the energy $\Delta D$ that is lost. This is the algorithmic force (26), written so
that nothing is divided by an increment that vanishes.
"""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, PyTree


class Slip(NamedTuple):
    """What happens in a step: the mean force against the motion, what is remembered at its end, and the energy that is lost."""

    force: Array
    state: PyTree
    dissipated: Array


class AbstractFriction(eqx.Module):
    """A law of friction on one coordinate. Its numbers are parameters; what it remembers is its state, a pytree of scalars."""

    @abc.abstractmethod
    def slide(self, state: PyTree, c0: Array, c1: Array, dt: Array) -> Slip:
        """A step of length `dt` from `c0` to `c1`."""

    def start(self, c: Array) -> PyTree:
        """The state of a coordinate that rests at `c` without a force: by default where it began."""
        return c

    def stored(self, state: PyTree, c: Array) -> Array:
        r"""The energy $\Psi$ that comes back when the coordinate does."""
        return jnp.zeros_like(c)

    def slipped(self, state: PyTree, c: Array) -> Array:
        """How far the coordinate has slipped since it began: how far it went, less what is held elastically."""
        return c - state

    @abc.abstractmethod
    def force(self, state: PyTree, c: Array, rate: Array) -> Array:
        """The force at one instant, for accelerations."""
