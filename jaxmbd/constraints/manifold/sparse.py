"""The constraint manifold of large systems."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ...errors import Result
from ...numerics.linear import AbstractTangent, Auto
from ...numerics.newton import Newton
from ...system import Vector
from .. import saddle
from ..calculus import constraint_forces
from ..chart import pull_to_chart
from ..counts import closed, known_independent
from ..split import Split
from ..units import sizes
from .base import AbstractManifold


class SparseManifold(AbstractManifold):
    r"""By products with the constraint Jacobian.

    Where the kinetic energy is quadratic, one sparse `tangent` serves velocities and multipliers: that of $p - \partial L/\partial v$ and
    $\dot g$ by velocities and multipliers.
    """

    tangent: AbstractTangent | None = None

    decomposes: ClassVar[bool] = False

    @property
    def soft(self) -> bool:
        return not known_independent(self.system, self.q)

    def rank(self) -> Array:
        r"""All constraints, if none comes near to following from others: at the cost of one factorisation.

        With rows of unit length in $G S$, the matrix of the least-norm problem has an inverse of the size of $(G G^T)^{-1}$.
        """
        system, t, q = self.system, self.t, self.q
        if closed(system) or not system.constrained:
            return jnp.array(self.count)
        pull, x = self._pull(Partial(_forces, system, t, q)), jnp.zeros(q.size + self.count, q.dtype)
        layout = self.layout(self.split())._replace(dependent=False)
        tangent = Auto().tangent(saddle.nearest, x, (pull, jnp.zeros_like(q)), layout)
        independent = tangent.condition(x.size, x.dtype) < float(jnp.finfo(q.dtype).eps) ** -0.75
        return jnp.where(independent, self.count, -1)

    def split(self) -> Split:
        return Split.trivial(self.q)

    def sharing(self) -> "AbstractManifold":
        if self.tangent is not None or not self.system.structure.quadratic:
            return self
        at, x = self.split(), jnp.zeros(self.q.size + self.count, self.q.dtype)
        args = self._legendre(jnp.zeros_like(self.q))
        tangent = Auto().tangent(saddle.in_units, x, args, self.layout(at))
        return SparseManifold(self.system, self.t, self.q, tangent)

    def velocity(self, p: Vector, guess: Vector) -> Vector:
        if self.tangent is not None:
            return self._corrected(self.tangent, self._legendre(p), guess)
        at = self.split()
        solution = self._solve(saddle.legendre, guess, (self.system, self.t, self.q, p, at), at, Newton(line_search=True), inertia=True)
        return jnp.where(solution.result == Result.SUCCESS, solution.value[: p.size], jnp.nan)

    def _corrected(self, tangent: AbstractTangent, args: PyTree, guess: Vector) -> Vector:
        """Two corrections of the guess, of which the second takes off what rounding left of the first."""
        units = args[1]
        x = jnp.pad(guess, (0, self.count)) / units

        def correct(carry, _):
            x, _ = carry
            change = tangent.solve(saddle.in_units(x, args))
            return (x - change, change), None

        (found, change), _ = jax.lax.scan(correct, (x, x), length=2)
        size = lambda x: jnp.max(jnp.abs(x[: guess.size]))
        settled = size(change) <= jnp.sqrt(jnp.finfo(guess.dtype).eps) * jnp.maximum(size(x), size(found))
        return jnp.where(settled, (units * found)[: guess.size], jnp.nan)

    def _legendre(self, p: Vector) -> PyTree:
        """The Legendre transform as a problem in units."""
        at = self.split()
        return Partial(saddle.legendre), *self._units(at, inertia=True), (self.system, self.t, self.q, p, at)

    def multipliers(self, reaction: Vector, pull: Any = None) -> Float[Array, " m"]:
        """Of several, the smallest up to the size of slopes."""
        if self.tangent is not None and pull is None:
            columns, rows = self._units(self.split(), inertia=True)
            return (columns * self.tangent.solve(jnp.pad(reaction, (0, self.count)) / rows))[reaction.size :]
        pull, size = self._pull(Partial(_forces, self.system, self.t, self.q) if pull is None else pull), sizes(self.system, self.q)
        x, layout = jnp.zeros(reaction.size + self.count, reaction.dtype), self.layout(self.split())
        return pull.args[2] * Newton()(saddle.nearest, x, (pull, size * reaction), layout=layout).value[reaction.size :]

    def _pull(self, forces: Callable) -> Partial:
        """Forces of multipliers as work, with multipliers counted so that each does as much."""
        columns, _ = self._units(self.split(), inertia=False)
        return Partial(_work, forces, columns[: self.q.size], columns[self.q.size :])

    def nearest(self, newton: Newton) -> tuple[Vector, Array]:
        args = (self.system, self.t, self.q, sizes(self.system, self.q))
        solution = self._solve(saddle.normal_move, jnp.zeros_like(self.q), args, self.split(), newton)
        return self.q + solution.value[: self.q.size], solution.result

    def nearest_velocity(self, v: Vector) -> Vector:
        args = (self.system, self.t, self.q, sizes(self.system, self.q), v)
        return self._solve(saddle.normal_change, v, args, self.split(), Newton()).value[: v.size]

    def reduced(self, basis: Float[Array, "n d"], force: Vector, on_chart: bool) -> Float[Array, " d"]:
        return pull_to_chart(self.system, self.t, self.q, force) if on_chart else basis.T @ force


def _forces(system, t, q, multipliers):
    return constraint_forces(system, t, q, multipliers)


def _work(forces, size, units, multipliers):
    return size * forces(units * multipliers)
