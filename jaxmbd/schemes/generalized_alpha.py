"""Schemes that balance forces at the end of a step, for comparison: the generalized-alpha method."""

import abc

import equinox as eqx
from jaxtyping import Array, Float, PyTree

from ..constraints.calculus import constraint_forces, constraint_jacobian, equations_of_motion, momentum
from ..constraints.manifold import AbstractManifold, manifold_at
from ..errors import ModelError
from ..numerics.arguments import check_fields
from ..system import Scalar, System, Vector
from .base import AbstractScheme, Memory, StepInput

Moves = Float[Array, "1 n"]


class AbstractEnd(AbstractScheme):
    """Two nodes; forces and constraint forces are balanced at the second; loads that vary in time, and controls, have their value there."""

    fractions: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(0.0, 1.0))
    weights: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(0.0, 1.0))
    acting = "end"

    @property
    def control_at(self) -> tuple[float, ...]:
        return (1.0,)

    def directions(self, moves: Moves, step: StepInput) -> Float[Array, "1 m n"]:
        return constraint_jacobian(step.system, step.t0 + step.dt, step.q0 + moves[0])[None]

    def constraint_forces(self, moves: Moves, multipliers: Float[Array, "1 m"], step: StepInput) -> Moves:
        return constraint_forces(step.system, step.t0 + step.dt, step.q0 + moves[0], multipliers[0])[None]

    def slips(self, moves: Moves, step: StepInput) -> Float[Array, "1 k"]:
        t1, q1 = step.t0 + step.dt, step.q0 + moves[0]
        return step.dt * step.system.velocity_constraints(t1, q1, self.velocity(moves, step))[None]

    @abc.abstractmethod
    def velocity(self, moves: Moves, step: StepInput) -> Vector:
        """The velocity at the end of the step."""


class GeneralizedAlpha(AbstractEnd):
    r"""The generalized-$\alpha$ method for constrained systems, with the spectral radius $\rho_\infty$ at infinite frequency: order 2.

    $(1 - \alpha_m) a_1 + \alpha_m a_0 = (1 - \alpha_f) \dot v_1 + \alpha_f \dot v_0$ with
    $q_1 = q_0 + h v_0 + h^2 ((\tfrac12 - \beta) a_0 + \beta a_1)$, $v_1 = v_0 + h ((1 - \gamma) a_0 + \gamma a_1)$, and $\dot v_1$ from the
    equations of motion at $q_1$ with $g(q_1) = 0$. High frequencies are damped, and all energy is slowly lost, if $\rho_\infty < 1$.
    """

    rho: float = eqx.field(static=True, default=0.8)

    def __check_init__(self):
        check_fields(self)
        if not 0 <= self.rho <= 1:
            raise ModelError(f"the spectral radius rho must lie between 0 and 1, not {self.rho}")

    def predict(self, extrapolated: Moves, step: StepInput) -> Moves:
        return extrapolated

    def balance(self, moves: Moves, step: StepInput) -> Moves:
        v1, rate, _ = self._rates(moves, step)
        system, t1, q1 = step.system, step.t0 + step.dt, step.q0 + moves[0]
        return -step.dt * equations_of_motion(system, t1, q1, v1, rate, step.control)[None]

    def start(self, system: System, t0: Scalar, q0: Vector, v0: Vector, control: PyTree) -> Memory:
        a0 = manifold_at(system, t0, q0).acceleration(v0, control)[0]
        return momentum(system, t0, q0, v0), (v0, a0, a0)

    def advance(self, moves: Moves, step: StepInput) -> Memory:
        rates = self._rates(moves, step)
        return momentum(step.system, step.t0 + step.dt, step.q0 + moves[0], rates[0]), rates

    def read(self, at: StepInput, manifold: AbstractManifold, guess: Vector) -> tuple[Vector, Vector]:
        return at.carried[0], at.p0

    def velocity(self, moves: Moves, step: StepInput) -> Vector:
        return self._rates(moves, step)[0]

    def _rates(self, moves: Moves, step: StepInput) -> tuple[Vector, Vector, Vector]:
        """Velocity, acceleration and algorithmic acceleration at the end of the step."""
        alpha_m, alpha_f = (2 * self.rho - 1) / (self.rho + 1), self.rho / (self.rho + 1)
        v0, rate0, a0 = step.carried
        v1, a1 = newmark(moves[0], v0, a0, step.dt, 0.25 * (1 + alpha_f - alpha_m) ** 2, 0.5 + alpha_f - alpha_m)
        return v1, ((1 - alpha_m) * a1 + alpha_m * a0 - alpha_f * rate0) / (1 - alpha_f), a1


def newmark(change: Array, v0: Array, a0: Array, dt: Scalar, beta: float, gamma: float) -> tuple[Array, Array]:
    """Velocity and acceleration at the end of a step from the change of position, by Newmark's formulas."""
    a1 = (change - dt * v0 - dt**2 * (0.5 - beta) * a0) / (beta * dt**2)
    return v0 + dt * ((1 - gamma) * a0 + gamma * a1), a1
