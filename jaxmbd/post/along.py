"""How post-processing meets a trajectory: compiled, and in its dtype."""

import functools
from collections.abc import Callable

from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..numerics.compile import compiled
from ..simulation.trajectory import Trajectory
from ..system import System


def along_trajectory(*fields: str) -> Callable:
    """Compile a function of a system and a trajectory that reads these columns, in the dtype of the trajectory."""

    def decorate(function: Callable) -> Callable:
        fast = compiled(function)

        @functools.wraps(function)
        def call(system: System, trajectory: Trajectory, *args, **kwargs):
            if trajectory.t.ndim != 1:
                raise ModelError(f"{function.__name__} takes one trajectory; for a batch use jax.vmap")
            trajectory.require(function.__name__, *fields)
            system = system.astype(trajectory.t.dtype).with_step(trajectory.dt)
            return fast(with_rank_if_cheap(system, trajectory.final.q, trajectory.final.t), trajectory, *args, **kwargs)

        return call

    return decorate
