r"""Physical parameters of an assembled mechanism by name, where bodies, joints, loads and beams are stacked.

Mass, centre of mass and inertia of a body are views of its $\Theta$: to change one keeps the others, inertia about the centre of mass.
A joint's own parameters are those of its kind, besides the points and axes of its two frames, of which these move both as they are where
the coordinates of the joint are zero:

- `position`: the joint's point, in the axes of the first body.
- `axis`, and `second` of a universal joint: likewise a direction.

`on_a` and `on_b` are the joint's points on either body alone, in its axes.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..beams.elements import AbstractElements
from ..bodies import AbstractBody
from ..errors import ModelError
from ..geometry import rotation
from ..geometry.rotation import Matrix3, Vector3
from ..joints.base import check_axis
from ..numerics.arrays import known, library
from ..numerics.naming import Named, Parameter, below, field, of_tree, put
from .groups import JointGroup, JointLoadGroup, LoadGroup

Classes = Sequence[type[AbstractBody]]
_UNIT = np.eye(4)


def of_bodies(inertia: Any, names: Sequence[str], classes: Classes) -> Named:
    r"""Those of bodies with mass, in the stack of all $\Theta$."""
    masses = known(inertia[:, 0, 0])
    own = {kind: of_tree(kind.from_inertia_matrix(_UNIT)) for kind in dict.fromkeys(classes)}
    found: Named = {}
    for i, (name, kind) in enumerate(zip(names, classes, strict=True)):
        if masses is None or masses[i] != 0:
            found |= below(name, {key: _of_body(name, i, kind, one) for key, one in own[kind].items()})
    return found


def _of_body(name: str, index: int, kind: type[AbstractBody], parameter: Parameter) -> Parameter:
    r"""A leaf of a body as a view of its $\Theta$."""

    def body(inertia: Any) -> AbstractBody:
        theta = inertia[index]
        return kind.from_inertia_matrix(theta if isinstance(theta, np.ndarray) else jnp.asarray(theta, float))

    def write(inertia: Any, value: Any) -> Any:
        parameter.write(kind.from_inertia_matrix(_UNIT), value).check(name)  # with no other number that rounding could spoil
        return put(inertia, index, parameter.write(body(inertia), value).inertia_matrix)

    return Parameter(lambda inertia: parameter.read(body(inertia)).astype(inertia.dtype), write)


def of_joints(group: JointGroup, classes: Classes) -> Named:
    """Those of the joints of a group; mass points have no point beside them."""
    kind = {key: one.within(lambda group: group.kind) for key, one in of_tree(group.kind).items()}
    points = {end: field(f"on_{end}.origin") for end in "ab"}
    found: Named = {}
    for i, name in enumerate(group.names):
        a, b = classes[group.a[i]], classes[group.b[i]]
        own = {key: one.at(i) for key, one in kind.items()}
        if group.kind.meets and a.oriented and b.oriented:
            own["position"] = _position(i)
        own |= {f"on_{end}": points[end].at(i) for end, body in zip("ab", (a, b), strict=True) if body.oriented}
        flat = not {3, 4} & {*a.twists, *b.twists}
        for key, column, turn in (("axis", 2, _shortest), ("second", 0, _about_axis)):
            if getattr(group.kind, key, 0) is None:  # it went into the frames of the joint
                own[key] = _direction(name, i, column, turn, flat)
        found |= below(name, own)
    return found


def _position(index: int) -> Parameter:
    """The point of a joint in the axes of the first body; the point on the second one moves as it does."""

    def write(group: JointGroup, point: Any) -> JointGroup:
        first, second = group.on_a.rotation[index], group.on_b.rotation[index]
        shift = library(point, first).asarray(point, first.dtype) - group.on_a.origin[index]
        moves = ((group.on_a.origin, shift), (group.on_b.origin, second @ first.T @ shift))
        points = tuple(put(origins, index, origins[index] + move) for origins, move in moves)
        return eqx.tree_at(lambda group: (group.on_a.origin, group.on_b.origin), group, points)

    return Parameter(lambda group: group.on_a.origin[index], write)


def _direction(name: str, index: int, column: int, turn: Callable, flat: bool) -> Parameter:
    """A director of a joint's frames in the axes of the first body; `turn` tells how the frames follow it."""

    def write(group: JointGroup, value: Any) -> JointGroup:
        check_axis(name, value)
        first = group.on_a.rotation[index]
        wanted = rotation.unit(library(value, first).asarray(value, first.dtype))
        tilt = known(wanted[2] - first[2, column])
        if flat and tilt is not None and abs(tilt) > 1e-6:
            raise ModelError(f"joint {name!r} is between bodies in the plane: its direction {value} must not tilt against the plane")
        change = first.T @ turn(first, wanted)
        turned = [put(frame.rotation, index, frame.rotation[index] @ change) for frame in (group.on_a, group.on_b)]
        return eqx.tree_at(lambda group: (group.on_a.rotation, group.on_b.rotation), group, tuple(turned))

    return Parameter(lambda group: group.on_a.rotation[index, :, column], write)


def _shortest(frame: Matrix3, axis: Vector3) -> Matrix3:
    """A frame turned the shortest way to have its third director along a unit axis; about the first one if that is half a turn."""
    xp = library(frame, axis)
    normal, cosine = xp.cross(frame[:, 2], axis), frame[:, 2] @ axis
    half = cosine < -1 + 16 * xp.finfo(axis.dtype).eps
    hat = rotation.skew(normal)
    turned = frame + (hat + hat @ hat / xp.where(half, 1, 1 + cosine)) @ frame
    return xp.where(half, frame * xp.array([1, -1, -1], frame.dtype), turned)


def _about_axis(frame: Matrix3, direction: Vector3) -> Matrix3:
    """A frame turned about its third director to have the first one as near to a direction as it can be."""
    xp, z = library(frame, direction), frame[:, 2]
    x = rotation.unit(direction - z * (z @ direction))
    return xp.stack([x, xp.cross(z, x), z], axis=1)


def of_loads(group: LoadGroup | JointLoadGroup) -> Named:
    """Those of the loads of a group, down to the leaves of functions of time and of users' parameters."""
    fields = {key: one.within(lambda group: group.load) for key, one in of_tree(group.load).items()}
    return side_by_side(group.names, fields, range(len(group.names)))


def of_gears(names: Sequence[str]) -> Named:
    """Their ratios."""
    return side_by_side(names, {"ratio": field("ratio")}, range(len(names)))


def of_beams(group: AbstractElements) -> Named:
    """Those of the elements of each beam, one after the other."""
    ends = np.cumsum([0, *group.counts]).tolist()
    return side_by_side(group.names, of_tree(group), [slice(*pair) for pair in itertools.pairwise(ends)])


def side_by_side(names: Sequence[str], fields: Named, places: Sequence[Any]) -> Named:
    """The parameters of each of several parts, which are stacked in arrays."""
    found: Named = {}
    for name, place in zip(names, places, strict=True):
        found |= below(name, {key: one.at(place) for key, one in fields.items()})
    return found
