"""What a time discretisation is: nodes inside a step, a momentum balance, and the directions of constraint forces."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..system import Scalar, System, Vector


class StepInput(eqx.Module):
    """All that is known before a step is solved. `p0` is the momentum that arrives at `q0` without its constraint share."""

    system: System
    t0: Scalar
    dt: Scalar
    q0: Vector
    p0: Vector
    control: PyTree = None


class AbstractScheme(eqx.Module):
    r"""A time discretisation: no solver, no loop, no multipliers.

    A step spans nodes $q_0, Q_1, \ldots, Q_s = q_1$ at the fractions `fractions` of the step. It has $s$ balances of
    momentum, the first at $q_0$, in which constraint forces act along `directions`, and $s$ positions to find.
    `weights` are the shares of $h\,g^T \lambda$ that fall on the nodes: one half each for two nodes, as in (23).
    """

    fractions: eqx.AbstractVar[tuple[float, ...]]
    weights: eqx.AbstractVar[tuple[float, ...]]

    @property
    def stages(self) -> int:
        """Number of unknown nodes in a step."""
        return len(self.fractions) - 1

    @abc.abstractmethod
    def balance(self, nodes: Float[Array, "s n"], step: StepInput) -> Float[Array, "s n"]:
        """Balance of momentum without constraint forces, one row for each node but the last."""

    @abc.abstractmethod
    def directions(self, nodes: Float[Array, "s n"], step: StepInput) -> Float[Array, "s m n"]:
        """Directions of the constraint forces in each balance."""

    @abc.abstractmethod
    def advance(self, nodes: Float[Array, "s n"], step: StepInput) -> Vector:
        """The momentum that arrives at the end of the step."""

    def times(self, step: StepInput) -> Float[Array, " s"]:
        """Times of the unknown nodes."""
        return step.t0 + step.dt * jnp.asarray(self.fractions[1:], step.q0.dtype)
