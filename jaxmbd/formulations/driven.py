"""Steps whose inputs are unknown, and which have as many targets to meet."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..constraints.driving import least_inputs, response
from ..constraints.manifold import manifold_at
from ..schemes import AbstractScheme, Samples, StepInput
from .base import AbstractFormulation, Moves, Problem


class Driven(AbstractFormulation):
    r"""The equations of a formulation and of its servo, $b(t_1, q_1) = \gamma(t_1)$, with the inputs of the step beside its unknowns.

    Inputs are counted as $h^2 u$, like multipliers. Of more inputs than targets the least ones are $u = W^{-1} D^T \nu$, with the
    response $D$ of the targets to inputs in the middle of the step, and $\nu$ are the unknowns. Tangents of Newton's method leave out
    how $D$ changes within the step, which is little; derivatives of the solution are `exact`.
    """

    inner: AbstractFormulation
    exact: bool = eqx.field(static=True, default=False)

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        problem = self.inner.prepare(scheme, step)
        whole = manifold_at(step.system, step.t0, step.q0).split() if _redundant(step) else None
        return dataclasses.replace(problem, whole=whole)

    def guess(self, moves: Moves, problem: Problem) -> tuple[Array, Array]:
        x, size = self.inner.guess(moves, problem)
        more = (0, _rows(problem.step))
        return jnp.pad(x, more), jnp.pad(size, more)

    def residual(self, x: Array, problem: Problem) -> Array:
        own, moves, step = self._own(x, problem), self.moves(x, problem), problem.step
        driven = dataclasses.replace(problem, step=self.acting(x, problem))
        missed = step.servo.residual(step.system, step.t0 + step.dt, step.q0 + moves[-1])
        return jnp.concatenate([self.inner.residual(own, driven), missed])

    def differentiated(self, step: StepInput, problem: Problem) -> tuple[AbstractFormulation, Problem]:
        twin, variable = self.inner.differentiated(step, problem)
        own = twin is self.inner and problem.whole is None
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
        if problem.whole is None:
            return step.servo.inputs(u)
        near = (step, self.moves(x, problem)[-1])
        about, move = near if self.exact else jax.lax.stop_gradient(near)
        given, middle = mean_control(about.control), about.q0 + 0.5 * move
        *_, D = response(about.system, about.middle, middle, move / about.dt, about.servo, given, problem.whole)
        return step.servo.inputs(least_inputs(D, step.servo) @ u)

    def acting(self, x: Array, problem: Problem) -> StepInput:
        """What is known before the step, with the control that acts in it."""
        step = problem.step
        return dataclasses.replace(step, control=acting_control(step.servo, step.control, self.inputs(x, problem)))

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


def _rows(step: StepInput) -> int:
    """Number of rows of the targets."""
    return len(step.servo.rows(step.system, step.q0))


def _redundant(step: StepInput) -> bool:
    """Whether there are more inputs than rows of targets."""
    return step.servo.size > _rows(step)
