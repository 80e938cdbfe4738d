"""Friction along a motion: force, slip and energy lost, by name."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from ..errors import ModelError
from ..friction import Frictions
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory


class Sliding(eqx.Module):
    """Friction on a coordinate, one row a saved time.

    `force` is the mean force against the motion in the step that led to the row, `slip` how far the coordinate has slipped since the motion
    began, `dissipated` the energy lost since then, and `stored` that which comes back.
    """

    force: Float[Array, " rows"]
    slip: Float[Array, " rows"]
    dissipated: Float[Array, " rows"]
    stored: Float[Array, " rows"]


@along_trajectory("q", "memory")
def friction(system: System, trajectory: Trajectory) -> dict[str, Sliding]:
    """The friction of a motion by the name of each law."""
    at = friction_of(system)
    found: dict[str, Sliding] = {}
    for group, memory in zip(at.groups, trajectory.memory, strict=True):
        values = jax.vmap(at.read)(trajectory.q)
        slip, stored = jax.vmap(group.slipped)(memory, values), jax.vmap(group.each_stored)(memory, values)
        for i, name in enumerate(group.names):
            found[name] = Sliding(memory.force[:, i], slip[:, i], memory.dissipated[:, i], stored[:, i])
    return found


@along_trajectory("memory")
def dissipated(system: System, trajectory: Trajectory) -> Float[Array, " rows"]:
    """The energy that all friction has dissipated since the motion began."""
    friction_of(system)
    return sum((memory.dissipated.sum(axis=1) for memory in trajectory.memory), 0 * trajectory.t)


def friction_of(system: System) -> Frictions:
    """The friction of a system that has some."""
    friction = system.friction
    if friction is None:
        raise ModelError("this system has no friction: give loads such as mbd.Friction(joint, law), or friction= of System.from_functions")
    return friction
