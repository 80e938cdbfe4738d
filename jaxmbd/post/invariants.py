"""What a motion should keep: energies, momentum maps, constraints."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..constraints.calculus import constraint_rate, energy as continuous_energy, mass_matrix, momentum as continuous_momentum
from ..errors import ModelError
from ..numerics.arguments import checked
from ..numerics.arrays import over_rows
from ..numerics.lapack import solve
from ..numerics.trial import require_shape, returned
from ..schemes import AbstractVariational
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory, as_rows, memory_of
from .rounding import multiplier_digits
from .sliding import dissipated


@along_trajectory("q", "v", "p")
def energy(system: System, trajectory: Trajectory, p: Float[Array, "rows n"] | None = None) -> Float[Array, " rows"]:
    r"""$H_d(q_n, p_n) = p \cdot v - L$ (51), (53), from momenta of the trajectory, or from others with a regular mass matrix.

    With friction, the energy that it stores is part of it.
    """
    memory, friction = memory_of(system, trajectory, "energy"), system.friction
    held = 0.0 if friction is None else jax.vmap(friction.stored)(memory, trajectory.q)
    if p is None:
        at = lambda t, q, v, p: p @ v - system.lagrangian(t, q, v)
        return jax.vmap(at)(trajectory.t, trajectory.q, trajectory.v, trajectory.p) + held

    def from_momentum(t, q, v, p):
        M = mass_matrix(system, t, q, v)
        v = v + solve(M, p - continuous_momentum(system, t, q, v))
        return continuous_energy(system, t, q, v)

    return over_rows(from_momentum, trajectory.t, trajectory.q, trajectory.v, as_rows(p, trajectory, "p")) + held


@along_trajectory("q", "stages")
def discrete_energy(system: System, trajectory: Trajectory) -> Float[Array, " steps"]:
    r"""$E_d(q_n, q_{n+1}) = -\partial L_d/\partial h$, for the midpoint rule (50), (52): one value a step."""
    scheme = trajectory.scheme
    if not isinstance(scheme, AbstractVariational):
        raise ModelError(f"discrete_energy needs a scheme with a discrete Lagrangian; {type(scheme).__name__} has none")
    trajectory.require_every_step("discrete_energy")

    def at(t, q0, inside, q1):
        return -jax.grad(scheme.discrete_lagrangian, 2)(system, t, trajectory.dt, jnp.vstack([q0, inside, q1]))

    return jax.vmap(at)(trajectory.t[:-1], trajectory.q[:-1], trajectory.stages[:-1], trajectory.q[1:])


@along_trajectory("q", "p")
def momentum_map(system: System, trajectory: Trajectory, action: Callable) -> Float[Array, " rows"]:
    r"""$J = p \cdot \xi(q)$ for the symmetry `action(s, q) -> q`, $\xi = \partial_s\,\mathrm{action}|_{s=0}$: Noether's theorem.

    Constant if the action, for example a rotation by the angle `s`, leaves the Lagrangian and the constraints as they are.
    """
    zero, n = jnp.zeros((), trajectory.q.dtype), trajectory.q.shape[1]
    found = returned("action", action, (zero, trajectory.q[0]))
    require_shape("action", action, found, (n,), f"coordinates of shape {(n,)}")

    def at(q, p):
        return p @ jax.jvp(lambda s: action(s, q), (zero,), (jnp.ones_like(zero),))[1]

    return jax.vmap(at)(trajectory.q, trajectory.p)


@along_trajectory("q")
def constraint_residuals(system: System, trajectory: Trajectory) -> Float[Array, "rows m"]:
    """$g(t_n, q_n)$."""
    return jax.vmap(system.constraints)(trajectory.t, trajectory.q)


@along_trajectory("q", "v")
def constraint_rates(system: System, trajectory: Trajectory) -> Float[Array, "rows m"]:
    r"""$\dot g(t_n, q_n, v_n)$ and $a(t_n, q_n, v_n)$: zero to rounding with variational schemes, with others up to their error."""
    return jax.vmap(lambda t, q, v: constraint_rate(system, t, q, v))(trajectory.t, trajectory.q, trajectory.v)


@checked
def summary(system: System, trajectory: Trajectory) -> dict[str, float | int]:
    """A short table of what was kept: energy, constraints, and how hard Newton's method worked."""
    H = energy(system, trajectory)
    table = {
        "steps": int(trajectory.final.step),
        "energy at the start": float(H[0]),
        "largest change of energy": float(jnp.max(jnp.abs(H - H[0]))),
        "Newton iterations, at most": int(jnp.max(trajectory.newton_steps)),
        "relative residual, at most": float(jnp.max(trajectory.residuals)),
    }
    if system.has("friction"):
        table["energy dissipated by friction"] = float(dissipated(system, trajectory)[-1])
    if system.constrained:
        table["constraint, at most"] = float(jnp.max(jnp.abs(constraint_residuals(system, trajectory)), initial=0))
        table["hidden constraint, at most"] = float(jnp.max(jnp.abs(constraint_rates(system, trajectory))))
        table["redundant constraints"] = trajectory.redundant
        if trajectory.multipliers is not None:
            table["digits of multipliers, about"] = int(multiplier_digits(system, trajectory))
    return table
