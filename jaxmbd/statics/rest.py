r"""Equilibrium: positions at which a system can rest.

Forces of the potential, other forces and those of constraints balance, $\partial V/\partial q - f + G^T \lambda = 0$ with $g = 0$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from ..errors import Result
from ..numerics.arguments import checked
from ..numerics.compile import compiled
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector, VectorLike
from .load_steps import WithMultipliers, prepared, proportional, residual, solved


class Equilibrium(eqx.Module):
    """A position of rest with its multipliers; `path` leads to it, one row a load step, with a code and a number of iterations for each."""

    q: Float[Array, " n"]
    multipliers: Float[Array, " m"]
    path: Float[Array, "rows n"]
    results: Int[Array, " steps"]
    newton_steps: Int[Array, " steps"]

    @property
    def successful(self) -> Array:
        """Whether all load steps were solved."""
        return jnp.all(self.results == Result.SUCCESS)


@checked
def equilibrium(
    system: System, q: VectorLike, *, steps: int = 1, t: ArrayLike = 0.0, newton: Newton = Newton(reuse=1), throw: bool = True
) -> Equilibrium:
    r"""The position near `q` at which the system can rest, with all its loads as they are at the time `t`.

    **Arguments**

    - `q`: where to start. What is out of balance there is taken off in equal parts, one a step: started from a position free of stress,
      `steps` are load steps.
    - `newton`: the solver; load steps are long, so that its tangents are renewed in every iteration.
    - `throw`: raise an error where a step was not solved; otherwise look at `results`.

    The derivative by all parameters follows from the equations at the last position, whatever led there.
    """
    system, q, t = prepared(system, q, t, steps)
    advice = "take more steps, start closer to the equilibrium, or hold what is free to move"
    return solved(_solve(system, q, t, steps, newton), throw, "load step", advice)


@compiled
def _solve(system: System, q: Vector, t: Scalar, steps: int, newton: Newton) -> Equilibrium:
    """The path by the few unknowns of a chart where there is one; its end, with derivatives, from the equations with multipliers."""
    fixed = jax.lax.stop_gradient((system, t, q))
    loading = proportional(*fixed)
    solver = loading.solver(newton)

    def step(carry, remaining):
        q, guess, alive = carry
        near = loading.near(q)
        x = loading.guess(guess, near)
        solution, _ = solver.solve(residual, x, (loading, near, remaining), loading.scale(near), loading.layout(near), alive)
        good = alive & (solution.result == Result.SUCCESS)
        result = jnp.where(alive, solution.result, jnp.int32(Result.NOT_REACHED))
        after = jnp.where(good, loading.position(solution.value, near), q), jnp.where(good, solution.value, guess), good
        return after, (after[0], result, solution.steps)

    remaining = 1 - jnp.arange(1, steps + 1, dtype=q.dtype) / steps
    begin = (fixed[2], jnp.zeros_like(loading.unknowns(loading.near(fixed[2]))), jnp.array(True))
    (last, *_), (path, results, iterations) = jax.lax.scan(step, begin, remaining)
    rest = WithMultipliers.balanced(system, t, last)
    near = rest.near(last)
    end = rest.solver(newton)(residual, rest.unknowns(near), (rest, near, jnp.zeros((), q.dtype)), rest.scale(near), rest.layout(near))
    path = jnp.concatenate([fixed[2][None], path])
    return Equilibrium(rest.position(end.value, near), rest.multipliers(end.value, near), path, results.at[-1].max(end.result), iterations)
