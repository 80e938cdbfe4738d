"""Motions in coordinates of joints, read by the directors of their bodies."""

import dataclasses
import functools
from collections.abc import Callable

import equinox as eqx
import jax
from jaxtyping import Array

from ..assembly.director_system import director_system
from ..assembly.joint_model import JointModel
from ..numerics.compile import compiled
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory


def along_mechanism(*fields: str) -> Callable:
    """Like `along_trajectory`, for what is read of bodies: of a motion in coordinates of joints the function sees directors."""

    def decorate(function: Callable) -> Callable:
        along = along_trajectory(*fields)(function)

        @functools.wraps(function)
        def call(system, trajectory, *args, **kwargs):
            return along(*in_directors(system, trajectory), *args, **kwargs)

        return call

    return decorate


def has_joint_coordinates(system: System) -> bool:
    """Whether a system was assembled in coordinates of joints."""
    return isinstance(getattr(system, "params", None), JointModel)


def in_directors(system: System, trajectory: Trajectory) -> tuple[System, Trajectory]:
    """The same mechanism and motion in directors; any other system, and what is no motion of one, as they are."""
    moving = isinstance(trajectory, Trajectory) and trajectory.q is not None and trajectory.t.ndim == 1
    if not moving or not has_joint_coordinates(system) or trajectory.q.shape[1] != system.params.size:
        return system, trajectory
    q, v = _positions(system.astype(trajectory.t.dtype), trajectory)
    final = eqx.tree_at(lambda state: state.q, trajectory.final, q[-1])
    lifted = dataclasses.replace(trajectory, q=q, v=v, final=final, multipliers=None)
    return director_system(system.params.assembly, system.has("forces")), lifted


@compiled
def _positions(system: System, trajectory: Trajectory) -> tuple[Array, Array | None]:
    if trajectory.v is None:
        return jax.vmap(system.params.position)(trajectory.q), None
    return jax.vmap(lambda q, v: jax.jvp(system.params.position, (q,), (v,)))(trajectory.q, trajectory.v)
