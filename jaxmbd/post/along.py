"""How post-processing meets a trajectory: compiled, and in its dtype."""

import functools
from collections.abc import Callable

from ..errors import ModelError
from ..numerics.compile import compiled
from ..simulation.trajectory import Trajectory
from ..system import System


def along_trajectory(function: Callable) -> Callable:
    """Compile a function of a system and a trajectory, in the dtype of the trajectory and with the rank it had."""
    fast = compiled(function)

    @functools.wraps(function)
    def call(system: System, trajectory: Trajectory, *args, **kwargs):
        if trajectory.q.ndim != 2:
            raise ModelError(f"{function.__name__} takes one trajectory; for a batch use jax.vmap")
        system = system.with_rank(trajectory.rank).astype(trajectory.q.dtype)
        return fast(system, trajectory, *args, **kwargs)

    return call
