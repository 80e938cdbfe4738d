"""How the steps of a path of equilibrium ended, and how that is told."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from ..constraints.judgement import judge_position
from ..errors import ModelError, Result, explanations, member_name, name_members
from ..numerics.arrays import known
from ..system import Scalar, System, Vector


def require_holonomic(system: System, what: str) -> None:
    """Refuse systems with constraints on velocities: at rest these hold anywhere."""
    if system.has("velocity_constraints"):
        raise ModelError(
            f"{what} is not determined by constraints on velocities, which hold wherever a system stands still: "
            "leave them out (system.holonomic), or hold what rolls or slides by constraints on positions"
        )


def judged(system: System, q: Vector, t: Scalar) -> Array:
    """The code of the start of a path: all numbers must be finite. A position off the constraints is brought onto them with the loads."""
    leaves = [leaf for leaf in jax.tree.leaves(jax.lax.stop_gradient((system, q, t))) if eqx.is_inexact_array(leaf)]
    finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in leaves])
    return jnp.where(jnp.all(finite), jnp.int32(Result.SUCCESS), jnp.int32(Result.NON_FINITE_INPUT))


def with_start(begun: Array, results: Int[Array, " steps"]) -> Int[Array, " steps"]:
    """The codes of load steps, the first of them that of the start if that was wrong."""
    codes = jnp.full_like(results, Result.NOT_REACHED).at[0].set(begun)
    return jnp.where(begun == Result.SUCCESS, results, codes)


def solved(found: Any, throw: bool, what: str, advice: str) -> Any:
    """What was found, unless a step in its `results` was not solved: an error, inside `jit` too."""
    if throw and known(found.results) is None:
        failed = found.results != Result.SUCCESS
        first = found.results[jnp.argmax(failed)]
        return eqx.branched_error_if(found, jnp.any(failed), first, explanations(f"a {what} failed", f"{advice}; throw=False shows which"))
    if throw:
        require_solved(found.results, what, advice)
    return found


def require_solved(results: Int[Array, "*batch steps"], what: str, advice: str) -> None:
    """Raise unless all steps were solved, naming the step, and of a batch the members."""
    codes = known(results)
    if codes is None:
        raise ModelError("check reads numbers, which jit and vmap hide: call it outside, on what they return")
    places = (codes != Result.SUCCESS).argmax(axis=-1)
    first = np.take_along_axis(codes, places[..., None], axis=-1)[..., 0]
    failed = np.argwhere(first != Result.SUCCESS)
    if len(failed) == 0:
        return
    member = tuple(failed[0])
    result, where = Result(int(first[member])), f"{name_members(first)}. Member {member_name(failed[0])}: " if member else ""
    if result.of_start:
        raise ModelError(f"{where}the start was refused with {result.name}: {result.meaning}")
    raise ModelError(f"{where}{what} {places[member] + 1} of {codes.shape[-1]} was not solved ({result.name}): {advice}")


def strayed(system: System, q: Vector, t: Scalar) -> Array:
    """The code of a position that was found: on the constraints, or led off them by combinations of redundant ones that lost their rank."""
    off = judge_position(*jax.lax.stop_gradient((system, t, q))).result != Result.SUCCESS
    return jnp.where(off, jnp.int32(Result.RANK_CHANGED), jnp.int32(Result.SUCCESS))
