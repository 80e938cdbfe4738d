r"""Least squares: unknowns with which many equations, more than can be fulfilled, are met as well as they can be."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..errors import Result
from . import lapack

FLAT = 0.75
"""The power of the machine precision, relative to the size of the residual, below which what can still be taken off it is rounding."""

STUCK = 0.5
"""The same where it shrinks no more: rounding in long motions is larger, and in sums of squares hides what is smaller."""

SHRINKS = 0.5
"""The part of what could be taken off that may be left after a step, while it still shrinks."""

SEEN = 0.75
"""The power of the machine precision, relative to the largest one, down to which singular values count: what rounding in the residual
does along directions that matter less than this is more than what is known of them.
"""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-9, 1e4
"""Damping by the square of the largest singular value: with which it begins, below which there is none, and beyond which nothing helps."""

MORE, LESS = 10, 1 / 30
"""Factors of the damping after a step that failed, and after one that helped."""


class Optimum(eqx.Module):
    r"""The unknowns with the least $|r|^2$ near the guess.

    `gradient` is the part of the residual that unknowns could still take off, relative to its size; `rank` the number of directions of the
    unknowns that the residual sees, `effects` the norms of the columns of its Jacobian.
    """

    value: Float[Array, " k"]
    result: Int[Array, ""]
    steps: Int[Array, ""]
    gradient: Float[Array, ""]
    rank: Int[Array, ""]
    effects: Float[Array, " k"]


class _Point(eqx.Module):
    """Unknowns, residual and Jacobian there; the Jacobian by unknowns in the given units."""

    x: Float[Array, " k"]
    residual: Float[Array, " r"]
    jacobian: Float[Array, "r k"]
    units: Float[Array, " k"]
    valid: Bool[Array, ""]

    @property
    def cost(self) -> Array:
        """The sum of squares, infinite where the residual has no value."""
        return jnp.where(self.valid, self.residual @ self.residual, jnp.inf)

    @property
    def scale(self) -> Array:
        """The size of the terms that the residual is made of."""
        return jnp.linalg.norm(self.residual) + jnp.linalg.norm(self.jacobian @ (self.x / self.units))


class _Axes(eqx.Module):
    r"""The Jacobian as $U \Sigma V^T$; directions that it does not see are left out by the inverse of $\Sigma$."""

    U: Float[Array, "r d"]
    values: Float[Array, " d"]
    V: Float[Array, "k d"]

    @classmethod
    def of(cls, point: _Point) -> "_Axes":
        """The decomposition at a point."""
        U, values, V = lapack.thin_svd(point.jacobian)
        return cls(U, values, V.T)

    @property
    def seen(self) -> Bool[Array, " d"]:
        """Directions that matter."""
        return self.values > float(jnp.finfo(self.values.dtype).eps) ** SEEN * self.values[0]

    def inverse(self, damping: Array | float = 0.0) -> Float[Array, " d"]:
        r"""$\sigma / (\sigma^2 + \mu)$."""
        return jnp.where(self.seen, self.values / jnp.where(self.seen, self.values**2 + damping, 1), 0)


def least_squares(fn: Callable, x0: Float[Array, " k"], args: PyTree, groups: tuple[int, ...] | None = None, most: int = 50) -> Optimum:
    r"""Minimise $|r(x, a)|^2$ near a guess by damped Gauss-Newton steps (Levenberg, Marquardt).

    The Jacobian is decomposed, never squared: unknowns keep as many digits as its condition number leaves. Where it is singular, steps are
    the smallest ones. The derivative of the optimum by `args` is that of $J^T r = 0$, with the curvature of $r$.

    **Arguments**

    - `fn(x, args)`: the residual, and whether it has a value there.
    - `groups`: for every unknown the number of its kind; those of one kind have one unit, in which they matter as much as others do.
    - `most`: the largest number of steps.
    """
    kinds = (0,) * x0.size if groups is None else groups
    value, point, result, steps, gradient = _solve(args, x0=jax.lax.stop_gradient(x0), fn=fn, groups=kinds, most=most)
    point = jax.lax.stop_gradient(point)
    effects = jnp.linalg.norm(point.jacobian, axis=0) / point.units
    return Optimum(value, result, steps, gradient, jnp.sum(_Axes.of(point).seen).astype(jnp.int32), effects)


@eqx.filter_custom_jvp
def _solve(args, *, x0, fn, groups, most):
    """The optimum, what is known there, and how it was found. The first trial is the guess itself."""
    eps = float(jnp.finfo(x0.dtype).eps)

    def evaluated(x, units):
        def both(x):
            residual, valid = fn(x, args)
            return residual, (residual, valid)

        jacobian, (residual, valid) = jax.jacfwd(both, has_aux=True)(x)
        finite = jnp.all(jnp.isfinite(jacobian)) & jnp.all(jnp.isfinite(residual))
        return _Point(x, residual, jacobian * units, units, valid & finite)

    def improve(state):
        at, damping, count, *_ = state
        axes, known = _Axes.of(at), jnp.isfinite(at.cost)
        shares = axes.U.T @ at.residual
        move = -at.units * (axes.V @ (axes.inverse(damping) * shares))
        trial = evaluated(at.x + move, at.units)
        trial = jax.lax.cond(known, lambda trial: trial, lambda trial: _in_units(trial, groups), trial)
        left = jnp.linalg.norm(jnp.where(axes.seen, shares, 0)) / jnp.where(known, at.scale, 1)
        better, top = trial.cost <= at.cost * (1 + 1e3 * eps), axes.values[0] ** 2
        better = better & trial.valid
        lower = jnp.where(damping * LESS < LEAST_DAMPING * top, 0, damping * LESS)
        higher = jnp.where(damping == 0, FIRST_DAMPING * top, damping * MORE)
        shrinks = better & (left < SHRINKS * state[5])
        found = known & ((left <= eps**FLAT) | (~shrinks & (left <= eps**STUCK)))
        lost = ~better & (~known | (higher > MOST_DAMPING * top))
        result = jnp.where(found, Result.SUCCESS, jnp.where(~known & ~better, Result.NON_FINITE, Result.NOT_CONVERGED))
        after = jax.tree.map(lambda new, old: jnp.where(better, new, old), trial, at)
        return after, jnp.where(better, lower, higher), count + 1, found | lost, result.astype(jnp.int32), left

    rows = jax.eval_shape(lambda x: fn(x, args)[0], x0).shape[0]
    zero = jnp.zeros((), x0.dtype)
    blank = _Point(x0, jnp.zeros(rows, x0.dtype), jnp.zeros((rows, x0.size), x0.dtype), jnp.ones_like(x0), jnp.array(False))
    start = (blank, zero, jnp.int32(0), jnp.array(False), jnp.int32(Result.NOT_CONVERGED), zero + jnp.inf)
    goes_on = lambda state: ~state[3] & (state[2] <= most)
    point, _, count, _, result, left = jax.lax.while_loop(goes_on, improve, start)
    return point.x, point, result, count - 1, left


def _in_units(point: _Point, groups: tuple[int, ...]) -> _Point:
    """The point with units in which every kind of unknown changes the residual alike."""
    kinds = np.asarray(groups)
    squares = jnp.zeros(kinds.max() + 1, point.x.dtype).at[kinds].add(jnp.sum(point.jacobian**2, axis=0))
    norms = jnp.sqrt(squares / jnp.asarray(np.bincount(kinds), squares.dtype))
    units = jnp.where(norms > 0, 1 / jnp.where(norms > 0, norms, 1), 1)[kinds]
    return _Point(point.x, point.residual, point.jacobian * units, units, point.valid)


@_solve.def_jvp
def _solve_jvp(primals, tangents, *, x0, fn, groups, most):
    r"""The implicit function theorem for $J^T r = 0$, counted along the axes of $J$: with $x = x^* + V \Sigma^{-1} z$ the derivative of the
    gradient by $z$ is the identity and the curvature of $r$, and that by `args` keeps the digits that a product with $J^T$ costs.
    """
    (args,), (d_args,) = primals, tangents
    out = _solve(args, x0=x0, fn=fn, groups=groups, most=most)
    x, point, result, *_ = out
    x, point = jax.lax.stop_gradient((x, point))
    axes = _Axes.of(point)
    directions = point.units[:, None] * axes.V * axes.inverse()

    def residual(z, args):
        return fn(x + directions @ z, args)[0]

    def bending(z, args):
        return jax.grad(lambda z: point.residual @ residual(z, args))(z)

    nothing = jnp.zeros(axes.values.size, x.dtype)
    along = lambda function: eqx.filter_jvp(lambda args: function(nothing, args), (args,), (d_args,))[1]
    change, turn = along(residual), along(bending)
    constant = jax.tree.map(lambda _: None, out[1:])
    if change is None:
        return out, (None, *constant)
    curvature = jnp.eye(nothing.size, dtype=x.dtype) + jax.lax.stop_gradient(jax.jacfwd(lambda z: bending(z, args))(nothing))
    rhs = axes.U.T @ change + (0 if turn is None else turn)
    move = -directions @ lapack.solve(jnp.where(result == Result.SUCCESS, curvature, jnp.eye(nothing.size, dtype=x.dtype)), rhs)
    return out, (jnp.where(result == Result.SUCCESS, move, 0), *constant)
