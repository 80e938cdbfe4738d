"""Discrete Legendre transforms, multipliers and hidden constraints along a trajectory."""

from collections.abc import Callable
from typing import Literal

import jax
from jaxtyping import Array, Float

from ..constraints.calculus import constraint_rate, mass_matrix, momentum as continuous_momentum
from ..constraints.manifold import manifold_at
from ..constraints.split import null_space, split, split_coordinates
from ..errors import ModelError
from ..formulations import null_space_source
from ..numerics.arrays import over_rows
from ..numerics.lapack import solve
from ..schemes import AbstractVariational
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory, as_rows, control_at, friction_at, memory_of

Rows = Float[Array, "rows n"]


@along_trajectory("q", "v", "p", "incoming", "reaction")
def momentum(system: System, trajectory: Trajectory, kind: Literal["constrained", "projected", "raw"] = "constrained") -> Rows:
    r"""Momenta at the saved nodes.

    `"constrained"`: $p_n = D_2 L_d - \frac12 h\,G^T \lambda_n$ of (34), (35), in general not tangent to the manifold;
    `"projected"`: $^Q p_n = Q\,D_2 L_d$ of (39), (40), the same as `trajectory.p`;
    `"raw"`: $D_2 L_d$ alone. At both ends of a trajectory, where only one side is known, the constrained momentum is the projected one.

    Of a scheme without a discrete Lagrangian, the constrained and the raw momentum are the scheme's own.
    """
    if kind == "projected":
        return _projected(system, trajectory)
    if kind == "raw":
        return trajectory.incoming
    if kind != "constrained":
        raise ModelError(f"kind must be 'constrained', 'projected' or 'raw', not {kind!r}")
    weights = trajectory.scheme.weights
    inner = trajectory.incoming - trajectory.reaction * weights[-1] / (weights[-1] + weights[0])
    return inner.at[0].set(trajectory.p[0]).at[-1].set(trajectory.p[-1])


def _projected(system: System, trajectory: Trajectory) -> Rows:
    """Momenta of the admissible velocities; those of a variational scheme are known already."""
    if isinstance(trajectory.scheme, AbstractVariational):
        return trajectory.p

    def at(t, q, v, p):
        return continuous_momentum(system, t, q, manifold_at(system, t, q).sharing().velocity(p, v))

    return over_rows(at, trajectory.t, trajectory.q, trajectory.v, trajectory.p)


@along_trajectory("q", "incoming")
def reduced_momentum(
    system: System, trajectory: Trajectory, source: Literal["auto", "user", "chart", "qr"] = "auto"
) -> Float[Array, "rows d"]:
    r"""$^P p_n = P^T(q_n)\,D_2 L_d$ (41), (42), with the null space matrix of `NullSpace(source)`."""
    chosen = null_space_source(source, system, ("user", "chart"))

    def reduce(t, q, p):
        at = (split_coordinates if chosen == "qr" else split)(system, t, q)
        return null_space(system, t, q, chosen, at).T @ p

    return over_rows(reduce, trajectory.t, trajectory.q, trajectory.incoming)


@along_trajectory("q", "v")
def multipliers(system: System, trajectory: Trajectory, controls: Callable | None = None) -> Float[Array, "rows m"]:
    r"""Multipliers of the continuous equations of motion (3) at $(q_n, v_n)$.

    They keep the order of the scheme at every node, while the discrete `trajectory.multipliers` balance the discrete equations and
    approach the continuous ones with a lower order.
    """

    def at(t, q, v, memory):
        return manifold_at(system, t, q).acceleration(v, control_at(controls, t), friction_at(system, memory, q, v))[1]

    return over_rows(at, trajectory.t, trajectory.q, trajectory.v, memory_of(system, trajectory, "multipliers"))


@along_trajectory("q")
def hidden_velocity_constraints(system: System, trajectory: Trajectory) -> Float[Array, "steps m"]:
    r"""$f_d = G\!\left(\frac{q_n + q_{n+1}}{2}\right) \frac{q_{n+1} - q_n}{h}$ (45), plus $\partial g/\partial t$ if constraints move."""
    trajectory.require_every_step("hidden_velocity_constraints")
    q, t, dt = trajectory.q, trajectory.t, trajectory.dt

    def at(t, q0, q1):
        return constraint_rate(system, t + 0.5 * dt, 0.5 * (q0 + q1), (q1 - q0) / dt)

    return jax.vmap(at)(t[:-1], q[:-1], q[1:])


@along_trajectory("q", "v")
def hidden_momentum_constraints(system: System, trajectory: Trajectory, p: Rows) -> Float[Array, "rows m"]:
    r"""$h_d = G(q_n)\,M^{-1} p_n$ (46) for momenta `p` at the saved nodes, see `momentum`; the mass matrix must be regular."""

    def at(t, q, v, p):
        M = mass_matrix(system, t, q, v)
        change = solve(M, p - continuous_momentum(system, t, q, v))
        return constraint_rate(system, t, q, v + change)

    return over_rows(at, trajectory.t, trajectory.q, trajectory.v, as_rows(p, trajectory, "p"))
