"""Motions by adaptive solvers of differential equations: `integrate`."""

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..constraints.judgement import Verdict
from ..errors import ModelError, Result, explanations
from ..numerics.arguments import checked
from ..numerics.arrays import known, over_rows
from ..numerics.compile import compiled
from ..simulation.trajectory import Adaptive, Trajectory
from ..system import System, VectorLike
from .controller import Refusal, Watched
from .dynamics import Dynamics, State
from .ending import status_of
from .methods import AbstractMethod, Field, Projection
from .motion import Motion, as_trajectory
from .solver import CountingSteps, Projected
from .starts import begin

RTOL, ATOL = 1e-6, 1e-9
"""Tolerances of the error of a step, unless others are given."""

ROWS = 101
"""Saved rows, unless times are given."""


class Choices(NamedTuple):
    """How a motion is integrated."""

    solver: diffrax.AbstractSolver
    controller: diffrax.AbstractStepSizeController
    method: AbstractMethod
    event: diffrax.Event | None
    progress_meter: diffrax.AbstractProgressMeter
    adjoint: diffrax.AbstractAdjoint
    max_steps: int


@checked
def integrate(
    dynamics: System | Dynamics,
    q0: VectorLike,
    v0: VectorLike | None = None,
    w0: PyTree = None,
    *,
    t1: ArrayLike,
    t0: ArrayLike = 0.0,
    solver: diffrax.AbstractSolver = diffrax.Dopri5(),
    rtol: float | None = None,
    atol: float | None = None,
    saveat: Any = ROWS,
    dt0: ArrayLike | None = None,
    dtmax: float | None = None,
    dtmin: float | None = None,
    method: AbstractMethod = Projection(),
    controls: Any = None,
    event: diffrax.Event | None = None,
    max_steps: int = 100_000,
    controller: diffrax.AbstractStepSizeController | None = None,
    progress_meter: diffrax.AbstractProgressMeter = diffrax.NoProgressMeter(),
    adjoint: diffrax.AbstractAdjoint = diffrax.RecursiveCheckpointAdjoint(),
    throw: bool = True,
) -> Trajectory | Motion:
    r"""Integrate $M \dot v = f$ with constraints by any solver of diffrax, whose steps adapt to the error.

    Pure: it may be called inside `jit`, `vmap` and `grad`. The dtype is that of `q0`; parameters follow it.

    **Arguments**

    - `dynamics`: a system, or `Dynamics`, which may have constraints on velocities and states `w` that are no coordinates.
    - `q0`, `v0`, `w0`: where the motion begins, on the constraints and along them. No `v0` means rest.
    - `t0`, `t1`: from when to when; `t1` may lie before `t0`.
    - `solver`: of diffrax, such as `Dopri5()`, `Tsit5()`, `Dopri8()`, or for stiff motions `Kvaerno5()`.
    - `rtol`, `atol`: relative and absolute tolerance of the error of a step, 1e-6 and 1e-9 unless given.
    - `saveat`: times of the rows, or their number, evenly spaced from `t0` to `t1`. The solver does not stop at them.
    - `dt0`, `dtmax`, `dtmin`: the first, the longest and the shortest step.
    - `method`: how constraints enter: `Projection()`, or to compare `Baseline()`, `Baumgarte(alpha, beta)`, `BraunGoldfarb()` or
      `Penalty(stiffness, damping)`.
    - `controls`: for a system whose forces take a control, a function of time or of `(t, q, v, w)`.
    - `event`: a `diffrax.Event`, whose functions get `(t, y, args)` with a `State` `y`; the motion ends there.
    - `max_steps`: of which the rejected ones are a part.
    - `controller`: instead of tolerances and limits, a step-size controller of diffrax; `diffrax.ConstantStepSize()` with `dt0`.
    - `progress_meter`, `adjoint`: as in `diffrax.diffeqsolve`.
    - `throw`: raise `SimulationError` when the end is not reached; what was reached is in its `trajectory`. Otherwise look at `results`.

    **Returns**

    Of a system its `Trajectory`, which post-processing reads as one of `simulate`; of other dynamics a `Motion`. Their `scheme` tells how
    many steps were accepted and rejected. An event is found in the last row, and in `final`. What else a `Motion` has is in `carried` of a
    `Trajectory`: `carried.w`, and `carried.velocity_multipliers`.
    """
    dynamics, y0, times, verdict = begin(dynamics, q0, v0, w0, (t0, t1), controls)
    rows = _rows(saveat, *times)
    limits = {"rtol": rtol, "atol": atol, "dtmin": dtmin, "dtmax": dtmax}
    controller = _controller(limits, times) if controller is None else _alone(controller, limits)
    if isinstance(controller, diffrax.AbstractAdaptiveStepSizeController):
        controller = Watched(controller)
    elif dt0 is None:
        raise ModelError(f"{type(controller).__name__} needs dt0, the length of the steps")
    first = None if dt0 is None else jnp.asarray(dt0, y0.q.dtype)
    choices = Choices(solver, controller, method, event, progress_meter, adjoint, max_steps)
    found = _run(dynamics, y0, times, rows, first, verdict, choices)
    if not throw:
        return found
    if known(found.successful) is None:
        code = found.final.status.result if isinstance(found, Trajectory) else found.status.result
        return eqx.branched_error_if(found.poisoned(), ~found.successful, code, FAILURES)
    found.check(dynamics.system) if isinstance(found, Trajectory) else found.check()
    return found


FAILURES = explanations("the integration failed", "call integrate(..., throw=False) and then check() outside jit to see when and why")
"""What is told of a motion inside `jit`."""


