"""Checks of what the user gives, before anything is integrated. What `jit` or `vmap` hide becomes a verdict, for the state to carry."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError, Result
from ..numerics.arrays import known, library
from ..numerics.compile import compiled, inside_jit
from ..numerics.trial import once
from ..system import Scalar, System, Vector
from .calculus import constraint_jacobian, mass_matrix
from .counts import chart_size, rank, rank_tolerance
from .functions import are_finite, require_finite_functions, try_function
from .judgement import Verdict, judge_position, judge_start
from .manifold import manifold_at
from .split import Split, null_space
from .units import extents, row_size, sizes, within


def check_position(system: System, t: Scalar, q: Vector, name: str) -> Verdict | None:
    """Refuse positions off the constraint manifold."""
    return refuse(system, _position(*jax.lax.stop_gradient((system, t, q))), name)


def check_motion(system: System, t0: Scalar, q0: Vector, v0: Vector, dt: Scalar, called: str = "system") -> Verdict | None:
    """Refuse bad time steps, positions off the manifold and velocities off its tangent space of a system that the user calls so."""
    return refuse(system, _motion(*jax.lax.stop_gradient((system, t0, q0, v0, dt))), called=called)


def check_start(system: System, t0: Scalar, q0: Vector, v0: Vector, dt: Scalar) -> Verdict | None:
    """The same, and refuse motions without inertia and charts that do not fit, where numbers are seen."""
    decomposed = manifold_at(system, t0, q0).decomposes
    given = [name for name in ("null_space", "chart") if system.has(name) and decomposed]
    for name in given:
        once(name, (system, q0), functools.partial(_try_basis, name, system, q0))
    if inside_jit():
        return check_motion(system, t0, q0, v0, dt)
    finite, verdict, mass, bases = _start(*jax.lax.stop_gradient((system, t0, q0, v0, dt)), given)
    velocity = known(v0)
    if velocity is None or np.isfinite(velocity).all():  # otherwise none was found that leads to q1, as the verdict says
        require_finite_functions(finite, system, t0, q0, v0, dt)
    hidden = refuse(system, verdict)
    if mass is not None:
        check_mass(known(mass[0]), known(mass[1]), rank_tolerance(q0.dtype))
    for name, numbers in bases.items():
        _check_basis(name, numbers)
    return hidden


def refuse(system: System, verdict: Verdict, name: str = "q0", called: str = "system") -> Verdict | None:
    """Raise where it is seen that a start is wrong. A verdict that is hidden is handed on; `None` says that nothing is wrong."""
    code = known(verdict.result)
    if code is None:
        return verdict
    result = Result(int(code))
    if result is Result.SUCCESS:
        return None
    worst, violation = int(verdict.worst), float(verdict.violation)
    constraint = system.constraint_name(worst) if worst >= 0 else ""
    if result is Result.INCONSISTENT_POSITION:
        raise ModelError(
            f"{name} does not fulfil the constraints: {constraint} is off by {violation:.3g}; "
            f"use mbd.project({called}, q, v) to find a consistent start"
        )
    if result is Result.INCONSISTENT_VELOCITY and worst >= 0:
        raise ModelError(
            f"v0 is not tangent to the constraints: {constraint} changes at the rate {violation:.3g}; "
            f"use mbd.project({called}, q0, v0) to find a consistent start"
        )
    raise ModelError(result.meaning)


_position, _motion = compiled(judge_position), compiled(judge_start)


@compiled
def _start(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar, given: list[str]):
    """All numbers that tell whether a start is consistent, in one compilation."""
    finite, verdict, manifold = are_finite(system, t, q, v, dt), judge_start(system, t, q, v, dt), manifold_at(system, t, q)
    if not manifold.decomposes:
        return finite, verdict, None, {}
    at = manifold.split()
    mass = by_momentum(mass_matrix(system, t, q, v), sizes(system, q), at.basis)
    return finite, verdict, mass, {name: _basis(name, system, t, q, at) for name in given}


def by_momentum(M: Any, size: Any, basis: Any) -> tuple[Any, Any]:
    """Admissible directions and the mass matrix, both in units of momentum in which coordinates are comparable; NumPy stays NumPy.

    A coordinate without inertia counts as the lightest of the others would, moved by its size.
    """
    xp = library(M)
    unit = xp.sqrt(xp.max(xp.abs(M), axis=1))
    lightest = xp.min(xp.where(unit > 0, unit * size, xp.inf))
    unit = xp.where(unit > 0, unit, xp.where(xp.isfinite(lightest), lightest, 1) / size)
    return unit[:, None] * basis, M / xp.outer(unit, unit)


def check_mass(N: np.ndarray | None, M: np.ndarray | None, tolerance: float) -> None:
    """The mass matrix may be singular, but not for an admissible velocity."""
    if N is None or M is None or N.shape[1] == 0:
        return
    N = np.linalg.qr(N)[0]
    values, vectors = np.linalg.eigh(N.T @ (M + M.T) @ N / 2)
    least = np.argmin(np.abs(values))
    if abs(values[least]) <= tolerance:
        coordinate = int(np.argmax(np.abs(N @ vectors[:, least])))
        raise ModelError(
            f"the mass matrix is singular for an admissible velocity (mostly of coordinate {coordinate}), so momentum does not "
            "determine the motion; give that coordinate inertia, or a constraint that determines it (such as its equilibrium)"
        )


def _try_basis(name: str, system: System, q: Vector) -> None:
    if name == "chart":
        try_function(system, name, q, jnp.zeros(chart_size(system, q), q.dtype))
    else:
        try_function(system, name, q, freedom=q.size - rank(system, q))


def _check_basis(name: str, numbers: Float[Array, "4"]) -> None:
    """A null space matrix or a chart given by the user must fit the constraints, or the motion would be silently wrong."""
    values = known(numbers)
    if values is None:
        return
    leaves, moved, leaves_by, moves_by = values
    tolerance = float(np.sqrt(jnp.finfo(numbers.dtype).eps))
    if moved > tolerance:
        raise ModelError(f"chart(0, q) must be q, but moves it by {moves_by:.3g} (27)")
    if leaves > tolerance:
        raise ModelError(f"the columns of {name} leave the constraints at the rate {leaves_by:.3g}: G P must be zero (5)")


def _basis(name: str, system: System, t: Scalar, q: Vector, at: Split) -> Float[Array, "4"]:
    """How far a null space matrix is off the null space, how far a chart moves at zero: both beside what they might, and as they are."""
    P = null_space(system, t, q, "user" if name == "null_space" else "chart", at)
    G = constraint_jacobian(system, t, q)
    zero = jnp.zeros(chart_size(system, q), q.dtype)
    moved = jnp.abs(system.chart(zero, q, t, t) - q) if name == "chart" else jnp.zeros_like(q)
    leaves, size = jnp.abs(G @ P), sizes(system, q)
    relative = leaves * within(P, size) / row_size(G * size)[:, None]
    return jnp.stack([jnp.max(values, initial=0) for values in (relative, moved / extents(system, q), leaves, moved)])
