"""What connects the bodies of a mechanism: joints between them, and ratios between joints."""

from typing import Any

import equinox as eqx

from ..errors import ModelError
from ..geometry.frame import Frame
from ..joints import AbstractJoint, UserJoint
from ..numerics.arrays import number


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


def _point(value: Any) -> Any:
    """A point or a frame in body axes, as a parameter."""
    if value is None or isinstance(value, Frame):
        return value
    point = number(value)
    if point.shape != (3,):
        raise ModelError(f"a joint sits at a point with three components, not {value!r}")
    return point
