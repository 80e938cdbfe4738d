"""What a simulation carries from step to step, and what it returns."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..errors import ModelError, Result, SimulationError
from ..schemes import AbstractScheme
from ..system import System


class Status(eqx.Module):
    """How a step ended: its code, Newton's iterations, relative residual, and the constraint that was worst at the last iterate."""

    result: Int[Array, ""]
    newton_steps: Int[Array, ""]
    residual: Float[Array, ""]
    worst: Int[Array, ""]
    violation: Float[Array, ""]


class State(eqx.Module):
    """Where a motion stands: all that the next step needs, and how the last one went.

    `incoming` is the momentum that arrived at `q` before its share of the constraint forces, `carried` what else the scheme
    carries; `displacement` predicts the nodes of the next step relative to `q`, and `previous` is the position one step before, also
    relative to `q`.
    """

    step: Int[Array, ""]
    t: Float[Array, ""]
    q: Float[Array, " n"]
    incoming: Float[Array, " n"]
    displacement: Float[Array, "s n"]
    previous: Float[Array, " n"]
    status: Status
    carried: PyTree = None


class Trajectory(eqx.Module):
    r"""A motion at saved times, one row a time; a leading batch axis appears under `vmap`.

    `p` and `v` belong together, $p = \partial L/\partial v$, and fulfil the hidden constraints: `p` is the projected momentum (39),
    (40). `multipliers` are the discrete $\lambda_n$ of (22), (38), one-sided (47) at both ends; for redundant constraints the
    smallest ones. `results`, `newton_steps` and `residuals` speak of the steps that led to a row: the failure if there was one,
    the largest number of iterations, the largest relative residual.

    For post-processing: `incoming` is $D_2 L_d(q_{n-1}, q_n)$, `reaction` the impulse of the constraint forces at the node (of
    one side only at both ends), `stages` the nodes inside the step that follows a row, `carried` what else the scheme carried there.

    Schemes whose constraint forces act over a step or at its end have momenta and velocities of their own, which fulfil the hidden
    constraints only up to the error of the scheme; their multipliers belong to steps and are given as means at the nodes.
    """

    t: Float[Array, " rows"]
    q: Float[Array, "rows n"]
    v: Float[Array, "rows n"]
    p: Float[Array, "rows n"]
    multipliers: Float[Array, "rows m"]
    results: Int[Array, " rows"]
    newton_steps: Int[Array, " rows"]
    residuals: Float[Array, " rows"]
    incoming: Float[Array, "rows n"]
    reaction: Float[Array, "rows n"]
    stages: Float[Array, "rows inside n"]
    carried: PyTree
    dt: Float[Array, ""]
    final: State
    scheme: AbstractScheme
    stride: int = eqx.field(static=True)
    rank: int | None = eqx.field(static=True)

    @property
    def redundant(self) -> int:
        """How many of the constraints follow from the others."""
        return 0 if self.rank is None else self.multipliers.shape[-1] - self.rank

    @property
    def successful(self) -> Bool[Array, "*batch"]:
        """Whether every step was solved; one value for each member of a batch."""
        return self.final.status.result == Result.SUCCESS

    @property
    def reached(self) -> Int[Array, "*batch"]:
        """Number of steps that were solved; rows after them hold the last state that was reached."""
        return self.final.step

    def last_row(self) -> "Trajectory":
        """The end alone."""
        columns = lambda tree: jax.tree.leaves([getattr(tree, name) for name in _COLUMNS])
        return eqx.tree_at(columns, self, [column[-1:] for column in columns(self)])

    def require_every_step(self, purpose: str) -> None:
        """Raise unless neighbouring rows are neighbouring steps."""
        if self.stride != 1 or self.t.shape[-1] < 2:
            raise ModelError(
                f"{purpose} compares neighbouring steps, but every {self.stride}th was saved (or the end alone); simulate with save=1"
            )

    def check(self, system: System | None = None) -> None:
        """Raise `SimulationError` if a step failed, naming the step, the residual and the worst constraint.

        With the `system` of a mechanism, the joint or body of that constraint is named too.
        """
        final, dts = jax.lax.stop_gradient((self.final, self.dt))
        solved = np.asarray(final.status.result == Result.SUCCESS)
        if solved.all():
            return
        first = tuple(int(i) for i in np.argwhere(~solved)[0])
        state = jax.tree.map(lambda leaf: leaf[first], final)
        dt = np.broadcast_to(np.asarray(dts), solved.shape)[first]
        where = f"batch member {', '.join(map(str, first))} ({(~solved).sum()} of {solved.size} failed): " if first else ""
        raise SimulationError(where + _describe_failure(state, float(dt), system), self)


_COLUMNS = ("t", "q", "v", "p", "multipliers", "results", "newton_steps", "residuals", "incoming", "reaction", "stages", "carried")


def _describe_failure(state: State, dt: float, system: System | None) -> str:
    status, step = state.status, int(state.step)
    result = Result(int(status.result))
    text = (
        f"step {step} (t = {float(state.t):g} to {float(state.t + dt):g}) failed with {result.name} and relative residual "
        f"{float(status.residual):.3g}: {result.meaning}."
    )
    if int(status.worst) >= 0:
        name = f"number {int(status.worst)}" if system is None else system.constraint_name(int(status.worst))
        text += f" Worst constraint at the last iterate: {name}, off by {float(status.violation):.3g}."
    return text + f" The {step} steps before it are in the trajectory of this error."
