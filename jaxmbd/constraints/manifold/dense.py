"""The constraint manifold of small systems."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...errors import Result
from ...numerics.lapack import solve
from ...numerics.newton import Newton
from ...system import Vector
from .. import saddle
from ..calculus import constraint_jacobian, constraint_rate, momentum
from ..chart import chart_directions, closure_jacobian
from ..counts import closed, fulfilled, leaves_open, matrix_rank
from ..projection import normal_correction
from ..split import Split, null_space, split, split_coordinates
from ..units import fit, least, row_size, sizes, within, work_sizes
from .base import AbstractManifold


class DenseManifold(AbstractManifold):
    """By decompositions of the constraint Jacobian."""

    decomposes: ClassVar[bool] = True

    @property
    def soft(self) -> bool:
        return False

    def rank(self) -> Array:
        """Where a chart fulfils most constraints, only the others need be looked at."""
        system, t, q = self.system, self.t, self.q
        if closed(system):
            return jnp.array(self.count)
        if system.closures is None:
            return matrix_rank(constraint_jacobian(system, t, q) * sizes(system, q))
        G, P, size = closure_jacobian(system, t, q), chart_directions(system, t, q), sizes(system, q)
        return fulfilled(system, q) + matrix_rank(G @ P * within(P, size), row_size(G * size))

    def split(self) -> Split:
        return split(self.system, self.t, self.q)

    def velocity(self, p: Vector, guess: Vector) -> Vector:
        if self.system.closures is not None:
            return self._velocity_on_chart(p, guess)
        at = self.split()
        args = (self.system, self.t, self.q, p, at)
        solution = self._solve(saddle.legendre, guess, args, at, Newton(line_search=True), inertia=True)
        return jnp.where(solution.result == Result.SUCCESS, solution.value[: self.q.size], jnp.nan)

    def _velocity_on_chart(self, p: Vector, guess: Vector) -> Vector:
        r"""The same with as many unknowns as degrees of freedom: $v = P \nu + v_t$, where $v_t$ follows constraints that move."""
        system, t, q, at = self.system, self.t, self.q, self.split()
        P, drift = null_space(system, t, q, "chart", at), self._drift(at)
        start = fit(P.T, guess - drift, 1 / sizes(system, q))
        solution = Newton()(_reduced_legendre, start, (system, t, q, p, P, drift))
        return jnp.where(solution.result == Result.SUCCESS, drift + P @ solution.value, jnp.nan)

    def _drift(self, at: Split) -> Vector:
        """The smallest velocity on the chart with which moving closures stay fulfilled."""
        system, t, q = self.system, self.t, self.q
        if not leaves_open(system):
            return jnp.zeros_like(q)
        directions = chart_directions(system, t, q)
        K, rates = closure_jacobian(system, t, q) @ directions, constraint_rate(system, t, q, jnp.zeros_like(q))[fulfilled(system, q) :]
        if at.closing is not None:
            K, rates = at.closing @ K, at.closing @ rates
        return -directions @ least(K, rates, within(directions, sizes(system, q)))

    def multipliers(self, reaction: Vector, pull: Any = None) -> Float[Array, " m"]:
        r"""Redundant constraints are written as $A = C \hat A$ with independent rows $\hat A = B A$, so that
        $(A^T)^+ = C (C^T C)^{-1} (\hat A \hat A^T)^{-1} \hat A$ is smooth where the rank is constant. $A$ is $G S$, with
        rows of unit length if sizes of coordinates are told.
        """
        system, t, q, count = self.system, self.t, self.q, self.count
        if count == 0 or system.rank == 0:
            return jnp.zeros(count, q.dtype)
        G = constraint_jacobian(system, t, q) if pull is None else jax.vmap(pull)(jnp.eye(count, dtype=q.dtype))
        size = sizes(system, q)
        if system.rank in (None, count):
            return fit(G, reaction, size)
        independent, length = self.split().independent(G * size), work_sizes(system, G * size)
        square = independent @ independent.T
        C = solve(square, independent @ (G * size / length[:, None]).T).T
        return C @ solve(C.T @ C, solve(square, independent @ (size * reaction))) / length

    def nearest(self, newton: Newton) -> tuple[Vector, Array]:
        at = split_coordinates(self.system, self.t, self.q)
        size = sizes(self.system, self.q)
        normal = (at.independent(constraint_jacobian(self.system, self.t, self.q)) * size * size).T
        move, result = normal_correction(self.system, self.t, self.q, jnp.zeros_like(self.q), at, normal, newton)
        return self.q + move, result

    def nearest_velocity(self, v: Vector) -> Vector:
        at = split_coordinates(self.system, self.t, self.q)
        G, rates = constraint_jacobian(self.system, self.t, self.q), constraint_rate(self.system, self.t, self.q, v)
        return v - least(at.independent(G), at.pick(rates), sizes(self.system, self.q)) if at.basis.shape[1] < v.size else v

    def reduced(self, basis: Float[Array, "n d"], force: Vector, on_chart: bool) -> Float[Array, " d"]:
        return basis.T @ force


def _reduced_legendre(nu, args):
    system, t, q, p, P, drift = args
    return P.T @ (momentum(system, t, q, drift + P @ nu) - p)
