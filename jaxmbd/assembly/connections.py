"""What connects the bodies of a mechanism: joints between them, and ratios between joints."""

from typing import Any

import equinox as eqx

from ..errors import ModelError
from ..geometry.frame import Frame, check_rigid
from ..joints import AbstractJoint, UserJoint
from ..numerics.checks import named, not_zero, real, whole


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

    def __init__(self, kind: Any, a: Any, b: Any, at: Any = None, on_a: Any = None, on_b: Any = None):
        self.a, self.b = named("a, the first body of a joint,", a), named("b, the second body of a joint,", b)
        if at is not None and (on_a is not None or on_b is not None):
            raise ModelError(f"a joint between {a!r} and {b!r} sits either at a point in space, or on points of its bodies, not both")
        plain = callable(kind) and not isinstance(kind, AbstractJoint | type)
        self.kind = UserJoint(kind) if plain else kind
        if not isinstance(self.kind, AbstractJoint):
            raise ModelError(
                f"kind of the joint between {a!r} and {b!r} is {kind!r}, which is neither a joint such as mbd.Revolute(), an instance, "
                "nor a function of two frames"
            )
        if isinstance(at, Frame):
            raise ModelError(f"the joint between {a!r} and {b!r} is at a Frame; a frame is told on a body, with on_a and on_b")
        points = {"at": at, "on_a": on_a, "on_b": on_b}
        self.at, self.on_a, self.on_b = (_point(f"{name} of the joint between {a!r} and {b!r}", point) for name, point in points.items())


class Gear(eqx.Module):
    """A fixed ratio between the coordinates of two joints: the second changes by `ratio` times the change of the first.

    Between angles it is a gear (negative where they turn against each other), between an angle and a displacement a rack and pinion.
    """

    first: str
    second: str
    ratio: Any
    indices: tuple[int, int] = eqx.field(static=True)

    def __init__(self, first: Any, second: Any, ratio: Any, indices: Any = (0, 0)):
        self.first, self.second = named("first joint of a Gear", first), named("second joint of a Gear", second)
        self.ratio = not_zero("ratio of a Gear", ratio)
        if not isinstance(indices, tuple | list) or len(indices) != 2:
            raise ModelError(f"indices of a Gear must be two, one for each of its joints, but {indices!r} was given")
        self.indices = (whole("indices of a Gear", indices[0]), whole("indices of a Gear", indices[1]))
        if (first, indices[0]) == (second, indices[1]):
            raise ModelError(f"a Gear ties coordinate {indices[0]} of joint {first!r} to itself; first and second must differ")


def _point(name: str, value: Any) -> Any:
    """A point or a frame in body axes, as a parameter."""
    if value is None:
        return None
    return check_rigid(name, value) if isinstance(value, Frame) else real(name, value, (3,))
