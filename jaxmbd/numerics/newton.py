"""Newton's method, once for the whole library, with the derivative of its solution by the implicit function theorem."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..errors import ModelError, Result
from .arguments import check_fields
from .implicit import root_derivative
from .linear import AbstractLinear, AbstractTangent, Auto
from .linear.layout import Layout

STEP_POWER = 0.75
"""The power of the machine precision that a last step may have: a tangent good to the other quarter makes the next one rounding."""

AT_ROUNDING = 512
"""Units of rounding that a residual may still have when it stops falling: sums of many terms leave some hundred."""

STALLED = 0.5
"""The part of a residual that is left when it has stopped falling: an iteration that does any good takes off more than half."""

SLOW = 0.3
"""The part of a residual that a tangent in use may leave: with half a digit an iteration a new tangent is the shorter way."""

SHORTEST = 1e-3
"""The least part of a step that a line search tries; where even that does not help, the direction is not one of descent."""


class Solution(eqx.Module):
    """A root and how it was found; `residual` is relative to the size of the terms it is made of."""

    value: Float[Array, " k"]
    result: Array
    steps: Array
    residual: Array


class Newton(eqx.Module):
    r"""Solves `fn(x, args) = 0` for a flat vector `x`.

    Row $i$ of the residual is measured against $(|J|\,s)_i$, where $s$ is the size of the unknowns: this is the size of the
    terms that cancel in it, so that `residual_tolerance` counts in units of rounding, whatever the units of the model. A row that the
    guess leaves with more than that, as a force that multipliers alone can balance, is measured against what it had then. The
    iteration ends when the residual is that small, when the step is below `step_tolerance` times $s$, or when rounding errors
    keep a residual of some hundred times the machine precision from falling further. What is left then is taken off with the
    last tangent, which costs no new one and brings terms that are small beside $s$, such as displacements, to their own rounding.

    **Arguments**

    - `step_tolerance`, `residual_tolerance`: `None` follows the dtype, $\epsilon^{3/4}$ and $\epsilon$.
    - `max_steps`: iterations before `NOT_CONVERGED` is reported.
    - `reuse`: how many iterations one factorised tangent serves (simplified Newton); a slow iteration renews it. `None` leaves it to
      the linear solver: one for dense tangents, several for sparse ones, which cost many residuals.
    - `line_search`: halve the step while it does not reduce the residual.
    - `linear`: the linear solver.
    """

    step_tolerance: float | None = eqx.field(static=True, default=None)
    residual_tolerance: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=20)
    reuse: int | None = eqx.field(static=True, default=None)
    line_search: bool = eqx.field(static=True, default=False)
    linear: AbstractLinear = Auto()

    def __check_init__(self):
        check_fields(self)
        if self.max_steps < 1 or (self.reuse is not None and self.reuse < 1):
            raise ModelError("Newton needs max_steps >= 1 and reuse >= 1")

    def __call__(
        self,
        fn: Callable,
        x0: Float[Array, " k"],
        args: PyTree,
        scale: Float[Array, " k"] | None = None,
        layout: Layout | None = None,
    ) -> Solution:
        """The root near the guess `x0`, differentiable in `args`, through which `fn` must take everything it depends on.

        `layout` tells the linear solver what the unknowns are. A solve that fails has the derivative zero, formed at the guess.
        """
        return Solution(*_root(args, equations=Equations.near(x0, fn, scale, layout), newton=self))

    def solve(
        self,
        fn: Callable,
        x0: Float[Array, " k"],
        args: PyTree,
        scale: Float[Array, " k"] | None = None,
        layout: Layout | None = None,
        active: Array | bool = True,
    ) -> tuple[Solution, AbstractTangent]:
        """The bare iteration, without a derivative in reverse mode, and its last tangent; `active=False` does nothing."""
        *solution, tangent = _iterate(self, Equations.near(x0, fn, scale, layout), args, active)
        return Solution(*solution), tangent


class Equations(NamedTuple):
    """`fn(x, args) = 0` for unknowns near a guess `x0`, with their size (`None`: that of the largest) and what they are."""

    fn: Callable
    x0: Float[Array, " k"]
    scale: Float[Array, " k"] | None
    layout: Layout | None

    @classmethod
    def near(cls, x0: Float[Array, " k"], fn: Callable, scale: Float[Array, " k"] | None, layout: Layout | None) -> "Equations":
        """With a guess and a size that are not differentiated."""
        return cls(fn, *jax.lax.stop_gradient((x0, scale)), layout)

    def tangent(self, linear: AbstractLinear, x: Float[Array, " k"], args: PyTree, valid: Array | bool = True) -> AbstractTangent:
        """Their tangent at some unknowns."""
        return linear.tangent(self.fn, x, args, self.layout, valid)


@eqx.filter_custom_jvp
def _root(args, *, equations, newton):
    return _iterate(newton, equations, args, True)[:-1]


@_root.def_jvp
def _root_jvp(primals, tangents, *, equations, newton):
    """The implicit function theorem, with a tangent at the root."""
    (args,), (d_args,) = primals, tangents
    x, result, steps, residual = _root(args, equations=equations, newton=newton)
    solved = result == Result.SUCCESS
    at = jnp.where(solved, x, equations.x0)
    solve = lambda b: equations.tangent(newton.linear, at, args, solved).solve(b)
    return (x, result, steps, residual), (root_derivative(equations.fn, at, args, d_args, solve, solved), None, None, None)


class _Iterate(eqx.Module):
    """Where the iteration stands: the unknowns, their residual, and how large it is beside what cancels in it."""

    x: Float[Array, " k"]
    rest: Float[Array, " k"]
    relative: Array
    result: Array
    steps: Array
    slow: Array


def _iterate(newton: Newton, equations: Equations, args: PyTree, active: Array | bool):
    """Iterations with one tangent, inside a loop over tangents."""
    x0, scale = equations.x0, equations.scale
    evaluate = lambda x: equations.fn(x, args)
    renew = lambda x: equations.tangent(newton.linear, x, args)
    unsolved = lambda now: active & (now.result == Result.NOT_CONVERGED) & (now.steps < newton.max_steps)

    blank, rest = jax.tree.map(jnp.zeros_like, eqx.filter_eval_shape(renew, x0)), evaluate(x0)
    first = jnp.abs(rest)
    reuse = blank.lasting if newton.reuse is None else newton.reuse

    def with_new_tangent(carry):
        now, _ = carry
        tangent = renew(now.x)
        magnitude = tangent.magnitude(jnp.ones_like(x0) if scale is None else scale)
        again = lambda now: _correct(newton, evaluate, now, tangent, magnitude, first, x0, scale)
        if reuse == 1:
            return again(now), tangent
        last = now.steps + reuse
        now = eqx.tree_at(lambda now: now.slow, now, jnp.array(False))
        return jax.lax.while_loop(lambda now: unsolved(now) & ~now.slow & (now.steps < last), again, now), tangent

    start = _Iterate(x0, rest, jnp.array(jnp.inf, x0.dtype), jnp.int32(Result.NOT_CONVERGED), jnp.int32(0), jnp.array(False))
    now, tangent = jax.lax.while_loop(lambda carry: unsolved(carry[0]), with_new_tangent, (start, blank))
    polished = now.x - tangent.solve(now.rest)
    good = (now.result == Result.SUCCESS) & jnp.all(jnp.isfinite(polished))
    return jnp.where(good, polished, now.x), now.result, now.steps, now.relative, tangent


def _correct(newton: Newton, fn: Callable, now: _Iterate, tangent: AbstractTangent, magnitude, first, x0, scale) -> _Iterate:
    """One correction with a given tangent; `magnitude` belongs to `scale`, or to unknowns of size one, `first` to the guess."""
    eps = float(jnp.finfo(x0.dtype).eps)
    step_tolerance = eps**STEP_POWER if newton.step_tolerance is None else newton.step_tolerance
    residual_tolerance = eps if newton.residual_tolerance is None else newton.residual_tolerance
    largest = lambda x: jnp.max(jnp.abs(x), initial=0)
    size = lambda x: jnp.maximum(largest(x), largest(x0)) if scale is None else jnp.ones((), x.dtype)

    def relative(residual, x):
        terms = jnp.maximum(magnitude * size(x), first)
        return largest(residual / jnp.where(terms > 0, terms, 1))

    step = -tangent.solve(now.rest)
    if newton.line_search:
        step = step * _fraction(lambda a: relative(fn(now.x + a * step), now.x) < relative(now.rest, now.x), x0.dtype)
    x = now.x + step
    rest = fn(x)
    after = relative(rest, x)
    length = (jnp.ones_like(x) if scale is None else scale) * size(x)
    moved = jnp.max(jnp.where(length > 0, jnp.abs(step) / jnp.where(length > 0, length, 1), 0), initial=0)
    finite = jnp.all(jnp.isfinite(x)) & jnp.isfinite(after)
    stalled = (after > STALLED * now.relative) & (after <= AT_ROUNDING * eps)
    done = finite & ((after <= residual_tolerance) | (moved <= step_tolerance) | stalled)
    broken = jnp.where(jnp.all(jnp.isfinite(now.rest)), Result.SINGULAR, Result.NON_FINITE)
    result = jnp.where(done, Result.SUCCESS, jnp.where(finite, Result.NOT_CONVERGED, broken)).astype(jnp.int32)
    return _Iterate(jnp.where(finite, x, now.x), rest, after, result, now.steps + 1, after > SLOW * now.relative)


def _fraction(better: Callable, dtype) -> Array:
    """The step halved until it is better."""
    return jax.lax.while_loop(lambda a: (a > SHORTEST) & ~better(a), lambda a: a / 2, jnp.ones((), dtype))
