r"""How constraints enter a step: with multipliers, by null space projection, or by nodal reparametrisation.

All three solve the same equations and give the same motion; they differ in the number of unknowns. Balances are multiplied by
the time step and multipliers are counted as $h^2 \lambda$, so that the tangent does not depend on the size of the step.
"""

import abc
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import ModelError, Result
from .newton import Newton
from .schemes import AbstractScheme, StepInput
from .splitting import Split, constraint_count, fulfilled, null_space, rank, split, split_coordinates
from .system import Scalar, System, Vector

Nodes = Float[Array, "s n"]


class Problem(eqx.Module):
    """One step to be solved: its scheme, what is known before it, and what the formulation prepared once for it."""

    scheme: AbstractScheme
    step: StepInput
    split: Split
    basis: Float[Array, "n d"]

    @property
    def rank(self) -> int:
        """Number of independent constraints at a node."""
        return rank(self.step.system, self.step.q0)

    def constraints(self, nodes: Nodes) -> Float[Array, "s r"]:
        """Constraint values at the unknown nodes, redundant ones combined away."""
        return self.split.pick(self._values(nodes))

    def closures(self, nodes: Nodes) -> Float[Array, "s c"]:
        """Values of the constraints that the chart leaves open, redundant ones combined away."""
        values = self._values(nodes)[:, fulfilled(self.step.system, self.step.q0) :]
        return values if self.split.closing is None else values @ self.split.closing.T

    def _values(self, nodes: Nodes) -> Float[Array, "s m"]:
        return jax.vmap(self.step.system.constraints)(self.scheme.times(self.step), nodes)

    def balance(self, nodes: Nodes) -> Nodes:
        """Momentum balances without constraint forces, times the time step."""
        return self.step.dt * self.scheme.balance(nodes, self.step)

    def constraint_forces(self, nodes: Nodes, multipliers: Float[Array, "s r"]) -> Nodes:
        """Forces of the multipliers of the independent constraints in each balance."""
        values = multipliers if self.split.rows is None else multipliers @ self.split.rows
        return jnp.einsum("smn,sm->sn", self.scheme.directions(nodes, self.step), values)


class AbstractFormulation(eqx.Module):
    """A choice of unknowns `x` for the nodes of a step, and as many equations for them."""

    @abc.abstractmethod
    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        """What can be computed once, before Newton's method starts."""

    @abc.abstractmethod
    def guess(self, nodes: Nodes, problem: Problem) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
        """Unknowns for predicted nodes, and the size of the unknowns."""

    @abc.abstractmethod
    def residual(self, x: Float[Array, " k"], problem: Problem) -> Float[Array, " k"]:
        """The equations of the step."""

    def differentiated(self, step: StepInput, problem: Problem) -> tuple["Multipliers | Reparametrised", Problem]:
        """The equations whose derivative is taken at the solution, with everything in them variable.

        Those with multipliers have the same solution as all others, and no null space matrix to differentiate.
        """
        return Multipliers().differentiated(step, problem)

    def units(self, problem: Problem) -> tuple[int, int]:
        """How many of the equations are balances, and how many of the unknowns are multipliers (the last ones)."""
        return problem.scheme.stages * problem.basis.shape[1], 0

    @abc.abstractmethod
    def nodes(self, x: Float[Array, " k"], problem: Problem) -> Nodes:
        """The configurations that belong to the unknowns."""


class Multipliers(AbstractFormulation):
    r"""Unknown nodes and multipliers, $n + m$ a stage (22): $D_1 L_d + D_2 L_d - h\,G^T \lambda = 0$, $g(q_1) = 0$."""

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        return Problem(scheme, step, split(step.system, step.t0, step.q0), jnp.zeros((step.q0.size, 0), step.q0.dtype))

    def guess(self, nodes: Nodes, problem: Problem) -> tuple[Array, Array]:
        multipliers = jnp.zeros(nodes.shape[0] * problem.rank, nodes.dtype)
        return jnp.concatenate([nodes.ravel(), multipliers]), jnp.concatenate([_size(nodes, problem), multipliers])

    def residual(self, x: Array, problem: Problem) -> Array:
        nodes = self.nodes(x, problem)
        multipliers = x[nodes.size :].reshape(nodes.shape[0], -1)
        balance = problem.balance(nodes) - problem.constraint_forces(nodes, multipliers)
        return jnp.concatenate([balance.ravel(), problem.constraints(nodes).ravel()])

    def differentiated(self, step: StepInput, problem: Problem) -> tuple["Multipliers | Reparametrised", Problem]:
        return self, Problem(problem.scheme, step, problem.split, problem.basis)

    def unknowns(self, nodes: Nodes, problem: Problem) -> Float[Array, " k"]:
        """Nodes with the multipliers that belong to them (38)."""
        balance, directions = problem.balance(nodes), problem.scheme.directions(nodes, problem.step)
        if directions.shape[1] == 0:
            return nodes.ravel()

        def recover(G, balance):
            rows = problem.split.independent(G)
            return jnp.linalg.solve(rows @ rows.T, rows @ balance)

        return jnp.concatenate([nodes.ravel(), jax.vmap(recover)(directions, balance).ravel()])

    def units(self, problem: Problem) -> tuple[int, int]:
        return problem.scheme.stages * problem.step.q0.size, problem.scheme.stages * problem.rank

    def nodes(self, x: Array, problem: Problem) -> Nodes:
        n = problem.step.q0.size
        return x[: problem.scheme.stages * n].reshape(-1, n)


