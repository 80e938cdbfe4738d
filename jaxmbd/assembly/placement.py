"""Where the bodies of a mechanism are: given poses, points on bodies, joint coordinates."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, check_rigid, identity
from ..joints import AbstractJoint, AbstractMeasure
from ..numerics.arrays import known, library, seen
from ..numerics.checks import real
from ..numerics.compile import compiled
from .connections import Joint
from .mechanism import Mechanism
from .spanning_tree import Branch

Poses = dict[str, Frame]
JointFrames = Mapping[str, tuple[Frame, Frame]]
Coordinates = Mapping[str, Any]
Branches = Sequence[tuple[str | None, Branch]]


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Tell which part a mistake is about."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"joint {name!r}: {error}") from None


def as_frame(value: Any, who: str) -> Frame:
    """A pose: a `Frame`, a position, or a position with a rotation.

    A rotation is an angle about $z$, a rotation vector (3,), a quaternion (4,) with the scalar first, or a matrix (3, 3). Positions in
    the plane may have two components.
    """
    if isinstance(value, Frame):
        return seen(check_rigid(f"the placement of {who!r}", value))
    pair = isinstance(value, Sequence) and len(value) == 2 and (isinstance(value[0], Sequence) or np.ndim(value[0]) == 1)
    try:
        position, turn = (seen(real("", part, (), (None,), (None, None))) for part in (value if pair else (value, 0.0)))
    except ModelError:
        raise ModelError(
            f"the placement of {who!r} is {value!r}; give a position, or a pair of a position and a rotation, in finite numbers"
        ) from None
    if position.shape == (2,):
        position = library(position).append(position, 0.0)
    makers = {
        (): lambda angle: rotation.exp(angle * np.array([0.0, 0.0, 1.0])),
        (3,): rotation.exp,
        (4,): rotation.from_quaternion,
        (3, 3): lambda R: R,
    }
    if position.shape != (3,) or turn.shape not in makers:
        raise ModelError(
            f"the placement of {who!r} has a position of shape {position.shape} and a rotation of shape {turn.shape}; give a position "
            "(3,), or a pair of it and an angle, a rotation vector (3,), a quaternion (4,) or a matrix (3, 3)"
        )
    return check_rigid(f"the placement of {who!r}", Frame(position, makers[turn.shape](turn)))


def joint_frames(joint: Joint, poses: Poses) -> tuple[Frame, Frame]:
    """The two frames of a joint in the axes of its bodies."""
    axes = Frame(np.zeros(3), seen(joint.kind.orientation()))
    if joint.at is not None:
        in_space = Frame(seen(joint.at), axes.rotation)
        return poses[joint.a].inverse() @ in_space, poses[joint.b].inverse() @ in_space
    return _local(joint.on_a) @ axes, _local(joint.on_b) @ axes


def check_points(mechanism: Mechanism, frames: JointFrames) -> None:
    """Refuse joints beside mass points: an offset could not turn with them."""
    for name, pair in frames.items():
        joint = mechanism.connections[name]
        for body, frame in zip((joint.a, joint.b), pair, strict=True):
            offset = known(frame.origin)
            if not mechanism.bodies[body].oriented and offset is not None and np.max(np.abs(offset)) > 1e-8:
                raise ModelError(f"joint {name!r} is not at the mass point {body!r}, but off it by {offset.tolist()}; place them together")


def reference_poses(mechanism: Mechanism, given: Poses) -> Poses:
    """Poses as given; else so that joints told on points of bodies meet with their coordinates zero; else at the origin."""
    fixed = {name: Frame.from_rows(seen(body.lift(jnp.zeros(0)))) for name, body in mechanism.bodies.items() if body.size == 0}
    poses = fixed | given
    told = {
        name: joint for name, joint in mechanism.connections.items() if joint.at is None and not isinstance(joint.kind, AbstractMeasure)
    }
    found = True
    while found:
        found = False
        for name, joint in told.items():
            known = (joint.a in poses, joint.b in poses)
            if known.count(True) != 1:
                continue
            found, (on_a, on_b) = True, joint_frames(joint, poses)
            with naming(name):
                rest = seen(joint.kind.rest())
            if joint.a in poses:
                poses[joint.b] = poses[joint.a] @ on_a @ rest @ on_b.inverse()
            else:
                poses[joint.a] = poses[joint.b] @ on_b @ rest.inverse() @ on_a.inverse()
    return {name: poses.get(name, identity()) for name in mechanism.bodies}


def set_coordinates(
    mechanism: Mechanism, poses: Poses, frames: JointFrames, branches: Branches, names: Sequence[str], wanted: Coordinates
) -> Poses:
    """Move along the tree until its joints have the wanted coordinates; other joints keep their relative position."""
    moved = dict(poses)
    for name, branch in branches:
        parent, child = names[branch.parent], names[branch.child]
        if name is None:
            continue
        joint, (on_a, on_b) = mechanism.connections[name], frames[name]
        relative = (poses[joint.a] @ on_a).inverse() @ poses[joint.b] @ on_b
        if name in wanted:
            relative = seen(_with_coordinates(joint.kind, identity(), relative, wanted[name]))
        on_parent, on_child = (on_b, on_a) if branch.reverse else (on_a, on_b)
        moved[child] = moved[parent] @ on_parent @ (relative.inverse() if branch.reverse else relative) @ on_child.inverse()
    return moved


@compiled
def _with_coordinates(kind: AbstractJoint, first: Frame, relative: Frame, wanted: Array) -> Frame:
    """The second frame of a joint as seen from the first where its coordinates are the wanted ones, other freedoms as they were."""
    start = relative if kind.additive else kind.rest()
    change = wanted - kind.coordinate(first, start)
    increments = jnp.zeros(kind.freedom, change.dtype).at[: change.size].set(change)
    return kind.motion(increments, first, start)(start)


def _local(value: Any) -> Frame:
    if value is None:
        return identity()
    return seen(value if isinstance(value, Frame) else Frame(value, np.eye(3)))
