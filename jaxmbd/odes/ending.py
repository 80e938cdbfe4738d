"""How an integration ended: where it stopped before its end, what stands in the way of the next step tells why."""

import operator
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..constraints.judgement import Verdict, first_wrong, judge_position, judge_velocity
from ..errors import Result
from ..numerics.arrays import over_rows
from ..simulation.trajectory import Status
from ..system import Scalar, Vector
from .controller import Refusal
from .dynamics import Dynamics, State
from .methods import AbstractMethod, Projection

OFTEN = 4
"""Of so many steps one was without a number, where that is why they were too many."""


def status_of(
    dynamics: Dynamics,
    method: AbstractMethod,
    solution: diffrax.Solution,
    t: Array,
    y: State,
    refusal: Refusal,
    direction: Array,
    verdict: Verdict | None,
) -> Status:
    """The end of a solution in this direction of time, 1 or -1, from its last state on; or that of a start that was wrong."""
    dynamics, method, t, y, refusal = jax.lax.stop_gradient((dynamics, method, t, y, refusal))
    ahead = direction * jnp.stack([refusal.dt, refusal.far])
    causes, blames = over_rows(lambda dt: _obstacle(dynamics, method, t, y, dt), ahead)
    near, far = (jax.tree.map(operator.itemgetter(row), blames) for row in (0, 1))
    found = _status(solution, refusal, causes[0], first_wrong(far, near))
    if verdict is None:
        return found
    start = Status(verdict.result, jnp.int32(0), jnp.zeros_like(t), verdict.worst, verdict.violation.astype(t.dtype))
    return jax.tree.map(lambda mine, its: jnp.where(verdict.result == Result.SUCCESS, mine, its), found, start)


def _status(solution: diffrax.Solution, refusal: Refusal, cause: Array, blame: Verdict) -> Status:
    outcome, taken = solution.result, jnp.asarray(solution.stats["num_steps"])
    good = (outcome == diffrax.RESULTS.successful) | (outcome == diffrax.RESULTS.event_occurred)
    exhausted = jnp.where(OFTEN * refusal.without > taken, cause, Result.STEPS_EXHAUSTED)
    stopped = jnp.where(refusal.without_number, cause, Result.STEP_TOO_SMALL)
    result = jnp.where(outcome == diffrax.RESULTS.max_steps_reached, exhausted, stopped)
    blamed = ~good & ((result == Result.NOT_PROJECTED) | (result == Result.NO_VELOCITY))
    return Status(
        jnp.where(good, Result.SUCCESS, result).astype(jnp.int32),
        jnp.int32(0),
        jnp.zeros_like(blame.violation),
        jnp.where(blamed, blame.worst, -1),
        jnp.where(blamed, blame.violation, 0),
    )


def _obstacle(dynamics: Dynamics, method: AbstractMethod, t: Scalar, y: State, dt: Scalar) -> tuple[Array, Verdict]:
    """Why a step of this length has no number, and which constraint is worst there, at the last position and velocity that are numbers."""
    rate, then = method.instant(dynamics, t, y, jnp.full_like(t, jnp.inf)).rate, t + dt
    projection = method if isinstance(method, Projection) else Projection()
    predicted = _finite(y.q + dt * rate.q, y.q)
    on, reached = projection.position(dynamics, then, predicted)
    q = _finite(on, predicted)
    along, admitted = projection.velocity(dynamics, then, q, y.v)
    smooth = _are_finite((rate, dynamics.forces(then, q, y.v, y.w))) & (dynamics.count(q) > 0)
    projected = jnp.where(reached & ~admitted, Result.NO_VELOCITY, jnp.where(smooth | ~reached, Result.NOT_PROJECTED, Result.NON_FINITE))
    return projected if method.projects else jnp.asarray(Result.NON_FINITE), _worst(dynamics, then, q, _finite(along, y.v))


def _worst(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector) -> Verdict:
    """The constraint to blame; none where they are only met as well as possible."""
    place = dynamics.place(q, v)
    verdicts = judge_position(dynamics.system, t, place[0]), judge_velocity(dynamics.system, t, *place, jnp.full_like(t, jnp.inf))
    found = first_wrong(*verdicts)
    return Verdict(found.result, jnp.where(dynamics.inexact, -1, found.worst), found.violation)


def _finite(value: Vector, otherwise: Vector) -> Vector:
    return jnp.where(_are_finite(value), value, otherwise)


def _are_finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
