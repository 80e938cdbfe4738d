"""Solvers of diffrax with constraints: what is projected after a step, and in the dense output between steps."""

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..numerics.arguments import check_fields
from .dynamics import Dynamics, State
from .methods import Projection


class _Wrapping(diffrax.AbstractWrappedSolver):
    """What a solver around another one leaves to it."""

    solver: eqx.AbstractVar[diffrax.AbstractSolver]

    @property
    def term_structure(self):
        return self.solver.term_structure

    @property
    def term_compatible_contr_kwargs(self):
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self):
        """That of an implicit solver, whose tolerances diffrax sets."""
        return self.solver.root_finder

    @property
    def root_find_max_steps(self):
        """Iterations of an implicit solver, at most."""
        return self.solver.root_find_max_steps

    @property
    def scan_kind(self):
        """How a Runge-Kutta solver loops over its stages, which diffrax sets for derivatives forwards."""
        return self.solver.scan_kind

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)


class Projected(_Wrapping):
    r"""Any solver of diffrax for ordinary differential equations, with states brought back onto the constraints of some dynamics.

    After each step of the inner solver the state is projected (16), (17), and the estimate of its error onto what the constraints admit,
    lest steps are rejected for errors that the projection takes away. Between steps the interpolant of the inner solver is led to the
    projected end of the step, and its values are projected too. Use it with `diffrax.ODETerm(mbd.odes.Field(dynamics))`.

    **Arguments**

    - `solver`: the inner solver, explicit or implicit.
    - `dynamics`: whose constraints are meant. For dense output (`SaveAt(dense=True)`) its parameters are kept with each step.
    - `projection`: tolerances of the projection, as in the field.
    """

    solver: diffrax.AbstractSolver
    dynamics: Dynamics
    projection: Projection = Projection()

    def __check_init__(self):
        check_fields(self)

    @property
    def interpolation_cls(self):
        _, fixed = _numbers_and_rest(self.dynamics)
        return _Interpolated(self.solver.interpolation_cls, fixed, self.projection)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        direction = jnp.asarray(terms.direction, t1.dtype)
        made_jump = made_jump if self.projection.inside else True
        end, error, inner, solver_state, result = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        dynamics = self.dynamics.astype(y0.q.dtype)
        y1, reached = self.projection.state(dynamics, direction * t1, end)
        y1 = jax.tree.map(lambda new, old: jnp.where(reached, new, old), y1, y0)
        if error is not None:
            error = self.projection.tangent(dynamics, direction * t1, y1, error)
            error = jax.tree.map(lambda leaf: jnp.where(reached, leaf, jnp.inf), error)
        result = diffrax.RESULTS.where(reached, result, diffrax.RESULTS.nonlinear_divergence)
        correction = jax.tree.map(jnp.subtract, y1, end)
        numbers, _ = _numbers_and_rest(dynamics)
        return y1, error, {"inner": inner, "correction": correction, "numbers": numbers, "direction": direction}, solver_state, result


class ProjectedInterpolation(diffrax.AbstractLocalInterpolation):
    """The interpolant of another solver, led to the corrected end of the step and projected onto the constraints where it is evaluated."""

    t0: Float[Array, ""]
    t1: Float[Array, ""]
    inner: diffrax.AbstractLocalInterpolation
    correction: State
    direction: Array
    dynamics: Dynamics
    projection: Projection

    def evaluate(self, t0, t1=None, left=True):
        if t1 is not None:
            return jax.tree.map(jnp.subtract, self.evaluate(t1), self.evaluate(t0))
        part = jnp.asarray((t0 - self.t0) / (self.t1 - self.t0), self.correction.q.dtype)
        share = part**2 * (3 - 2 * part)
        y = jax.tree.map(lambda inner, off: inner + share * off, self.inner.evaluate(t0), self.correction)
        on, reached = self.projection.state(self.dynamics, self.direction * t0, y)
        return jax.tree.map(lambda leaf: jnp.where(reached, leaf, jnp.nan), on)


class _Interpolated(eqx.Module):
    """Makes the interpolation of a step from what the step left; it holds no arrays, which would not leave a compiled program."""

    inner: Callable = eqx.field(static=True)
    fixed: Dynamics
    projection: Projection

    def __call__(self, *, t0, t1, inner, correction, numbers, direction):
        dynamics = eqx.combine(numbers, self.fixed)
        return ProjectedInterpolation(t0, t1, self.inner(t0=t0, t1=t1, **inner), correction, direction, dynamics, self.projection)


class CountingSteps(_Wrapping):
    """A solver that tells the field the length of the current step in place of `args`; slopes of another step are evaluated anew."""

    solver: diffrax.AbstractSolver

    @property
    def interpolation_cls(self):
        return self.solver.interpolation_cls

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, t1 - t0)

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, jnp.full_like(t0, jnp.inf))

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        return self.solver.step(terms, t0, t1, y0, t1 - t0, solver_state, True)


def _numbers_and_rest(dynamics: Dynamics) -> tuple[PyTree, Any]:
    return eqx.partition(dynamics, lambda leaf: isinstance(leaf, jax.Array | np.ndarray | np.generic))
