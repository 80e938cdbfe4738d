"""Where the bodies of a mechanism are: given poses, joint coordinates, and closing what does not meet."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry import rotation
from ..geometry.frame import Frame, Rows, identity
from ..joints import Free
from ..numerics.arrays import known, number
from ..numerics.compile import compiled
from ..numerics.lapack import pinv, solve
from .model import Assembly
from .parts import Joint, Parts
from .spanning_tree import Branch

Poses = dict[str, Frame]
JointFrames = Mapping[str, tuple[Frame, Frame]]
Coordinates = Mapping[str, Array]
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
        return value
    pair = isinstance(value, Sequence) and len(value) == 2 and (isinstance(value[0], Sequence) or np.ndim(value[0]) == 1)
    try:
        position, turn = (jnp.asarray(number(part)) for part in (value if pair else (value, 0.0)))
    except (TypeError, ValueError):
        raise ModelError(f"the placement of {who!r} is {value!r}; give a position, or a pair of a position and a rotation") from None
    if position.shape == (2,):
        position = jnp.append(position, 0.0)
    makers = {
        (): lambda angle: rotation.exp(angle * jnp.array([0.0, 0.0, 1.0])),
        (3,): rotation.exp,
        (4,): rotation.from_quaternion,
        (3, 3): lambda R: R,
    }
    if position.shape != (3,) or turn.shape not in makers:
        raise ModelError(
            f"the placement of {who!r} has a position of shape {position.shape} and a rotation of shape {turn.shape}; give a position "
            "(3,), or a pair of it and an angle, a rotation vector (3,), a quaternion (4,) or a matrix (3, 3)"
        )
    frame = Frame(position, makers[turn.shape](turn))
    numbers = known(frame.rows)
    if numbers is not None and not (np.isfinite(numbers).all() and np.allclose(numbers[1:] @ numbers[1:].T, np.eye(3), atol=1e-4)):
        raise ModelError(f"the placement of {who!r} is not a finite position with a rotation: {numbers.tolist()}")
    return frame


def joint_frames(joint: Joint, poses: Poses) -> tuple[Frame, Frame]:
    """The two frames of a joint in the axes of its bodies."""
    axes = Frame(jnp.zeros(3), joint.kind.orientation())
    if joint.at is not None:
        in_space = Frame(jnp.asarray(joint.at), axes.rotation)
        return poses[joint.a].inverse() @ in_space, poses[joint.b].inverse() @ in_space
    return _local(joint.on_a) @ axes, _local(joint.on_b) @ axes


def check_points(mechanism: Parts, frames: JointFrames) -> None:
    """Refuse joints beside mass points: an offset could not turn with them."""
    for name, pair in frames.items():
        joint = mechanism.connections[name]
        for body, frame in zip((joint.a, joint.b), pair, strict=True):
            offset = known(frame.origin)
            if not mechanism.bodies[body].oriented and offset is not None and np.max(np.abs(offset)) > 1e-8:
                raise ModelError(f"joint {name!r} is not at the mass point {body!r}, but off it by {offset.tolist()}; place them together")


def reference_poses(mechanism: Parts, given: Poses) -> Poses:
    """Poses as given; else so that joints told on points of bodies meet with their coordinates zero; else at the origin."""
    fixed = {name: Frame.from_rows(body.lift(jnp.zeros(0))) for name, body in mechanism.bodies.items() if body.size == 0}
    poses = fixed | given
    told = {name: joint for name, joint in mechanism.connections.items() if joint.at is None}
    found = True
    while found:
        found = False
        for name, joint in told.items():
            known = (joint.a in poses, joint.b in poses)
            if known.count(True) != 1:
                continue
            found, (on_a, on_b) = True, joint_frames(joint, poses)
            with naming(name):
                rest = joint.kind.rest()
            if joint.a in poses:
                poses[joint.b] = poses[joint.a] @ on_a @ rest @ on_b.inverse()
            else:
                poses[joint.a] = poses[joint.b] @ on_b @ rest.inverse() @ on_a.inverse()
    return {name: poses.get(name, identity()) for name in mechanism.bodies}


def set_coordinates(
    mechanism: Parts, poses: Poses, frames: JointFrames, branches: Branches, names: Sequence[str], wanted: Coordinates
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
            start = relative if joint.kind.additive else joint.kind.rest()
            change = wanted[name] - joint.kind.coordinate(identity(), start)
            increments = jnp.zeros(joint.kind.freedom).at[: change.size].set(change)
            relative = joint.kind.motion(increments, identity(), start)(start)
        on_parent, on_child = (on_b, on_a) if branch.reverse else (on_a, on_b)
        moved[child] = moved[parent] @ on_parent @ (relative.inverse() if branch.reverse else relative) @ on_child.inverse()
    return moved


def joint_gaps(model: Assembly, rows: Rows) -> dict[str, float]:
    """How far each joint is from being met: the norm of its constraints, or nothing inside a transformation that hides numbers."""
    gaps: dict[str, float] = {}
    for group in model.joints:
        values = known(group.constraints(rows).reshape(group.count, -1))
        if values is not None:
            gaps |= dict(zip(group.names, np.linalg.norm(values, axis=1).tolist(), strict=True))
    return gaps


def close(model: Assembly, rows: Rows, wanted: Coordinates) -> Rows:
    """Positions near `rows` in which all joints meet and have the wanted coordinates: damped least squares, bodies moved least.

    Differentiable by the parameters of the joints and by the coordinates: the derivative too moves bodies least.
    """
    where = {name: (g, i) for g, group in enumerate(model.joints) for i, name in enumerate(group.names)}
    columns = tuple((*where[name], values.size) for name, values in wanted.items())
    target = jnp.concatenate([jnp.zeros(0, rows.dtype), *(wanted[name].astype(rows.dtype) for name in wanted)])
    fixed = jax.lax.stop_gradient((model, rows, target))
    found, J = _levenberg_marquardt(*fixed, columns)
    return _move(model, found, -pinv(J) @ _gap(model, found, target, columns))


def _move(model: Assembly, rows: Rows, w: Float[Array, " six"]) -> Rows:
    """Every body moved freely by six increments, as far as its coordinates can."""
    carry = jax.vmap(lambda w, frame: Free().motion(w, frame, frame)(frame).rows)
    moved = carry(w.reshape(-1, 6), jax.vmap(Frame.from_rows)(rows))
    return model.frames(model.coordinates(moved, jnp.zeros(len(model.gauges), rows.dtype)))


def _gap(model: Assembly, rows: Rows, target: Float[Array, " c"], columns: tuple) -> Float[Array, " gap"]:
    """Constraints of all joints, and how far coordinates are from what is wanted; angles up to full turns."""
    joints = [group.constraints(rows) for group in model.joints]
    read = [model.joints[g].coordinates(rows)[i, :size] for g, i, size in columns]
    off = jnp.concatenate([jnp.zeros(0, rows.dtype), *read]) - target
    angular = np.concatenate([np.zeros(0, bool), *(np.array(model.joints[g].kind.angular[:size], bool) for g, _, size in columns)])
    return jnp.concatenate([*joints, jnp.where(angular, jnp.arctan2(jnp.sin(off), jnp.cos(off)), off)])


@compiled
def _levenberg_marquardt(model: Assembly, rows: Rows, target: Float[Array, " c"], columns: tuple) -> tuple[Rows, Float[Array, "gap six"]]:
    """Steps of least norm, damped as their success asks for; the position, and the Jacobian of the gap there."""
    eps, none = jnp.finfo(rows.dtype).eps, jnp.zeros(6 * rows.shape[0], rows.dtype)
    gap = lambda rows: _gap(model, rows, target, columns)
    slope = lambda rows: jax.jacfwd(lambda w: gap(_move(model, rows, w)))(none)

    def body(carry):
        rows, value, damping, steps = carry
        J = slope(rows)
        square = J @ J.T
        floor = (damping + 4 * eps) * jnp.trace(square) / max(value.size, 1)
        moved = _move(model, rows, -J.T @ solve(square + floor * jnp.eye(value.size, dtype=rows.dtype), value))
        after = gap(moved)
        better = jnp.linalg.norm(after) < jnp.linalg.norm(value)
        keep = lambda new, old: jnp.where(better, new, old)
        return keep(moved, rows), keep(after, value), jnp.where(better, 0.1 * damping, jnp.maximum(8 * damping, 1e-6)), steps + 1

    def unfinished(carry):
        _, value, damping, steps = carry
        return (jnp.max(jnp.abs(value)) > 8 * eps) & (steps < 300) & (damping < 1e6)

    found = jax.lax.while_loop(unfinished, body, (rows, gap(rows), jnp.asarray(1e-3, rows.dtype), jnp.int32(0)))[0]
    return found, slope(found)


def _local(value: Any) -> Frame:
    if value is None:
        return identity()
    return value if isinstance(value, Frame) else Frame(jnp.asarray(value), jnp.eye(3))
