r"""Bodies one by one: what they have by themselves, before joints couple them.

Each has a centre of mass and an angular velocity $\Omega$ in its own axes. The admissible motions of its coordinates are translations and
rotations, $P_{int}$ (60); $P_{int}^T$ of generalised forces are the force and the torque on it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..errors import ModelError
from ..geometry.frame import Rows
from ..geometry.rotation import axial, determinant, solve
from ..system import Vector
from .gauges import angle_between, pairs_of
from .model import Assembly

Vectors = Float[Array, "bodies 3"]
Matrices = Float[Array, "bodies 3 3"]

HALF_A_TURN = -0.985
"""The cosine of some 170 degrees: beyond it, rotations to either side are too close to be told apart."""


class Spread(eqx.Module):
    r"""How the mass of each body is spread: mass, centre $c$ in body axes, and inertia $J$ about it."""

    mass: Float[Array, " bodies"]
    centre: Vectors
    inertia: Matrices

    @classmethod
    def of(cls, model: Assembly) -> "Spread":
        r"""From the matrices $\Theta$ of the bodies; those without mass have their centre at the origin."""
        if not all(group.lumped for group in model.beams) or any(group.flexible for group in model.groups):
            raise ModelError(
                "this scheme moves rigid bodies alone, not beams unless of finite volumes; use a variational scheme or EnergyMomentum"
            )
        theta = jnp.asarray(model.inertia)
        mass = theta[:, 0, 0]
        centre = theta[:, 0, 1:] / jnp.where(mass > 0, mass, 1)[:, None]
        euler = theta[:, 1:, 1:] - mass[:, None, None] * centre[:, :, None] * centre[:, None, :]
        return cls(mass, centre, jnp.trace(euler, axis1=1, axis2=2)[:, None, None] * jnp.eye(3, dtype=theta.dtype) - euler)

    def at_centre(self, rows: Rows) -> Vectors:
        """The centres of mass, or their rates, from rows of frames or of their rates."""
        return rows[:, 0] + jnp.einsum("ni,nij->nj", self.centre, rows[:, 1:])


def directors(rows: Rows) -> Matrices:
    """The directors of all bodies as columns."""
    return jnp.swapaxes(rows[:, 1:], 1, 2)


def lifted(model: Assembly, rate: Vector) -> Rows:
    """Rates of the rows of all frames that belong to rates of the coordinates."""
    return jax.jvp(model.frames, (jnp.zeros_like(rate),), (rate,))[1]


def angular_rates(rows: Rows, rates: Rows) -> Vectors:
    r"""Angular velocities (or accelerations) in body axes from first (or second) derivatives of the directors."""
    return jax.vmap(lambda D, rate: axial(D.T @ rate))(directors(rows), directors(rates))


def coordinate_rates(model: Assembly, rows: Rows, velocity: Vectors, turning: Vectors) -> Vector:
    """Rates of all coordinates from velocities of the centres of mass and angular velocities in body axes."""
    spin = jnp.einsum("nij,nj->ni", directors(rows), turning)
    turned = jnp.cross(spin[:, None], rows[:, 1:])
    origin = velocity - jnp.einsum("ni,nij->nj", Spread.of(model).centre, turned)
    rates = jnp.concatenate([origin[:, None], turned], axis=1)
    return model.coordinates(rates, jax.jvp(model.readings, (rows,), (rates,))[1])


def generalised_force(model: Assembly, rows: Rows, force: Vectors, torque: Vectors) -> Vector:
    r"""Forces on coordinates with the work of forces at the centres of mass and torques, for all motions in $P_{int}$ at `rows`.

    A torque becomes the forces $w \times d_I$ on directors with $\sum d_I \times (w \times d_I)$ equal to it; the directors need not
    be orthonormal, so that `rows` may be the mean of two frames.
    """
    D = directors(rows)
    square = jnp.einsum("nij,nkj->nik", D, D)
    inertia = jnp.trace(square, axis1=1, axis2=2)[:, None, None] * jnp.eye(3, dtype=rows.dtype) - square
    w = jax.vmap(solve)(inertia, torque)
    on_directors = jnp.cross(w[:, None], rows[:, 1:]) + Spread.of(model).centre[:, :, None] * force[:, None]
    on_rows = jnp.concatenate([force[:, None], on_directors], axis=1)
    q = jnp.zeros(model.size, rows.dtype)
    return jax.vjp(model.frames, q)[1](on_rows)[0]


def turned_over(model: Assembly, q: Vector, move: Vector) -> Array:
    """Whether a body turned by almost half a turn, or inside out: no equations tell those roots from right ones."""
    before, change = directors(model.frames(q)), directors(lifted(model, move))
    cosine = 0.5 * (jnp.einsum("nij,nij->n", before, before + change) - 1)
    return jnp.any((cosine < HALF_A_TURN) | (jax.vmap(determinant)(before + change) < 0))


def with_turned_gauges(model: Assembly, q: Vector, move: Vector) -> Vector:
    """A move whose counted angles change as its bodies turn them.

    Halfway, where coordinates changed by half, directors across the axis of a rotation have made half of it, and are shorter. Bodies
    that turn by less than half a turn each make less than half a turn against each other from there to either end.
    """
    bodies, gauges = move[: move.size - len(model.gauges)], model.parts(move)[1]
    start, middle, end = (pairs_of(model.gauges, model.joints, model.frames(q + part * move)) for part in (0.0, 0.5, 1.0))
    turned = angle_between(start, middle) + angle_between(middle, end)
    return jnp.concatenate([bodies, jnp.where(np.array([gauge.angular for gauge in model.gauges], bool), turned, gauges)])


def lost_turns(model: Assembly, q: Vector, move: Vector) -> Array:
    """Whether a counted angle changed by other turns than its bodies made: its constraint holds at every half turn."""
    return jnp.any(jnp.abs(move - with_turned_gauges(model, q, move)) > 0.5 * np.pi)


def on_bodies(model: Assembly, q: Vector, force: Vector) -> Float[Array, " d"]:
    """$P_{int}^T(q)$ times generalised forces: what is left of them on each body, and on the gauges."""
    size = sum(count * len(kind.twists) for kind, count in model.kinds) + len(model.gauges)
    return jax.linear_transpose(lambda u: _rigid_rates(model, q, u), jnp.zeros(size, q.dtype))(force)[0]


def _rigid_rates(model: Assembly, q: Vector, u: Float[Array, " d"]) -> Vector:
    r"""$P_{int}(q)\,u$: rates of the coordinates for the velocity of the origin and the angular velocity of each body."""
    rates, begin = [], 0
    for group, block in zip(model.groups, model.parts(q)[0], strict=True):
        known = group.kind.twists
        end = begin + len(block) * len(known)
        places = np.array([known.index(i) if i in known else len(known) for i in range(6)])
        twists = jnp.pad(u[begin:end].reshape(len(block), len(known)), ((0, 0), (0, 1)))[:, places]
        rows = group.frames(block)
        moved = jnp.concatenate([twists[:, None, :3], jnp.cross(twists[:, None, 3:], rows[:, 1:])], axis=1)
        rates.append(group.coordinates(moved).ravel())
        begin = end
    return jnp.concatenate([*rates, u[begin:]])