class NullSpace(AbstractFormulation):
    r"""Unknown nodes alone, $n$ a stage (25): $P^T [D_1 L_d + D_2 L_d] = 0$, $g(q_1) = 0$.

    `source` of $P$: `"user"` (`null_space` of the system), `"chart"` (Jacobian of its chart at $u = 0$), `"qr"`
    (orthonormal complement of $G^T$), or `"auto"`: the first of these that the system has.
    """

    source: Literal["auto", "user", "chart", "qr"] = eqx.field(static=True, default="auto")

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        source = null_space_source(self.source, step.system, ("user", "chart"))
        redundant = rank(step.system, step.q0) < constraint_count(step.system, step.q0)
        return _with_basis(scheme, step, source, _split_for(source, step, redundant))

    def guess(self, nodes: Nodes, problem: Problem) -> tuple[Array, Array]:
        return nodes.ravel(), _size(nodes, problem)

    def residual(self, x: Array, problem: Problem) -> Array:
        nodes = self.nodes(x, problem)
        source = null_space_source(self.source, problem.step.system, ("user", "chart"))
        return jnp.concatenate([_reduced_balance(nodes, source, problem), problem.constraints(nodes).ravel()])

    def nodes(self, x: Array, problem: Problem) -> Nodes:
        return x.reshape(-1, problem.step.q0.size)


class Reparametrised(AbstractFormulation):
    r"""Unknown increments $u$, $n - m$ a stage (28), (30): $P^T [D_2 L_d + D_1 L_d(q_0, F_d(u, q_0))] = 0$.

    `chart`: `"user"` takes the system's $F_d$; `"implicit"` builds one from the orthonormal split at $q_0$,
    $F_d(u) = q_0 + N u + R\,w(u)$ with $w$ solved from $g = 0$; `"auto"` prefers the system's. `source` as in `NullSpace`.
    Where the chart leaves constraints open, as that of a mechanism with loops does, they are added to the equations.
    """

    chart: Literal["auto", "user", "implicit"] = eqx.field(static=True, default="auto")
    source: Literal["auto", "user", "chart", "qr"] = eqx.field(static=True, default="auto")
    newton: Newton = Newton()

    def prepare(self, scheme: AbstractScheme, step: StepInput) -> Problem:
        source = self._source(step.system)
        implicit = self._implicit(step.system)
        return _with_basis(scheme, step, source, split_coordinates(step.system, step.t0, step.q0) if implicit else _split_for(source, step))

    def guess(self, nodes: Nodes, problem: Problem) -> tuple[Array, Array]:
        displacements = nodes - problem.step.q0
        directions = problem.basis if problem.split.directions is None else problem.split.directions
        if self._implicit(problem.step.system):
            directions = problem.split.tangent
        increments = jnp.linalg.solve(directions.T @ directions, directions.T @ displacements.T).T
        largest = jnp.max(jnp.abs(directions), initial=0)
        size = _size(nodes, problem)[0] / jnp.where(largest > 0, largest, 1)
        return increments.ravel(), jnp.full(increments.size, size)

    def residual(self, x: Array, problem: Problem) -> Array:
        nodes, system = self.nodes(x, problem), problem.step.system
        balance = _reduced_balance(nodes, self._source(system), problem)
        return balance if self._implicit(system) else jnp.concatenate([balance, problem.closures(nodes).ravel()])

    def differentiated(self, step: StepInput, problem: Problem) -> tuple["Multipliers | Reparametrised", Problem]:
        """Its own few equations where chart and null space are given by the user, otherwise those with multipliers."""
        if self._source(step.system) != "qr" and not self._implicit(step.system):
            return self, self.prepare(problem.scheme, step)
        return super().differentiated(step, problem)

    def nodes(self, x: Array, problem: Problem) -> Nodes:
        step, scheme = problem.step, problem.scheme
        increments = x.reshape(scheme.stages, -1)
        if self._implicit(step.system):
            at = problem.split
            chart = lambda u, t: normal_correction(step.system, t, step.q0 + at.tangent @ u, at, at.normal, self.newton)[0]
        else:
            chart = lambda u, t: step.system.chart(u, step.q0, step.t0, t)
        return jax.vmap(chart)(increments, scheme.times(step))

    def _implicit(self, system: System) -> bool:
        if self.chart == "user" and not system.has("chart"):
            raise ModelError("Reparametrised(chart='user') needs a system with a chart; chart='implicit' builds one")
        return self.chart == "implicit" or not system.has("chart")

    def _source(self, system: System) -> str:
        """Where the null space matrix comes from; that of a chart with open constraints needs the chart's own increments."""
        source = null_space_source(self.source, system, ("chart", "user"))
        return "qr" if source == "chart" and system.closures and self._implicit(system) else source


