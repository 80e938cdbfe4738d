"""What is prescribed of a motion: coordinates of joints, points and orientations of bodies, functions of the user's."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array

from ..assembly.abstract_model import parts_at, require_model
from ..constraints.servo import AbstractTarget
from ..errors import ModelError
from ..geometry.frame import Frame
from ..loads.base import as_history, at_time
from ..numerics.checks import function as checked_function, named, real, whole
from ..numerics.naming import look_up
from ..system import Scalar, System, Vector


class AbstractPrescribed(AbstractTarget):
    """A target whose `history` tells what is wanted: a function of time, or a constant."""

    history: eqx.AbstractVar[Any]

    def wanted(self, t: Scalar) -> Array:
        return at_time(self.history, jnp.asarray(t))


class Coordinate(AbstractPrescribed):
    """A coordinate of a joint, as a function of time or a number; `index` says which, where the joint has several.

    An angle on which a motor or another load acts counts all turns; of others only the position counts.
    """

    history: Any
    joint: str = eqx.field(static=True)
    index: int = eqx.field(static=True)

    def __init__(self, joint: str, history: Any, index: int = 0):
        self.joint, self.index = named("joint of a Coordinate", joint), whole("index of a Coordinate", index)
        self.history = as_history("history of a Coordinate", history, ())

    def value(self, system: System, t: Scalar, q: Vector) -> Array:
        gauge = self._gauge(system)
        if gauge is not None:
            model, at = parts_at(system, q)
            return model.parts(at)[1][gauge]
        (x, y), angular = self._read(system, q)
        return jnp.arctan2(y, x) if angular else y / x

    def residual(self, system: System, t: Scalar, q: Vector) -> Array:
        """Without a gauge the angle from the wanted direction to that of the joint, which jumps only half a turn away."""
        wanted = self.wanted(t)
        if wanted.shape:
            raise ModelError(f"a coordinate of joint {self.joint!r} is one number, but its history has shape {wanted.shape}")
        if self._gauge(system) is not None:
            return self.value(system, t, q) - wanted
        (x, y), angular = self._read(system, q)
        if not angular:
            return y / x - wanted
        cosine, sine = jnp.cos(wanted), jnp.sin(wanted)
        return jnp.arctan2(y * cosine - x * sine, x * cosine + y * sine)

    def _gauge(self, system: System) -> int | None:
        """The gauge that shows this coordinate, if there is one."""
        shown = [(gauge.name, gauge.coordinate) for gauge in require_model(system).assembly.gauges]
        return shown.index((self.joint, self.index)) if (self.joint, self.index) in shown else None

    def _read(self, system: System, q: Vector) -> tuple[Array, bool]:
        """What the coordinate is read from, and whether it is an angle."""
        model, at = parts_at(system, q)
        names = [name for group in model.joints for name in group.names if group.kind.coordinates]
        name = look_up(self.joint, names, "there is no joint with a coordinate")
        group = next(group for group in model.joints if name in group.names)
        if self.index >= len(group.kind.coordinates):
            raise ModelError(f"joint {name!r} has {len(group.kind.coordinates)} coordinates, so index {self.index} is too large")
        return group.pairs(model.frames(at))[group.names.index(name), self.index], bool(group.kind.angular[self.index])


class Point(AbstractTarget):
    """A point `at`, in body axes, of a body, in space.

    `along` chooses components, as in `"xz"`, or gives directions in space, one or several (k, 3); `history`, a function of time or
    a constant, has as many components.
    """

    history: Any
    at: Any
    along: Any
    body: str = eqx.field(static=True)

    def __init__(self, body: str, history: Any, at: Any = (0.0, 0.0, 0.0), along: Any = "xyz"):
        self.body, self.at = named("body of a Point", body), real("at of a Point", at, (3,))
        self.along = _directions("along of a Point", along)
        count = len(self.along)
        self.history = history if callable(history) else real("history of a Point", np.atleast_1d(history), (count,))
        self.history = as_history("history of a Point", self.history, (count,))

    def value(self, system: System, t: Scalar, q: Vector) -> Array:
        return jnp.asarray(self.along, q.dtype) @ _frame(system, q, self.body).point(jnp.asarray(self.at, q.dtype))

    def wanted(self, t: Scalar) -> Array:
        found = jnp.atleast_1d(at_time(self.history, jnp.asarray(t)))
        if found.shape != (len(self.along),):
            raise ModelError(f"a Point of body {self.body!r} along {len(self.along)} directions needs as many values, not {found.shape}")
        return found


class Orientation(AbstractPrescribed):
    r"""The orientation of a body: its directors as the columns of a rotation matrix, constant or as a function of time.

    The three rows are $2 \tan(\varphi/2)\,n$ for the rotation by $\varphi$ about $n$ that leads from the wanted orientation to that of
    the body, along its wanted directors, so that they vanish at it alone. `about` chooses among them, as in `"z"`, or gives directions.
    """

    history: Any
    about: Any
    body: str = eqx.field(static=True)

    def __init__(self, body: str, history: Any, about: Any = "xyz"):
        self.body, self.about = named("body of an Orientation", body), _directions("about of an Orientation", about)
        self.history = as_history("history of an Orientation", history, (3, 3))

    def value(self, system: System, t: Scalar, q: Vector) -> Array:
        return _frame(system, q, self.body).rotation

    def residual(self, system: System, t: Scalar, q: Vector) -> Array:
        E = self.wanted(t).T @ self.value(system, t, q)
        turned = jnp.stack([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])
        return jnp.asarray(self.about, q.dtype) @ (2 * turned / (1 + jnp.trace(E)))


class Function(AbstractPrescribed):
    """What a function of the user's returns, a number or a vector, and what it is to be: a function of time, or a constant, of the
    same shape or one number for all.

    The function is called as `function(t, q, params)`, or for a mechanism, with names of bodies in `of`, as `function(t, *frames, params)`.
    """

    function: Any
    history: Any
    params: Any
    of: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, function: Any, history: Any = 0.0, params: Any = None, of: str | Sequence[str] = ()):
        self.function = Partial(checked_function("function of a Function", function))
        self.of = (of,) if isinstance(of, str) else tuple(of)
        name = "history of a Function"
        self.history = as_history(name, history, ()) if callable(history) else real(name, history, (), (None,))
        self.params = params

    def value(self, system: System, t: Scalar, q: Vector) -> Array:
        seen: list[Any] = [_frame(system, q, name) for name in self.of] or [q]
        return jnp.asarray(self.function(t, *seen, self.params))

    def residual(self, system: System, t: Scalar, q: Vector) -> Array:
        value, wanted = self.value(system, t, q), self.wanted(t)
        if wanted.shape not in ((), value.shape):
            raise ModelError(f"its function returns an array of shape {value.shape}, but its history one of shape {wanted.shape}")
        return value - wanted


def _frame(system: System, q: Vector, body: str) -> Frame:
    """The frame of a body by its name."""
    model, at = parts_at(system, q)
    return Frame.from_rows(model.frames(at)[model.bodies.index(look_up(body, model.bodies, "there is no body"))])


def _directions(name: str, chosen: Any) -> Any:
    """Directions in space, from letters or as they are."""
    if not isinstance(chosen, str):
        return real(name, np.atleast_2d(np.asarray(chosen, float)), (None, 3))
    if not chosen or set(chosen) - set("xyz"):
        raise ModelError(f"{name} must be letters of 'xyz' or directions (k, 3), but {chosen!r} was given")
    return np.eye(3)[["xyz".index(letter) for letter in chosen]]
