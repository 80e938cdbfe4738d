"""Controls of a motion: what the forces of each step see of a function of time, or of a table with one row a step."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ..assembly.abstract_model import model_in
from ..constraints.driving import first_inputs
from ..constraints.inputs import require_finite
from ..constraints.servo import Servo
from ..errors import ModelError
from ..numerics.trial import explained
from ..schemes import AbstractScheme, Samples
from ..system import Scalar, System, Vector
from .trajectory import Origin


class Controls(NamedTuple):
    """One control a step (`table`), that at the `first` node, and the `last` row that was given, if the next steps have to know it."""

    table: PyTree = None
    first: PyTree = None
    last: PyTree = None


def controls_of(
    system: System, controls: PyTree | Callable, origin: Origin, before: Array | int, steps: int, servo: Servo | None = None
) -> Controls:
    """What forces see in `steps` steps, so many having been taken `before`, but for the unknown inputs of a servo."""
    if servo is not None and not system.controlled:
        lacking = "its forces take no fifth argument" if model_in(system) is None else "no load of the mechanism is a Motor"
        raise ModelError(f"a servo was given, but its inputs cannot act: {lacking}")
    if controls is None:
        if system.controlled and servo is None:
            raise ModelError(f"the forces of this system take a control: pass controls to simulate{_motors(system)}")
        return Controls()
    if not system.controlled:
        lacking = "forces takes no fifth argument to receive them" if model_in(system) is None else "no load is a Motor to receive them"
        raise ModelError(f"controls were given, but {lacking}")
    if callable(controls):
        return _of_function(controls, origin, before, steps)
    with explained("controls"):
        controls = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(origin.dt.dtype), controls)
    for path, leaf in jax.tree_util.tree_leaves_with_path(controls):
        if leaf.shape[:1] != (steps,):
            place = jax.tree_util.keystr(path)
            raise ModelError(f"controls{place} need one row for each of {steps} steps, but an array has shape {leaf.shape}")
        require_finite(leaf, "an array of controls")
    return _of_table(controls, origin)


def _motors(system: System) -> str:
    """What a mechanism takes for a control, as the end of a message."""
    model = model_in(system)
    return "" if model is None else f", a dictionary of its motors {', '.join(map(repr, model.assembly.motor_names))}"


def _of_function(function: Callable, origin: Origin, before: Array | int, steps: int) -> Controls:
    """Values at the times at which forces of the scheme see controls."""
    dtype, fractions = origin.dt.dtype, np.asarray(origin.scheme.control_at)
    taken = jnp.asarray(before, dtype)
    count = (jnp.arange(steps, dtype=dtype) + taken)[:, None] + jnp.asarray(fractions, dtype)
    with explained("controls"):
        values = jax.vmap(function)(origin.t0 + origin.dt * jnp.concatenate([taken[None], count.ravel()]))
    if not jax.tree.leaves(values):
        raise ModelError("controls must return numbers for a time, but returned None: is a return missing?")
    for leaf in jax.tree.leaves(values):
        require_finite(leaf, "what the function of controls returns")
    first = jax.tree.map(lambda leaf: leaf[0], values)
    table = jax.tree.map(lambda leaf: leaf[1:].reshape(steps, fractions.size, *leaf.shape[1:]), values)
    return Controls(Samples(table) if fractions.size > 1 else jax.tree.map(lambda leaf: leaf[:, 0], table), first)


def _of_table(rows: PyTree, origin: Origin) -> Controls:
    """A row holds over its step, where several times count. Of one that is not its middle, the value on the line through the middle of the
    step and of that before it: what varies smoothly then acts as a function of time would, up to the second order.
    """
    fractions = origin.scheme.control_at
    ahead = fractions[0] - 0.5 if len(fractions) == 1 else 0.0
    if ahead == 0:
        return Controls(rows, jax.tree.map(lambda leaf: leaf[0], rows))
    before = jax.tree.map(lambda leaf: leaf[0], rows) if origin.control is None else origin.control
    earlier = jax.tree.map(lambda leaf, one: jnp.concatenate([one[None], leaf[:-1]]), rows, before)
    table = jax.tree.map(lambda leaf, one: leaf + ahead * (leaf - one), rows, earlier)
    first = jax.tree.map(lambda leaf, one: 0.5 * (leaf[0] + one), rows, before)
    return Controls(table, first, jax.tree.map(lambda leaf: leaf[-1], rows))


def first_control(system: System, t: Scalar, q: Vector, v: Vector, scheme: AbstractScheme, given: PyTree, servo: Servo) -> PyTree:
    """The control at a start, where the inputs of a servo count for schemes that begin with accelerations alone."""
    u = first_inputs(system, t, q, v, servo, given) if scheme.acting == "end" else jnp.zeros(servo.size, q.dtype)
    return servo.control(given, servo.inputs(u))
