"""Newton's method, once for the whole library, with the derivative of its solution by the implicit function theorem."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .errors import Result
from .linear import AbstractLinear, AbstractTangent, Dense


class Solution(eqx.Module):
    """A root and how it was found; `residual` is relative to the size of the terms it is made of."""

    value: Float[Array, " k"]
    result: Array
    steps: Array
    residual: Array


class Newton(eqx.Module):
    r"""Solves `fn(x, args) = 0` for a flat vector `x`.

    Row $i$ of the residual is measured against $(|J|\,s)_i$, where $s$ is the size of the unknowns: this is the size of the
    terms that cancel in it, so that `residual_tolerance` counts in units of rounding, whatever the units of the model. The
    iteration ends when the residual is that small, when the step is below `step_tolerance` times $s$, or when rounding errors
    keep a residual of some hundred times the machine precision from falling further. What is left then is taken off with the
    last tangent, which costs no new one and brings terms that are small beside $s$, such as displacements, to their own rounding.

    **Arguments**

    - `step_tolerance`, `residual_tolerance`: `None` follows the dtype, $\epsilon^{3/4}$ and $\epsilon$.
    - `max_steps`: iterations before `NOT_CONVERGED` is reported.
    - `reuse`: how many iterations one factorised tangent serves (simplified Newton); a slow iteration renews it.
    - `line_search`: halve the step while it does not reduce the residual.
    - `linear`: the linear solver.
    """

    step_tolerance: float | None = eqx.field(static=True, default=None)
    residual_tolerance: float | None = eqx.field(static=True, default=None)
    max_steps: int = eqx.field(static=True, default=20)
    reuse: int = eqx.field(static=True, default=1)
    line_search: bool = eqx.field(static=True, default=False)
    linear: AbstractLinear = Dense()

    def __check_init__(self):
        if self.max_steps < 1 or self.reuse < 1:
            raise ValueError("Newton needs max_steps >= 1 and reuse >= 1")

    def __call__(
        self,
        fn: Callable,
        x0: Float[Array, " k"],
        args: PyTree,
        scale: Float[Array, " k"] | None = None,
    ) -> Solution:
        """The root near the guess `x0`, differentiable in `args`, through which `fn` must take everything it depends on.

        A solve that fails has the derivative zero, formed at the guess.
        """
        return Solution(*_root(args, guess=jax.lax.stop_gradient((x0, scale)), fn=fn, newton=self))

    def solve(
        self,
        fn: Callable,
        x0: Float[Array, " k"],
        args: PyTree,
        scale: Float[Array, " k"] | None = None,
        active: Array | bool = True,
    ) -> tuple[Solution, AbstractTangent]:
        """The bare iteration, without a derivative in reverse mode, and its last tangent; `active=False` does nothing."""
        x0, scale = jax.lax.stop_gradient((x0, scale))
        *solution, tangent = _iterate(self, lambda x: fn(x, args), x0, scale, active)
        return Solution(*solution), tangent


@eqx.filter_custom_jvp
def _root(args, *, guess, fn, newton):
    x0, scale = guess
    return _iterate(newton, lambda x: fn(x, args), x0, scale, True)[:-1]


@_root.def_jvp
def _root_jvp(primals, tangents, *, guess, fn, newton):
    """Minus the inverse tangent times the derivative by the arguments: one solve, however many iterations were taken."""
    (args,), (d_args,) = primals, tangents
    x, result, steps, residual = _root(args, guess=guess, fn=fn, newton=newton)
    solved = result == Result.SUCCESS
    at = jnp.where(solved, x, guess[0])
    _, d_fn = eqx.filter_jvp(lambda a: fn(at, a), (args,), (d_args,))
    if d_fn is None:  # the equations do not depend on what is varied
        return (x, result, steps, residual), (None, None, None, None)
    tangent = newton.linear.tangent(lambda y: fn(y, args), at, valid=solved)
    return (x, result, steps, residual), (jnp.where(solved, -tangent.solve(d_fn), 0), None, None, None)


def _iterate(newton: Newton, fn: Callable, x0, scale, active):
    eps = float(jnp.finfo(x0.dtype).eps)
    step_tolerance = eps**0.75 if newton.step_tolerance is None else newton.step_tolerance
    residual_tolerance = eps if newton.residual_tolerance is None else newton.residual_tolerance

    def size(x):
        largest = jnp.maximum(jnp.max(jnp.abs(x), initial=0), jnp.max(jnp.abs(x0), initial=0))
        return jnp.full_like(x, largest) if scale is None else scale

    def relative(residual, magnitude):
        return jnp.max(jnp.abs(residual) / jnp.where(magnitude > 0, magnitude, 1), initial=0)

    def advance(x, step, residual, magnitude):
        if not newton.line_search:
            return x + step
        limit = relative(residual, magnitude)
        worse = lambda a: ~(relative(fn(x + a * step), magnitude) < limit)
        fraction = jax.lax.while_loop(lambda a: (a > 1e-3) & worse(a), lambda a: a / 2, jnp.ones((), x.dtype))
        return x + fraction * step

    def body(carry):
        x, _, steps, last, tangent, age, _ = carry
        renew = lambda: newton.linear.tangent(fn, x)
        tangent = renew() if newton.reuse == 1 else jax.lax.cond(age == 0, renew, lambda: tangent)
        residual = tangent.residual if newton.reuse == 1 else fn(x)
        step = -tangent.solve(residual)
        x1 = advance(x, step, residual, tangent.magnitude(size(x)))
        length = size(x1)
        rest = fn(x1)
        now = relative(rest, tangent.magnitude(length))
        moved = jnp.max(jnp.where(length > 0, jnp.abs(step) / length, 0), initial=0)
        finite = jnp.all(jnp.isfinite(x1)) & jnp.isfinite(now)
        stalled = (now > 0.5 * last) & (now <= 512 * eps)
        done = finite & ((now <= residual_tolerance) | (moved <= step_tolerance) | stalled)
        broken = jnp.where(jnp.all(jnp.isfinite(residual)), Result.SINGULAR, Result.NON_FINITE)
        result = jnp.where(done, Result.SUCCESS, jnp.where(finite, Result.NOT_CONVERGED, broken)).astype(jnp.int32)
        slow = now > 0.1 * last
        age = jnp.where(slow, 0, (age + 1) % newton.reuse)
        return jnp.where(finite, x1, x), result, steps + 1, now, tangent, age, rest

    def unfinished(carry):
        _, result, steps, *_ = carry
        return active & (result == Result.NOT_CONVERGED) & (steps < newton.max_steps)

    blank = jax.tree.map(jnp.zeros_like, eqx.filter_eval_shape(lambda: newton.linear.tangent(fn, x0)))
    start = (x0, jnp.int32(Result.NOT_CONVERGED), jnp.int32(0), jnp.array(jnp.inf, x0.dtype), blank, jnp.int32(0), jnp.zeros_like(x0))
    x, result, steps, residual, tangent, _, rest = jax.lax.while_loop(unfinished, body, start)
    polished = x - tangent.solve(rest)
    good = (result == Result.SUCCESS) & jnp.all(jnp.isfinite(polished))
    return jnp.where(good, polished, x), result, steps, residual, tangent
