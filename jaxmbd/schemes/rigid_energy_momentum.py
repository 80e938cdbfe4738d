"""Energy-momentum schemes for rigid bodies: rotations advance by a map of the mean angular velocity."""

import abc
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..assembly.model import Assembly, as_assembly
from ..assembly.rigid_motion import (
    Spread,
    Vectors,
    angular_rates,
    coordinate_rates,
    directors,
    generalised_force,
    lifted,
    with_turned_gauges,
)
from ..constraints.calculus import momentum
from ..constraints.manifold import AbstractManifold
from ..errors import ModelError
from ..geometry.frame import Rows
from ..geometry.rotation import cayley_vector, exp, from_cayley_vector
from ..numerics.discrete_gradient import discrete_gradient
from ..system import Scalar, System, Vector
from .base import Memory, StepInput
from .energy_momentum import AbstractInterval

Moves = Float[Array, "1 n"]
FAST = 0.8  # radians in a step


class Displacement(NamedTuple):
    """How far bodies went in a step: frames at both ends, changes of the centres, Cayley vectors of the rotations in body axes."""

    start: Rows
    end: Rows
    shift: Vectors
    turn: Vectors


def displacement(model: Assembly, moves: Moves, step: StepInput) -> Displacement:
    """The displacement of all bodies, to the digits of the moves."""
    rows, change = model.frames(step.q0), lifted(model, moves[0])
    turn = jax.vmap(cayley_vector)(directors(rows), directors(change))
    return Displacement(rows, rows + change, Spread.of(model).at_centre(change), turn)


def keep_turning(extrapolated: Moves, turning: Vectors, step: StepInput) -> Moves:
    """Extrapolated moves in which bodies that turn fast keep their angular velocities: no polynomial follows them."""
    model = as_assembly(step.system)
    rows, change = model.frames(step.q0), lifted(model, extrapolated[0])
    turned = jax.vmap(lambda R, turning: R @ exp(step.dt * turning) - R)(directors(rows), turning)
    fast = jnp.sum((step.dt * turning) ** 2, axis=1) > FAST**2
    turned = jnp.where(fast[:, None, None], jnp.swapaxes(turned, 1, 2), change[:, 1:])
    spinning = jnp.concatenate([change[:, :1], turned], axis=1)
    return with_turned_gauges(model, step.q0, model.coordinates(spinning, model.parts(extrapolated[0])[1]))[None]


class AbstractDirector(AbstractInterval):
    r"""Rigid bodies whose momenta are those of their centres and rotations, not of directors as such.

    With the velocity $u$ of the centre of mass and the angular velocity $\Omega$ in body axes,
    $\Delta x = \frac h2 (u_0 + u_1)$, $\theta = \frac h2 (\Omega_0 + \Omega_1)$ and, for each body,
    $m\,\Delta u = \Delta p$, $\Delta(R J \Omega) = \Delta l$ with the impulse $\Delta p$ and its moment $\Delta l$ about the centre. All
    forces, those of constraints too, are discrete gradients, and moments are taken about the mean directors. The momenta are tangent to the
    internal constraints at all times; a scheme is the map from the vector of $R_0^T R_1$ to $\theta$.
    """

    rigid = True

    @abc.abstractmethod
    def rotation_vector(self, cayley: Float[Array, "3"]) -> Float[Array, "3"]:
        r"""$\theta$ from the Cayley vector of a rotation."""

    def predict(self, extrapolated: Moves, step: StepInput) -> Moves:
        return keep_turning(extrapolated, step.carried[1], step)

    def balance(self, moves: Moves, step: StepInput) -> Moves:
        system, model = step.system, as_assembly(step.system)
        spread, moved = Spread.of(model), displacement(model, moves, step)
        (u0, turning0), (u1, turning1) = step.carried, self._rates(moved, step)
        spin = lambda rows, turning: jnp.einsum("nij,njk,nk->ni", directors(rows), spread.inertia, turning)
        force, torque = spread.mass[:, None] * (u0 - u1), spin(moved.start, turning0) - spin(moved.end, turning1)
        inertial = generalised_force(model, 0.5 * (moved.start + moved.end), force, torque)
        rest = jnp.zeros_like(step.q0)
        active = discrete_gradient(lambda q: system.lagrangian(step.middle, q, rest), step.q0, step.q0 + moves[0])
        if system.has("forces"):
            active = active + system.forces(step.middle, step.q0 + 0.5 * moves[0], moves[0] / step.dt, step.control)
        return (inertial + step.dt * active)[None]

    def start(self, system: System, t0: Scalar, q0: Vector, v0: Vector, control: PyTree) -> Memory:
        model = as_assembly(system)
        rows, rates = model.frames(q0), lifted(model, v0)
        return momentum(system, t0, q0, v0), (Spread.of(model).at_centre(rates), angular_rates(rows, rates))

    def advance(self, moves: Moves, step: StepInput) -> Memory:
        model = as_assembly(step.system)
        rates = self._rates(displacement(model, moves, step), step)
        q1 = step.q0 + moves[0]
        v1 = coordinate_rates(model, model.frames(q1), *rates)
        return momentum(step.system, step.t0 + step.dt, q1, v1), rates

    def read(self, at: StepInput, manifold: AbstractManifold, guess: Vector) -> tuple[Vector, Vector]:
        model = as_assembly(at.system)
        return coordinate_rates(model, model.frames(at.q0), *at.carried), at.p0

    def _rates(self, moved: Displacement, step: StepInput) -> tuple[Vectors, Vectors]:
        """Velocities of the centres and angular velocities at the end of the step."""
        u0, turning0 = step.carried
        return 2 * moved.shift / step.dt - u0, 2 * jax.vmap(self.rotation_vector)(moved.turn) / step.dt - turning0


class ConservativeDirector(AbstractDirector):
    r"""Conservative integration with implicit internal constraints (S1): order 2, energy and momentum maps exact.

    The kinematic equation (23), $\Delta q = h\,G(\bar q)^T J^{-1}\,\overline{G(q) p}$, is the Cayley map of the mean angular velocity and
    keeps directors orthonormal by itself; $C(q) p = 0$ (18) holds at all times. With `JointMultipliers` only multipliers of joints
    are left, $12 n + m$ unknowns. Joints are closed at the end of every step, which is their incremental form (25) without drift. The
    equations are those of `DirectorEnergyMomentum` with the Cayley map, joints added.
    """

    def rotation_vector(self, cayley: Float[Array, "3"]) -> Float[Array, "3"]:
        return cayley


class DirectorEnergyMomentum(AbstractDirector):
    r"""Energy and momentum conserving scheme with directors (S3), (16)-(25): order 2, momentum maps exact.

    `update="cayley"`: $\theta$ is the Cayley vector (24), energy is exact. `update="exponential"`: it is the rotation vector (22), and
    energy is exact without loads and joints; otherwise its error is of order 2, an oscillation for a top, with a slow drift for a linkage.
    """

    update: Literal["cayley", "exponential"] = eqx.field(static=True, default="cayley")

    def __check_init__(self):
        if self.update not in ("cayley", "exponential"):
            raise ModelError(f"update must be 'cayley' or 'exponential', not {self.update!r}")

    def rotation_vector(self, cayley: Float[Array, "3"]) -> Float[Array, "3"]:
        return cayley if self.update == "cayley" else from_cayley_vector(cayley)
