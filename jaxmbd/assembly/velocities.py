"""Consistent velocities of a mechanism from the rates of its joints."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.chart import chart_directions, closure_jacobian
from ..constraints.inputs import as_coordinates
from ..errors import ModelError, UnknownNameError
from ..joints import Free
from ..numerics.arguments import checked, described
from ..numerics.arrays import known
from ..numerics.lapack import pinv
from ..numerics.naming import nearest
from ..system import System, Vector, VectorLike
from .groups import JointGroup
from .model import as_assembly


@checked
def joint_velocities(system: System, q: VectorLike, rates: Mapping[str, Any]) -> Vector:
    """The velocity at `q` with these rates of joints, by name; all other joints move as little as the loops ask for.

    A rate is a number or one for each increment of the joint: velocities along, and angular velocities about, the directors of its first
    frame (of `Universal`, the second is about the axis in the second body). A free body is named itself and takes six: velocity and
    angular velocity in space (three in the plane, and for mass points). Rates that no motion has are an error.
    """
    q = as_coordinates(system, q, "q")
    system = system.astype(q.dtype)
    model, zero = as_assembly(system), jnp.zeros((), q.dtype)
    if not system.has("chart"):
        raise ModelError("rates of joints need the chart of a system from assemble; reduced beams have no chart")
    directions = chart_directions(system, zero, q)
    equations = list(_equations(system, q, rates))
    if model.closures:
        equations.append((closure_jacobian(system, zero, q) @ directions, jnp.zeros(model.closures, q.dtype)))
    if not equations:
        return jnp.zeros_like(q)
    rows, wanted = (jnp.concatenate(part) for part in zip(*equations, strict=True))
    found = pinv(rows, float(jnp.finfo(q.dtype).eps) ** (2 / 3)) @ wanted
    off, size = known(jnp.max(jnp.abs(rows @ found - wanted))), known(jnp.max(jnp.abs(wanted), initial=0))
    if off is not None and size is not None and off > np.sqrt(jnp.finfo(q.dtype).eps) * size:
        raise ModelError(f"no motion has these rates of {', '.join(rates)}: the loops of the mechanism couple them (off by {off:.3g})")
    return directions @ found


def _equations(system: System, q: Vector, rates: Mapping[str, Any]) -> Iterator[tuple[Float[Array, "r k"], Float[Array, " r"]]]:
    """Rows for the rates that are given: an increment of the tree, or the coordinates of a joint that closes a loop."""
    model, begin = as_assembly(system), 0
    places: dict[str, tuple[JointGroup, np.ndarray]] = {}
    for group in model.tree:
        width = len(group.columns)
        places |= {name: (group, begin + i * width + np.arange(width)) for i, name in enumerate(group.names)}
        begin += group.count * width
    closing = {name: (group, i) for group in model.closing for i, name in enumerate(group.names)}
    for name, value in rates.items():
        if name in places:
            group, columns = places[name]
            yield jnp.eye(model.increments, dtype=q.dtype)[columns], _rates(name, value, group, q)
        elif name in closing:
            group, index = closing[name]
            read = lambda u, group=group, i=index: group.coordinates(model.frames(system.chart(u, q, 0.0, 0.0)))[i]
            row = jax.jacfwd(read)(jnp.zeros(model.increments, q.dtype))
            yield row, _checked(name, value, (row.shape[0],), q)
        else:
            raise UnknownNameError(f"rates name {name!r}, which is no joint, nor a free body; {nearest(name, [*places, *closing])}")


def _rates(name: str, value: Any, group: JointGroup, q: Vector) -> Array:
    """The rates of a branch; a free body may be given all six, of which those count that move it."""
    if isinstance(group.kind, Free) and np.shape(value) == (6,):
        return jnp.asarray(value, q.dtype)[np.asarray(group.columns)]
    return _checked(name, value, (len(group.columns),), q)


def _checked(name: str, value: Any, shape: tuple[int, ...], q: Vector) -> Array:
    try:
        value = jnp.atleast_1d(jnp.asarray(value, q.dtype))
    except (TypeError, ValueError):
        raise ModelError(f"the rate of {name!r} must be numbers, not {described(value)}") from None
    if value.shape != shape:
        raise ModelError(f"{name!r} takes {shape[0]} rates, but {value.size} were given")
    return value
