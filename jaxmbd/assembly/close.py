"""Positions in which all joints meet: as given, or solved for where loops are open."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry.frame import Frame, Rows
from ..joints import Free
from ..numerics.arrays import join, known, seen
from ..numerics.compile import compiled
from ..numerics.lapack import pinv, solve
from .model import Assembly
from .placement import Coordinates

AS_GIVEN = 64
"""Units of rounding that joints may be off in a placement that is taken as it is."""


class Look(eqx.Module):
    """A placement as the coordinates of the bodies have it, in numbers: all that assembling asks of it, by one program.

    `rows` are its frames, which are off those that were given by `change`; `gaps` the constraints of the joints group by group, `missed`
    how far coordinates are from those that are wanted, `readings` what the gauges show, `coordinates` those of the bodies.
    """

    rows: Rows
    change: Float[Any, "frames 4"]
    gaps: list[Float[Any, "_ _"]]
    missed: Float[Any, " c"]
    readings: Float[Any, " g"]
    coordinates: Float[Any, " n"]


def look(model: Assembly, rows: Rows, wanted: Coordinates) -> Look:
    """Look at a placement by its frames."""
    return seen(_look(model, rows, *_targets(model, wanted)))


@compiled
def _look(model: Assembly, rows: Rows, target: Float[Array, " c"], columns: tuple) -> Look:
    coordinates = model.coordinates(rows, jnp.zeros(0, rows.dtype))
    exact = model.frames(coordinates)
    gaps = [group.constraints(exact).reshape(group.count, -1) for group in model.joints]
    missed = _missed(model, exact, target, columns)
    return Look(exact, jnp.max(jnp.abs(exact - rows), axis=2), gaps, missed, model.readings(exact), coordinates)


def meet(model: Assembly, given: Look, wanted: Coordinates, solve: bool) -> Look:
    """The assembled position: as it is if all joints meet, solved for if that is wanted, and otherwise an error.

    Where numbers are hidden it is solved for without a look at the result: joints that do not meet are off their constraints, which the
    judgement of a start sees.
    """
    if not model.joints:
        return given
    sought, gaps, rows = solve or bool(wanted), _gaps(model, given, wanted), known(given.rows)
    if gaps is None or rows is None:
        return look(model, _closed(model, given, wanted), wanted) if solve or (wanted and model.closures) else given
    eps, size = float(jnp.finfo(rows.dtype).eps), max(1.0, float(np.max(np.abs(rows))))
    worst = max(gaps, key=lambda name: gaps[name])
    if gaps[worst] > np.sqrt(eps) * size and not sought:
        raise ModelError(
            f"joint {worst!r} does not meet in the given placement: its constraints are off by {gaps[worst]:.3g}; place the bodies so that "
            "its points and axes coincide, or let assemble(..., solve=True) look for such a position"
        )
    if gaps[worst] <= AS_GIVEN * eps * size:
        return given
    closed = look(model, _close(model, given.rows, wanted), wanted)
    left = _gaps(model, closed, wanted) or {}
    worst = max(left, key=lambda name: left[name])
    if not left[worst] <= np.sqrt(eps) * size:
        raise ModelError(
            "no position was found from this placement in which all joints meet and have the coordinates that were asked for: joint "
            f"{worst!r} stays off by {left[worst]:.3g}; give a placement closer to the wanted one, or check that such a position exists"
        )
    return closed


def _closed(model: Assembly, given: Look, wanted: Coordinates) -> Rows:
    """The same of hidden numbers: solved for unless all joints meet."""
    largest = jnp.stack([jnp.max(jnp.linalg.norm(gap, axis=1)) for gap in jax.lax.stop_gradient(given.gaps)])
    size = jnp.maximum(1, jnp.max(jnp.abs(jax.lax.stop_gradient(given.rows))))
    met = jnp.max(largest) <= AS_GIVEN * jnp.finfo(given.rows.dtype).eps * size
    return jnp.where(met, given.rows, _close(model, given.rows, wanted))


def _gaps(model: Assembly, at: Look, wanted: Coordinates) -> dict[str, float] | None:
    """How far each joint is from being met, with the coordinates that are wanted; `None` inside a transformation that hides numbers."""
    gaps: dict[str, float] = {}
    for group, values in zip(model.joints, map(known, at.gaps), strict=True):
        if values is None:
            return None
        gaps |= dict(zip(group.names, np.linalg.norm(values, axis=1).tolist(), strict=True))
    off = known(at.missed)
    if off is None:
        return None
    for name, missed in zip(wanted, np.split(off, np.cumsum([value.size for value in wanted.values()])), strict=False):
        gaps[name] += float(np.linalg.norm(missed))
    return gaps


def _close(model: Assembly, rows: Rows, wanted: Coordinates) -> Rows:
    """Positions near `rows` in which all joints meet and have the wanted coordinates: damped least squares, bodies moved least.

    Differentiable by the parameters of the joints and by the coordinates: the derivative too moves bodies least.
    """
    target, columns = _targets(model, wanted)
    found, J = _levenberg_marquardt(*jax.lax.stop_gradient((model, rows, target)), columns)
    return _corrected(model, found, J, target, columns)


@compiled
def _corrected(model: Assembly, found: Rows, J: Float[Array, "gap six"], target: Float[Array, " c"], columns: tuple) -> Rows:
    """One more step of least norm, of which alone there is a derivative."""
    return _move(model, found, -pinv(J) @ _gap(model, found, target, columns))


def _move(model: Assembly, rows: Rows, w: Float[Array, " six"]) -> Rows:
    """Every body moved freely by six increments, as far as its coordinates can."""
    carry = jax.vmap(lambda w, frame: Free().motion(w, frame, frame)(frame).rows)
    moved = carry(w.reshape(-1, 6), jax.vmap(Frame.from_rows)(rows))
    return model.frames(model.coordinates(moved, jnp.zeros(len(model.gauges), rows.dtype)))


def _targets(model: Assembly, wanted: Coordinates) -> tuple[Float[Any, " c"], tuple]:
    """The coordinates that are wanted one after the other, and where they are read: group, number of the joint, how many."""
    where = {name: (g, i) for g, group in enumerate(model.joints) for i, name in enumerate(group.names)}
    columns = tuple((*where[name], values.size) for name, values in wanted.items())
    return join([np.zeros(0), *wanted.values()]), columns


def _gap(model: Assembly, rows: Rows, target: Float[Array, " c"], columns: tuple) -> Float[Array, " gap"]:
    """Constraints of all joints, and how far coordinates are from what is wanted."""
    return jnp.concatenate([*(group.constraints(rows) for group in model.joints), _missed(model, rows, target, columns)])


def _missed(model: Assembly, rows: Rows, target: Float[Array, " c"], columns: tuple) -> Float[Array, " c"]:
    """How far coordinates are from what is wanted; angles up to full turns."""
    read = [model.joints[g].coordinates(rows)[i, :size] for g, i, size in columns]
    off = jnp.concatenate([jnp.zeros(0, rows.dtype), *read]) - target.astype(rows.dtype)
    angular = np.concatenate([np.zeros(0, bool), *(np.array(model.joints[g].kind.angular[:size], bool) for g, _, size in columns)])
    return jnp.where(angular, jnp.arctan2(jnp.sin(off), jnp.cos(off)), off)


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
