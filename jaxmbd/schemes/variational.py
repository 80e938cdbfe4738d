"""Variational schemes: everything follows from one discrete Lagrangian."""

import abc
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..constraints.calculus import constraint_forces, constraint_jacobian, momentum
from ..constraints.manifold import AbstractManifold
from ..numerics.polynomials import gauss, interpolation
from ..system import Scalar, System, Vector
from .base import AbstractScheme, Memory, Samples, StepInput


@runtime_checkable
class Lagrangian(Protocol):
    """Anything with a Lagrangian: a system, or the virtual work of its forces."""

    def lagrangian(self, t: Scalar, q: Vector, v: Vector) -> Scalar: ...


class AbstractVariational(AbstractScheme):
    r"""A scheme given by $L_d(q_0, \ldots, q_1) \approx \int L\,dt$: a new one is the method `discrete_lagrangian`.

    The balances are $p_0 + D_0 L_d$ at the first node and $D_i L_d$ at nodes inside the step, the momentum that arrives is
    $D_s L_d$. Forces enter by the discrete Lagrange-d'Alembert principle: their virtual work is discretised as $L$ is, by
    applying the same rule to $f(t, \bar q, \bar v) \cdot q$ and differentiating by $q$ alone. By the same principle forces of
    constraints on velocities act along their rows at the nodes; the constraints hold for the polynomial through the nodes, at the $s$
    Gauss points of the step: with two nodes, in its middle.
    """

    @abc.abstractmethod
    def discrete_lagrangian(self, system: Lagrangian, t: Scalar, dt: Scalar, q: Float[Array, "nodes n"]) -> Scalar:
        r"""$L_d$ of the path through the nodes `q`, from `t` to `t + dt`."""

    def slopes(self, q: Float[Array, "nodes n"], step: StepInput) -> Float[Array, "nodes n"]:
        """Derivative of the discrete action by every node, with the virtual work of the forces."""
        slopes = jax.grad(self.discrete_lagrangian, 3)(step.system, step.t0, step.dt, q)
        return slopes + self.virtual_work(q, step) if step.system.has("forces") else slopes

    def virtual_work(self, q: Float[Array, "nodes n"], step: StepInput) -> Float[Array, "nodes n"]:
        """Discrete forces on every node."""
        work = jax.grad(lambda q, at: self.discrete_lagrangian(_Work(step, self.control_at), step.t0, step.dt, jnp.hstack([q, at])))
        return work(q, q)

    def predict(self, extrapolated: Float[Array, "s n"], step: StepInput) -> Float[Array, "s n"]:
        return extrapolated

    def balance(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s n"]:
        slopes = self.slopes(_path(moves, step), step)
        return slopes[:-1].at[0].add(step.p0)

    def directions(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s m n"]:
        jacobian = lambda t, q: constraint_jacobian(step.system, t, q)
        first = jacobian(step.t0, step.q0)[None]
        if self.stages == 1:
            return first
        return jnp.concatenate([first, jax.vmap(jacobian)(self.times(step)[:-1], step.q0 + moves[:-1])])

    def constraint_forces(self, moves: Float[Array, "s n"], multipliers: Float[Array, "s m"], step: StepInput) -> Float[Array, "s n"]:
        forces = lambda t, q, of_node: constraint_forces(step.system, t, q, of_node)
        first = forces(step.t0, step.q0, multipliers[0])[None]
        if self.stages == 1:
            return first
        return jnp.concatenate([first, jax.vmap(forces)(self.times(step)[:-1], step.q0 + moves[:-1], multipliers[1:])])

    def slips(self, moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "s k"]:
        points, _ = gauss(self.stages)
        values, rates = (interpolation(np.asarray(self.fractions), points, derivative)[:, 1:] for derivative in (0, 1))
        changes, speeds = (jnp.asarray(matrix, moves.dtype) @ moves for matrix in (values, rates))
        times = step.t0 + step.dt * jnp.asarray(points, moves.dtype)
        return step.dt * jax.vmap(step.system.velocity_constraints)(times, step.q0 + changes, speeds / step.dt)

    def start(self, system: System, t0: Scalar, q0: Vector, v0: Vector, control: PyTree) -> Memory:
        r"""$p_0 = \partial L/\partial v$ (34)."""
        return momentum(system, t0, q0, v0), None

    def advance(self, moves: Float[Array, "s n"], step: StepInput) -> Memory:
        return self.slopes(_path(moves, step), step)[-1], None

    def read(self, at: StepInput, manifold: AbstractManifold, guess: Vector) -> tuple[Vector, Vector]:
        """The projected momentum (39), (40) and its velocity."""
        v = manifold.velocity(at.p0, guess)
        return v, momentum(at.system, at.t0, at.q0, v)


def _path(moves: Float[Array, "s n"], step: StepInput) -> Float[Array, "nodes n"]:
    """The nodes of a step, its start included."""
    return step.q0 + jnp.pad(moves, ((1, 0), (0, 0)))


class _Work:
    r"""$f(t, \bar q, \bar v) \cdot q$ on doubled coordinates $(q, \bar q)$; the forces see only the barred half."""

    def __init__(self, step: StepInput, control_at: tuple[float, ...]):
        self.step, self.control_at = step, control_at

    def lagrangian(self, t: Scalar, q: Vector, v: Vector) -> Scalar:
        position, at = jnp.split(q, 2)
        return self.step.system.forces(t, at, jnp.split(v, 2)[1], self._control(t)) @ position

    def _control(self, t: Scalar) -> PyTree:
        """The control of the step, or that of its samples which is nearest to a time."""
        step = self.step
        if not isinstance(step.control, Samples):
            return step.control
        place = jnp.argmin(jnp.abs(step.t0 + step.dt * jnp.asarray(self.control_at, step.q0.dtype) - t))
        return jax.tree.map(lambda leaf: leaf[place], step.control.values)


class AbstractTwoNode(AbstractVariational):
    """A variational scheme without nodes inside the step."""

    fractions: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(0.0, 1.0))
    weights: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(0.5, 0.5))


class Midpoint(AbstractTwoNode):
    r"""$L_d = h\,L\left(\frac{q_0 + q_1}{2}, \frac{q_1 - q_0}{h}\right)$ (17): order 2, symplectic, momentum conserving."""

    def discrete_lagrangian(self, system: Lagrangian, t: Scalar, dt: Scalar, q: Float[Array, "2 n"]) -> Scalar:
        q0, q1 = q
        return dt * system.lagrangian(t + 0.5 * dt, 0.5 * (q0 + q1), (q1 - q0) / dt)


class Trapezoidal(AbstractTwoNode):
    r"""$L_d = \frac h2 L(q_0, v) + \frac h2 L(q_1, v)$, $v = \frac{q_1 - q_0}{h}$: Stoermer-Verlet, with constraints RATTLE."""

    def discrete_lagrangian(self, system: Lagrangian, t: Scalar, dt: Scalar, q: Float[Array, "2 n"]) -> Scalar:
        q0, q1 = q
        v = (q1 - q0) / dt
        return 0.5 * dt * (system.lagrangian(t, q0, v) + system.lagrangian(t + dt, q1, v))


class Own(AbstractTwoNode):
    """The discrete Lagrangian that came with the system; its forces act as in `Midpoint`."""

    def discrete_lagrangian(self, system, t: Scalar, dt: Scalar, q: Float[Array, "2 n"]) -> Scalar:
        return system.discrete_lagrangian(t, dt, *q)

    def virtual_work(self, q: Float[Array, "2 n"], step: StepInput) -> Float[Array, "2 n"]:
        return Midpoint().virtual_work(q, step)
