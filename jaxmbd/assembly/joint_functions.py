"""The functions of a mechanism in the coordinates of its joints: those of its bodies, pulled back."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..errors import Result
from ..friction import Frictions
from ..system import Structure, System, Vector
from . import functions
from .gauges import angle_between, pairs_of
from .joint_blocks import turning
from .joint_model import JointModel
from .rigid_motion import HALF_A_TURN
from .sizes import coordinate_sizes, mechanism_length


def joint_system(model: JointModel, powered: bool) -> System:
    """The system; `powered` says that it has forces beside its potential."""
    pulled_back: dict[Any, Any] = {functions.forces: forces, functions.controlled_forces: controlled_forces, None: None}
    return System.from_functions(
        lagrangian=lagrangian,
        constraints=constraints if model.quaternions.size or model.kept.any() else None,
        velocity_constraints=velocity_constraints if model.assembly.slip_rows() else None,
        forces=pulled_back[functions.forces_of(model.assembly, powered)],
        structure=structure,
        friction=friction if model.assembly.frictions else None,
        params=model,
    )


@jax.jit
def lagrangian(t: Array, q: Vector, v: Vector, model: JointModel) -> Array:
    """Kinetic less potential energy of all bodies, beams and loads."""
    at, rate = jax.jvp(model.position, (q,), (v,))
    return functions.kinetic(t, at, rate, model.assembly) - functions.potential(t, at, model.assembly)


@jax.jit
def forces(t: Array, q: Vector, v: Vector, model: JointModel) -> Vector:
    """Generalised forces: those on bodies and gauges along their rates."""
    return _along_rates(model, q, v, lambda at, rate: functions.forces(t, at, rate, model.assembly))


@jax.jit
def controlled_forces(t: Array, q: Vector, v: Vector, model: JointModel, control: PyTree) -> Vector:
    """The same with the forces of motors, which are a control of the step by name."""
    return _along_rates(model, q, v, lambda at, rate: functions.controlled_forces(t, at, rate, model.assembly, control))


def _along_rates(model: JointModel, q: Vector, v: Vector, force: Callable) -> Vector:
    at, pull = jax.vjp(model.position, q)
    return pull(force(at, jax.jvp(model.position, (q,), (v,))[1]))[0]


@jax.jit
def constraints(t: Array, q: Vector, model: JointModel) -> Float[Array, " m"]:
    """Unit quaternions, and all that coordinates do not fulfil by themselves."""
    return model.constraints(q)


@jax.jit
def velocity_constraints(t: Array, q: Vector, v: Vector, model: JointModel) -> Float[Array, " k"]:
    """Velocities that joints let vanish."""
    return functions.velocity_constraints(t, *jax.jvp(model.position, (q,), (v,)), model.assembly)


def friction(model: JointModel) -> Frictions:
    """Friction on gauges."""
    return Frictions(model.assembly.frictions, Partial(_gauges, model))


def _gauges(model: JointModel, q: Vector) -> Float[Array, " g"]:
    return model.gauges_at(q)


def structure(model: JointModel) -> Structure:
    """Parts are joints, bodies apart and gauges."""
    parts = _parts(model)
    rows = np.arange(len(model.owners()))
    balls, kept = model.quaternions, np.flatnonzero(model.kept)
    of_directors, begin = dict(zip(kept.tolist(), rows[len(balls) :].tolist(), strict=False)), np.cumsum([0, *map(len, parts)])
    place = {number: model.jointed + i for i, number in enumerate(model.own_coordinates.tolist())}
    own = {gauge: model.size - len(model.own_gauges) + i for i, gauge in enumerate(model.own_gauges)}
    first_gauge = model.assembly.size - len(model.assembly.gauges)
    return Structure(
        parts=tuple(int(np.searchsorted(begin, i, "right")) - 1 for i in range(model.size)),
        pivots=tuple(
            (own[number - first_gauge], of_directors[row]) for number, row in model.assembly.gauge_rows() if number - first_gauge in own
        ),
        internal=tuple(
            [(int(ball[0]), int(row)) for row, ball in enumerate(balls)]
            + [(place[number], of_directors[row]) for number, row in model.assembly.internal_rows() if row in of_directors]
        ),
        held=bool(model.assembly.beams),
        owners=tuple(model.owners()),
        quadratic=True,
        leaps=functools.partial(_leap, model),
        sizes=functools.partial(_sizes, model),
    )


def _parts(model: JointModel) -> list[range]:
    """The coordinates of each joint, of each body apart, and of each gauge of its own."""
    widths = [block.width for block in model.blocks for _ in block.members]
    sizes = model.assembly.sizes_of_bodies()
    ends = np.cumsum([0, *widths, *(sizes[place] for place in model.apart), *(1 for _ in model.own_gauges)])
    return [range(*pair) for pair in itertools.pairwise(ends)]


def _sizes(model: JointModel, q: Vector) -> Vector:
    """Changes of coordinates that matter alike: one for angles and quaternions, a length of the mechanism for lengths."""
    of_directors = coordinate_sizes(model.assembly, model.position(q))
    length, gauges = mechanism_length(model.assembly, model.position(q)), of_directors[model.assembly.size - len(model.assembly.gauges) :]
    turns = [np.tile(turning(model.assembly.tree[block.group], block), len(block.members)) for block in model.blocks]
    joints = jnp.where(np.concatenate([np.zeros(0, bool), *turns]), jnp.ones_like(length), length)
    return jnp.concatenate([joints, of_directors[model.own_coordinates], gauges[np.array(model.own_gauges, int)]])


def _leap(model: JointModel, q: Vector, move: Vector) -> Array:
    """The code of a step in which a quaternion made almost half a turn, or a gauge other turns than the bodies that it reads."""
    lost = jnp.where(_lost_turns(model, q, move), jnp.int32(Result.LOST_TURN), jnp.int32(Result.SUCCESS))
    before, after = q[model.quaternions], (q + move)[model.quaternions]
    half = jnp.sum(before * after, axis=1)  # the cosine of half the angle
    return jnp.where(jnp.any(2 * half * half - 1 < HALF_A_TURN) | jnp.any(half < 0), jnp.int32(Result.TURNED_OVER), lost)


def _lost_turns(model: JointModel, q: Vector, move: Vector) -> Array:
    """Whether an angle that is a gauge of its own changed by other turns than its bodies made."""
    own = [model.assembly.gauges[i] for i in model.own_gauges]
    if not own:
        return jnp.array(False)
    frames = (model.bodies_at(q + part * move) for part in (0.0, 0.5, 1.0))
    start, middle, end = (pairs_of(own, model.assembly.joints, rows) for rows in frames)
    turned = angle_between(start, middle) + angle_between(middle, end)
    angular = np.array([gauge.angular for gauge in own], bool)
    return jnp.any(angular & (jnp.abs(turned - move[move.size - len(own) :]) > 0.5 * np.pi))
