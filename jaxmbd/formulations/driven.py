"""Steps whose inputs are unknown, and which have as many targets to meet."""

import dataclasses
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..constraints.driving import least_inputs, response
from ..constraints.manifold import manifold_at
from ..constraints.split import Split
from ..constraints.units import within
from ..schemes import AbstractScheme, Samples, StepInput
from .base import AbstractFormulation, Moves, Problem, extent


class Driven(AbstractFormulation):
    r"""The equations of a formulation and of its servo, $b(t_1, q_1) = \gamma(t_1)$, with the inputs of the step beside its unknowns.

    Inputs are counted as $h^2 u$, like multipliers, and their size is that with which they move a coordinate by its extent. Of more inputs
    than targets the least ones are $u = W^{-1} D^T \nu$, with the response $D$ of the targets to inputs in the middle of the step, and
    $\nu$ are the unknowns. Tangents of Newton's method leave out how $D$ changes within the step, which is little; derivatives of the
    solution are `exact`.
    """

    inner: AbstractFormulation
    exact: bool = eqx.field(static=True, default=False)

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        problem = self.inner.prepare(scheme, step)
        return dataclasses.replace(problem, whole=manifold_at(step.system, step.t0, step.q0).split())

    def guess(self, moves: Moves, problem: Problem) -> tuple[Array, Array]:
        x, size = self.inner.guess(moves, problem)
        return jnp.pad(x, (0, _rows(problem.step))), jnp.concatenate([size, self._reach(moves, problem)])

    def residual(self, x: Array, problem: Problem) -> Array:
        own, moves, step = self._own(x, problem), self.moves(x, problem), problem.step
        driven = dataclasses.replace(problem, step=self.acting(x, problem))
        missed = step.servo.residual(step.system, step.t0 + step.dt, step.q0 + moves[-1])
        return jnp.concatenate([self.inner.residual(own, driven), missed])

    def differentiated(self, step: StepInput, problem: Problem) -> tuple[AbstractFormulation, Problem]:
        twin, variable = self.inner.differentiated(step, problem)
        own = twin is self.inner and not _redundant(step)
        return self if own else Driven(twin, exact=True), dataclasses.replace(variable, whole=problem.whole)

    def restated(self, x: Array, moves: Moves, problem: Problem, twin: Any, variable: Problem) -> Array:
        if twin.inner is self.inner:
            return x
        acting = dataclasses.replace(variable, step=self.acting(x, problem))
        inner = self.inner.restated(self._own(x, problem), moves, problem, twin.inner, acting)
        return jnp.concatenate([inner, x[x.size - _rows(problem.step) :]])

    def units(self, problem: Problem) -> tuple[np.ndarray, int]:
        balances, multipliers = self.inner.units(problem)
        return balances, multipliers + _rows(problem.step)

    def moves(self, x: Array, problem: Problem) -> Moves:
        return self.inner.moves(self._own(x, problem), problem)

    def inputs(self, x: Array, problem: Problem) -> PyTree:
        """The inputs of the step, by name."""
        step = problem.step
        u = x[x.size - _rows(step) :] / step.dt**2
        if not _redundant(step):
            return step.servo.inputs(u)
        near = (step, self.moves(x, problem)[-1])
        _, D = _answer(*(near if self.exact else jax.lax.stop_gradient(near)), problem)
        return step.servo.inputs(least_inputs(D, step.servo) @ u)

    def acting(self, x: Array, problem: Problem) -> StepInput:
        """What is known before the step, with the control that acts in it."""
        step = problem.step
        return dataclasses.replace(step, control=acting_control(step.servo, step.control, self.inputs(x, problem)))

    def _reach(self, moves: Moves, problem: Problem) -> Float[Array, " r"]:
        """The size of the unknown inputs. They may act in any way, so that they are judged as moves are, unlike multipliers."""
        moved, D = _answer(problem.step, moves[-1], problem)
        directions = moved @ least_inputs(D, problem.step.servo) if _redundant(problem.step) else moved
        return within(directions, extent(moves, problem))

    def _own(self, x: Array, problem: Problem) -> Float[Array, " k"]:
        """The unknowns of the inner formulation."""
        return x[: x.size - _rows(problem.step)]


def acting_control(servo, given: PyTree, inputs: PyTree) -> PyTree:
    """The control of a step: what is given, once or at several times of the step, completed by inputs that hold all through it."""
    if not isinstance(given, Samples):
        return servo.control(given, inputs)
    count = jax.tree.leaves(given.values)[0].shape[0]
    held = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *leaf.shape)), inputs)
    return Samples(servo.control(given.values, held))


def mean_control(given: PyTree) -> PyTree:
    """A control that is given at several times of a step, in the mean."""
    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), given.values) if isinstance(given, Samples) else given


def _answer(step: StepInput, move: Array, problem: Problem) -> tuple[Float[Array, "n k"], Float[Array, "r k"]]:
    """Accelerations of coordinates and of targets by each input, in the middle of a step."""
    middle, given, at = step.q0 + 0.5 * move, mean_control(step.control), cast(Split, problem.whole)
    _, moved, D = response(step.system, step.middle, middle, move / step.dt, step.servo, given, at)
    return moved, D


def _rows(step: StepInput) -> int:
    """Number of rows of the targets."""
    return len(step.servo.rows(step.system, step.q0))


def _redundant(step: StepInput) -> bool:
    """Whether there are more inputs than rows of targets."""
    return step.servo.size > _rows(step)