def normal_correction(system: System, t: Scalar, q: Vector, at: Split, normal: Float[Array, "n r"], newton: Newton) -> tuple[Vector, Array]:
    r"""$q + R w$ on the constraint manifold at time `t`, with $w$ solved from $g = 0$, and the result code of the solve."""
    if normal.shape[1] == 0:
        return q, jnp.int32(Result.SUCCESS)
    w = jnp.zeros(normal.shape[1], q.dtype)
    size = jnp.max(jnp.abs(q)) / jnp.max(jnp.abs(normal))
    solution = newton(_normal_residual, w, (system, t, q, at, normal), scale=jnp.full_like(w, size))
    return q + normal @ solution.value, solution.result


def _normal_residual(w, args):
    system, t, q, at, normal = args
    return at.pick(system.constraints(t, q + normal @ w))


def _size(nodes: Nodes, problem: Problem) -> Float[Array, " sn"]:
    """The largest coordinate, as the length by which steps and residuals are measured."""
    length = jnp.maximum(jnp.max(jnp.abs(problem.step.q0)), jnp.max(jnp.abs(nodes)))
    return jnp.full(nodes.size, jnp.where(length > 0, length, 1))


def null_space_source(wanted: str, system: System, order: tuple[str, ...]) -> str:
    """Where the null space matrix comes from: as wanted, or the first in `order` that the system has, or a decomposition."""
    has = {"user": system.has("null_space"), "chart": system.has("chart"), "qr": True}
    if wanted == "auto":
        return next((source for source in order if has[source]), "qr")
    if not has[wanted]:
        raise ModelError(f"the system has no {'null_space' if wanted == 'user' else 'chart'} to take its null space matrix from")
    return wanted


def _split_for(source: str, step: StepInput, redundant: bool = False) -> Split:
    """The split that a null space matrix is built from, or that combines redundant constraints away; a trivial one if neither."""
    system, t, q = step.system, step.t0, step.q0
    if source == "qr":
        return split_coordinates(system, t, q)
    on_chart = source == "chart" and system.closures is not None
    return split(system, t, q) if on_chart or redundant else Split.trivial(q)


def _with_basis(scheme: AbstractScheme, step: StepInput, source: str, at: Split) -> Problem:
    """The problem with its null space matrix at $q_0$."""
    return Problem(scheme, step, at, null_space(step.system, step.t0, step.q0, source, at))


def _reduced_balance(nodes: Nodes, source: str, problem: Problem) -> Float[Array, " sd"]:
    r"""$P_i^T$ times each balance; $P_0$ is known, inside the step $P$ is taken at the unknown nodes."""
    step, scheme = problem.step, problem.scheme
    balance = problem.balance(nodes)
    first = problem.basis.T @ balance[0]
    if scheme.stages == 1:
        return first
    basis = jax.vmap(lambda t, q: null_space(step.system, t, q, source, problem.split))
    inside = jnp.einsum("snd,sn->sd", basis(scheme.times(step)[:-1], nodes[:-1]), balance[1:])
    return jnp.concatenate([first, inside.ravel()])
