r"""The equations of load steps: positions at which a part of what was out of balance at the start remains.

Two choices of unknowns: increments of a chart, or displacements with multipliers. Both are counted from a position near the one that is
sought, at which redundant constraints are combined away.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from ..assembly.model import Assembly, assembly_in
from ..constraints.calculus import constraint_forces, constraint_jacobian, equations_of_motion
from ..constraints.chart import pull_to_chart
from ..constraints.counts import chart_size, constraint_count, fulfilled, redundant
from ..constraints.inputs import as_coordinates, require_finite
from ..constraints.manifold import manifold_at
from ..constraints.rank import with_rank_if_cheap
from ..constraints.split import Split, split
from ..constraints.units import extents, fit, sizes
from ..errors import ModelError
from ..numerics.linear import Auto, Dense
from ..numerics.linear.layout import Layout
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector, VectorLike
from .outcome import require_holonomic

Unknowns = Float[Array, " k"]


class Near(eqx.Module):
    """A position from which increments are counted, and the constraints that get multipliers there."""

    q: Vector
    at: Split


class AbstractLoading(eqx.Module):
    """What is out of balance at the start, and equations for positions at which a part of it remains."""

    system: System
    t: Scalar
    out_of_balance: Array

    @abc.abstractmethod
    def near(self, q: Vector) -> Near:
        """What is prepared once for a step from `q`."""

    @abc.abstractmethod
    def unknowns(self, near: Near) -> Unknowns:
        """Unknowns to begin with where no guess is at hand."""

    @abc.abstractmethod
    def guess(self, last: Unknowns, near: Near) -> Unknowns:
        """Unknowns to begin a step with, from those of the step before."""

    @abc.abstractmethod
    def residual(self, x: Unknowns, near: Near, remaining: Scalar) -> Unknowns:
        """Forces, constraints, and what else belongs to the unknowns."""

    @abc.abstractmethod
    def position(self, x: Unknowns, near: Near) -> Vector:
        """The position of the unknowns."""

    @abc.abstractmethod
    def scale(self, near: Near) -> Unknowns:
        """The size of unknowns: lengths and angles count, multipliers and stresses do not."""

    @abc.abstractmethod
    def layout(self, near: Near) -> Layout:
        """What the unknowns are, for the linear solver."""

    @abc.abstractmethod
    def solver(self, newton: Newton) -> Newton:
        """The solver with full tangents where it was left to choose and a sparse elimination could meet a part that floats."""


class OnChart(AbstractLoading):
    """Increments of the chart, and multipliers of what it leaves open.

    What is out of balance is counted as forces and torques in space: those of dead loads then grow in proportion. The stress of beams is
    unknown too, and eliminated first: slender beams bend in long steps only if their stretching does not follow every iterate.
    """

    @classmethod
    def of(cls, system: System, t: Scalar, q: Vector) -> "OnChart":
        """With what is out of balance at `q`."""
        return cls(system, t, pull_to_chart(system, t, q, _force(system, t, q)))

    def near(self, q: Vector) -> Near:
        return Near(q, split(self.system, self.t, q) if self.system.closures else Split.trivial(q))

    def unknowns(self, near: Near) -> Unknowns:
        return jnp.zeros(sum(self._sizes(near)), near.q.dtype)

    def guess(self, last: Unknowns, near: Near) -> Unknowns:
        return last

    def residual(self, x: Unknowns, near: Near, remaining: Scalar) -> Unknowns:
        system, strained, x = _with_stress(self.system, x)
        size, at = chart_size(system, near.q), near.at
        u, mu = x[:size], x[size:]
        q = system.chart(u, near.q, self.t, self.t)
        force = _force(system, self.t, q)
        closing = jnp.zeros(0, q.dtype)
        if mu.size:
            held = fulfilled(system, q)
            spread = mu if at.closing is None else mu @ at.closing
            force = force + constraint_forces(system, self.t, q, jnp.pad(spread, (held, 0)))
            closing = system.constraints(self.t, q)[held:]
            closing = closing if at.closing is None else at.closing @ closing
        return jnp.concatenate([*strained(q), pull_to_chart(system, self.t, q, force) - remaining * self.out_of_balance, closing])

    def position(self, x: Unknowns, near: Near) -> Vector:
        stresses, size, _ = self._sizes(near)
        return self.system.chart(x[stresses : stresses + size], near.q, self.t, self.t)

    def scale(self, near: Near) -> Unknowns:
        stresses, size, count = self._sizes(near)
        return jnp.pad(_lengths(near.q, size), (stresses, count))

    def layout(self, near: Near) -> Layout:
        stresses, size, count = self._sizes(near)
        return Layout(1, stresses, size + count, stiff=True) if stresses else Layout(1, size, count)

    def solver(self, newton: Newton) -> Newton:
        return _with_dense(newton) if self.system.closures else newton

    def _sizes(self, near: Near) -> tuple[int, int, int]:
        """Numbers of stresses, increments and multipliers."""
        count = (self.system.closures or 0) if near.at.closing is None else near.at.closing.shape[0]
        return sum(stress.size for stress in _stresses(self.system)), chart_size(self.system, near.q), count


class WithMultipliers(AbstractLoading):
    """Displacements, and multipliers of independent constraints, which are sought anew in every step."""

    @classmethod
    def of(cls, system: System, t: Scalar, q: Vector) -> "WithMultipliers":
        """With what is out of balance at `q` beyond what constraints can hold there."""
        at = _independent(system, t, q)
        supported = constraint_forces(system, t, q, at.spread(_supports(system, t, q, at)))
        return cls(system, t, jnp.concatenate([_force(system, t, q) + supported, system.constraints(t, q)]))

    @classmethod
    def balanced(cls, system: System, t: Scalar, q: Vector) -> "WithMultipliers":
        """With nothing out of balance: the equations of rest."""
        return cls(system, t, jnp.zeros(q.size + constraint_count(system, q), q.dtype))

    def near(self, q: Vector) -> Near:
        return Near(q, _independent(self.system, self.t, q))

    def unknowns(self, near: Near) -> Unknowns:
        return jnp.concatenate([jnp.zeros_like(near.q), _supports(self.system, self.t, near.q, near.at)])

    def guess(self, last: Unknowns, near: Near) -> Unknowns:
        return self.unknowns(near)

    def residual(self, x: Unknowns, near: Near, remaining: Scalar) -> Unknowns:
        n, left = near.q.size, remaining * self.out_of_balance
        q = near.q + x[:n]
        balance = _force(self.system, self.t, q) + constraint_forces(self.system, self.t, q, near.at.spread(x[n:])) - left[:n]
        return jnp.concatenate([balance, near.at.pick(self.system.constraints(self.t, q) - left[n:])])

    def position(self, x: Unknowns, near: Near) -> Vector:
        return near.q + x[: near.q.size]

    def multipliers(self, x: Unknowns, near: Near) -> Float[Array, " m"]:
        """The multipliers of all constraints."""
        return near.at.spread(x[near.q.size :])

    def scale(self, near: Near) -> Unknowns:
        return jnp.pad(extents(self.system, near.q), (0, self._layout(near).multipliers))

    def layout(self, near: Near) -> Layout:
        layout = self._layout(near)
        return layout._replace(held=(*layout.held, *self.system.params.branch_rows())) if _is_stiff(self.system) else layout

    def solver(self, newton: Newton) -> Newton:
        return newton if _is_stiff(self.system) else _with_dense(newton)

    def _layout(self, near: Near) -> Layout:
        return manifold_at(self.system, self.t, near.q).layout(near.at)


def prepared(system: System, q: VectorLike, t: ArrayLike, steps: int) -> tuple[System, Vector, Array]:
    """All inputs in one dtype, with the rank; what cannot be right is refused."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ModelError(f"steps must be a positive whole number, not {steps!r}")
    if system.controlled:
        raise ModelError("the forces of this system take a control: put its value at rest into them, a JointForce for a Motor")
    require_holonomic(system, "a position of rest")
    q, t = as_coordinates(system, q, "q"), jnp.asarray(t)
    require_finite(t, "t")
    system, t = system.astype(q.dtype).with_step(jnp.ones((), q.dtype)), t.astype(q.dtype)
    return with_rank_if_cheap(system, q, t), q, t


