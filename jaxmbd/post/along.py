"""How post-processing meets a trajectory: of the same system, compiled, in its dtype, with results by name."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.tree_util import DictKey
from jaxtyping import Array, Float, PyTree

from ..constraints.counts import constraint_count
from ..constraints.inputs import try_functions
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..numerics.arguments import checked
from ..numerics.compile import compiled
from ..numerics.naming import look_up
from ..numerics.trial import explained, once
from ..simulation.start import differs
from ..simulation.trajectory import Trajectory
from ..system import System, Vector, VectorLike


def along_trajectory(*fields: str) -> Callable:
    """Compile a function of a system and a trajectory that reads these columns, in the dtype of the trajectory."""

    def decorate(function: Callable) -> Callable:
        fast, name = compiled(function), function.__name__.lstrip("_")

        @checked
        @functools.wraps(function)
        def call(system, trajectory, *args, **kwargs):
            if trajectory.t.ndim != 1:
                raise ModelError(f"{name} takes one trajectory; for a batch use jax.vmap")
            trajectory.require(name, *fields)
            system = system.astype(trajectory.t.dtype)
            require_same_system(system, trajectory, name)
            system = with_rank_if_cheap(system.with_step(trajectory.dt), trajectory.final.q, trajectory.final.t)
            found = fast(system, trajectory, *args, **kwargs)
            return ByName(found, name) if isinstance(found, dict) else found

        return call

    return decorate


def require_same_system(system: System, trajectory: Trajectory, purpose: str) -> None:
    """Refuse the trajectory of another system: by its sizes, and by the parameters that it was computed with where numbers are seen."""
    once("trajectory", (system, trajectory.final.q, trajectory.multipliers), lambda: _require_same_sizes(system, trajectory, purpose))
    if differs(system, trajectory.final):
        raise ModelError(
            f"{purpose}: trajectory is that of another system: their parameters differ. Read it with the system that was simulated, "
            "or with what replace made of it"
        )


def _require_same_sizes(system: System, trajectory: Trajectory, purpose: str) -> None:
    q, multipliers = trajectory.final.q, trajectory.multipliers
    try:
        try_functions(system, q, "trajectory")
        count = constraint_count(system, q)
    except ModelError as error:
        raise ModelError(f"{purpose}: trajectory is that of another system, or this one does not work: {error}") from error
    if multipliers is not None and multipliers.shape[-1] != count:
        raise ModelError(f"{purpose}: trajectory is that of another system: it has {multipliers.shape[-1]} constraints, not {count}")


def control_at(controls: Callable | None, t: Array) -> PyTree:
    """The control at a time, if there are some."""
    with explained("controls"):
        return None if controls is None else controls(t)


def memory_of(system: System, trajectory: Trajectory, purpose: str) -> PyTree:
    """What friction remembered at the saved rows; nothing without friction."""
    if system.has("friction"):
        trajectory.require(purpose, "memory")
    return trajectory.memory


def friction_at(system: System, memory: PyTree, q: Vector, v: Vector) -> Vector:
    """The generalised force of friction at one instant."""
    friction = system.friction
    return jnp.zeros_like(q) if friction is None else friction.force(memory, q, v)


def as_rows(values: VectorLike, trajectory: Trajectory, name: str) -> Float[Array, "rows n"]:
    """Values at the saved nodes, a row each, like the coordinates."""
    rows = jnp.asarray(values, trajectory.t.dtype)
    if rows.shape != trajectory.q.shape:
        raise ModelError(f"{name} must have the shape {trajectory.q.shape} of the coordinates, not {rows.shape}")
    return rows


@jax.tree_util.register_pytree_with_keys_class
class ByName(dict):
    """Results by name. The last node of a beam is also found as `"beam[-1]"`; a name that is not there is an error that suggests others."""

    def __init__(self, results: Any = (), origin: str = "result"):
        super().__init__(results)
        self.origin = origin

    def __missing__(self, name):
        return self[look_up(name, self, f"{self.origin} has no")]

    def tree_flatten_with_keys(self):
        """Results in the order in which they are listed."""
        return [(DictKey(name), value) for name, value in self.items()], (self.origin, tuple(self))

    @classmethod
    def tree_unflatten(cls, fixed, results):
        """The same names with other results."""
        origin, names = fixed
        return cls(zip(names, results, strict=True), origin)
