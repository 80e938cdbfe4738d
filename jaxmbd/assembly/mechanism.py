"""A mechanism as the user describes it: named bodies, joints between them, loads on them."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import equinox as eqx

from ..beams.beam import Beam, node_name
from ..bodies import AbstractBody, Ground
from ..errors import ModelError
from ..loads import AbstractLoad, AbstractOnCoordinate, Gravity
from .connections import Gear, Joint
from .validate import check_names, check_types

GROUND = "ground"


class Mechanism(eqx.Module):
    """Bodies, joints and loads, to be assembled with `assemble`; the nodes of beams are bodies too.

    **Arguments**

    - `bodies`: by name, `RigidBody`, `PlanarBody`, `Particle`, `Beam` or another `Ground`; the body `"ground"` is always there.
    - `joints`: by name, `Joint` or `Gear`.
    - `loads`: by name or not, `Gravity`, springs, forces, torques. Those without a name are called by their kind: `"gravity"`, `"spring"`,
      a second one `"spring 2"`, `"joint spring"`.

    All three are dictionaries, or pairs of name and part. Names must be unique among all parts: placements and parameters use them.
    """

    instead: ClassVar[str] = "system, q0 = mbd.assemble(mechanism) makes a system of it"

    bodies: Mapping[str, AbstractBody]
    joints: Mapping[str, Joint | Gear]
    loads: Mapping[str, Gravity | AbstractLoad | AbstractOnCoordinate]
    beams: Mapping[str, Beam] = eqx.field(default_factory=dict)

    def __init__(self, bodies: Any, joints: Any = (), loads: Any = ()):
        named = _by_name(bodies, "body")
        self.beams = {name: beam for name, beam in named.items() if isinstance(beam, Beam)}
        nodes = {name: [(node_name(name, i), node) for i, node in enumerate(beam.bodies)] for name, beam in self.beams.items()}
        self.bodies = _by_name((pair for name, body in named.items() for pair in nodes.get(name, [(name, body)])), "body")
        self.joints = _by_name(joints, "joint")
        self.loads = _by_name(_named_loads(loads, {GROUND, *named, *self.bodies, *self.joints}), "load")
        check_types(self.bodies, self.joints, self.loads)
        if GROUND in self.bodies:
            raise ModelError(f"{GROUND!r} names the body that every mechanism has; give another name to yours")
        self.bodies = {**self.bodies, GROUND: Ground()}
        self.joints = {name: _with_nodes(joint, Joint, self.beams) for name, joint in self.joints.items()}
        self.loads = {name: _with_nodes(load, AbstractLoad, self.beams) for name, load in self.loads.items()}
        check_names(self.bodies, self.connections, self.gears, self.loads, self.beams)
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

    def summary(self, placement: Mapping[str, Any] | None = None, *, solve: bool = False) -> str:
        """Degrees of freedom, redundant constraints and the joints that cause them, in the position that `assemble` finds."""
        from .assembling import assemble  # which must know what a mechanism is
        from .report import describe

        return describe(*assemble(self, placement, solve=solve))


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


def _named_loads(loads: Any, taken: set[str]) -> Iterator[tuple[str, Any]]:
    """Pairs of name and load; loads without a name are called by their kind, with the next number that is free."""
    given = _listed(loads, "load")
    taken = taken | {one[0] for one in given if isinstance(one, tuple)}
    for one in given:
        if isinstance(one, tuple):
            yield one
            continue
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(one).__name__).lower()
        name = next(name for i in itertools.count(1) if (name := kind if i == 1 else f"{kind} {i}") not in taken)
        taken.add(name)
        yield name, one


def _listed(parts: Any, what: str) -> list:
    """Parts in their order, those of a dictionary as pairs."""
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise ModelError(f"each {what} comes with its name, in a dictionary or as a pair of name and {what}, but {parts!r} was given")
    return list(parts.items()) if isinstance(parts, Mapping) else list(parts)


def _by_name(parts: Any, what: str) -> dict:
    named: dict = {}
    for pair in _listed(parts, what):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ModelError(f"each {what} comes with its name, in a dictionary or as a pair of name and {what}, but {pair!r} was given")
        name, part = pair
        if not isinstance(name, str) or not name:
            raise ModelError(f"names are non-empty strings, but a {what} is called {name!r}")
        if name in named:
            raise ModelError(f"two parts are called {name!r}; names must be unique")
        named[name] = part
    return named
