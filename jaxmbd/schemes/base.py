"""What a time discretisation is: nodes inside a step, a momentum balance, and the directions of constraint forces."""

import abc
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..constraints.manifold import AbstractManifold
from ..errors import ModelError
from ..numerics.arguments import check_fields
from ..system import Scalar, System, Vector

Memory = tuple[Vector, PyTree]
"""What passes from step to step: the momentum that arrives, and what else a scheme carries."""


class Samples(eqx.Module):
    """A control that varies within a step: its values at several times, one row a time."""

    values: PyTree


class StepInput(eqx.Module):
    """All that is known before a step is solved. `p0` is the momentum that arrives at `q0` without its constraint share.

    `carried` is what else a scheme carries from step to step, such as velocities and accelerations, `memory` what friction remembers. With
    a `servo` some entries of the control are unknown.
    """

    system: System
    t0: Scalar
    dt: Scalar
    q0: Vector
    p0: Vector
    control: PyTree = None
    carried: PyTree = None
    memory: PyTree = None
    servo: Any = None

    def friction(self, moves: Float[Array, "s n"]) -> tuple[Vector, PyTree]:
        """The mean force of the friction that the system has, and what is remembered at the end of the step."""
        return self.system.functions["friction"](self.system.params).act(self.memory, self.q0, self.q0 + moves[-1], jnp.asarray(self.dt))

    @property
    def middle(self) -> Scalar:
        """The time in the middle of the step."""
        return self.t0 + 0.5 * self.dt


class AbstractScheme(eqx.Module):
    r"""A time discretisation: no solver, no loop, no multipliers.

    A step spans nodes $q_0, Q_1, \ldots, Q_s = q_1$ at the fractions `fractions` of the step. It has $s$ balances of
    momentum, the first at $q_0$, in which constraint forces act along `directions`, and $s$ positions to find. Positions are given by
    `moves`, their displacements from $q_0$, which keep the digits that a small step adds to a large coordinate.
    `weights` are the shares of $h\,g^T \lambda$ that fall on the nodes: one half each for two nodes, as in (23).

    `acting` says where the constraint forces of a step act, and with it what their multipliers belong to: at its `"start"`, where their
    directions are known before the step, over the `"interval"`, or at its `"end"`. `rigid` says that the balance knows only of rigid
    motions of bodies, so that coordinates have no inertia without the internal constraints. `control_at` are the fractions of the step at
    which forces see controls that are functions of time; of several, forces get `Samples`.
    """

    fractions: eqx.AbstractVar[tuple[float, ...]]
    weights: eqx.AbstractVar[tuple[float, ...]]
    acting: ClassVar[Literal["start", "interval", "end"]] = "start"
    rigid: ClassVar[bool] = False

    def __check_init__(self):
        check_fields(self)

    @property
    def control_at(self) -> tuple[float, ...]:
        """Fractions of the step at which forces see controls."""
        return (0.5,)

    @property
    def stages(self) -> int:
        """Number of unknown nodes in a step."""
        return len(self.fractions) - 1

    @abc.abstractmethod
    def predict(self, extrapolated: Float[Array, "s n"], step: StepInput) -> Float[Array, "s n"]:
        """Moves to begin the iteration with: those that a polynomial extrapolates, or better ones."""

    @abc.abstractmethod
    def balance(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s n"]:
        """Balance of momentum without constraint forces, one row for each node but the last."""

    @abc.abstractmethod
    def directions(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s m n"]:
        """Directions of the constraint forces in each balance."""

    @abc.abstractmethod
    def constraint_forces(self, moves: Float[Array, "s n"], multipliers: Float[Array, "s m"], step: StepInput) -> Float[Array, "s n"]:
        """The transposed directions times multipliers."""

    @abc.abstractmethod
    def start(self, system: System, t0: Scalar, q0: Vector, v0: Vector, control: PyTree) -> Memory:
        """What is carried into the first step; the control is that at the start."""

    @abc.abstractmethod
    def advance(self, moves: Float[Array, "s n"], step: StepInput) -> Memory:
        """What is carried on from the end of the step."""

    @abc.abstractmethod
    def read(self, at: StepInput, manifold: AbstractManifold, guess: Vector) -> tuple[Vector, Vector]:
        """Velocity and momentum at a node, with the constraint manifold about it, from what arrived; the velocity is near a guess."""

    def constraints(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s m"]:
        """What has to vanish in a step: constraints on positions at the unknown nodes, and beside them those on velocities."""
        values = jax.vmap(step.system.constraints)(self.times(step), step.q0 + moves)
        if not step.system.has("velocity_constraints"):
            return values
        return jnp.concatenate([values, self.slips(moves, step)], axis=1)

    def slips(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s k"]:
        """Constraints on velocities as the scheme discretises them, times the time step."""
        raise ModelError(
            f"{type(self).__name__} does not discretise constraints on velocities; take one that does: "
            "Midpoint, Trapezoidal, Galerkin, EnergyMomentum or GeneralizedAlpha"
        )

    def balanced(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s n"]:
        """The balance with friction, whose mean force acts all through the step: on each node its share."""
        balance = self.balance(moves, step)
        if not step.system.has("friction"):
            return balance
        if self.acting == "end":
            raise ModelError(
                f"{type(self).__name__} balances forces at the end of a step, but friction tells its force over a step: "
                "take a scheme such as EnergyMomentum, Midpoint or Galerkin"
            )
        shares = self.weights[:-1] if self.acting == "start" else (1.0,)
        return balance + step.dt * jnp.asarray(shares, moves.dtype)[:, None] * step.friction(moves)[0]

    def passed_on(self, moves: Float[Array, "s n"], step: StepInput) -> tuple[Vector, PyTree, PyTree]:
        """The momentum that arrives at the end of the step, with the share of friction there, what else is carried, and its memory."""
        incoming, carried = self.advance(moves, step)
        if not step.system.has("friction"):
            return incoming, carried, None
        force, memory = step.friction(moves)
        share = self.weights[-1] if self.acting == "start" else 0.0
        return incoming + step.dt * share * force, carried, memory

    def times(self, step: StepInput) -> Float[Array, " s"]:
        """Times of the unknown nodes."""
        return step.t0 + step.dt * jnp.asarray(self.fractions[1:], step.q0.dtype)
