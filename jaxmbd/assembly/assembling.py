"""From a mechanism to a system: placement, spanning tree, stacking, closing of loops, rank."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
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
from ..system import System, Vector
from . import functions
from .chart import chart
from .close import Look, look, meet
from .connections import Joint
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
from .structure import structure_of
from .users_functions import try_parts


@checked
def assemble(mechanism: Mechanism, placement: Mapping[str, Any] | None = None, *, solve: bool = False) -> tuple[System, Vector]:
    """The system of a mechanism, and the coordinates of its assembled position.

    **Arguments**

    - `placement`: by name, poses of bodies and coordinates of joints. A pose is a `Frame`, a position, or a pair of a position and a
      rotation (an angle about $z$, a rotation vector (3,), a quaternion (4,) with the scalar first, or a matrix (3, 3)). Poses define the
      reference position, in which joints told by a point in space sit; bodies without a pose are placed by joints told on
      points of bodies, or else at the origin. Joints are then moved to the coordinates given for them, and loops closed again.
    - `solve`: take poses as a rough guess, from which a position is sought in which all joints meet. Which of several positions is found
      depends on the guess.

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
    branches = find_branches(mechanism, names)
    model = stack_mechanism(mechanism, names, frames, poses, branches)
    if wanted:
        poses = set_coordinates(mechanism, poses, frames, branches, names, wanted)
    found = meet(model, _in_reach(model, poses, wanted), wanted, solve)
    return _finish(model, found, wanted, mechanism)


def find_branches(mechanism: Mechanism, names: Sequence[str]) -> Branches:
    """The spanning tree, with the names of its joints. Joints between bodies that move differently close loops."""
    place = {name: index for index, name in enumerate(names)}

    def carries(joint: Joint) -> bool:
        first, second = (type(mechanism.bodies[name]) for name in (joint.a, joint.b))
        return joint.kind.moves and first.can_carry(second)

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


def _finish(model: Assembly, found: Look, wanted: Coordinates, mechanism: Mechanism) -> tuple[System, Vector]:
    """Gauges and gears set to the assembled position, and the rank found there."""
    gauges = _initial_gauges(model, found.readings, wanted)
    model = eqx.tree_at(lambda m: m.gears.assembled, model, model.gears.pick(gauges))
    acting = [load for load in mechanism.loads.values() if isinstance(load, AbstractLoad | AbstractJointLoad)]
    powered = any(part.has_power for part in (*acting, *model.beams))
    system = System.from_functions(
        kinetic=functions.kinetic,
        potential=functions.potential,
        constraints=functions.constraints,
        velocity_constraints=functions.velocity_constraints_of(model),
        forces=functions.forces_of(model, powered),
        chart=chart,
        closures=model.closures,
        structure=structure_of,
        friction=functions.friction if model.frictions else None,
        params=model,
    )
    q0 = jax.device_put(join([found.coordinates, gauges]))
    return with_rank_if_cheap(system, q0), q0


def _initial_gauges(model: Assembly, readings: Any, wanted: Coordinates) -> Any:
    """Readings, with the turns of coordinates that were asked for."""
    if not model.gauges:
        return readings
    turns = stack([wanted[g.name][g.coordinate] if g.name in wanted and g.angular else readings[i] for i, g in enumerate(model.gauges)])
    return readings + 2 * np.pi * library(turns, readings).round((turns - readings) / (2 * np.pi))