def _controller(limits: dict[str, float | None], times: tuple[Array, Array]) -> diffrax.PIDController:
    """That of the tolerances and limits that are given, in the dtype of times."""
    smallest = 1000 * jnp.finfo(times[0].dtype).eps * jnp.maximum(jnp.abs(times[0]), jnp.abs(times[1]))
    given = {name: jnp.asarray(value, times[0].dtype) for name, value in limits.items() if value is not None}
    usual = {"rtol": jnp.asarray(RTOL, times[0].dtype), "atol": jnp.asarray(ATOL, times[0].dtype), "dtmin": smallest}
    return diffrax.PIDController(**(usual | given), force_dtmin=False)


def _alone(controller: diffrax.AbstractStepSizeController, limits: dict[str, float | None]) -> diffrax.AbstractStepSizeController:
    """A controller of the user's, which has tolerances and limits of its own."""
    both = [name for name, value in limits.items() if value is not None]
    if both:
        raise ModelError(f"controller and {', '.join(both)} were given: set them in the controller, diffrax.PIDController({both[0]}=...)")
    return controller


def _rows(saveat: Any, t0: Array, t1: Array) -> Float[Array, " rows"]:
    """Times of the saved rows."""
    if isinstance(saveat, int | np.integer) and not isinstance(saveat, bool):
        if saveat < 2:
            raise ModelError(f"saveat must be times, or a number of rows, two at least, not {saveat}")
        part = jnp.linspace(0, 1, int(saveat), dtype=t0.dtype)
        return (t0 + (t1 - t0) * part).at[-1].set(t1)
    rows = jnp.asarray(saveat, t0.dtype)
    if rows.ndim != 1 or rows.size == 0:
        raise ModelError(f"saveat must be a row of times, or their number, not an array of shape {rows.shape}")
    times, a, b = (known(value) for value in (rows, t0, t1))
    if times is not None and a is not None and b is not None:
        way = np.sign(b - a)
        if np.any(way * np.diff(times) < 0) or np.any(way * (times - a) < 0) or np.any(way * (b - times) < 0):
            raise ModelError(f"saveat must go from t0 = {a:g} to t1 = {b:g} without turning back, and not leave them")
    return rows


@compiled
def _run(
    dynamics: Dynamics, y0: State, times: tuple[Array, Array], rows: Array, dt0: Array | None, verdict: Verdict | None, choices: Choices
) -> Trajectory | Motion:
    """Integrate, and read multipliers in the saved rows; from a start that was refused no step is taken."""
    (t0, t1), refused = times, jnp.array(False) if verdict is None else verdict.result != Result.SUCCESS
    ends, wanted = jnp.where(refused, t0, t1), jnp.where(refused, t0, rows)
    watched = isinstance(choices.controller, Watched)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(Field(dynamics, choices.method)),
        _solver(dynamics, choices),
        t0,
        ends,
        dt0,
        y0,
        saveat=diffrax.SaveAt(subs=(diffrax.SubSaveAt(ts=wanted), diffrax.SubSaveAt(t1=True)), controller_state=watched),
        stepsize_controller=choices.controller,
        event=choices.event,
        progress_meter=choices.progress_meter,
        adjoint=choices.adjoint,
        max_steps=choices.max_steps,
        throw=False,
    )
    (t, last_t), (y, last_y) = solution.ts, solution.ys
    end, final = last_t[0], jax.tree.map(lambda leaf: leaf[0], last_y)
    refusal = solution.controller_state[1] if watched else Refusal.none(jnp.zeros_like(t0) if dt0 is None else jnp.abs(dt0))
    status = status_of(dynamics, choices.method, solution, end, final, refusal, jnp.where(t1 >= t0, 1, -1).astype(t0.dtype), verdict)
    reached = jnp.isfinite(t) & jnp.all(jnp.isfinite(y.q), axis=1)
    held = lambda many, one: jnp.where(reached.reshape(-1, *(1 for _ in one.shape)), many, one)
    t, y = held(t, end), jax.tree.map(held, y, final)
    read = lambda t, y: choices.method.instant(dynamics, t, y, jnp.full_like(t, jnp.inf))[2:]
    multipliers, corrections = over_rows(read, t, y)
    scheme = Adaptive(
        type(choices.solver).__name__,
        type(choices.method).__name__,
        jnp.asarray(solution.stats["num_accepted_steps"], jnp.int32),
        jnp.asarray(solution.stats["num_rejected_steps"], jnp.int32),
    )
    motion = Motion(t, y.q, y.v, y.w, multipliers, corrections, _results(reached, status.result), end, final, status, scheme)
    return as_trajectory(dynamics.system, motion, t0) if dynamics.of_system else motion


def _solver(dynamics: Dynamics, choices: Choices) -> diffrax.AbstractSolver:
    if isinstance(choices.method, Projection):
        return Projected(choices.solver, dynamics, choices.method)
    return CountingSteps(choices.solver) if choices.method.stepped else choices.solver


def _results(reached: Array, result: Array) -> Array:
    """The code of the end in the first row that it kept the motion from, or in the first one of all where no step was taken."""
    refused = (result >= Result.INCONSISTENT_POSITION) & (result <= Result.NON_FINITE_INPUT)
    good = reached & ~refused
    first = ~good & (jnp.cumsum(~good) == 1)
    later = jnp.where(result == Result.SUCCESS, Result.AFTER_EVENT, jnp.where(first, result, Result.NOT_REACHED))
    return jnp.where(good, Result.SUCCESS, later).astype(jnp.int32)
