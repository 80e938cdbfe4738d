"""What a mechanism is made of: named bodies, joints between them, loads on them."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import equinox as eqx

from ..beams.beam import Beam, node_name
from ..bodies import AbstractBody, Ground
from ..errors import ModelError
from ..geometry.frame import Frame
from ..joints import AbstractJoint, UserJoint
from ..loads import AbstractJointLoad, AbstractLoad, Gravity
from ..numerics.arrays import number

GROUND = "ground"


class Joint(eqx.Module):
    """A joint of some kind between two bodies, given by name; `"ground"` is a body too.

    Where it sits is told in one of two ways:

    - `at`: a point in space in the reference position of the bodies; the joint's axes are given in space as well.
    - `on_a`, `on_b`: a point in the axes of either body, or a `Frame` to turn the joint's axes too (default: the body's own frame). The
      joint's coordinates are zero where both frames coincide.
    """

    kind: Any
    a: str
    b: str
    at: Any
    on_a: Any
    on_b: Any

    def __init__(self, kind: Any, a: str, b: str, at: Any = None, on_a: Any = None, on_b: Any = None):
        if at is not None and (on_a is not None or on_b is not None):
            raise ModelError(f"a joint between {a!r} and {b!r} sits either at a point in space, or on points of its bodies, not both")
        plain = callable(kind) and not isinstance(kind, AbstractJoint | type)
        self.kind = UserJoint(kind) if plain else kind
        self.a, self.b = a, b
        if isinstance(at, Frame):
            raise ModelError(f"the joint between {a!r} and {b!r} is at a Frame; a frame is told on a body, with on_a and on_b")
        self.at, self.on_a, self.on_b = (_point(value) for value in (at, on_a, on_b))


class Gear(eqx.Module):
    """A fixed ratio between the coordinates of two joints: the second changes by `ratio` times the change of the first.

    Between angles it is a gear (negative where they turn against each other), between an angle and a displacement a rack and pinion.
    """

    first: str
    second: str
    ratio: Any
    indices: tuple[int, int] = eqx.field(static=True)

    def __init__(self, first: str, second: str, ratio, indices: tuple[int, int] = (0, 0)):
        self.first, self.second, self.ratio, self.indices = first, second, number(ratio), indices


class Parts(eqx.Module):
    """Bodies, joints and loads by name, checked; the nodes of beams are bodies too."""

    bodies: Mapping[str, AbstractBody]
    joints: Mapping[str, Joint | Gear]
    loads: Mapping[str, Gravity | AbstractLoad | AbstractJointLoad]
    beams: Mapping[str, Beam] = eqx.field(default_factory=dict)

    def __init__(self, bodies: Mapping | Iterable, joints: Mapping | Iterable = (), loads: Mapping | Iterable = ()):
        named = _by_name(bodies, "body")
        self.beams = {name: beam for name, beam in named.items() if isinstance(beam, Beam)}
        nodes = {name: [(node_name(name, i), node) for i, node in enumerate(beam.bodies)] for name, beam in self.beams.items()}
        self.bodies = _by_name((pair for name, body in named.items() for pair in nodes.get(name, [(name, body)])), "body")
        self.joints = _by_name(joints, "joint")
        self.loads = _by_name(named_loads(loads, {GROUND, *named, *self.bodies, *self.joints}), "load")
        _check_types(self)
        if GROUND in self.bodies:
            raise ModelError(f"{GROUND!r} names the body that every mechanism has; give another name to yours")
        self.bodies = {**self.bodies, GROUND: Ground()}
        self.joints = {name: _with_nodes(joint, Joint, self.beams) for name, joint in self.joints.items()}
        self.loads = {name: _with_nodes(load, AbstractLoad, self.beams) for name, load in self.loads.items()}
        _check_names(self)
        for name, body in named.items():
            if name not in self.beams:
                body.check(name)

    @property
    def connections(self) -> dict[str, Joint]:
        """The joints between bodies."""
        return {name: joint for name, joint in self.joints.items() if isinstance(joint, Joint)}

    @property
    def gears(self) -> dict[str, Gear]:
        """The ratios between joints."""
        return {name: gear for name, gear in self.joints.items() if isinstance(gear, Gear)}


def _with_nodes(part: Any, kind: type, beams: Mapping[str, Beam]) -> Any:
    """A joint or load with the nodes of beams that it names counted from the start."""
    ends: Callable = lambda part: (part.a, part.b)
    return eqx.tree_at(ends, part, tuple(_node(name, beams) for name in ends(part))) if isinstance(part, kind) else part


def _node(name: str, beams: Mapping[str, Beam]) -> str:
    """The name of a body; a node of a beam may be counted from the end."""
    beam, index = name, None
    if match := re.fullmatch(r"(.*)\[(-?\d+)\]", name):
        beam, index = match[1], int(match[2])
    if beam not in beams:
        return name
    count = len(beams[beam].bodies)
    if index is None or not -count <= index < count:
        raise ModelError(f"{name!r} is no body: the nodes of this beam are {beam}[0] to {beam}[{count - 1}], the last also {beam}[-1]")
    return node_name(beam, index % count)


def named_loads(loads: Mapping | Iterable, taken: set[str]) -> Iterator[tuple[str, Any]]:
    """Pairs of name and load; loads without a name are called by their kind, with the next number that is free."""
    given = list(loads.items()) if isinstance(loads, Mapping) else list(loads)
    taken = taken | {one[0] for one in given if isinstance(one, tuple)}
    for one in given:
        if isinstance(one, tuple):
            yield one
            continue
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(one).__name__).lower()
        name = next(name for i in itertools.count(1) if (name := kind if i == 1 else f"{kind} {i}") not in taken)
        taken.add(name)
        yield name, one


def _by_name(parts: Mapping | Iterable, what: str) -> dict:
    pairs = list(parts.items()) if isinstance(parts, Mapping) else list(parts)
    named: dict = {}
    for name, part in pairs:
        if not isinstance(name, str) or not name:
            raise ModelError(f"names are non-empty strings, but a {what} is called {name!r}")
        if name in named:
            raise ModelError(f"two parts are called {name!r}; names must be unique")
        named[name] = part
    return named


def _check_types(parts: Parts) -> None:
    for name, body in parts.bodies.items():
        if not isinstance(body, AbstractBody):
            raise ModelError(f"body {name!r} is a {type(body).__name__}, not a RigidBody, PlanarBody, Particle, Beam or Ground")
    for name, joint in parts.joints.items():
        if not isinstance(joint, Joint | Gear):
            raise ModelError(f"joint {name!r} is a {type(joint).__name__}; write mbd.Joint(kind, first body, second body, at=point)")
        if isinstance(joint, Joint) and not isinstance(joint.kind, AbstractJoint):
            raise ModelError(
                f"joint {name!r} has the kind {joint.kind!r}, which is neither a joint such as mbd.Revolute(), an instance, nor a function"
            )
    for name, load in parts.loads.items():
        if not isinstance(load, Gravity | AbstractLoad | AbstractJointLoad):
            raise ModelError(f"load {name!r} is {load!r}, which is neither Gravity nor a spring, a force or another load")


def _check_names(parts: Parts) -> None:
    """Every name must be known, and mean one thing."""
    for name in parts.bodies.keys() & parts.joints.keys():
        raise ModelError(f"a body and a joint are both called {name!r}; names must be unique")
    for name in parts.loads.keys() & {*parts.bodies, *parts.beams, *parts.joints}:
        raise ModelError(f"a load and a body or joint are both called {name!r}; names must be unique")
    for name, joint in parts.connections.items():
        _check_connection(name, joint, parts.bodies)
    for name, gear in parts.gears.items():
        for other, index in zip((gear.first, gear.second), gear.indices, strict=True):
            _check_coordinate(f"gear {name!r}", parts, other, index)
    for name, load in parts.loads.items():
        if isinstance(load, AbstractJointLoad):
            _check_coordinate(f"load {name!r}", parts, load.joint, load.index)
        elif isinstance(load, AbstractLoad):
            for body in (load.a, load.b):
                if body not in parts.bodies:
                    raise ModelError(f"load {name!r} acts on {body!r}, but bodies are {', '.join(parts.bodies)}")


def _check_connection(name: str, joint: Joint, bodies: Mapping[str, AbstractBody]) -> None:
    joint.kind.check(name)
    for body, matters in zip((joint.a, joint.b), joint.kind.orients, strict=True):
        if body not in bodies:
            raise ModelError(f"joint {name!r} connects {body!r}, but there is no such body; bodies are {', '.join(bodies)}")
        if matters and not bodies[body].oriented:
            raise ModelError(f"joint {name!r} orients {body!r}, which is a mass point; use Spherical, Distance or PointOnLine there")
    for body, point in zip((joint.a, joint.b), (joint.on_a, joint.on_b), strict=True):
        if not bodies[body].oriented and point is not None:
            raise ModelError(f"joint {name!r} sits off the mass point {body!r}; leave out the point on it")
    if joint.a == joint.b or (isinstance(bodies[joint.a], Ground) and isinstance(bodies[joint.b], Ground)):
        raise ModelError(f"joint {name!r} connects {joint.a!r} with {joint.b!r}: one of them must be able to move against the other")


def _check_coordinate(who: str, parts: Parts, name: str, index: int) -> None:
    joint = parts.connections.get(name)
    if joint is None:
        raise ModelError(f"{who} acts on the joint {name!r}, but there is no such joint; joints are {', '.join(parts.connections)}")
    if not joint.kind.additive or not 0 <= index < len(joint.kind.coordinates):
        raise ModelError(
            f"{who} acts on coordinate {index} of joint {name!r}, but a {type(joint.kind).__name__} has "
            f"{joint.kind.coordinates if joint.kind.additive else 'no coordinate that counts turns'}"
        )


def _point(value: Any) -> Any:
    """A point or a frame in body axes, as a parameter."""
    if value is None or isinstance(value, Frame):
        return value
    point = number(value)
    if point.shape != (3,):
        raise ModelError(f"a joint sits at a point with three components, not {value!r}")
    return point
