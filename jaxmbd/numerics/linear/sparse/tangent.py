"""Sparse tangents: coloured directional derivatives, and a multifrontal LU factorisation."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ....errors import ModelError
from ..base import AbstractLinear, AbstractTangent
from ..layout import Layout
from ..regularise import corrected, softness
from .analysis import REMEMBERED, Analysis, Lines, analyse
from .gather import added, pick, when_run, with_zero
from .multifrontal import Factors, factorise, solve

Nonzeros = Float[Array, " e"]

ITERATIONS = 8
"""Iterations that a sparse tangent serves: forming and factorising one costs as much as many residuals."""


class SparseTangent(AbstractTangent):
    """Nonzeros beside their factors; derivatives go through the nonzeros, solves through the factors."""

    nonzeros: Nonzeros
    factors: Factors
    analysis: Analysis = eqx.field(static=True)
    lasting = ITERATIONS

    def solve(self, rhs: Float[Array, " k"]) -> Float[Array, " k"]:
        return jax.lax.custom_linear_solve(
            lambda x: _multiply(self.analysis, self.nonzeros, x),
            rhs,
            lambda multiply, b: self._through(multiply, b, transposed=False),
            lambda multiply, b: self._through(multiply, b, transposed=True),
        )

    def _through(self, multiply: Callable, b: Float[Array, " k"], transposed: bool) -> Float[Array, " k"]:
        once = lambda b: _traced_once(solve, self.analysis, transposed=transposed)(self.factors, b)
        if not (self.analysis.layout.dependent or self.analysis.layout.stiff):
            return once(b)
        places = self.analysis.places
        sizes = _sums(jnp.abs(jax.lax.stop_gradient(self.nonzeros)), places.by_col if transposed else places.by_row)
        return corrected(once, multiply, b, sizes)

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
        if valid is not True:
            values = jnp.where(valid, values, jnp.zeros_like(values).at[analysis.places.diagonal].set(1))
        held = jax.lax.stop_gradient(values)
        factors = _traced_once(factorise, analysis)(_softened(analysis, held) if layout.dependent else held)
        return SparseTangent(values, factors, analysis)


@functools.lru_cache(maxsize=REMEMBERED)
def _traced_once(function: Callable, analysis: Analysis, **options: bool) -> Callable:
    """A function of a plan and numbers, for the numbers alone: traced once, however many times a program uses it."""
    return jax.jit(functools.partial(function, analysis.plan, **options))


def _jacobian(analysis: Analysis, fn: Callable, x: Float[Array, " k"]) -> Nonzeros:
    """The nonzeros: one directional derivative a colour."""
    seeds = (when_run(analysis.places.colour) == jnp.arange(analysis.colours, dtype=jnp.int32)[:, None]).astype(x.dtype)
    return pick(with_zero(jax.vmap(jax.linearize(fn, x)[1])(seeds).ravel()), analysis.places.source)


def _multiply(analysis: Analysis, values: Nonzeros, x: Float[Array, " k"]) -> Float[Array, " k"]:
    """The Jacobian times a vector."""
    return _sums(values * pick(x, analysis.places.cols), analysis.places.by_row)


def _sums(values: Nonzeros, lines: Lines) -> Float[Array, " k"]:
    """The sums of the nonzeros of all rows, or columns."""
    ordered = values if lines.order is None else pick(values, lines.order)
    numbers, starts = with_zero(ordered), when_run(lines.starts)
    return added(lambda k: pick(numbers, jnp.where(k < lines.counts, starts + k, values.size)), lines.most)


def _softened(analysis: Analysis, values: Nonzeros) -> Nonzeros:
    """The nonzeros with all constraints a little soft."""
    sizes, places = jnp.abs(values), analysis.places
    rows = lambda w: _multiply(analysis, sizes, w)
    columns = lambda w: _sums(sizes * pick(w, places.rows), places.by_col)
    added = softness(rows, columns, analysis.layout.is_multiplier, values.dtype)
    return values.at[places.diagonal].add(added, unique_indices=True)
