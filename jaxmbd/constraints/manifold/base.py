"""What is asked of the constraint manifold about one position."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ...numerics.linear.layout import Layout
from ...numerics.newton import Newton, Solution
from ...system import Scalar, System, Vector
from .. import saddle
from ..calculus import constraint_forces, constraint_slopes, momentum
from ..counts import constraint_count
from ..split import Split
from ..units import row_size, sizes


class AbstractManifold(eqx.Module):
    """The constraints of a system about the position `q` at the time `t`.

    `decomposes` says whether the number of independent constraints must be known.
    """

    system: System
    t: Scalar
    q: Vector

    decomposes: ClassVar[bool]

    @property
    def count(self) -> int:
        """Number of constraints, redundant ones included."""
        return constraint_count(self.system, self.q)

    @property
    @abc.abstractmethod
    def soft(self) -> bool:
        """Whether constraints may be redundant and get a multiplier nevertheless."""

    @abc.abstractmethod
    def rank(self) -> Array:
        """Number of independent constraints, or -1 where that would take the decomposition of a large matrix to find."""

    @abc.abstractmethod
    def split(self) -> Split:
        """Admissible and forbidden directions; a trivial split, in which all constraints count, where nothing is decomposed."""

    def layout(self, at: Split, stages: int = 1) -> Layout:
        """What unknown coordinates are, with the multipliers of the constraints that a split picks."""
        if at.rows is not None:
            return Layout(stages, self.q.size, at.rows.shape[0])
        known = self.system.structure
        held = known.internal if known.held else ()
        return Layout(stages, self.q.size, self.count, known.pivots, known.parts, held, self.soft)

    def sharing(self) -> "AbstractManifold":
        """The same with what several velocities and multipliers here have in common, worked out once."""
        return self

    @abc.abstractmethod
    def velocity(self, p: Vector, guess: Vector) -> Vector:
        r"""The admissible velocity of a momentum: $\partial L/\partial v + G^T \mu = p$ with $G v + \partial g/\partial t = 0$.

        Constraints on velocities count like hidden ones, here and below: their rows $A$ stand under those of $G$.

        Its own momentum is the projection $Q p$ (16). The mass matrix may be singular if it is regular on the null space of $G$.
        Not a number where no such velocity is found from the guess.
        """

    @abc.abstractmethod
    def multipliers(self, reaction: Vector, pull: Any = None) -> Float[Array, " m"]:
        r"""Multipliers with $G^T \lambda$ = `reaction` (36)-(38), for redundant constraints the smallest ones.

        Where sizes of coordinates are told, small is what does little work: $\lambda_j$ counts times the length of row $j$ of $G S$.

        `pull` may give other forces of multipliers than $G^T(q)\,\lambda$, near those: a function that is a pytree.
        """

    def acceleration(self, v: Vector, control: PyTree = None, force: Vector | float = 0.0) -> tuple[Vector, Float[Array, " m"]]:
        r"""Acceleration and multipliers of the continuous motion (3), with the constraints differentiated twice; `force` is a further one.

        The equations are affine in both, so that Newton's method ends after one step; redundant constraints get their smallest
        multipliers.
        """
        at = self.split()
        args = (self.system, self.t, self.q, v, control, force, at)
        x = self._solve(saddle.euler_lagrange, jnp.zeros_like(self.q), args, at, Newton(), inertia=True).value
        reaction = constraint_forces(self.system, self.t, self.q, at.spread(x[self.q.size :]))
        return x[: self.q.size], self.sharing().multipliers(reaction)

    @abc.abstractmethod
    def nearest(self, newton: Newton) -> tuple[Vector, Array]:
        r"""The position $q + S^2 G^T(q)\,w$ that fulfils the constraints, and the code of the solve."""

    @abc.abstractmethod
    def nearest_velocity(self, v: Vector) -> Vector:
        """The admissible velocity nearest to `v`."""

    @abc.abstractmethod
    def reduced(self, basis: Float[Array, "n d"], force: Vector, on_chart: bool) -> Float[Array, " d"]:
        """A force along a basis of admissible directions; `on_chart` says that it is that of a chart which fulfils all constraints."""

    def _solve(self, residual: Callable, start: Vector, args: PyTree, at: Split, newton: Newton, inertia: bool = False) -> Solution:
        """Solve equations for a vector near `start` and the multipliers of a split; balances may be those of `inertia`."""
        layout, (columns, rows) = self.layout(at), self._units(at, inertia)
        x = jnp.concatenate([start, jnp.zeros(layout.multipliers, start.dtype)]) / columns
        solution = newton(saddle.in_units, x, (Partial(residual), columns, rows, args), layout=layout)
        return eqx.tree_at(lambda s: s.value, solution, columns * solution.value)

    def _units(self, at: Split, inertia: bool) -> tuple[Array, Array]:
        """Units of unknowns and of equations in which the matrix of a saddle point problem has entries of size one, or less."""
        system, t, q = jax.lax.stop_gradient((self.system, self.t, self.q))
        size = sizes(system, q)
        lengths = constraint_slopes(system, t, q, size)
        lengths = lengths if at.rows is None else row_size(at.rows * lengths)
        lengths = jnp.where(lengths > 0, lengths, 1)
        if not inertia:
            return jnp.concatenate([size, 1 / lengths]), jnp.concatenate([size, lengths])
        work = jnp.max(jnp.abs(size * (momentum(system, t, q, size) - momentum(system, t, q, jnp.zeros_like(q)))))
        work = jnp.where(work > 0, work, 1)
        return jnp.concatenate([size, work / lengths]), jnp.concatenate([work / size, lengths])
