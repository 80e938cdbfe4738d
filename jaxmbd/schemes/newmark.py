"""Newmark's method with rotations, for comparison."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from ..assembly.model import as_assembly
from ..assembly.rigid_motion import Spread, Vectors, angular_rates, coordinate_rates, directors, generalised_force, lifted
from ..constraints.calculus import momentum
from ..constraints.manifold import AbstractManifold, manifold_at
from ..errors import ModelError
from ..geometry.rotation import from_cayley_vector
from ..numerics.arguments import check_fields
from ..system import Scalar, System, Vector
from .base import Memory, StepInput
from .generalized_alpha import AbstractEnd, Moves, newmark
from .rigid_energy_momentum import displacement, keep_turning


class Newmark(AbstractEnd):
    r"""Newmark's method for rigid bodies with rotations, as energy-momentum schemes are compared with (S3).

    $\Delta x = h u_0 + h^2 ((\tfrac12 - \beta) a_0 + \beta a_1)$ and $u_1 = u_0 + h ((1 - \gamma) a_0 + \gamma a_1)$ for centres of
    mass, and the same for rotation vectors, angular velocities and accelerations in body axes; Newton's and Euler's equations hold at the
    end of the step. The default is the trapezoidal rule, which keeps the energy of linear systems; that of rotations it does not keep.
    """

    rigid = True
    beta: float = eqx.field(static=True, default=0.25)
    gamma: float = eqx.field(static=True, default=0.5)

    def __check_init__(self):
        check_fields(self)
        if not self.beta > 0:
            raise ModelError(f"Newmark's beta must be positive, not {self.beta}")

    def predict(self, extrapolated: Moves, step: StepInput) -> Moves:
        return keep_turning(extrapolated, step.carried[1], step)

    def balance(self, moves: Moves, step: StepInput) -> Moves:
        model, system, q1 = as_assembly(step.system), step.system, step.q0 + moves[0]
        spread, rows, t1 = Spread.of(model), model.frames(q1), step.t0 + step.dt
        u1, turning, a1, speeding = self._rates(moves, step)
        times = lambda J, turning: jnp.einsum("nij,nj->ni", J, turning)
        torque = times(spread.inertia, speeding) + jnp.cross(turning, times(spread.inertia, turning))
        inertial = generalised_force(model, rows, spread.mass[:, None] * a1, times(directors(rows), torque))
        active = jax.grad(system.lagrangian, 1)(t1, q1, jnp.zeros_like(q1))
        if system.has("forces"):
            active = active + system.forces(t1, q1, coordinate_rates(model, rows, u1, turning), step.control)
        return step.dt * (active - inertial)[None]

    def start(self, system: System, t0: Scalar, q0: Vector, v0: Vector, control: PyTree) -> Memory:
        model = as_assembly(system)
        rows, rates = model.frames(q0), lifted(model, v0)
        second = lifted(model, manifold_at(system, t0, q0).acceleration(v0, control)[0])
        centre = Spread.of(model).at_centre
        return momentum(system, t0, q0, v0), (centre(rates), angular_rates(rows, rates), centre(second), angular_rates(rows, second))

    def advance(self, moves: Moves, step: StepInput) -> Memory:
        q1, v1 = step.q0 + moves[0], self.velocity(moves, step)
        return momentum(step.system, step.t0 + step.dt, q1, v1), self._rates(moves, step)

    def read(self, at: StepInput, manifold: AbstractManifold, guess: Vector) -> tuple[Vector, Vector]:
        model = as_assembly(at.system)
        return coordinate_rates(model, model.frames(at.q0), *at.carried[:2]), at.p0

    def velocity(self, moves: Moves, step: StepInput) -> Vector:
        model = as_assembly(step.system)
        return coordinate_rates(model, model.frames(step.q0 + moves[0]), *self._rates(moves, step)[:2])

    def _rates(self, moves: Moves, step: StepInput) -> tuple[Vectors, Vectors, Vectors, Vectors]:
        """Velocities and angular velocities, accelerations and angular accelerations at the end of the step."""
        moved = displacement(as_assembly(step.system), moves, step)
        u0, turning0, a0, speeding0 = step.carried
        u1, a1 = newmark(moved.shift, u0, a0, step.dt, self.beta, self.gamma)
        turning1, speeding1 = newmark(jax.vmap(from_cayley_vector)(moved.turn), turning0, speeding0, step.dt, self.beta, self.gamma)
        return u1, turning1, a1, speeding1
