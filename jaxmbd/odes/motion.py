"""What an integration returns: a motion of functions, or the trajectory of a system."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..constraints.calculus import momentum
from ..constraints.counts import constraint_count, rank
from ..errors import Result, SimulationError
from ..simulation.start import fingerprint
from ..simulation.trajectory import Adaptive, Origin, State as NodeState, Status, Trajectory, first_failed, poison
from ..system import System
from .dynamics import State


class Motion(eqx.Module):
    r"""A motion at saved times, one row a time; a leading batch axis appears under `vmap`.

    `q` and `v` fulfil the constraints if they were projected, `w` are the other states. `multipliers` are $\lambda$, the forces of the
    constraints being $-A^T \lambda$, and `velocity_multipliers` $\mu$, what velocities had to be corrected by; both (14).

    `results` speaks of rows: the code of a failure for the first row that was not reached, `NOT_REACHED` after it, `AFTER_EVENT` after an
    event; such rows hold the last state. `final` is the state at the end and `end` its time, `status` how the motion ended, `scheme` which
    solver it was, and how many steps were `accepted` and `rejected`.
    """

    t: Float[Array, " rows"]
    q: Float[Array, "rows n"]
    v: Float[Array, "rows n"]
    w: PyTree
    multipliers: Float[Array, "rows m"]
    velocity_multipliers: Float[Array, "rows m"]
    results: Int[Array, " rows"]
    end: Float[Array, ""]
    final: State
    status: Status
    scheme: Adaptive

    @property
    def successful(self) -> Bool[Array, "*batch"]:
        """Whether the end or an event was reached."""
        return self.status.result == Result.SUCCESS

    def check(self) -> None:
        """Raise `SimulationError` if the start was wrong or the end was not reached, naming time and worst constraint."""
        failed = first_failed(self.status.result, "motion")
        if failed is None:
            return
        first, where = failed
        status, end, taken = jax.tree.map(lambda leaf: leaf[first], jax.lax.stop_gradient((self.status, self.end, self.scheme.accepted)))
        raise SimulationError(where + Adaptive.describe(status, int(taken), float(end), None), self)

    def poisoned(self) -> "Motion":
        """Not a number wherever the end was not reached, so that a derivative taken without its value is loud too."""
        return poison(self, ~self.successful)


class Beside(eqx.Module):
    r"""What a trajectory carries beside coordinates: states `w`, and $\mu$, as `Motion` has them."""

    w: PyTree
    velocity_multipliers: Float[Array, "rows m"]


def as_trajectory(system: System, motion: Motion, begin: Array) -> Trajectory:
    """The same as the trajectory of a system, which post-processing reads; what that has no place for is `carried`."""
    p = jax.vmap(lambda t, q, v: momentum(system, t, q, v))(motion.t, motion.q, motion.v)
    span, q = jnp.abs(motion.end - begin), motion.final.q
    still, origin = jnp.zeros((1, q.size), q.dtype), Origin(begin, span, fingerprint(system), motion.scheme)
    last = momentum(system, motion.end, q, motion.final.v)
    final = NodeState(motion.scheme.accepted, motion.end, q, last, still, still[0], motion.status, motion.final.w, None, origin)
    none = jnp.zeros_like(motion.t)
    return Trajectory(
        t=motion.t,
        results=motion.results,
        newton_steps=none.astype(jnp.int32),
        residuals=none,
        dt=span,
        final=final,
        scheme=motion.scheme,
        stride=1,
        fields=("q", "v", "p", "multipliers", "carried"),
        redundant=constraint_count(system, q) - rank(system, q),
        q=motion.q,
        v=motion.v,
        p=p,
        multipliers=motion.multipliers,
        carried=Beside(motion.w, motion.velocity_multipliers),
    )
