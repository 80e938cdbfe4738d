"""What loads on coordinates of joints do along a motion, by name."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..assembly.drives import as_control
from ..assembly.model import Assembly, as_assembly
from ..errors import ModelError
from ..numerics.trial import explained
from ..simulation.trajectory import Trajectory
from ..system import System
from .directors import along_mechanism


class LoadForce(eqx.Module):
    """A force along a coordinate of a joint, or a torque about it, and its power; one row a saved time."""

    force: Float[Array, " rows"]
    power: Float[Array, " rows"]


@along_mechanism("q", "v")
def load_forces(system: System, trajectory: Trajectory, controls: PyTree | Callable = None) -> dict[str, LoadForce]:
    """The forces of all springs, forces, motors, drives and controllers on coordinates of joints, each on its coordinate.

    Those of motors need `controls`: the function of time that the motion had, or rows of numbers, one for each saved time, or one a step as
    `simulate` takes them; a saved time then has that of the step that led to it, and the start that of the first.
    """
    model = as_assembly(system)
    given = _controls(model, controls, trajectory)

    def at(t, q, v, control):
        gauges, rates = model.parts(q)[1], model.parts(v)[1]
        answering: tuple[Any, ...] = (*model.joint_loads, *model.controllers)
        acting = [(group, group.forces(t, gauges, rates)) for group in answering]
        acting += [(group, group.forces(control)) for group in model.motors]
        return {name: found for group, forces in acting for name, found in _by_name(group, forces, rates)}

    return {name: LoadForce(*found) for name, found in jax.vmap(at)(trajectory.t, trajectory.q, trajectory.v, given).items()}


def _by_name(group: Any, forces: Float[Array, " count"], rates: Float[Array, " g"]) -> list[tuple[str, tuple[Array, Array]]]:
    """Force and power of each load of a group."""
    power = forces * rates[np.array(group.gauges)]
    return [(name, (forces[i], power[i])) for i, name in enumerate(group.names)]


def _controls(model: Assembly, controls: PyTree | Callable, trajectory: Trajectory) -> PyTree:
    """The controls of motors, a row a saved time."""
    if not model.motors:
        if controls is not None:
            raise ModelError("load_forces: controls were given, but no load is a Motor to receive them")
        return None
    if controls is None:
        raise ModelError(f"load_forces: the forces of the motors {', '.join(map(repr, model.motor_names))} are controls: pass them too")
    dtype = trajectory.t.dtype
    if callable(controls):
        with explained("controls"):
            return jax.vmap(lambda t: as_control(controls(t), model.motor_names, dtype))(trajectory.t)
    saved, led = trajectory.t.size, np.maximum(np.arange(trajectory.t.size) * trajectory.stride - 1, 0)
    steps = trajectory.stride * (saved - 1)
    rows = jax.tree.map(jnp.asarray, controls)
    for path, leaf in jax.tree_util.tree_leaves_with_path(rows):
        if leaf.shape[:1] not in ((saved,), (steps,)):
            place = jax.tree_util.keystr(path)
            rows_needed = f"one row for each of {saved} saved times or of {steps} steps"
            raise ModelError(f"load_forces: controls{place} need {rows_needed}, but an array has shape {leaf.shape}")
    rows = jax.tree.map(lambda leaf: leaf if len(leaf) == saved else leaf[led], rows)
    return jax.vmap(lambda row: as_control(row, model.motor_names, dtype))(rows)
