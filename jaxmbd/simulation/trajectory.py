"""What a simulation carries from step to step, and what it returns."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..errors import MOST_NAMED, ModelError, Result, SimulationError, member_name, name_members
from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..schemes import AbstractScheme
from ..system import System


class Status(eqx.Module):
    """How a step ended: its code, Newton's iterations, relative residual, and the constraint that was worst at the last iterate."""

    result: Int[Array, ""]
    newton_steps: Int[Array, ""]
    residual: Float[Array, ""]
    worst: Int[Array, ""]
    violation: Float[Array, ""]


class Adaptive(eqx.Module):
    """In place of a scheme, of a motion whose steps adapted to their errors: which solver made it, and how constraints entered.

    `accepted` and `rejected` count its steps.
    """

    solver: str = eqx.field(static=True)
    method: str = eqx.field(static=True)
    accepted: Int[Array, ""]
    rejected: Int[Array, ""]

    @staticmethod
    def describe(status: Status, taken: int, t: float, system: System | None) -> str:
        """A motion that did not reach its end, in words."""
        result = Result(int(status.result))
        begun = f"the start (t = {t:g}) was refused" if result.of_start else f"the motion stopped at t = {t:g}, after {taken} steps,"
        return f"{begun} with {result.name}: {result.meaning}.{_worst_constraint(status, system)}"


class Origin(eqx.Module):
    """Where a motion comes from: the time of its first step, its time step and scheme, and a number that tells systems apart.

    `control` is the last row of a table of controls, if the scheme has to know it in the next step.
    """

    t0: Float[Array, ""]
    dt: Float[Array, ""]
    fingerprint: Float[Array, ""]
    scheme: AbstractScheme | Any
    control: PyTree = None


class State(eqx.Module):
    """Where a motion stands: all that the next step needs, and how the last one went.

    `incoming` is the momentum that arrived at `q` before its share of the constraint forces, `carried` what else the scheme
    carries, `memory` what friction remembers;
    `displacement` predicts the nodes of the next step relative to `q`, and `previous` is the position one step before, also
    relative to `q`. `origin` is known of the last state of a trajectory, from which `simulate(..., start=state)` goes on.
    """

    step: Int[Array, ""]
    t: Float[Array, ""]
    q: Float[Array, " n"]
    incoming: Float[Array, " n"]
    displacement: Float[Array, "s n"]
    previous: Float[Array, " n"]
    status: Status
    carried: PyTree = None
    memory: PyTree = None
    origin: Origin | None = None


class Trajectory(eqx.Module):
    r"""A motion at saved times, one row a time; a leading batch axis appears under `vmap`.

    `p` and `v` belong together, $p = \partial L/\partial v$, and fulfil the hidden constraints: `p` is the projected momentum (39),
    (40). `multipliers` are the discrete $\lambda_n$ of (22), (38), one-sided (47) at both ends, those of velocities last; for
    redundant constraints the smallest ones. `results`, `newton_steps` and `residuals` speak of the steps that led to a row: the failure
    if there was one, the largest number of iterations, the largest relative residual. The first row has the code of the start: one that
    was wrong inside `jit`, where it cannot be refused, ends the motion there.

    For post-processing: `incoming` is $D_2 L_d(q_{n-1}, q_n)$, `reaction` the impulse of the constraint forces at the node (of
    one side only at both ends), `stages` the nodes inside the step that follows a row, `carried` what else the scheme carried there,
    `memory` what friction remembered (see `mbd.post.friction`).

    Schemes whose constraint forces act over a step or at its end have momenta and velocities of their own, which fulfil the hidden
    constraints only up to the error of the scheme; their multipliers belong to steps and are given as means at the nodes.

    `inputs` are those that a servo took in the step that led to a row, the first row aside, by name: of a motion of which every step is
    saved they are what `controls` takes. They are zero where that step failed. `targets` names the rows of its targets.

    `redundant` is the number of constraints that follow from the others, as far as that was found.

    Columns that `Save(fields=...)` did not ask for are `None`. `reduced` is the total of `Save(reduce=...)`, `final` the last state, with
    which `simulate(..., start=trajectory.final)` goes on.
    """

    t: Float[Array, " rows"]
    results: Int[Array, " rows"]
    newton_steps: Int[Array, " rows"]
    residuals: Float[Array, " rows"]
    dt: Float[Array, ""]
    final: State
    scheme: AbstractScheme | Any
    stride: int = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)
    redundant: int = eqx.field(static=True)
    targets: tuple[str, ...] = eqx.field(static=True, default=())
    q: Float[Array, "rows n"] | Any = None
    v: Float[Array, "rows n"] | Any = None
    p: Float[Array, "rows n"] | Any = None
    multipliers: Float[Array, "rows m"] | Any = None
    incoming: Float[Array, "rows n"] | Any = None
    reaction: Float[Array, "rows n"] | Any = None
    stages: Float[Array, "rows inside n"] | Any = None
    carried: PyTree = None
    memory: PyTree = None
    inputs: PyTree = None
    reduced: PyTree = None

    @property
    def successful(self) -> Bool[Array, "*batch"]:
        """Whether the start was consistent and every step was solved; one value for each member of a batch."""
        return self.final.status.result == Result.SUCCESS

    @property
    def reached(self) -> Int[Array, "*batch"]:
        """Number of steps that were solved since the motion began; rows after them hold the last state that was reached."""
        return self.final.step

    def require(self, purpose: str, *fields: str) -> None:
        """Raise unless these columns were saved."""
        missing = [field for field in fields if field not in self.fields]
        if missing and isinstance(self.scheme, Adaptive):
            raise ModelError(f"{purpose} reads {', '.join(missing)}, which motions with adaptive steps do not have: simulate instead")
        if missing:
            wanted = ", ".join(repr(field) for field in (*self.fields, *missing))
            raise ModelError(f"{purpose} reads {', '.join(missing)}, which was not saved: simulate with save=mbd.Save(fields=({wanted}))")

    def require_every_step(self, purpose: str) -> None:
        """Raise unless neighbouring rows are neighbouring steps."""
        if isinstance(self.scheme, Adaptive):
            raise ModelError(
                f"{purpose} compares neighbouring steps of one length, but those of this motion were adapted: simulate instead"
            )
        if self.stride != 1 or self.t.shape[-1] < 2:
            raise ModelError(
                f"{purpose} compares neighbouring steps, but every {self.stride}th was saved (or the end alone); simulate with save=1"
            )

    @checked
    def check(self, system: System | None = None) -> None:
        """Raise `SimulationError` if the start was wrong or a step failed, naming the step, the residual and the worst constraint.

        Of a batch, it says which members failed, how many, and with which codes, and tells more of the first. With the `system` of a
        mechanism, the joint or body of the constraint is named too.
        """
        codes = self.final.status.result
        failed = first_failed(codes, "trajectory")
        if failed is None:
            return
        first, where = failed
        final, dts = jax.lax.stop_gradient((self.final, self.dt))
        state = jax.tree.map(lambda leaf: leaf[first], eqx.tree_at(lambda s: s.origin, final, None, is_leaf=lambda x: x is None))
        dt = np.broadcast_to(np.asarray(dts), codes.shape)[first]
        if isinstance(self.scheme, Adaptive):
            raise SimulationError(where + Adaptive.describe(state.status, int(state.step), float(state.t), system), self)
        raise SimulationError(where + _describe_failure(state, float(dt), system, self.targets), self)

    def poisoned(self) -> "Trajectory":
        """Not a number wherever a step failed, so that a derivative taken without its value is loud too."""
        return poison(self, ~self.successful)


