r"""Paths of equilibrium past limit points, where loads fall while a structure gives way.

The load factor is unknown beside the position; what is given is the length of each step, $|q - q_0|$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from ..errors import ModelError, Result
from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.linear import Dense
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector, VectorLike
from .load_steps import prepared, proportional, residual
from .outcome import judged, require_solved, solved, with_start

TOLD = ("step along the path", "take a smaller first factor, or hold what is free to move")
"""What a step is called in messages, and what helps."""


class EquilibriumPath(eqx.Module):
    """Positions of rest and the parts of the load at which they rest, from none at the start; a code and a number of iterations a step."""

    q: Float[Array, "rows n"]
    factors: Float[Array, " rows"]
    results: Int[Array, " steps"]
    newton_steps: Int[Array, " steps"]

    def check(self) -> None:
        """Raise `ModelError` unless all steps were solved; of a batch it names the members that failed."""
        require_solved(self.results, *TOLD)


@checked
def equilibrium_path(
    system: System, q: VectorLike, *, steps: int, first: float = 0.1, t: ArrayLike = 0.0, newton: Newton = Newton(), throw: bool = True
) -> EquilibriumPath:
    r"""Follow positions of rest from `q` by their arc length, whether loads rise or fall along them.

    Loads are proportional, as in `equilibrium`: a `factor` of zero keeps `q` in balance, at one all loads act. `first` is the factor of the
    first step; how far the coordinates move in it, $|q - q_0|$, is the length of all others. Tangents are full matrices. There is no
    derivative: take `equilibrium` from a point of the path for that.
    """
    if known(jnp.asarray(first)) == 0:
        raise ModelError("the first factor must not be zero: it tells how far each step goes, and in which direction of the loads")
    system, q, t = jax.lax.stop_gradient(prepared(system, q, t, steps))
    found = _follow(system, q, t, jax.lax.stop_gradient(jnp.asarray(first, q.dtype)), steps, newton)
    return solved(found, throw, *TOLD)


@compiled
def _follow(system: System, q: Vector, t: Scalar, first: Float[Array, ""], steps: int, newton: Newton) -> EquilibriumPath:
    loading = proportional(system, t, q)
    solver = eqx.tree_at(lambda newton: newton.linear, newton, Dense())
    near = loading.near(q)
    begin, _ = solver.solve(residual, loading.unknowns(near), (loading, near, 1 - first), loading.scale(near))
    start = loading.position(begin.value, near)
    length = jnp.linalg.norm(start - q)

    def step(carry, _):
        q, x, factor, change, alive = carry
        near = loading.near(q)
        scale = jnp.append(loading.scale(near), 0)
        solution, _ = solver.solve(_along, jnp.append(x, factor + change), (loading, near, length), scale, None, alive)
        good = alive & (solution.result == Result.SUCCESS)
        result = jnp.where(alive, solution.result, jnp.int32(Result.NOT_REACHED))
        x, reached = solution.value[:-1], solution.value[-1]
        after = (loading.position(x, near), x, reached, reached - factor, good)
        carry = jax.tree.map(lambda new, old: jnp.where(good, new, old), after, (*carry[:-1], jnp.array(False)))
        return carry, (carry[0], carry[2], result, solution.steps)

    begun = judged(system, q, t)
    good = (begin.result == Result.SUCCESS) & (begun == Result.SUCCESS)
    _, (path, factors, results, iterations) = jax.lax.scan(step, (start, begin.value, first, first, good), length=steps - 1)
    return EquilibriumPath(
        jnp.concatenate([q[None], start[None], path]),
        jnp.concatenate([jnp.zeros(1, q.dtype), first[None], factors]),
        with_start(begun, jnp.append(begin.result, results)),
        jnp.append(begin.steps, iterations),
    )


def _along(x: Array, args: tuple) -> Array:
    """The equations with the load factor as the last unknown, and how far the step leads."""
    loading, near, length = args
    unknowns, factor = x[:-1], x[-1]
    move = loading.position(unknowns, near) - near.q
    return jnp.append(loading.residual(unknowns, near, 1 - factor), (move @ move - length**2) / length)
