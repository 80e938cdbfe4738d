"""Functions of a system as the user wrote them: tried once for the coordinates that they get, and finite where a motion starts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..errors import ModelError
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.signatures import arity
from ..numerics.trial import is_own, line_of_first_non_finite, require_shape, returned
from ..system import Scalar, System, Vector
from .units import extents, sizes

EVALUATED = ("lagrangian", "kinetic", "potential", "discrete_lagrangian", "constraints", "velocity_constraints", "forces")
"""Functions that have values at a start; the others make something of it."""

ELSEWHERE = 3
"""So many other times and positions show whether a function has the form that it needs everywhere."""


def try_function(system: System, name: str, q: Vector, *more: Any, freedom: int | None = None) -> None:
    """Trace a function of the user's and look at what it returns; `more` is a control, or the increments of a chart.

    `freedom` is the number of columns of a null space matrix.
    """
    function = system.functions[name]
    if is_own(function):
        return
    t = jnp.zeros((), q.dtype)
    given = _arguments(system, name, t, jnp.ones_like(t), q, q, q, *more)[: arity(function)]
    shape, wanted = {
        "constraints": ((None,), "a vector (m,)"),
        "velocity_constraints": ((None,), "a vector (k,)"),
        "forces": (q.shape, f"a vector of shape {q.shape}"),
        "chart": (q.shape, f"coordinates of shape {q.shape}"),
        "null_space": (
            (q.size, freedom),
            f"a matrix of shape {(q.size, freedom)} (coordinates less independent constraints, of which jit needs mbd.find_rank first)",
        ),
    }.get(name, ((), "a scalar"))
    require_shape(name, function, returned(name, function, given, params=system.params), shape, wanted)


def try_affine(system: System, q: Vector) -> None:
    """Refuse constraints that are seen not to be affine in velocities: for those $a(v + w) + a(0) = a(v) + a(w)$."""
    bent = known(_bent(*jax.lax.stop_gradient((system, q))))
    if bent is not None and bent.any():
        raise ModelError(
            f"velocity_constraints must be affine in v, A(t, q) v + a0(t, q), but component {int(bent.argmax())} is not: "
            "constraint forces act along A. Write it with products of v and functions of t and q alone"
        )


@compiled
def _bent(system: System, q: Vector) -> Array:
    """Which components are not affine, by two velocities of about the size of the coordinates; those that are no number are left alone.

    Terms that bend them may vanish at the start: other times and positions are tried too.
    """
    random, size = np.random.default_rng(0), sizes(system, q)
    draw = lambda *shape: jnp.asarray(random.standard_normal(shape), q.dtype)
    v, w = size * draw(2, q.size)
    pairs = jnp.stack([v, w, v + w, jnp.zeros_like(q)])
    times = jnp.append(draw(ELSEWHERE), 0)
    places = jnp.vstack([q + extents(system, q) * draw(ELSEWHERE, q.size), q])
    at = jax.vmap(jax.vmap(system.velocity_constraints, (None, None, 0)), (0, 0, None))
    values = at(times, places, pairs)
    off = jnp.abs(values[:, 0] + values[:, 1] - values[:, 2] - values[:, 3])
    return jnp.any(off > jnp.sqrt(jnp.finfo(q.dtype).eps) * jnp.sum(jnp.abs(values), axis=1), axis=0)


def try_friction(system: System, q: Vector) -> None:
    """Trace the functions that tell the coordinates on which friction acts."""
    for name, coordinate in getattr(system.functions["friction"], "coordinates", {}).items():
        what = f"the coordinate of friction {name!r}"
        if not callable(coordinate):
            if not 0 <= coordinate < q.size:
                raise ModelError(f"{what} is number {coordinate}, but the system has {q.size} coordinates, counted from zero")
            continue
        require_shape(what, coordinate, returned(what, coordinate, (q, system.params), params=system.params), (), "a scalar")


def are_finite(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> dict[str, Array]:
    """Whether the functions of the user's have finite values at a start."""
    values = {name: jnp.asarray(system.functions[name](*given)) for name, given in _at_start(system, t, q, v, dt).items()}
    return {name: jnp.all(jnp.isfinite(value)) for name, value in values.items()}


def require_finite_functions(finite: dict[str, Array], system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> None:
    """Refuse starts at which a function of the user's is infinite or not a number."""
    for name, good in finite.items():
        seen = known(good)
        if seen is not None and not seen:
            function, given = system.functions[name], _at_start(*jax.lax.stop_gradient((system, t, q, v, dt)))[name]
            raise ModelError(
                f"{name} is not finite at the start (q0, v0): look for a division by zero, a root or a logarithm"
                f"{line_of_first_non_finite(function, given)}"
            )


def _at_start(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> dict[str, tuple]:
    """The functions of the user's that have values at a start, and what they are called with."""
    mine = lambda name: evaluated(system, name) and not is_own(system.functions[name])
    return {name: _arguments(system, name, t, dt, q, q + dt * v, v) for name in filter(mine, EVALUATED)}


def evaluated(system: System, name: str) -> bool:
    """Whether a system has a function of this name that needs no control."""
    return system.has(name) and not (name == "forces" and system.controlled)


def _arguments(system: System, name: str, t: Scalar, dt: Scalar, q0: Vector, q1: Vector, v: Vector, *more: Any) -> tuple:
    """What a function is called with; `more` is a control, or the increments of a chart."""
    params = system.params
    given = {
        "potential": (t, q0, params),
        "constraints": (t, q0, params),
        "discrete_lagrangian": (t, dt, q0, q1, params),
        "chart": (*more, q0, params, t, t),
        "null_space": (q0, params, t),
    }
    return given.get(name, (t, q0, v, params, *more))
