"""How post-processing meets a trajectory: compiled, and in its dtype."""

import functools
from collections.abc import Callable

import equinox as eqx

from ..system import System
from ..trajectory import Trajectory


def along_trajectory(function: Callable) -> Callable:
    """Compile a function of a system and a trajectory, with the parameters of the system in the dtype of the trajectory."""
    compiled = eqx.filter_jit(function)

    @functools.wraps(function)
    def call(system: System, trajectory: Trajectory, *args, **kwargs):
        return compiled(system.astype(trajectory.q.dtype), trajectory, *args, **kwargs)

    return call
