"""From a mechanism to a system: placement, spanning tree, stacking, closing of loops, rank."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..beams.beam import Beam, node_name
from ..bodies.base import MOTIONS
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..geometry.frame import Frame, identity
from ..loads import AbstractJointLoad, AbstractLoad
from ..numerics.arguments import checked
from ..numerics.arrays import join, known, library, seen, stack
from ..numerics.checks import nearest_names, real
from ..numerics.compile import compiled
from ..system import System, Vector
from .close import Look, look, meet
from .connections import Joint
from .director_system import director_system
from .joint_functions import joint_system
from .joint_model import JointModel
from .mechanism import Mechanism
from .model import Assembly
from .placement import (
    Branches,
    Coordinates,
    Poses,
    as_frame,
    check_points,
    joint_frames,
    reference_poses,
    set_coordinates,
)
from .spanning_tree import Edge, spanning_tree
from .stack import order_bodies, stack_mechanism
from .users_functions import try_parts


@checked
def assemble(
    mechanism: Mechanism,
    placement: Mapping[str, Any] | None = None,
    *,
    solve: bool = False,
    coordinates: Literal["directors", "joints"] = "directors",
) -> tuple[System, Vector]:
    """The system of a mechanism, and the coordinates of its assembled position.

    **Arguments**

    - `placement`: by name, poses of bodies and coordinates of joints. A pose is a `Frame`, a position, or a pair of a position and a
      rotation (an angle about $z$, a rotation vector (3,), a quaternion (4,) with the scalar first, or a matrix (3, 3)). Poses define the
      reference position, in which joints told by a point in space sit; bodies without a pose are placed by joints told on
      points of bodies, or else at the origin. Joints are then moved to the coordinates given for them, and loops closed again.
    - `solve`: take poses as a rough guess, from which a position is sought in which all joints meet. Which of several positions is found
      depends on the guess.
    - `coordinates`: `"directors"`, a point and three directors of each body, in which everything is polynomial, and energy and momenta can
      be kept exactly; or `"joints"`, those of the joints of a spanning tree: few, without constraints unless loops have to be closed or
      bodies turn freely, which have unit quaternions. Nodes of beams keep their directors.

    Inside `jit` and `vmap` numbers are hidden, and redundant constraints are not found: give the rank, `system.with_rank(rank)`. Joints
    that do not meet, given so or not closed, leave a position off the constraints there, which `simulate` reports.
    """
    try_parts(mechanism)
    poses, wanted = _read(mechanism, {} if placement is None else placement)
    if mechanism.beams and (wanted or solve):
        raise ModelError("a mechanism with beams is placed by poses alone: joint coordinates and solve=True would strain beams")
    poses = reference_poses(mechanism, poses)
    frames = {name: joint_frames(joint, poses) for name, joint in mechanism.connections.items()}
    check_points(mechanism, frames)
    names = order_bodies(mechanism.bodies)
    in_joints = coordinates == "joints"
    branches = find_branches(mechanism, names, in_joints)
    model = stack_mechanism(mechanism, names, frames, poses, branches)
    if wanted:
        poses = set_coordinates(mechanism, poses, frames, branches, names, wanted)
    found = meet(model, _in_reach(model, poses, wanted), wanted, solve)
    return _finish(model, found, wanted, mechanism, in_joints)


def find_branches(mechanism: Mechanism, names: Sequence[str], in_joints: bool = False) -> Branches:
    """The spanning tree, with the names of its joints. Joints between bodies that move differently close loops.

    For coordinates of joints so do those that cannot tell where their bodies are, and those of nodes of beams.
    """
    place = {name: index for index, name in enumerate(names)}
    nodes = set(_node_names(mechanism)) if in_joints else set()

    def carries(joint: Joint) -> bool:
        first, second = (type(mechanism.bodies[name]) for name in (joint.a, joint.b))
        told = not in_joints or (joint.kind.located and not nodes & {joint.a, joint.b})
        return joint.kind.moves and first.can_carry(second) and told

    edges = [Edge(place[joint.a], place[joint.b], joint.kind.freedom, carries(joint)) for joint in mechanism.connections.values()]
    grounded = [place[name] for name, body in mechanism.bodies.items() if body.size == 0]
    known = list(mechanism.connections)
    return [(None if branch.joint is None else known[branch.joint], branch) for branch in spanning_tree(len(names), grounded, edges)]


def _read(mechanism: Mechanism, placement: Any) -> tuple[Poses, Coordinates]:
    """Poses of bodies and coordinates of joints."""
    if not isinstance(placement, Mapping):
        raise ModelError(f"placement gives poses of bodies and coordinates of joints by name, in a dictionary, not {placement!r}")
    wanted = {}
    poses = {node: frame for name, beam in mechanism.beams.items() for node, frame in _nodes(name, beam, identity()).items()}
    for name, value in placement.items():
        if name in mechanism.beams:
            poses |= _nodes(name, mechanism.beams[name], as_frame(value, name))
        elif name in mechanism.bodies:
            if mechanism.bodies[name].size == 0:
                raise ModelError(f"{name!r} is fixed in space and cannot be placed")
            poses[name] = as_frame(value, name)
        elif name in mechanism.connections:
            wanted[name] = seen(real(f"the placement of joint {name!r}", value, (), (None,))).reshape(-1)
            known = mechanism.connections[name].kind.coordinates
            if wanted[name].shape != (len(known),):
                raise ModelError(f"joint {name!r} has the coordinates {known}, but its placement has shape {wanted[name].shape}")
        else:
            parts = [*mechanism.beams, *mechanism.bodies, *mechanism.joints]
            raise ModelError(f"placement names {name!r}, which is neither a body nor a joint with coordinates{nearest_names(name, parts)}")
    return poses, wanted


def _nodes(name: str, beam: Beam, pose: Frame) -> Poses:
    """The frames of the nodes of a beam that is free of stress."""
    rows = seen(beam.nodes)
    return {node_name(name, i): pose @ Frame.from_rows(rows[i]) for i in range(rows.shape[0])}


def _in_reach(model: Assembly, poses: Poses, wanted: Coordinates) -> Look:
    """The placement of all bodies as their coordinates have it; poses that they cannot take are an error."""
    found = look(model, stack([poses[name].rows for name in model.bodies]), wanted)
    kinds = [kind for kind, count in model.kinds for _ in range(count)]
    change, rows = known(found.change), known(found.rows)
    if change is None or rows is None:
        return found
    off = np.where([kind.oriented for kind in kinds], change.max(axis=1), change[:, 0])
    if off.max() > 1e-6 * max(1.0, np.max(np.abs(rows))):
        worst = int(off.argmax())
        motions = ", ".join(MOTIONS[i] for i in kinds[worst].twists)
        raise ModelError(
            f"body {model.bodies[worst]!r} cannot take the pose that was given: a {kinds[worst].__name__} moves {motions} alone"
        )
    return found


def _node_names(mechanism: Mechanism) -> list[str]:
    """The bodies that are nodes of beams."""
    return [node_name(name, i) for name, beam in mechanism.beams.items() for i in range(len(beam.bodies))]


def _finish(model: Assembly, found: Look, wanted: Coordinates, mechanism: Mechanism, in_joints: bool) -> tuple[System, Vector]:
    """Gauges and gears set to the assembled position, and the rank found there."""
    gauges = _initial_gauges(model, found.readings, wanted)
    model = eqx.tree_at(lambda m: m.gears.assembled, model, model.gears.pick(gauges))
    acting = [load for load in mechanism.loads.values() if isinstance(load, AbstractLoad | AbstractJointLoad)]
    powered = any(part.has_power for part in (*acting, *model.beams))
    directors = join([found.coordinates, gauges])
    if in_joints:
        nodes = tuple(model.bodies.index(name) for name in _node_names(mechanism))
        jointed = JointModel(model, nodes)
        system, q0 = joint_system(jointed, powered), _lowered(jointed, directors, jointed.asked_for(wanted))
    else:
        system, q0 = director_system(model, powered), directors
    q0 = jax.device_put(q0)
    return with_rank_if_cheap(system, q0), q0


@compiled
def _lowered(model: JointModel, directors: Vector, near: Vector) -> Vector:
    return model.lowered(jnp.asarray(directors), near)


def _initial_gauges(model: Assembly, readings: Any, wanted: Coordinates) -> Any:
    """Readings, with the turns of coordinates that were asked for."""
    if not model.gauges:
        return readings
    turns = stack([wanted[g.name][g.coordinate] if g.name in wanted and g.angular else readings[i] for i, g in enumerate(model.gauges)])
    return readings + 2 * np.pi * library(turns, readings).round((turns - readings) / (2 * np.pi))
