"""Unknown increments of a chart: as many as degrees of freedom."""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..constraints.counts import fulfilled, leaves_open, position_count, redundant
from ..constraints.projection import normal_correction
from ..constraints.split import Split, split_chart, split_coordinates
from ..constraints.units import fit, sizes, within
from ..errors import ModelError
from ..numerics.newton import Newton
from ..schemes import AbstractScheme, StepInput
from ..system import System
from .base import AbstractFormulation, Moves, Problem, extent
from .multipliers import Multipliers
from .null_space import null_space_source, reduced_balance, split_for, with_basis


class Reparametrised(AbstractFormulation):
    r"""Unknown increments $u$, $n - m$ a stage (28), (30): $P^T [D_2 L_d + D_1 L_d(q_0, F_d(u, q_0))] = 0$.

    `chart`: `"user"` takes the system's $F_d$; `"implicit"` builds one from the orthonormal split at $q_0$,
    $F_d(u) = q_0 + N u + R\,w(u)$ with $w$ solved from $g = 0$; `"auto"` prefers the system's. `source` as in `NullSpace`.
    Where the chart leaves constraints open, as that of a mechanism with loops does, they are added to the equations. So are constraints
    on velocities, which no chart fulfils.
    """

    chart: Literal["auto", "user", "implicit"] = eqx.field(static=True, default="auto")
    source: Literal["auto", "user", "chart", "qr"] = eqx.field(static=True, default="auto")
    newton: Newton = Newton()

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        source = self._source(step.system)
        if self._implicit(step.system):
            problem = with_basis(scheme, step, source, split_coordinates(step.system, step.t0, step.q0))
            if not step.system.has("velocity_constraints"):
                return problem
            return dataclasses.replace(problem, chart=split_coordinates(step.system.holonomic, step.t0, step.q0))
        if leaves_open(step.system):
            return with_basis(scheme, step, source, split_chart(step.system, step.t0, step.q0))
        return with_basis(scheme, step, source, split_for(source, step, scheme.acting != "start" and redundant(step.system, step.q0)))

    def guess(self, moves: Moves, problem: Problem) -> tuple[Array, Array]:
        directions = problem.basis if problem.split.directions is None else problem.split.directions
        if self._implicit(problem.step.system):
            directions = _about(problem).tangent
        size = sizes(problem.step.system, problem.step.q0)
        increments = jax.vmap(lambda move: fit(directions.T, move, 1 / size))(moves)
        return increments.ravel(), jnp.tile(within(directions, extent(moves, problem)), len(moves))

    def residual(self, x: Array, problem: Problem) -> Array:
        moves, system = self.moves(x, problem), problem.step.system
        balance = reduced_balance(moves, self._source(system), problem)
        if self._implicit(system) and not system.has("velocity_constraints"):
            return balance
        held = (position_count if self._implicit(system) else fulfilled)(system, problem.step.q0)
        return jnp.concatenate([balance, problem.closures(moves, held).ravel()])

    def differentiated(self, step: StepInput, problem: Problem) -> tuple[AbstractFormulation, Problem]:
        """Its own few equations where chart and null space are known before the step, otherwise those with multipliers."""
        known = problem.scheme.acting == "start" and self._source(step.system) != "qr"
        if known and not self._implicit(step.system):
            return self, self.prepare(problem.scheme, step)
        return Multipliers().differentiated(step, problem)

    def moves(self, x: Array, problem: Problem) -> Moves:
        step, scheme = problem.step, problem.scheme
        increments = x.reshape(scheme.stages, -1)
        if self._implicit(step.system):
            at = _about(problem)
            move = lambda u, t: normal_correction(step.system, t, step.q0, at.tangent @ u, at, at.normal, self.newton)[0]
        else:
            move = lambda u, t: step.system.chart(u, step.q0, step.t0, t) - step.q0
        return jax.vmap(move)(increments, scheme.times(step))

    def _implicit(self, system: System) -> bool:
        if self.chart == "user" and not system.has("chart"):
            raise ModelError("Reparametrised(chart='user') needs a system with a chart; chart='implicit' builds one")
        return self.chart == "implicit" or not system.has("chart")

    def _source(self, system: System) -> str:
        """Where the null space matrix comes from; that of a chart with open constraints needs the chart's own increments."""
        source = null_space_source(self.source, system, ("chart", "user"))
        return "qr" if source == "chart" and leaves_open(system) and self._implicit(system) else source


def _about(problem: Problem) -> Split:
    """The split that an implicit chart is built from: by constraints on positions alone."""
    return problem.split if problem.chart is None else problem.chart
