"""Functions of a system as the user wrote them: tried once for the coordinates that they get, and finite where a motion starts."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..errors import ModelError
from ..numerics.arrays import known
from ..numerics.trial import is_own, line_of_first_non_finite, require_shape, returned
from ..system import Scalar, System, Vector, arity


def try_function(system: System, name: str, q: Vector, *more: Any, freedom: int | None = None) -> None:
    """Trace a function of the user's and look at what it returns; `more` is a control, or the increments of a chart.

    `freedom` is the number of columns of a null space matrix.
    """
    function = system.functions[name]
    if is_own(function):
        return
    t, params = jnp.zeros((), q.dtype), system.params
    arguments = {
        "potential": (t, q, params),
        "constraints": (t, q, params),
        "discrete_lagrangian": (t, jnp.ones_like(t), q, q, params),
        "chart": (*more, q, params, t, t),
        "null_space": (q, params, t),
    }
    given = arguments.get(name, (t, q, q, params, *more))[: arity(function)]
    shape, wanted = {
        "constraints": ((None,), "a vector (m,)"),
        "forces": (q.shape, f"a vector of shape {q.shape}"),
        "chart": (q.shape, f"coordinates of shape {q.shape}"),
        "null_space": (
            (q.size, freedom),
            f"a matrix of shape {(q.size, freedom)} (coordinates less independent constraints, of which jit needs mbd.find_rank first)",
        ),
    }.get(name, ((), "a scalar"))
    require_shape(name, function, returned(name, function, given, params=params), shape, wanted)


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
    params = system.params
    arguments = {
        "lagrangian": (t, q, v, params),
        "kinetic": (t, q, v, params),
        "potential": (t, q, params),
        "discrete_lagrangian": (t, dt, q, q + dt * v, params),
        "constraints": (t, q, params),
        "forces": (t, q, v, params),
    }
    mine = lambda name: system.has(name) and not is_own(system.functions[name]) and not (name == "forces" and system.controlled)
    return {name: given for name, given in arguments.items() if mine(name)}
