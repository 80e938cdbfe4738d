"""Whether dynamics make sense where an integration begins: their functions tried, their numbers finite, their constraints fulfilled."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..constraints.consistency import by_momentum, check_mass, check_motion, check_start
from ..constraints.counts import rank_tolerance
from ..constraints.functions import are_finite, require_finite_functions, try_affine, try_function
from ..constraints.judgement import Verdict
from ..errors import ModelError, Result
from ..numerics.arrays import known
from ..numerics.compile import compiled, inside_jit
from ..numerics.trial import line_of_first_non_finite, require_shape, returned
from ..system import Scalar, Vector
from .dynamics import Dynamics, State
from .methods import Projection


def try_functions(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, w: PyTree) -> None:
    """Trace the functions of the user's once, and look at what they return."""
    params = dynamics.system.params
    if dynamics.form is not None:
        found = returned("X", dynamics.form, (q,))
        require_shape("X", dynamics.form, found, (None,), "a vector of coordinates")
        q = v = jnp.zeros(found.shape, q.dtype)
    n, given = q.size, _arguments(dynamics, t, q, v, w)
    for name in given.keys() - {"states"}:
        function = dynamics.functions[name]
        found = returned(name, function, given[name], params=params)
        matrix = (n, n) if found is not None and len(found.shape) == 2 else (n,)
        scalar = name in ("mass", "weight") and found is not None and found.shape == ()
        shape = (n,) if name == "forces" else () if scalar else matrix
        require_shape(name, function, found, shape, f"shape {shape}")
    for name in filter(dynamics.system.has, ("constraints", "velocity_constraints")):
        try_function(dynamics.system, name, q)
    if "states" in given:
        _try_states(dynamics, given["states"], w)
    elif jax.tree.leaves(w):
        raise ModelError("w0 was given, but the dynamics have no states: pass states(t, q, v, w, params) to Dynamics")


def _try_states(dynamics: Dynamics, given: tuple, w: PyTree) -> None:
    """Rates must be like the states themselves."""
    arrays = lambda tree: jax.tree.map(jnp.asarray, tree)
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)
    rates = returned("states", dynamics.functions["states"], given, arrays, params=dynamics.system.params)
    if shapes(rates) != shapes(w):
        raise ModelError(f"states must return rates with the shapes of w0, {shapes(w)}, not {shapes(rates)}")


def check(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, w: PyTree, dt: Scalar) -> Verdict | None:
    """Refuse functions without numbers, positions off the constraints and velocities not along them; steps are about as long as `dt`."""
    if dynamics.system.has("velocity_constraints") and not dynamics.of_system:
        try_affine(dynamics.system, dynamics.place(q, v)[0])
    if not inside_jit() and not (dynamics.of_system and dynamics.independent is None and "states" not in dynamics.functions):
        _check_numbers(dynamics, t, q, v, w, dt)
    if dynamics.of_system:
        return check_start(dynamics.system, t, q, v, dt)
    if dynamics.form is None:
        return check_motion(dynamics.system, t, q, v, dt, "dynamics.system")
    return _check_reduced(dynamics, t, q, v, dt)


def _check_numbers(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, w: PyTree, dt: Scalar) -> None:
    """Refuse functions that are not finite, missing inertia, and constraints that follow from others though they are said not to."""
    finite, of_constraints, *matrices = _numbers(*jax.lax.stop_gradient((dynamics, t, q, v, w, dt)))
    place = dynamics.place(q, v)
    require_finite_functions(of_constraints, dynamics.system, t, *place, dt)
    for name, good in finite.items():
        if known(good) is not None and not known(good):
            line = line_of_first_non_finite(dynamics.functions[name], _arguments(dynamics, t, *place, w)[name])
            raise ModelError(f"{name} is not finite at the start (q0, v0): look for a division by zero, a root or a logarithm{line}")
    M, rows, size = (known(matrix) for matrix in matrices)
    if M is None or rows is None or size is None:
        return
    if not np.isfinite(rows).all():
        name = dynamics.system.constraint_name(int(np.isfinite(rows).all(axis=1).argmin()))
        raise ModelError(f"the derivative of the constraint {name} is not finite at the start (q0, v0), as that of a norm at zero")
    left, values, right = np.linalg.svd(rows)
    rank = int(np.sum(values > rank_tolerance(q.dtype) * max(values, default=0)))
    if dynamics.independent and rank < len(rows):
        name = dynamics.system.constraint_name(int(np.abs(left[:, -1]).argmax()))
        raise ModelError(f"independent=True, but the constraint {name} follows from the others at the start: leave independent out")
    if not dynamics.of_system:
        check_mass(*by_momentum(M, size, size[:, None] * right[rank:].T), rank_tolerance(q.dtype))


@compiled
def _numbers(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, w: PyTree, dt: Scalar):
    """Which functions are finite; inertia, and the directions of constraints, in coordinates that are comparable."""
    place, at = dynamics.place(q, v), dynamics.directions(t, q, v)
    values = {name: dynamics.functions[name](*given) for name, given in _arguments(dynamics, t, *place, w).items()}
    finite = {name: jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(value)])) for name, value in values.items()}
    return finite, are_finite(dynamics.system, t, *place, dt), dynamics.mass(t, q, v), at.rows, at.size


def _check_reduced(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Verdict | None:
    """Refuse starts that the projection moves: the constraints may only be met as well as the forms can."""
    verdict = _moved(*jax.lax.stop_gradient((dynamics, t, q, v, dt)))
    code = known(verdict.result)
    if code is None or code == Result.SUCCESS:
        return verdict if code is None else None
    raise ModelError(
        f"{'q0' if code == Result.INCONSISTENT_POSITION else 'v0'} does not fulfil the constraints as well as it could: their projection "
        f"moves it by {verdict.violation:.3g}; start from odes.Projection().state(dynamics, t0, odes.State(q0, v0))[0]"
    )


@compiled
def _moved(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Verdict:
    """Whether the projection moves position or velocity by more than rounding, and how far."""
    on, reached = Projection().state(dynamics, t, State(q, v))
    size, eps = dynamics.sizes(q), jnp.finfo(q.dtype).eps
    extent, speed = jnp.maximum(jnp.abs(q), size), jnp.max(jnp.maximum(jnp.abs(v), jnp.abs(on.v)) / size)
    move, change = jnp.abs(on.q - q), jnp.abs(on.v - v)
    off = ~reached | jnp.any(move > eps**0.5 * extent)
    across = ~jnp.all(change <= eps**0.5 * speed * size + 64 * eps * extent / dt)
    code = jnp.where(off, Result.INCONSISTENT_POSITION, jnp.where(across, Result.INCONSISTENT_VELOCITY, Result.SUCCESS))
    return Verdict(code.astype(jnp.int32), jnp.int32(-1), jnp.max(jnp.where(off, move, change)))


def _arguments(dynamics: Dynamics, t: Scalar, x: Vector, u: Vector, w: PyTree) -> dict[str, tuple]:
    """What the functions that make up the dynamics are called with."""
    params = dynamics.system.params
    given = {"mass": (t, x, params), "forces": (t, x, u, w, params), "weight": (t, x, params), "states": (t, x, u, w, params)}
    return {name: arguments for name, arguments in given.items() if name in dynamics.functions}
