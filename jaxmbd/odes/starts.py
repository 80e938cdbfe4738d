"""Where an integration begins: what the user gives, tried, of one dtype, and consistent."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PyTree

from ..constraints.consistency import check_motion, check_start
from ..constraints.functions import try_affine, try_function
from ..constraints.inputs import as_coordinates, require_finite, vector_like
from ..constraints.judgement import Verdict, first_wrong, judge_inputs
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..numerics.arrays import known
from ..numerics.trial import require_shape, returned
from ..system import Scalar, System, Vector, VectorLike
from .dynamics import Dynamics, State

STEPS = 1000
"""Into so many parts a motion is cut to tell how exactly a velocity must fulfil the constraints."""


def begin(
    given: System | Dynamics, q0: VectorLike, v0: VectorLike | None, w0: PyTree, span: tuple[ArrayLike, ArrayLike], controls: Any
) -> tuple[Dynamics, State, tuple[Array, Array], Verdict | None]:
    """The dynamics, the first state, and both times, all of the dtype of `q0`; what is wrong with them where that is hidden."""
    if isinstance(given, Dynamics) and controls is not None:
        raise ModelError("controls belong to the dynamics here: Dynamics.of(system, controls=...)")
    dynamics: Any = Dynamics.of(given, controls=controls) if isinstance(given, System) else given
    q = as_coordinates(dynamics.system if dynamics.of_system else System({}, dynamics.system.params), q0)
    v = jnp.zeros_like(q) if v0 is None else vector_like(v0, q, "v0")
    w = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(q.dtype), w0)
    t0, t1 = (jnp.asarray(value, q.dtype) for value in span)
    for value, name in ((t0, "t0"), (t1, "t1"), *((leaf, "w0") for leaf in jax.tree.leaves(w))):
        require_finite(value, name)
    if known(t0 == t1):
        raise ModelError(f"t0 and t1 are both {t0:g}: there is nothing to integrate")
    dynamics = dynamics.astype(q.dtype)
    _try(dynamics, t0, q, v, w)
    system = dynamics.system
    if dynamics.of_system and dynamics.independent is None:
        system = with_rank_if_cheap(system, q, t0)
        dynamics = eqx.tree_at(lambda d: d.system, dynamics, system)
    hidden = judge_inputs((dynamics, q, v, w, t0, t1), q)
    start = None if dynamics.inexact else _check(dynamics, t0, q, v, jnp.abs(t1 - t0) / STEPS)
    verdicts = [verdict for verdict in (hidden, start) if verdict is not None]
    return dynamics, State(q, v, w), (t0, t1), first_wrong(*verdicts) if verdicts else None


def _check(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Verdict | None:
    """Refuse positions off the constraints and velocities not along them."""
    if dynamics.of_system:
        return check_start(dynamics.system, t, q, v, dt)
    if dynamics.system.has("velocity_constraints"):
        try_affine(dynamics.system, q)
    return check_motion(dynamics.system, t, q, v, dt)


def _try(dynamics: Dynamics, t: Scalar, q: Vector, v: Vector, w: PyTree) -> None:
    """Trace the functions of the user's once, and look at what they return."""
    params = dynamics.system.params
    if dynamics.form is not None:
        found = returned("X", dynamics.form, (q,))
        require_shape("X", dynamics.form, found, (None,), "a vector of coordinates")
        q = v = jnp.zeros(found.shape, q.dtype)
    n = q.size
    given = {"mass": (t, q, params), "forces": (t, q, v, w, params), "weight": (t, q, params)}
    for name in filter(dynamics.functions.__contains__, given):
        function = dynamics.functions[name]
        found = returned(name, function, given[name], params=params)
        matrix = (n, n) if found is not None and len(found.shape) == 2 else (n,)
        scalar = name in ("mass", "weight") and found is not None and found.shape == ()
        shape = (n,) if name == "forces" else () if scalar else matrix
        require_shape(name, function, found, shape, f"shape {shape}")
    for name in filter(dynamics.system.has, ("constraints", "velocity_constraints")):
        try_function(dynamics.system, name, q)
    if "states" in dynamics.functions:
        rates = jax.eval_shape(dynamics.functions["states"], t, q, v, w, params)
        structures: list[Any] = [jax.tree.structure(rates), jax.tree.structure(w)]
        if structures[0] != structures[1] or [jnp.shape(x) for x in jax.tree.leaves(rates)] != [jnp.shape(x) for x in jax.tree.leaves(w)]:
            raise ModelError(f"states must return rates like w0, {structures[1]}, not {structures[0]}")
    elif jax.tree.leaves(w):
        raise ModelError("w0 was given, but the dynamics have no states: pass states(t, q, v, w, params) to Dynamics")
