r"""How constraints enter a step: with multipliers of all or of joints, by null space projection, or by nodal reparametrisation.

All formulations solve the same equations and give the same motion; they differ in the number of unknowns. Balances are multiplied by
the time step and multipliers are counted as $h^2 \lambda$, so that the tangent does not depend on the size of the step.
"""

import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..constraints.counts import constraint_count
from ..constraints.manifold import AbstractManifold, manifold_at
from ..constraints.split import Split
from ..constraints.units import extents
from ..numerics.arguments import check_fields
from ..numerics.linear.layout import Layout
from ..schemes import AbstractScheme, StepInput

Moves = Float[Array, "s n"]


class Problem(eqx.Module):
    """One step to be solved: its scheme, what is known before it, and what the formulation prepared once for it.

    `whole` is a split by all constraints, where inputs of the step are chosen by what they can do, `chart` one by those on positions alone,
    where an implicit chart leaves others open.
    """

    scheme: AbstractScheme
    step: StepInput
    split: Split
    basis: Float[Array, "n d"]
    whole: Split | None = None
    chart: Split | None = None

    @property
    def manifold(self) -> AbstractManifold:
        """The constraint manifold about the start of the step."""
        return manifold_at(self.step.system, self.step.t0, self.step.q0)

    @property
    def rank(self) -> int:
        """Number of constraints at a node that get a multiplier."""
        return constraint_count(self.step.system, self.step.q0) if self.split.rows is None else self.split.rows.shape[0]

    def constraints(self, moves: Moves) -> Float[Array, "s r"]:
        """Values of all constraints in the step, redundant ones combined away."""
        return self.split.pick(self.values(moves))

    def closures(self, moves: Moves, fulfilled: int) -> Float[Array, "s c"]:
        """Values of the constraints that a chart leaves open, all but the first, redundant ones combined away."""
        values = self.values(moves)[:, fulfilled:]
        return values if self.split.closing is None else values @ self.split.closing.T

    def values(self, moves: Moves) -> Float[Array, "s m"]:
        """Values of all constraints in the step."""
        return self.scheme.constraints(moves, self.step)

    def balance(self, moves: Moves) -> Moves:
        """Momentum balances without constraint forces, times the time step."""
        return self.step.dt * self.scheme.balanced(moves, self.step)

    def constraint_forces(self, moves: Moves, multipliers: Float[Array, "s r"]) -> Moves:
        """Forces of the multipliers of the independent constraints in each balance."""
        return self.scheme.constraint_forces(moves, self.split.spread(multipliers), self.step)


class AbstractFormulation(eqx.Module):
    """A choice of unknowns `x` for the nodes of a step, and as many equations for them.

    `needs_rank` says whether the number of independent constraints must be known however large the system is.
    """

    needs_rank: ClassVar[bool] = True

    def __check_init__(self):
        check_fields(self)

    @abc.abstractmethod
    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        """What can be computed once, before Newton's method starts."""

    @abc.abstractmethod
    def guess(self, moves: Moves, problem: Problem) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """Unknowns for predicted displacements, and the size of the unknowns."""

    @abc.abstractmethod
    def residual(self, x: Float[Array, " k"], problem: Problem) -> Float[Array, " k"]:
        """The equations of the step."""

    @abc.abstractmethod
    def differentiated(self, step: StepInput, problem: Problem) -> tuple["AbstractFormulation", Problem]:
        """The equations whose derivative is taken at the solution, with everything in them variable: its own or those of `Multipliers`."""

    def layout(self, problem: Problem) -> Layout | None:
        """What the unknowns are, for sparse linear solvers; `None` if the equations couple too much, or in ways that they cannot order."""
        return None

    def units(self, problem: Problem) -> tuple[np.ndarray, int]:
        """Which equations are balances, and how many of the unknowns are multipliers (the last ones)."""
        return np.arange(problem.scheme.stages * problem.basis.shape[1]), 0

    def restated(
        self, x: Float[Array, " k"], moves: Moves, problem: Problem, twin: "AbstractFormulation", variable: Problem
    ) -> Float[Array, " k"]:
        """The unknowns of the equations that are differentiated, at a solution of its own ones, if these are others."""
        return twin.unknowns(moves, variable)

    def unknowns(self, moves: Moves, problem: Problem) -> Float[Array, " k"]:
        """The unknowns that belong to moves; of formulations whose equations are differentiated for others."""
        raise NotImplementedError

    def inputs(self, x: Float[Array, " k"], problem: Problem) -> PyTree:
        """The inputs of the step, if they are among the unknowns."""
        return None

    @abc.abstractmethod
    def moves(self, x: Float[Array, " k"], problem: Problem) -> Moves:
        """The displacements of the nodes that belong to the unknowns."""


def extent(moves: Moves, problem: Problem) -> Float[Array, " n"]:
    """How large coordinates are, by which steps and residuals are measured."""
    return extents(problem.step.system, problem.step.q0, jnp.max(jnp.abs(moves), axis=0))
