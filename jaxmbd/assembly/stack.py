"""From named parts to stacked ones: joints, gauges, gears and loads of one kind side by side."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..beams.beam import node_name
from ..beams.elements import AbstractElements
from ..bodies import AbstractBody
from ..errors import ModelError
from ..friction import FrictionGroup, stacked
from ..geometry.frame import Frame, identity
from ..joints import AbstractJoint, AbstractMeasure, Free
from ..loads import AbstractJointLoad, AbstractLoad, AbstractOnCoordinate, Controller, Friction, Gravity, Motor
from ..numerics.arrays import Indices, alike, join, known, stack
from ..numerics.compile import compiled
from .body_groups import BodyGroup
from .drives import ControllerGroup, MotorGroup
from .gauges import Gauge, Gears
from .groups import JointGroup, JointLoadGroup, LoadGroup, ShapeGroup
from .mechanism import Mechanism
from .model import Assembly
from .placement import Branches, JointFrames, Poses, naming

Groups = tuple[JointGroup, ...]


class Element(NamedTuple):
    """A joint ready to be stacked: between bodies given by index, with its frames in their axes."""

    name: str
    kind: AbstractJoint
    on_a: Frame
    on_b: Frame
    a: int
    b: int
    reverse: bool


def stack_mechanism(mechanism: Mechanism, names: Sequence[str], frames: JointFrames, poses: Poses, branches: Branches) -> Assembly:
    """All parts of a mechanism, stacked by kind; `names` orders the bodies, kind by kind."""
    place = {name: index for index, name in enumerate(names)}
    classes = [type(mechanism.bodies[name]) for name in names]
    roles = _elements(mechanism, names, place, frames, poses, branches)
    tree, measures, closing = (stack_joints(elements, classes) for elements in roles)
    gauges = _gauges(mechanism, tree, measures, closing)
    numbered = {(gauge.name, gauge.coordinate): index for index, gauge in enumerate(gauges)}
    parents = np.arange(len(names))
    for _, branch in branches:
        parents[branch.child] = branch.parent
    gravity = {name: load for name, load in mechanism.loads.items() if isinstance(load, Gravity)}
    return Assembly(
        groups=tuple(BodyGroup(kind, tuple(some)) for kind, some in itertools.groupby(names, lambda name: type(mechanism.bodies[name]))),
        inertia=stack([mechanism.bodies[name].inertia_matrix for name in names]),
        gravity=sum((load.acceleration for load in gravity.values()), np.zeros(3)),
        tree=tree,
        measures=measures,
        closing=closing,
        gears=_gears(mechanism, numbered),
        loads=_loads(mechanism, place),
        frictions=_frictions(mechanism, numbered),
        joint_loads=_on_gauges(mechanism, numbered, AbstractJointLoad, JointLoadGroup),
        beams=_beams(mechanism, place),
        gauges=gauges,
        parents=tuple(parents.tolist()),
        gravity_name=next(iter(gravity)) if len(gravity) == 1 else "gravity",
        shapes=_shapes([mechanism.bodies[name] for name in names]),
        motors=_on_gauges(mechanism, numbered, Motor, MotorGroup),
        controllers=_on_gauges(mechanism, numbered, Controller, ControllerGroup),
    )


def _elements(mechanism, names, place, frames, poses, branches) -> tuple[list[Element], list[Element], list[Element]]:
    """Joints of the tree, with free bodies first, measured quantities, and joints that close loops."""
    reverse = {name: branch.reverse for name, branch in branches if name is not None}

    def element(name: str) -> Element:
        joint, (on_a, on_b) = mechanism.connections[name], frames[name]
        with naming(name):
            kind = joint.kind.settled(poses[joint.a] @ on_a, poses[joint.b] @ on_b).bare()
        return Element(name, kind, on_a, on_b, place[joint.a], place[joint.b], reverse.get(name, False))

    free = [Element(names[b.child], Free(), identity(), identity(), b.parent, b.child, False) for name, b in branches if name is None]
    others = [element(name) for name in frames if name not in reverse]
    measured = [isinstance(one.kind, AbstractMeasure) for one in others]
    return [*free, *map(element, reverse)], list(compress(others, measured)), list(compress(others, np.logical_not(measured)))


def stack_joints(elements: Sequence[Element], classes: Sequence[type[AbstractBody]]) -> tuple[JointGroup, ...]:
    """Joints stacked by kind, by the kinds of their bodies and by direction; then by what of them counts there."""
    special = lambda *kinds: None if all(kind.is_spatial() for kind in kinds) else kinds
    keys = [(special(classes[e.a], classes[e.b]), e.reverse) for e in elements]
    groups = []
    for indices in alike([(e.kind, e.on_a, e.on_b) for e in elements], keys):
        members = [elements[i] for i in indices]
        whole = tuple(tuple(range(count)) for count in (*_constraint_counts(members[0]), members[0].kind.freedom))
        masks = _effective(_group(members, *whole), classes)
        for mask in dict.fromkeys(masks):
            groups.append(_group([e for e, own in zip(members, masks, strict=True) if own == mask], *mask))
    return tuple(groups)


def _constraint_counts(element: Element) -> list[int]:
    """Numbers of constraints of a joint, on positions and on velocities."""
    functions = {"constraint": lambda a, b: element.kind.constraint(a, b), "slip": lambda a, b: element.kind.slip(a, b, a, b)}
    shapes = {name: jax.eval_shape(function, identity(), identity()).shape for name, function in functions.items()}
    for name, shape in shapes.items():
        if len(shape) != 1:
            raise ModelError(f"the {name} of joint {element.name!r} must return a vector, but returned shape {shape}")
    return [shape[0] for shape in shapes.values()]


def _group(members: Sequence[Element], kept: Indices, slips: Indices, columns: Indices) -> JointGroup:
    kind, on_a, on_b = (stack([getattr(e, part) for e in members]) for part in ("kind", "on_a", "on_b"))
    a, b, names = (tuple(getattr(e, part) for e in members) for part in ("a", "b", "name"))
    return JointGroup(kind, on_a, on_b, a, b, names, kept, slips, columns, members[0].reverse)


def _effective(group: JointGroup, classes: Sequence[type[AbstractBody]]) -> list[tuple[Indices, Indices, Indices]]:
    """Constraints of each joint that depend on the coordinates of its bodies, or on their rates, and increments that move its child.

    On bodies that have not all motions, as in the plane, and on mass points, some never do. They are found from random positions.
    """
    kinds = [classes[group.a[0]], classes[group.b[0]]]
    every = (group.kept, group.slips, group.columns)
    if all(kind.is_spatial() for kind in kinds) or not any(every):
        return [every] * group.count

    parts = jax.lax.stop_gradient((group.kind, group.on_a, group.on_b))
    kept, slips, columns, astray = map(known, _slopes(*parts, *kinds, group.reverse or kinds[1].size == 0))
    if kept is None or slips is None or columns is None or astray is None:
        raise ModelError(
            f"joint {group.names[0]!r} is on a {' or a '.join(dict.fromkeys(kind.__name__ for kind in kinds if not kind.is_spatial()))}; "
            "what of it counts there is found from numbers, so that such mechanisms must be assembled outside jit"
        )
    if kinds[0].can_carry(kinds[1]):
        _check_reach(group, kinds, columns > 1e-6, astray > 1e-6)
    pick = lambda sizes: [tuple(np.flatnonzero(one > 1e-6).tolist()) for one in sizes]
    return list(zip(pick(kept), pick(slips), pick(columns), strict=True))


def _check_reach(group: JointGroup, kinds: Sequence[type[AbstractBody]], moving: np.ndarray, astray: np.ndarray) -> None:
    """Refuse joints whose motion is one that their bodies cannot have, so that they would lock them."""
    locked = (moving & astray).any(axis=1) | (astray.any(axis=1) & ~moving.any(axis=1))
    if locked.any():
        kind = next(kind.__name__ for kind in kinds if not kind.is_spatial())
        raise ModelError(
            f"joint {group.names[int(locked.argmax())]!r}, a {type(group.kind).__name__}, would move a {kind} as such a body cannot move, "
            "and so lock it; turn its axis (in the plane: about z, or along x and y for a slider), or take Fixed if that is meant"
        )


@compiled
def _slopes(kind: AbstractJoint, on_a: Frame, on_b: Frame, first: type[AbstractBody], second: type[AbstractBody], reverse: bool):
    """The largest slope of each constraint by coordinates or by their rates, and of the child's coordinates by each increment, of
    stacked joints.

    Last, how far each increment would lead the child away from the positions that it can have.
    """
    moving = first if reverse else second

    def one(kind, on_a, on_b, key):
        q = [_random_coordinates(body, k) for body, k in zip((first, second), jax.random.split(key), strict=True)]

        def frames(q):
            return Frame.from_rows(first.lift(q[0])) @ on_a, Frame.from_rows(second.lift(q[1])) @ on_b

        def child(u):
            a, b = frames(q)
            rows = (kind.backward(u, a, b)(a) @ on_a.inverse() if reverse else kind.motion(u, a, b)(b) @ on_b.inverse()).rows
            within = moving.lower(rows)
            return within, (rows - moving.lift(within))[: 4 if moving.oriented else 1]

        slip = lambda rates: kind.slip(*frames(q), *jax.jvp(frames, (q,), (rates,))[1])
        constraints, slips = (
            jnp.concatenate(jax.tree.leaves(jax.jacfwd(rows)(q)), axis=1) for rows in (lambda q: kind.constraint(*frames(q)), slip)
        )
        columns, astray = jax.jacfwd(child)(jnp.zeros(kind.freedom)) if kind.moves else (jnp.zeros((1, 0)),) * 2
        largest = lambda slopes: jnp.max(jnp.abs(slopes), axis=tuple(range(slopes.ndim - 1)), initial=0)
        return largest(constraints.T), largest(slips.T), largest(columns), largest(astray)

    keys = jax.random.split(jax.random.key(0), 3)
    every = jax.vmap(jax.vmap(one, (0, 0, 0, None)), (None, None, None, 0))(kind, on_a, on_b, keys)
    return [jnp.max(part, axis=0) for part in every]


def _random_coordinates(kind: type[AbstractBody], key: Array) -> Array:
    """A random position that such a body can take."""
    increments = jnp.where(np.isin(np.arange(6), kind.twists), jax.random.normal(key, (6,)), 0.0)
    return kind.lower(Free().motion(increments, identity(), identity())(identity()).rows)


def _gauges(mechanism: Mechanism, tree: Groups, measures: Groups, closing: Groups) -> tuple[Gauge, ...]:
    """One for every coordinate that a load or a gear needs; those on the tree first, then those of measured quantities."""
    needed = {pair for load in mechanism.loads.values() if isinstance(load, AbstractOnCoordinate) for pair in load.coordinates}
    for gear in mechanism.gears.values():
        needed |= set(zip((gear.first, gear.second), gear.indices, strict=True))
    found, begin = [], 0
    for index, group in enumerate(tree):
        for element, name in enumerate(group.names):
            for coordinate in (c for n, c in sorted(needed) if n == name and not isinstance(group.kind, Free)):
                if coordinate not in group.columns:
                    raise ModelError(f"coordinate {coordinate} of joint {name!r} cannot move, so that no load or gear can act on it")
                increment = begin + element * len(group.columns) + group.columns.index(coordinate)
                found.append(Gauge(name, index, element, coordinate, group.kind.angular[coordinate], increment))
        begin += group.count * len(group.columns)
    for index, group in enumerate(measures + closing, len(tree)):
        for element, name in enumerate(group.names):
            for coordinate in (c for n, c in sorted(needed) if n == name):
                free = index >= len(tree + measures)
                found.append(Gauge(name, index, element, coordinate, group.kind.angular[coordinate], begin if free else None))
                begin += free
    return tuple(found)


def _gears(mechanism: Mechanism, numbered: Mapping[tuple[str, int], int]) -> Gears:
    gears = mechanism.gears.values()
    first = tuple(numbered[gear.first, gear.indices[0]] for gear in gears)
    second = tuple(numbered[gear.second, gear.indices[1]] for gear in gears)
    ratio = stack([gear.ratio for gear in gears]) if gears else np.zeros(0)
    return Gears(ratio, np.zeros((2, len(gears))), first, second, tuple(mechanism.gears))


def _loads(mechanism: Mechanism, place: Mapping[str, int]) -> tuple[LoadGroup, ...]:
    named = [(name, load) for name, load in mechanism.loads.items() if isinstance(load, AbstractLoad)]
    bare = [load.bare() for _, load in named]

    def group(members: Sequence[int]) -> LoadGroup:
        a, b = (tuple(place[getattr(named[i][1], end)] for i in members) for end in ("a", "b"))
        return LoadGroup(stack([bare[i] for i in members]), a, b, tuple(named[i][0] for i in members))

    return tuple(map(group, alike(bare)))


def _shapes(bodies: Sequence[AbstractBody]) -> tuple[ShapeGroup, ...]:
    owned = [(place, shape) for place, body in enumerate(bodies) for shape in body.shape]
    groups = [[owned[i] for i in group] for group in alike([shape for _, shape in owned])]
    return tuple(ShapeGroup(stack([shape for _, shape in group]), tuple(place for place, _ in group)) for group in groups)


def _on_gauges(mechanism: Mechanism, numbered: Mapping[tuple[str, int], int], kind: type, group_of: Callable) -> tuple:
    """What acts on coordinates of joints, of some kind, in groups."""
    named: list[tuple[str, Any]] = [(name, load) for name, load in mechanism.loads.items() if isinstance(load, kind)]
    bare = [load.bare() for _, load in named]

    def group(members: Sequence[int]) -> Any:
        gauges, *others = zip(*([numbered[pair] for pair in named[i][1].coordinates] for i in members), strict=True)
        return group_of(stack([bare[i] for i in members]), gauges, tuple(named[i][0] for i in members), *others)

    return tuple(map(group, alike(bare)))


def _frictions(mechanism: Mechanism, numbered: Mapping[tuple[str, int], int]) -> tuple[FrictionGroup, ...]:
    named = {name: load for name, load in mechanism.loads.items() if isinstance(load, Friction)}
    places = [numbered[load.joint, load.index] for load in named.values()]
    return stacked([load.law for load in named.values()], list(named), places)


def _beams(mechanism: Mechanism, place: Mapping[str, int]) -> tuple[AbstractElements, ...]:
    """Elements of all beams, stacked by kind and order."""
    groups = []
    for kind, order in dict.fromkeys((beam.kind, beam.order) for beam in mechanism.beams.values()):
        named = {name: beam for name, beam in mechanism.beams.items() if (beam.kind, beam.order) == (kind, order)}
        first = {name: order * np.arange(beam.elements) for name, beam in named.items()}
        nodes = [[place[node_name(name, i + a)] for name in named for i in first[name].tolist()] for a in range(order + 1)]
        reference = [beam.nodes[first[name][:, None] + np.arange(order + 1)] for name, beam in named.items()]
        stiffness, inertia = (join([getattr(beam, part) for beam in named.values()]) for part in ("stiffness", "inertia"))
        places = (tuple(map(tuple, nodes)), tuple(named), tuple(beam.elements for beam in named.values()))
        groups.append(kind(join(reference), stiffness, None if kind.lumped else inertia, *places))
    return tuple(groups)


def order_bodies(bodies: Mapping[str, AbstractBody]) -> tuple[str, ...]:
    """Names kind by kind, each kind in the order of declaration; what is fixed in space comes last."""
    kinds: list[type[AbstractBody]] = list(dict.fromkeys(type(body) for body in bodies.values()))
    kinds.sort(key=lambda kind: kind.size == 0)
    return tuple(name for kind in kinds for name, body in bodies.items() if type(body) is kind)