def poison(tree: PyTree, wrong: Bool[Array, ""]) -> PyTree:
    """The same with all floating numbers not a number where something is wrong, and their derivatives: a choice would make those zero."""
    numbers, rest = eqx.partition(tree, eqx.is_inexact_array)
    factor = jnp.where(wrong, jnp.nan, 1.0)
    return eqx.combine(jax.tree.map(lambda leaf: factor.astype(leaf.dtype) * leaf, numbers), rest)


def first_failed(results: Int[Array, "*batch"], of: str) -> tuple[tuple[int, ...], str] | None:
    """The first member of a batch that failed, and how a message about it begins; `None` if none did. One motion is the member `()`."""
    codes = known(results)
    if codes is None:
        raise ModelError(f"check reads numbers, which jit and vmap hide: call it outside, on the {of} that they return")
    failed = np.argwhere(codes != Result.SUCCESS)
    if len(failed) == 0:
        return None
    first = tuple(failed[0])
    return first, f"{name_members(codes)}. Member {member_name(failed[0])}: " if first else ""


def _describe_failure(state: State, dt: float, system: System | None, targets: tuple[str, ...]) -> str:
    status, step = state.status, int(state.step)
    result = Result(int(status.result))
    if result.of_start:
        begun = f"step {step}, " if step else ""
        text = f"the start ({begun}t = {float(state.t):g}) was refused with {result.name}: {result.meaning}."
        places = np.flatnonzero(~np.isfinite(np.asarray(state.q)))
        text += f" Not finite in its position: {places[:MOST_NAMED].tolist()}." if places.size else ""
    else:
        text = (
            f"step {step} (t = {float(state.t):g} to {float(state.t + dt):g}) failed with {result.name} and relative residual "
            f"{float(status.residual):.3g}: {result.meaning}."
        )
    text += _worst_constraint(status, system)
    if int(status.worst) < -1:
        by = f"off by {float(status.violation):.3g}{'' if result.of_start else ', or a constraint with it'}"
        how = by if status.violation else "of which the inputs lose their hold"
        text += f" Worst target: {targets[-2 - int(status.worst)]!r}, {how}."
    return text + (" No step was taken." if result.of_start else f" The {step} steps before it are in the trajectory of this error.")


def _worst_constraint(status: Status, system: System | None) -> str:
    """The constraint that is to blame, if one is, as a sentence."""
    if int(status.worst) < 0:
        return ""
    result = Result(int(status.result))
    name = f"number {int(status.worst)}" if system is None else system.constraint_name(int(status.worst))
    when = "" if result.of_start else " at the last iterate"
    how = " at the rate" if result in (Result.INCONSISTENT_VELOCITY, Result.NO_VELOCITY) else " by"
    return f" Worst constraint{when}: {name}, off{how} {float(status.violation):.3g}."
