"""What a mechanism must fulfil before anything is assembled: parts of the right types, names that are known."""

from collections.abc import Mapping
from typing import Any

from ..bodies import AbstractBody
from ..errors import ModelError
from ..loads import AbstractLoad, AbstractOnCoordinate, Gravity
from ..numerics.checks import nearest_names
from .connections import Gear, Joint

Bodies = Mapping[str, AbstractBody]
Connections = Mapping[str, Joint]


def check_types(bodies: Mapping[str, Any], joints: Mapping[str, Any], loads: Mapping[str, Any]) -> None:
    """Every part must be what its place asks for."""
    for name, body in bodies.items():
        if not isinstance(body, AbstractBody):
            raise ModelError(f"body {name!r} is {_a(body)}, not a RigidBody, PlanarBody, Particle, Beam or Ground")
    for name, joint in joints.items():
        if not isinstance(joint, Joint | Gear):
            raise ModelError(f"joint {name!r} is {_a(joint)}; write mbd.Joint(kind, first body, second body, at=point)")
    for name, load in loads.items():
        if not isinstance(load, Gravity | AbstractLoad | AbstractOnCoordinate):
            raise ModelError(f"load {name!r} is {load!r}, which is neither Gravity nor a spring, a force or another load, an instance")


def _a(part: Any) -> str:
    """What was given for a part, which may be a class in place of one of its instances."""
    return f"the class {part.__name__} in place of an instance" if isinstance(part, type) else f"a {type(part).__name__}"


def check_names(bodies: Bodies, joints: Connections, gears: Mapping[str, Gear], loads: Mapping[str, Any], beams: Mapping[str, Any]) -> None:
    """Every name must be known, and mean one thing."""
    for name in bodies.keys() & (joints.keys() | gears.keys()):
        raise ModelError(f"a body and a joint are both called {name!r}; names must be unique")
    for name in loads.keys() & (bodies.keys() | beams.keys() | joints.keys() | gears.keys()):
        raise ModelError(f"a load and a body or joint are both called {name!r}; names must be unique")
    for name, joint in joints.items():
        _check_connection(name, joint, bodies)
    for name, gear in gears.items():
        for other, index in zip((gear.first, gear.second), gear.indices, strict=True):
            _check_coordinate(f"gear {name!r}", joints, other, index)
    for name, load in loads.items():
        if isinstance(load, AbstractOnCoordinate):
            for other, index in load.coordinates:
                _check_coordinate(f"load {name!r}", joints, other, index)
        elif isinstance(load, AbstractLoad):
            for body in (load.a, load.b):
                if body not in bodies:
                    raise ModelError(f"load {name!r} acts on {body!r}, but there is no such body{nearest_names(body, bodies)}")
            if load.a == load.b or bodies[load.a].size == bodies[load.b].size == 0:
                raise ModelError(f"load {name!r} acts on {load.a!r} and {load.b!r}: one of them must be able to move against the other")


def _check_connection(name: str, joint: Joint, bodies: Bodies) -> None:
    if not hasattr(joint.kind, "freedom"):
        raise ModelError(f"joint {name!r}: the class {type(joint.kind).__name__} must say its freedom, six less its constraints")
    joint.kind.check(name)
    for body, matters in zip((joint.a, joint.b), joint.kind.orients, strict=True):
        if body not in bodies:
            raise ModelError(f"joint {name!r} connects {body!r}, but there is no such body{nearest_names(body, bodies)}")
        if matters and not bodies[body].oriented:
            raise ModelError(f"joint {name!r} orients {body!r}, which is a mass point; use Spherical, Distance or PointOnLine there")
    for body, point in zip((joint.a, joint.b), (joint.on_a, joint.on_b), strict=True):
        if not bodies[body].oriented and point is not None:
            raise ModelError(f"joint {name!r} sits off the mass point {body!r}; leave out the point on it")
    if joint.a == joint.b or bodies[joint.a].size == bodies[joint.b].size == 0:
        raise ModelError(f"joint {name!r} connects {joint.a!r} with {joint.b!r}: one of them must be able to move against the other")


def _check_coordinate(who: str, joints: Connections, name: str, index: int) -> None:
    joint = joints.get(name)
    if joint is None:
        raise ModelError(f"{who} acts on the joint {name!r}, but there is no such joint{nearest_names(name, joints)}")
    if not joint.kind.additive or not 0 <= index < len(joint.kind.coordinates):
        raise ModelError(
            f"{who} acts on coordinate {index} of joint {name!r}, but a {type(joint.kind).__name__} has "
            f"{joint.kind.coordinates if joint.kind.additive else 'no coordinate that counts turns'}"
        )
