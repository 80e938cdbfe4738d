"""Inverse dynamics: from a wanted motion to inputs and reactions."""

from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..assembly.abstract_model import model_in
from ..constraints.inputs import require_time_step
from ..constraints.rank import with_rank_if_cheap
from ..constraints.servo import Servo
from ..errors import ModelError
from ..formulations import AbstractFormulation, Multipliers
from ..formulations.driven import mean_control
from ..numerics.arguments import checked
from ..numerics.newton import Newton
from ..schemes import AbstractScheme
from ..simulation import Trajectory, simulate
from ..simulation.controls import controls_of, first_control
from ..simulation.trajectory import Origin
from ..system import System, VectorLike
from .starts import consistent_start


class Held(eqx.Module):
    """A control at the ends of steps, and in between on straight lines."""

    times: Float[Array, " nodes"]
    values: PyTree

    def __call__(self, t: Array) -> PyTree:
        step = self.times[1] - self.times[0]
        place = (t - self.times[0]) / step
        before = jnp.clip(jnp.round(place - 0.5).astype(int), 0, self.times.size - 2)
        share = place - before.astype(place.dtype)
        between = lambda leaf: leaf[before] + share * (leaf[before + 1] - leaf[before])
        return jax.tree.map(between, self.values)


class InverseDynamics(eqx.Module):
    """What a wanted motion takes: the `trajectory`, from which `post.reactions` reads reactions, and the `inputs` of its steps.

    Inputs are by name, one row a step, and belong to `times`, the middle of the steps: they are means over the steps, or for schemes that
    balance forces at the end of a step the values there. `controls` is what `simulate` takes to play the motion back with the same
    scheme, formulation and time step.
    """

    trajectory: Trajectory
    inputs: PyTree
    times: Float[Array, " steps"]
    controls: PyTree


@checked
def inverse_dynamics(
    system: System,
    q0: VectorLike,
    v0: VectorLike | None = None,
    *,
    motion: Any,
    inputs: Any = None,
    dt: ArrayLike,
    steps: int,
    t0: ArrayLike = 0.0,
    weights: Any = None,
    scheme: AbstractScheme | None = None,
    formulation: AbstractFormulation = Multipliers(),
    newton: Newton = Newton(),
    controls: PyTree | Callable = None,
    throw: bool = True,
) -> InverseDynamics:
    r"""The inputs that make a mechanism follow a wanted motion, step by step, with the motion and its reactions.

    Trees and closed loops, under-actuated and floating mechanisms are treated alike: each step meets the targets with unknown inputs, and
    what they leave free moves as it must. Differentiable in everything, and pure: it may be called inside `jit`, `vmap` and `grad`.

    **Arguments**

    - `q0`, `v0`: the start, which has to be on the wanted motion. Without `v0` it is `consistent_start` that finds it, near `q0` and rest.
    - `motion`: targets, as those of a `Servo`.
    - `inputs`, `weights`: as those of a `Servo`; without `inputs` all motors of the mechanism.
    - `controls`: what other entries the control has, as in `simulate`.
    - `dt`, `steps`, `t0`, `scheme`, `formulation`, `newton`, `throw`: as in `simulate`.
    """
    require_time_step(dt)
    servo = Servo(motion, _motors(system) if inputs is None else inputs, weights)
    if v0 is None:
        q0, v0 = consistent_start(system, servo, q0, t0=t0)
    trajectory = simulate(
        system,
        q0,
        v0,
        dt=dt,
        steps=steps,
        t0=t0,
        scheme=scheme,
        formulation=formulation,
        newton=newton,
        controls=controls,
        servo=servo,
        throw=throw,
    )
    (at,) = trajectory.scheme.control_at if len(trajectory.scheme.control_at) == 1 else (0.5,)
    times = trajectory.t[:-1] + at * trajectory.dt
    return InverseDynamics(trajectory, trajectory.inputs, times, _playing_back(system, trajectory, controls, servo, steps))


def _motors(system: System) -> tuple[str, ...]:
    """All motors of a mechanism."""
    model = model_in(system)
    if model is None or not model.assembly.motor_names:
        raise ModelError("inverse_dynamics needs inputs: which entries of the control are unknown, or a mechanism with loads Motor")
    return model.assembly.motor_names


def _playing_back(system: System, trajectory: Trajectory, controls: PyTree | Callable, servo: Servo, steps: int) -> PyTree:
    """Controls that return the motion: rows, or where forces are balanced at the end of a step a function that has its values there."""
    t, q, v, scheme, origin = trajectory.t, trajectory.q, trajectory.v, trajectory.scheme, cast(Origin, trajectory.final.origin)
    system, servo = with_rank_if_cheap(system.astype(q.dtype), q[0], t[0]).with_step(trajectory.dt), servo.astype(q.dtype)
    given = controls_of(system, controls, origin, 0, steps, servo)
    table = None if given.table is None else jax.vmap(mean_control)(given.table)
    rows = servo.control(table, trajectory.inputs)
    if scheme.acting != "end":
        return rows
    first = first_control(system, t[0], q[0], v[0], scheme, given.first, servo)
    return Held(t, jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, rows))
