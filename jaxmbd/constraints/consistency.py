"""Checks of what the user gives, before anything is integrated. Inside `jit` or `vmap` only shapes can be checked."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.trial import once
from ..system import Scalar, System, Vector
from .calculus import constraint_jacobian, constraint_rate, constraint_slopes, mass_matrix
from .counts import chart_size, rank, rank_tolerance
from .functions import are_finite, require_finite_functions, try_function
from .manifold import manifold_at
from .split import Split, null_space


def check_position(system: System, t: Scalar, q: Vector, name: str) -> None:
    """Refuse positions off the constraint manifold."""
    _require_on_manifold(system, _position_alone(*jax.lax.stop_gradient((system, t, q))), q, name)


def _require_on_manifold(system: System, pair: tuple[Array, Array], q: Vector, name: str) -> None:
    worst = _worst(pair, q.dtype)
    if worst is not None:
        raise ModelError(
            f"{name} does not fulfil the constraints: {system.constraint_name(worst)} is off by {float(pair[0][worst]):.3g}; "
            "use mbd.project(system, q, v) to find a consistent start"
        )


def check_start(system: System, t0: Scalar, q0: Vector, v0: Vector, dt: Scalar) -> None:
    """Refuse positions off the manifold, velocities off its tangent space, motions without inertia, and charts that do not fit."""
    decomposed = manifold_at(system, t0, q0).decomposes
    given = [name for name in ("null_space", "chart") if system.has(name) and decomposed]
    for name in given:
        once(name, (system, q0), functools.partial(_try_basis, name, system, q0))
    finite, position, rates, mass, bases = _start(*jax.lax.stop_gradient((system, t0, q0, v0, dt)), given)
    require_finite_functions(finite, system, t0, q0, v0, dt)
    _require_on_manifold(system, position, q0, "q0")
    worst = _worst(rates, q0.dtype)
    if worst is not None:
        raise ModelError(
            f"v0 is not tangent to the constraints: {system.constraint_name(worst)} changes at the rate {float(rates[0][worst]):.3g}; "
            "use mbd.project(system, q0, v0) to find a consistent start"
        )
    if mass is not None:
        _check_mass(known(mass[0]), known(mass[1]), rank_tolerance(q0.dtype))
    for name, numbers in bases.items():
        _check_basis(name, numbers)


@compiled
def _start(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar, given: list[str]):
    """All numbers that tell whether a start is consistent, in one compilation."""
    numbers = are_finite(system, t, q, v, dt), _position(system, t, q), _rates(system, t, q, v, dt)
    manifold = manifold_at(system, t, q)
    if not manifold.decomposes:
        return *numbers, None, {}
    at = manifold.split()
    return *numbers, _mass(system, t, q, v, at), {name: _basis(name, system, t, q, at) for name in given}


def _position(system: System, t: Scalar, q: Vector) -> tuple[Array, Array]:
    """Values of the constraints, and the size of their terms."""
    size = jnp.max(jnp.abs(q)) * constraint_slopes(system, t, q)
    drift = jnp.abs(t * constraint_rate(system, t, q, jnp.zeros_like(q)))
    return jnp.abs(system.constraints(t, q)), size + drift


_position_alone = compiled(_position)


def _rates(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> tuple[Array, Array]:
    """Rates of the constraints, and the size of their terms."""
    steady = jnp.abs(constraint_rate(system, t, q, jnp.zeros_like(v)))
    slopes = constraint_slopes(system, t, q)
    noise = 64 * jnp.finfo(q.dtype).eps * slopes * jnp.max(jnp.abs(q)) / dt
    terms = slopes * jnp.max(jnp.abs(v)) + steady
    return jnp.abs(constraint_rate(system, t, q, v)), terms + noise / jnp.sqrt(jnp.finfo(q.dtype).eps)


def _mass(system: System, t: Scalar, q: Vector, v: Vector, at: Split) -> tuple[Float[Array, "n d"], Float[Array, "n n"]]:
    """Admissible directions and the mass matrix, both in units of momentum in which coordinates are comparable."""
    M = mass_matrix(system, t, q, v)
    unit = jnp.sqrt(jnp.max(jnp.abs(M), axis=1))
    unit = jnp.where(unit > 0, unit, 1)
    return unit[:, None] * at.basis, M / jnp.outer(unit, unit)


def _worst(pair: tuple[Array, Array], dtype) -> int | None:
    """Index of the largest value that is not small beside its size."""
    values, size = pair
    off = known(values > np.sqrt(jnp.finfo(dtype).eps).astype(dtype) * size)
    return None if off is None or not off.any() else int(np.argmax(np.where(off, np.asarray(values), 0)))


def _check_mass(N: np.ndarray | None, M: np.ndarray | None, tolerance: float) -> None:
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
    leaves, moved, size, length = values
    tolerance = float(np.sqrt(jnp.finfo(numbers.dtype).eps))
    if moved > tolerance * length:
        raise ModelError(f"chart(0, q) must be q, but moves it by {moved:.3g} (27)")
    if leaves > tolerance * size:
        raise ModelError(f"the columns of {name} leave the constraints at the rate {leaves:.3g}: G P must be zero (5)")


def _basis(name: str, system: System, t: Scalar, q: Vector, at: Split) -> Float[Array, "4"]:
    """How far a null space matrix is off the null space, how far a chart moves at zero, and the sizes to compare with."""
    P = null_space(system, t, q, "user" if name == "null_space" else "chart", at)
    G = constraint_jacobian(system, t, q)
    zero = jnp.zeros(chart_size(system, q), q.dtype)
    moved = jnp.max(jnp.abs(system.chart(zero, q, t, t) - q)) if name == "chart" else jnp.zeros((), q.dtype)
    leaves, size = jnp.max(jnp.abs(G @ P), initial=0), jnp.max(jnp.abs(G) @ jnp.abs(P), initial=0)
    return jnp.stack([leaves, moved, size, jnp.max(jnp.abs(q))])
