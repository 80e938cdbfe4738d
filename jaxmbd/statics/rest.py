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
from .load_steps import WithMultipliers, prepared, proportional, residual
from .outcome import judged, require_solved, solved, strayed, with_start

TOLD = ("load step", "take more steps, start closer to the equilibrium, or hold what is free to move")
"""What a step is called in messages, and what helps."""


class Equilibrium(eqx.Module):
    """A position of rest with its multipliers; `path` leads to it, one row a load step, with a code and a number of iterations for each."""

    q: Float[Array, " n"]
    multipliers: Float[Array, " m"]
    path: Float[Array, "rows n"]
    results: Int[Array, " steps"]
    newton_steps: Int[Array, " steps"]

    @property
    def successful(self) -> Array:
        """Whether all load steps were solved; one value for each member of a batch."""
        return jnp.all(self.results == Result.SUCCESS, axis=-1)

    def check(self) -> None:
        """Raise `ModelError` unless all load steps were solved; of a batch it names the members that failed."""
        require_solved(self.results, *TOLD)


@checked
def equilibrium(
    system: System, q: VectorLike, *, steps: int = 1, t: ArrayLike = 0.0, newton: Newton = Newton(reuse=1), throw: bool = True
) -> Equilibrium:
    r"""The position near `q` at which the system can rest, with all its loads as they are at the time `t`.

    **Arguments**

    - `q`: where to start. What is out of balance there is taken off in equal parts, one a step: started from a position free of stress,
      `steps` are load steps.
    - `newton`: the solver; load steps are long, so that its tangents are renewed in every iteration.
    - `throw`: raise an error where a step was not solved; otherwise look at `results`, or call `check()` outside `jit` and `vmap`. A start
      with numbers that are not finite, where these hide it, is the code of the first step.

    The derivative by all parameters follows from the equations at the last position, whatever led there.
    """
    system, q, t = prepared(system, q, t, steps)
    return solved(_solve(system, q, t, steps, newton), throw, *TOLD)


@compiled
def _solve(system: System, q: Vector, t: Scalar, steps: int, newton: Newton) -> Equilibrium:
    """The path by the few unknowns of a chart where there is one; its end, with derivatives, from the equations with multipliers."""
    fixed = jax.lax.stop_gradient((system, t, q))
    loading = proportional(*fixed)
    solver, begun = loading.solver(newton), judged(system, q, t)

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
    begin = (fixed[2], jnp.zeros_like(loading.unknowns(loading.near(fixed[2]))), begun == Result.SUCCESS)
    (last, *_), (path, results, iterations) = jax.lax.scan(step, begin, remaining)
    rest = WithMultipliers.balanced(system, t, last)
    near = rest.near(last)
    end = rest.solver(newton)(residual, rest.unknowns(near), (rest, near, jnp.zeros((), q.dtype)), rest.scale(near), rest.layout(near))
    found, path = rest.position(end.value, near), jnp.concatenate([fixed[2][None], path])
    ended = jnp.where(end.result == Result.SUCCESS, strayed(system, found, t), end.result)
    results = with_start(begun, results.at[-1].max(ended))
    return Equilibrium(found, rest.multipliers(end.value, near), path, results, iterations)
