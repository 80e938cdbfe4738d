"""The functions of an assembled system: energies, forces, constraints."""

import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float

from ..friction import Frictions
from ..numerics.arrays import total
from ..system import Vector
from .model import Assembly, Position


@jax.jit
def kinetic(t: Array, q: Vector, v: Vector, model: Assembly) -> Array:
    r"""$\frac12 \sum \Theta_{ab}\,\dot r_a \cdot \dot r_b$ over all bodies and beams, and that of bodies which deform."""
    rates = jax.jvp(model.frames, (q,), (v,))[1]
    return sum((group.kinetic(block) for group, block in model.flexible(v)), 0.5 * model.inertia_form(rates, rates))


@jax.jit
def potential(t: Array, q: Vector, model: Assembly) -> Array:
    """Gravity, beams, bodies that deform, and all loads that have a potential."""
    bodies, gauges = model.frames(q), model.parts(q)[1]
    weight = model.inertia_form(bodies, jnp.zeros_like(bodies).at[:, 0].set(model.gravity))
    strain = total(model.beams, lambda group: jnp.sum(group.energies(bodies)), q)
    springs = total(model.loads, lambda group: group.potential(t, bodies), q)
    rigid = total(model.joint_loads, lambda group: group.potential(t, gauges), q) + springs + strain - weight
    return sum((group.potential(block, jnp.asarray(model.gravity, q.dtype)) for group, block in model.flexible(q)), rigid)


@jax.jit
def forces(t: Array, q: Vector, v: Vector, model: Assembly) -> Vector:
    """Generalised forces: the derivative of virtual power by virtual velocities."""
    motion = lambda w: (jax.jvp(model.frames, (q,), (w,))[1], model.parts(w)[1])
    (bodies, gauges), (rates, gauge_rates) = (model.frames(q), model.parts(q)[1]), motion(v)

    def power(w):
        virtual, gauge_virtual = motion(w)
        on_bodies = total(model.loads, lambda group: group.power(t, bodies, rates, virtual), q)
        on_bodies = on_bodies + total(model.beams, lambda group: group.power(bodies, virtual), q)
        return on_bodies + total(model.joint_loads, lambda group: group.power(t, gauges, gauge_rates, gauge_virtual), q)

    return jax.grad(power)(jnp.zeros_like(q))


def friction(model: Assembly) -> Frictions:
    """Friction on gauges."""
    return Frictions(model.frictions, Partial(_gauges, model))


def _gauges(model: Assembly, q: Vector) -> Float[Array, " g"]:
    return model.parts(q)[1]


@jax.jit
def constraints(t: Array, q: Vector, model: Assembly) -> Float[Array, " m"]:
    """Internal constraints, joints and gauges of the tree, and then all that closes loops."""
    blocks, gauges = model.parts(q)
    at = Position(blocks, model.frames(q), gauges)
    return jnp.concatenate([jnp.zeros(0, q.dtype), *(block.values(at) for block in model.constraint_blocks() if block.size)])
