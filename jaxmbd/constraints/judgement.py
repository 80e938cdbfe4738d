"""Judgements of a start, as numbers: what is wrong with it, and which constraint is worst. They can be told inside `jit` and `vmap` too."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..errors import Result
from ..numerics.arrays import known
from ..system import Scalar, System, Vector
from .calculus import PROBES, probes
from .units import extents, sizes


class Verdict(eqx.Module):
    """What is wrong with a start, or `SUCCESS`: a code, the worst constraint (-1 where none is to blame), and how far that is off."""

    result: Int[Array, ""]
    worst: Int[Array, ""]
    violation: Float[Array, ""]


def first_wrong(first: Verdict, *others: Verdict) -> Verdict:
    """The first one that finds something wrong."""

    def or_else(verdict: Verdict, other: Verdict) -> Verdict:
        good = verdict.result == Result.SUCCESS
        return jax.tree.map(lambda mine, its: jnp.where(good, its, mine), verdict, other)

    return functools.reduce(or_else, others, first)


def judge_inputs(values: PyTree, like: Vector, dt: Scalar | None = None) -> Verdict | None:
    """Whether numbers are finite and the time step is positive, as far as they are hidden; `None` if none is: seen ones are refused."""
    hidden = [leaf for leaf in jax.tree.leaves(values) if eqx.is_inexact_array(leaf) and known(leaf) is None]
    verdicts = []
    if hidden:
        finite = functools.reduce(jnp.logical_and, [jnp.all(jnp.isfinite(leaf)) for leaf in jax.lax.stop_gradient(hidden)])
        verdicts.append(_verdict(~finite, Result.NON_FINITE_INPUT, like))
    if dt is not None and known(dt) is None:
        verdicts.append(judge_time_step(jax.lax.stop_gradient(dt), like))
    return first_wrong(*verdicts) if verdicts else None


def judge_belonging(belongs: Bool[Array, ""], like: Vector) -> Verdict:
    """Whether a state belongs to the motion that is to go on from it."""
    return _verdict(~belongs, Result.OTHER_MOTION, like)


def judge_start(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Verdict:
    """Whether the time step is positive, the position on the constraint manifold, and the velocity tangent to it."""
    terms = _Terms.at(system, t, q, v)
    return first_wrong(judge_time_step(dt, q), _judge_position(terms, t, q), _judge_velocity(terms, q, v, dt))


def judge_position(system: System, t: Scalar, q: Vector) -> Verdict:
    """Whether a position is on the constraint manifold."""
    return _judge_position(_Terms.at(system, t, q, jnp.zeros_like(q)), t, q)


def judge_velocity(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Verdict:
    """Whether a velocity is tangent to the constraints."""
    return _judge_velocity(_Terms.at(system, t, q, v), q, v, dt)


def judge_time_step(dt: Scalar, like: Vector) -> Verdict:
    """Whether the time step is a positive number."""
    dt = jnp.asarray(dt)
    return _verdict(~((dt > 0) & jnp.isfinite(dt)), Result.BAD_TIME_STEP, like)


class _Terms(NamedTuple):
    """Values of the constraints, about their changes when coordinates do by their extents and by their sizes, and rates at rest and at a
    velocity, which has a largest component `speed` in sizes.
    """

    values: Float[Array, " m"]
    reach: Float[Array, " m"]
    slopes: Float[Array, " m"]
    steady: Float[Array, " m"]
    rates: Float[Array, " m"]
    speed: Float[Array, ""]

    @classmethod
    def at(cls, system: System, t: Scalar, q: Vector, v: Vector) -> "_Terms":
        """All from one linearisation, which keeps programs short."""
        if not system.constrained:
            none = jnp.zeros(0, q.dtype)
            return cls(none, none, none, none, none, jnp.zeros((), q.dtype))
        values, change = jax.linearize(_of_motion(system, t, q), jnp.asarray(t, q.dtype), q)
        size = sizes(system, q)
        directions = jnp.vstack([extents(system, q) * probes(q), size * probes(q), jnp.zeros_like(q), v])
        *sampled, steady, rates = jax.vmap(change)(jnp.asarray([0] * (2 * PROBES) + [1, 1], q.dtype), directions)
        root_mean_square = lambda some: jnp.sqrt(jnp.mean(jnp.stack(some) ** 2, axis=0))
        reach, slopes = root_mean_square(sampled[:PROBES]), root_mean_square(sampled[PROBES:])
        return cls(values, reach, slopes, steady, rates, jnp.max(jnp.abs(v) / size))


def _of_motion(system: System, t: Scalar, q: Vector) -> Callable[[Scalar, Vector], Float[Array, " m"]]:
    """Constraints of time and position whose changes along a motion are all that have to vanish; those on velocities have no values."""
    if not system.has("velocity_constraints"):
        return system.constraints
    at_rest = system.velocity_constraints(t, q, jnp.zeros_like(q))
    travelled = lambda time, x: system.velocity_constraints(t, q, x - q) + (time - t - 1) * at_rest
    return lambda time, x: jnp.concatenate([system.constraints(time, x), travelled(time, x)])


def _judge_position(terms: _Terms, t: Scalar, q: Vector) -> Verdict:
    """Values of the constraints beside the size of their terms."""
    size = terms.reach + jnp.abs(t * terms.steady)
    return _of_constraints(jnp.abs(terms.values), size, Result.INCONSISTENT_POSITION, q)


def _judge_velocity(terms: _Terms, q: Vector, v: Vector, dt: Scalar) -> Verdict:
    """Rates of the constraints beside the size of their terms; no constraint is to blame where no velocity was found."""
    eps = jnp.finfo(q.dtype).eps
    noise = 64 * eps * terms.reach / dt
    size = terms.slopes * terms.speed + jnp.abs(terms.steady) + noise / jnp.sqrt(eps)
    rates = _of_constraints(jnp.abs(terms.rates), size, Result.INCONSISTENT_VELOCITY, q)
    return first_wrong(_verdict(~jnp.all(jnp.isfinite(v)), Result.INCONSISTENT_VELOCITY, q), rates)


def _of_constraints(values: Float[Array, " m"], size: Float[Array, " m"], code: Result, like: Vector) -> Verdict:
    """By the largest of the values that are not small beside their size; where a size is not finite, the first step tells why."""
    if values.size == 0:
        return _verdict(jnp.array(False), code, like)
    off = (values > jnp.sqrt(jnp.finfo(like.dtype).eps) * size) | ~jnp.isfinite(values)
    worst = jnp.argmax(jnp.where(off, values, -1))
    return _verdict(jnp.any(off), code, like, worst, values[worst])


def _verdict(wrong: Bool[Array, ""], code: Result, like: Vector, worst: Array | int = -1, violation: Array | float = 0.0) -> Verdict:
    either = lambda yes, no, dtype: jnp.where(wrong, jnp.asarray(yes, dtype), jnp.asarray(no, dtype))
    whole = jnp.int32
    return Verdict(either(code, Result.SUCCESS, whole), either(worst, -1, whole), either(violation, 0, like.dtype))
