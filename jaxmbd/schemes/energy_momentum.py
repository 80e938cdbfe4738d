"""The energy-momentum scheme: discrete gradients in place of derivatives."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..constraints.calculus import momentum, velocity_forces, velocity_jacobian
from ..constraints.counts import position_count
from ..constraints.manifold import AbstractManifold
from ..numerics.discrete_gradient import discrete_jacobian, discrete_vjp
from ..system import Scalar, System, Vector
from .base import AbstractScheme, Memory, StepInput


class AbstractInterval(AbstractScheme):
    r"""Two nodes, and constraint forces along the discrete derivative $\bar G$ of the constraints, all through the step.

    They do no work, $\bar G (q_1 - q_0) = g(q_1) - g(q_0) = 0$, and have no moment where constraints do not see rotations. Constraints on
    velocities hold in the middle of the step, $a(\bar t, \bar q, \Delta q/h) = 0$, and their forces act along the rows $A(\bar t, \bar q)$
    there, so that these do no work either, unless the constraints move.
    """

    fractions: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(0.0, 1.0))
    weights: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(0.5, 0.5))
    acting = "interval"

    def directions(self, moves: Float[Array, "1 n"], step: StepInput) -> Float[Array, "1 m n"]:
        if not step.system.has("velocity_constraints"):
            return self._of_positions(moves, step)[None]
        rolling = velocity_jacobian(step.system, step.middle, step.q0 + 0.5 * moves[0])
        return jnp.concatenate([self._of_positions(moves, step), rolling])[None]

    def constraint_forces(self, moves: Float[Array, "1 n"], multipliers: Float[Array, "1 m"], step: StepInput) -> Float[Array, "1 n"]:
        if not step.system.has("velocity_constraints"):
            return self._pull(moves, multipliers, step)
        count = position_count(step.system, step.q0)
        rolling = velocity_forces(step.system, step.middle, step.q0 + 0.5 * moves[0], multipliers[0, count:])
        return self._pull(moves, multipliers[:, :count], step) + rolling

    def slips(self, moves: Float[Array, "1 n"], step: StepInput) -> Float[Array, "1 k"]:
        return step.dt * step.system.velocity_constraints(step.middle, step.q0 + 0.5 * moves[0], moves[0] / step.dt)[None]

    def _of_positions(self, moves: Float[Array, "1 n"], step: StepInput) -> Float[Array, "m n"]:
        """Directions of the forces of constraints on positions."""
        if not step.system.has("constraints"):
            return jnp.zeros((0, step.q0.size), step.q0.dtype)
        return discrete_jacobian(lambda q: step.system.constraints(step.middle, q), step.q0, step.q0 + moves[0])

    def _pull(self, moves: Float[Array, "1 n"], multipliers: Float[Array, "1 m"], step: StepInput) -> Float[Array, "1 n"]:
        """Forces of these multipliers of constraints on positions."""
        if multipliers.size == 0:
            return jnp.zeros_like(moves)
        return discrete_vjp(lambda q: step.system.constraints(step.middle, q), step.q0, step.q0 + moves[0])[2](multipliers[0])[None]


class EnergyMomentum(AbstractInterval):
    r"""The basic energy-momentum scheme (S4, (3)), for any Lagrangian: order 2, energy and momentum maps exact.

    $q_1 - q_0 = \frac h2 (v_0 + v_1)$ and, with the discrete gradients $\bar D$ of $L(q, v)$ between both ends of the step,
    $\frac12 (p_0 + p_1) = \bar D_v L$ and $p_1 - p_0 = h\,(\bar D_q L + f - \bar G^T \lambda)$.

    The energy $p \cdot v - L$ changes by the work of $f$ alone. With a constant mass matrix $p = M v$ and this is the scheme of
    the paper. Momenta and velocities are the scheme's own: $G v = 0$ holds up to $O(h^2)$.
    """

    def predict(self, extrapolated: Float[Array, "1 n"], step: StepInput) -> Float[Array, "1 n"]:
        return extrapolated

    def balance(self, moves: Float[Array, "1 n"], step: StepInput) -> Float[Array, "1 n"]:
        p1, impulse = self._transfer(moves, step)
        return (step.p0 - p1 + impulse)[None]

    def start(self, system: System, t0: Scalar, q0: Vector, v0: Vector, control: PyTree) -> Memory:
        return momentum(system, t0, q0, v0), v0

    def advance(self, moves: Float[Array, "1 n"], step: StepInput) -> Memory:
        return self._transfer(moves, step)[0], self._velocity(moves, step)

    def read(self, at: StepInput, manifold: AbstractManifold, guess: Vector) -> tuple[Vector, Vector]:
        return at.carried, at.p0

    def _velocity(self, moves: Float[Array, "1 n"], step: StepInput) -> Vector:
        return 2 * moves[0] / step.dt - step.carried

    def _transfer(self, moves: Float[Array, "1 n"], step: StepInput) -> tuple[Vector, Vector]:
        """The momentum at the end, and the impulse of all forces but those of the constraints."""
        system, q1 = step.system, step.q0 + moves[0]
        lagrangian = lambda state: system.lagrangian(step.middle, state[0], state[1])
        value, _, pullback = discrete_vjp(lagrangian, (step.q0, step.carried), (q1, self._velocity(moves, step)))
        by_q, by_v = pullback(jnp.ones_like(value))
        if system.has("forces"):
            by_q = by_q + system.forces(step.middle, step.q0 + 0.5 * moves[0], moves[0] / step.dt, step.control)
        return 2 * by_v - step.p0, step.dt * by_q
