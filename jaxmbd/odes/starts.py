"""Where an integration begins: what the user gives, tried, of one dtype, and consistent."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PyTree

from ..constraints.inputs import as_coordinates, require_finite, vector_like
from ..constraints.judgement import Verdict, first_wrong, judge_inputs
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..numerics.arrays import known
from ..system import System, VectorLike
from .checks import check, try_functions
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
    try_functions(dynamics, t0, q, v, w)
    system = dynamics.system
    if dynamics.of_system and dynamics.independent is None:
        system = with_rank_if_cheap(system, q, t0)
        dynamics = eqx.tree_at(lambda d: d.system, dynamics, system)
    hidden = judge_inputs((dynamics, q, v, w, t0, t1), q)
    start = check(dynamics, t0, q, v, w, jnp.abs(t1 - t0) / STEPS)
    verdicts = [verdict for verdict in (hidden, start) if verdict is not None]
    return dynamics, State(q, v, w), (t0, t1), first_wrong(*verdicts) if verdicts else None
