"""Sparse tangents: coloured directional derivatives, and elimination in rounds of independent nodes."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..errors import ModelError
from .base import AbstractLinear, AbstractTangent
from .fronts import Factors, factorise, solve
from .gather import pick, with_zero
from .structure import Analysis, Layout, analyse

Nonzeros = Float[Array, " e"]


class SparseTangent(AbstractTangent):
    """Nonzeros beside their factors; derivatives go through the nonzeros, solves through the factors."""

    nonzeros: Nonzeros
    factors: Factors
    analysis: Analysis = eqx.field(static=True)
    lasting = 8

    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        plan = self.analysis.plan
        return jax.lax.custom_linear_solve(
            lambda x: _multiply(self.analysis, self.nonzeros, x),
            rhs,
            lambda _, b: solve(plan, self.factors, b),
            lambda _, b: solve(plan, self.factors, b, transposed=True),
        )

    def magnitude(self, scale: Float[Array, " k"]) -> Float[Array, " k"]:
        return _multiply(self.analysis, jnp.abs(self.nonzeros), scale)


class Sparse(AbstractLinear):
    """The solver for large systems whose parts touch few others: its cost is linear in their number for chains, trees and ladders."""

    def tangent(
        self, fn: Callable, x: Float[Array, " k"], args: PyTree = None, layout: Layout | None = None, valid: Array | bool = True
    ) -> SparseTangent:
        layout = Layout.plain(x.size) if layout is None else layout
        analysis = analyse(fn, x, args, layout)
        if analysis is None:
            raise ModelError("the tangent of these equations is dense: use Dense() or Auto()")
        values = _jacobian(analysis, lambda y: fn(y, args), x)
        values = jnp.where(valid, values, jnp.asarray(analysis.diagonal, x.dtype))
        held = jax.lax.stop_gradient(values)
        return SparseTangent(values, factorise(analysis.plan, _softened(analysis, held) if layout.dependent else held), analysis)


def _jacobian(analysis: Analysis, fn: Callable, x: Float[Array, " k"]) -> Nonzeros:
    """The nonzeros: one directional derivative a colour."""
    seeds = (analysis.places.colour == jnp.arange(analysis.colours)[:, None]).astype(x.dtype)
    seeds = jax.lax.optimization_barrier(seeds)  # or the compiler would carry out with them what does not depend on x
    return pick(with_zero(jax.vmap(jax.linearize(fn, x)[1])(seeds).ravel()), analysis.places.source)


def _multiply(analysis: Analysis, values: Nonzeros, x: Float[Array, " k"]) -> Float[Array, " k"]:
    """The Jacobian times a vector."""
    return _row_sums(analysis, values * pick(x, analysis.places.cols))


def _row_sums(analysis: Analysis, values: Nonzeros) -> Float[Array, " k"]:
    return jnp.sum(pick(with_zero(values), analysis.places.by_row), axis=0)


def _softened(analysis: Analysis, values: Nonzeros) -> Nonzeros:
    r"""Each constraint made a little soft: $-\varepsilon$ times its compliance on the diagonal of its multiplier.

    Redundant constraints then share their load instead of making the tangent singular. The solution is none the less exact: what is left of
    independent constraints shrinks by $\varepsilon$ in every iteration.
    """
    multipliers = np.flatnonzero(analysis.diagonal & analysis.layout.is_multiplier[analysis.rows])
    softness = float(jnp.finfo(values.dtype).eps) ** 0.75
    return values.at[multipliers].add(-softness * _compliance(analysis, values)[analysis.rows[multipliers]])


def _compliance(analysis: Analysis, values: Nonzeros) -> Float[Array, " k"]:
    """For every multiplier the squares of its constraint's slopes, over the inertia that they move."""
    stiffness = jnp.abs(pick(values, np.flatnonzero(analysis.diagonal)))
    inverse = jnp.where(stiffness > 0, 1 / jnp.where(stiffness > 0, stiffness, 1), 0)
    return _row_sums(analysis, values * values * pick(inverse, analysis.places.cols))
