"""What a motion of a mechanism means for its parts: poses, joint coordinates, reactions, total momenta; by name."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly.abstract_model import require_model
from ..assembly.groups import JointGroup
from ..assembly.model import Assembly, as_assembly
from ..bodies import AbstractShape
from ..errors import ModelError
from ..geometry.frame import Frame, Motion
from ..numerics.arguments import checked
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory
from .directors import along_mechanism, has_joint_coordinates, in_directors
from .legendre import multipliers
from .rounding import telling_digits


class Wrench(eqx.Module):
    """Force and torque, one row a saved time."""

    force: Float[Array, "rows 3"]
    torque: Float[Array, "rows 3"]


@along_mechanism("q")
def poses(system: System, trajectory: Trajectory) -> dict[str, Frame]:
    """The frame of every body, the ground among them, its leaves with one row a saved time."""
    model = as_assembly(system)
    rows = jax.vmap(model.frames)(trajectory.q)
    frames = Frame(rows[:, :, 0], jnp.swapaxes(rows[:, :, 1:], 2, 3))
    return {name: jax.tree.map(lambda leaf, i=i: leaf[:, i], frames) for i, name in enumerate(model.bodies)}


@checked
def shapes(system: System) -> dict[str, list[AbstractShape]]:
    """The shapes of every body that has some."""
    model = require_model(system).assembly
    found: dict[str, list[AbstractShape]] = {}
    for group in model.shapes:
        for i, body in enumerate(group.bodies):
            found.setdefault(model.bodies[body], []).append(jax.tree.map(lambda leaf, i=i: leaf[i], group.shape))
    return found


@along_mechanism("q")
def joint_coordinates(system: System, trajectory: Trajectory) -> dict[str, Float[Array, "rows c"]]:
    """The coordinates of every joint that has some.

    Angles count turns from one row to the next: between saved rows a joint must turn by less than half a turn, unless a load or
    a gear acts on it, when its turns are part of the motion.
    """
    model = as_assembly(system)
    read = _read_joints(model, lambda group, q: group.coordinates(model.frames(q)), trajectory.q)
    for name, (group, values) in read.items():
        turns = jnp.where(np.array(group.kind.angular, bool) & group.kind.additive, jnp.unwrap(values, axis=0), values)
        read[name] = (group, turns)
    for gauge, values in zip(model.gauges, jax.vmap(lambda q: model.parts(q)[1])(trajectory.q).T, strict=True):
        group, known = read[gauge.name]
        read[gauge.name] = (group, known.at[:, gauge.coordinate].set(values))
    return {name: values for name, (_, values) in read.items()}


@along_mechanism("q", "v")
def joint_rates(system: System, trajectory: Trajectory) -> dict[str, Float[Array, "rows c"]]:
    """The time derivatives of the coordinates of every joint."""
    model = as_assembly(system)

    def rates(group, state):
        return jax.jvp(lambda q: group.coordinates(model.frames(q)), state[:1], state[1:])[1]

    read = _read_joints(model, rates, (trajectory.q, trajectory.v))
    return {name: values for name, (_, values) in read.items()}


@checked
def reactions(
    system: System, trajectory: Trajectory, axes: Literal["space", "joint"] = "space", controls: Callable | None = None
) -> dict[str, Wrench]:
    r"""The force and torque that every joint exerts on its second body, from the multipliers of the trajectory.

    The force acts at the joint's point on the second body, the torque is about that point; the first body feels the opposite. They are
    $-\partial(\lambda \cdot g)/\partial\xi$ for a rigid motion $\xi$ of the second frame: no work is done on any motion that the joint
    admits. The forces that keep a body from slipping are among them, $-\partial(\mu \cdot a)/\partial\dot\xi$. Components are in space or
    along the directors of the joint's first frame. With redundant constraints, multipliers and hence reactions are one choice of many:
    those that do least work on changes of the coordinates by their sizes, in all units alike.
    Forces of springs and gears on a joint are not part of its reaction. Where rounding leaves few digits (`multiplier_digits`), a warning
    says so.

    Joints whose coordinates are those of the system have no multipliers: of such motions all reactions follow from the continuous equations
    of motion at the saved positions and velocities. For them a mechanism with motors needs `controls`, the function of time that it had.
    """
    if axes not in ("space", "joint"):
        raise ModelError(f"axes must be 'space' or 'joint', not {axes!r}")
    if not has_joint_coordinates(system):
        if controls is not None:
            raise ModelError("controls are for coordinates of joints: in directors reactions follow from the multipliers of the trajectory")
        return telling_digits(_reactions)(system, trajectory, axes)
    full, lifted = in_directors(system, trajectory)
    trajectory.require("reactions", "q", "v")
    fields = (*(field for field in lifted.fields if field != "multipliers"), "multipliers")
    return _reactions(full, dataclasses.replace(lifted, multipliers=multipliers(full, lifted, controls), fields=fields), axes)


@along_trajectory("q", "multipliers")
def _reactions(system: System, trajectory: Trajectory, axes: str) -> dict[str, Wrench]:
    """Reactions from the multipliers of a trajectory."""
    model = as_assembly(system)

    def wrenches(group, state):
        q, multipliers = state
        first, second = group.frames(model.frames(q))
        found = jax.vmap(_wrench)(group.kind, first, second, _all_multipliers(group, multipliers, places))
        if axes == "joint":
            found = jax.vmap(lambda a, w: (w.reshape(2, 3) @ a.rotation).ravel())(first, found)
        return found

    places = [{group.names: np.asarray(rows) for group, rows in table} for table in (model.joint_rows(), model.slip_rows())]
    read = _read_joints(model, wrenches, (trajectory.q, trajectory.multipliers), lambda group: bool(group.kept or group.slips))
    return {name: Wrench(values[:, :3], values[:, 3:]) for name, (_, values) in read.items()}


@along_mechanism("q", "v")
def linear_momentum(system: System, trajectory: Trajectory) -> Float[Array, "rows 3"]:
    """Total linear momentum of all bodies."""
    momenta = lambda q, v: [momenta[:, 0] for _, momenta in as_assembly(system).momenta(q, v)]
    return jax.vmap(lambda q, v: jnp.sum(jnp.concatenate(momenta(q, v)), axis=0))(trajectory.q, trajectory.v)


@along_mechanism("q", "v")
def angular_momentum(system: System, trajectory: Trajectory) -> Float[Array, "rows 3"]:
    r"""Total angular momentum of all bodies about the origin, $\sum r_a \times \Theta_{ab}\,\dot r_b$."""
    moments = lambda q, v: [jnp.sum(jnp.cross(*pair), axis=1) for pair in as_assembly(system).momenta(q, v)]
    return jax.vmap(lambda q, v: jnp.sum(jnp.concatenate(moments(q, v)), axis=0))(trajectory.q, trajectory.v)


def _read_joints(model: Assembly, function: Callable, states, wanted: Callable = lambda group: bool(group.kind.coordinates)):
    """A function of each group at all saved times, by the names of its joints."""
    found: dict[str, tuple[JointGroup, Array]] = {}
    for group in filter(wanted, model.joints):
        values = jax.vmap(lambda state, group=group: function(group, state))(states)
        found |= {name: (group, values[:, i]) for i, name in enumerate(group.names)}
    return found


def _wrench(kind, a: Frame, b: Frame, multipliers: Float[Array, " m"]) -> Float[Array, "6"]:
    def work(xi):
        moved = lambda xi: (Motion.move(xi[:3]) @ Motion.turn(xi[3:], b.origin))(b)
        rate = jax.jvp(moved, (none,), (xi,))[1]
        return -multipliers @ jnp.concatenate([kind.constraint(a, moved(xi)), kind.slip(a, b, jax.tree.map(jnp.zeros_like, a), rate)])

    none = jnp.zeros(6, multipliers.dtype)
    return jax.grad(work)(none)


def _all_multipliers(group: JointGroup, multipliers: Float[Array, " m"], places: Sequence[Mapping]) -> Float[Array, "count m"]:
    """Multipliers of all rows of each joint; zero for those that the coordinates of its bodies fulfil by themselves."""
    rows = [jnp.zeros((group.count, count), multipliers.dtype) for count in group.counts]
    for i, counting in enumerate((group.kept, group.slips)):
        if counting:
            own = multipliers[places[i][group.names]].reshape(group.count, len(counting))
            rows[i] = rows[i].at[:, np.asarray(counting)].set(own)
    return jnp.concatenate(rows, axis=1)
