"""The functions of an assembled system: energies, forces, constraints."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..friction import Frictions
from ..numerics.arrays import total
from ..system import Vector
from .drives import ControllerGroup, MotorGroup, as_control
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

    found = jax.grad(power)(jnp.zeros_like(q))
    return found + _of_controllers(t, q, v, model) if model.controllers else found


@jax.jit
def controlled_forces(t: Array, q: Vector, v: Vector, model: Assembly, control: PyTree) -> Vector:
    """The same with the forces of motors, which are a control of the step by name."""
    named = as_control(control, model.motor_names, q.dtype)
    return forces(t, q, v, model) + _on_gauges(model, [(group, group.forces(named)) for group in model.motors], q)


def _of_controllers(t: Array, q: Vector, v: Vector, model: Assembly) -> Vector:
    (_, gauges), (_, rates) = model.parts(q), model.parts(v)
    return _on_gauges(model, [(group, group.forces(t, gauges, rates)) for group in model.controllers], q)


def _on_gauges(model: Assembly, acting: Sequence[tuple[MotorGroup | ControllerGroup, Array]], q: Vector) -> Vector:
    """Generalised forces from those of drives on gauges, group by group."""
    rest = jnp.zeros(len(model.gauges), q.dtype)
    on_gauges = sum((rest.at[np.array(group.gauges)].add(force) for group, force in acting), rest)
    return jnp.pad(on_gauges, (q.size - rest.size, 0))


def forces_of(model: Assembly, powered: bool) -> Callable | None:
    """The forces that a system needs beside its potential."""
    return controlled_forces if model.motors else forces if powered or model.controllers else None


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


@jax.jit
def velocity_constraints(t: Array, q: Vector, v: Vector, model: Assembly) -> Float[Array, " k"]:
    """Velocities that joints let vanish: of bodies that roll, and of blades."""
    bodies, rates = jax.jvp(model.frames, (q,), (v,))
    return jnp.concatenate([jnp.zeros(0, q.dtype), *(group.velocity_constraints(bodies, rates) for group, _ in model.slip_rows())])


def velocity_constraints_of(model: Assembly) -> Callable | None:
    """The constraints on velocities, if a joint tells some."""
    return velocity_constraints if model.slip_rows() else None