def proportional(system: System, t: Scalar, q: Vector) -> AbstractLoading:
    """The loading with what is out of balance at `q`, by the few unknowns of a chart where there is one."""
    return (OnChart if system.has("chart") else WithMultipliers).of(system, t, q)


def residual(x: Unknowns, args: tuple[AbstractLoading, Near, Scalar]) -> Unknowns:
    """The equations, as Newton's method sees them."""
    loading, near, remaining = args
    return loading.residual(x, near, remaining)


def _force(system: System, t: Scalar, q: Vector) -> Vector:
    """What constraint forces have to balance."""
    zero = jnp.zeros_like(q)
    return equations_of_motion(system, t, q, zero, zero)


def _stresses(system: System) -> list[Float[Array, "elements points 6"]]:
    """Blank forces and moments of all beams."""
    model = assembly_in(system)
    if model is None:
        return []
    return [jnp.zeros((*group.stiffness.shape[:1], group.points.size, 6), group.stiffness.dtype) for group in model.beams]


def _with_stress(system: System, x: Array) -> tuple[System, Callable, Array]:
    """The system with the stress of beams at the head of unknowns, how far it is from that of their strains, and the other unknowns."""
    given = []
    for blank in _stresses(system):
        given.append(x[: blank.size].reshape(blank.shape))
        x = x[blank.size :]
    if not given:
        return system, lambda q: [], x
    model: Assembly = system.params
    stressed = eqx.tree_at(lambda model: [group.stress for group in model.beams], model, given, is_leaf=lambda leaf: leaf is None)
    off = lambda q: [(group.resultants(model.frames(q)) - stress).ravel() for group, stress in zip(model.beams, given, strict=True)]
    return system.with_params(stressed), off, x


def _independent(system: System, t: Scalar, q: Vector) -> Split:
    """The constraints that get multipliers: all, unless some are known to be redundant."""
    return manifold_at(system, t, q).split() if redundant(system, q) else Split.trivial(q)


def _supports(system: System, t: Scalar, q: Vector, at: Split) -> Float[Array, " r"]:
    """Multipliers whose forces balance as much as constraints can: without them nothing holds what only hangs."""
    if at.rows is None:
        return manifold_at(system, t, q).sharing().multipliers(-_force(system, t, q))
    G = at.independent(constraint_jacobian(system, t, q))
    return fit(G, -_force(system, t, q), sizes(system, q)) if G.shape[0] else jnp.zeros(0, q.dtype)


def _lengths(q: Vector, count: int) -> Unknowns:
    length = jnp.max(jnp.abs(q))
    return jnp.full(count, jnp.where(length > 0, length, 1))


def _is_stiff(system: System) -> bool:
    """Whether all bodies are nodes of beams and hang on no loops of joints: eliminated with the joints they hang on, none can float."""
    model = assembly_in(system)
    if model is None:
        return False
    stiff = {place for group in model.beams for places in group.nodes for place in places}
    return model.closures == 0 and stiff == set(range(len(model.bodies) - 1))


def _with_dense(newton: Newton) -> Newton:
    return eqx.tree_at(lambda newton: newton.linear, newton, Dense()) if isinstance(newton.linear, Auto) else newton
