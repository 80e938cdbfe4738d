"""Random trees and loops with all joints and loads, in units from millionths to millions: what a scheme promises holds in every step."""

import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints import split

from .. import programs

TOPOLOGIES = int(os.environ.get("JAXMBD_RANDOM_TOPOLOGIES", "2"))
SCALES = 10
STEPS, DT = 20, 2e-3
SCHEMES = {"midpoint": mbd.Midpoint(), "energy-momentum": mbd.EnergyMomentum(), "directors": mbd.schemes.ConservativeDirector()}


class Units:
    """Lengths, masses and times are multiplied by numbers of their own, and everything else follows."""

    def __init__(self, length=1.0, mass=1.0, time=1.0):
        self.length, self.mass, self.time = length, mass, time
        self.force = mass * length / time**2
        self.torque = self.force * length
        self.energy = self.torque

    @classmethod
    def random(cls, rng):
        return cls(*10.0 ** rng.uniform(-6, 6, 2), 10.0 ** rng.uniform(-3, 3))


def kinds(rng, units):
    axis, second = rng.normal(size=3), rng.normal(size=3)
    return [
        mbd.Revolute(axis),
        mbd.Prismatic(axis),
        mbd.Cylindrical(axis),
        mbd.Spherical(),
        mbd.Planar(axis),
        mbd.Universal(axis, second),
        mbd.Screw(0.7 * units.length, axis),
        mbd.PointOnLine(axis),
        mbd.Distance(),
        mbd.Fixed(),
    ]


def body(rng, units):
    points, masses = rng.normal(size=(6, 3)), rng.uniform(0.2, 1.0, 6)
    euler = points.T @ (masses[:, None] * points)
    return mbd.RigidBody.from_euler_tensor(
        masses.sum() * units.mass, euler * units.mass * units.length**2, 0.3 * rng.normal(size=3) * units.length
    )


def attraction(t, a, b, p):
    rod = b.origin - a.origin
    return -p["strength"] / jnp.sqrt(rod @ rod + p["size"] ** 2)


def drag(t, frame, velocity, turning, p):
    return -p["drag"] * velocity, -p["brake"] * turning


def loads(rng, units, names, joints, floating):
    """One of each kind; those between bodies alone where momentum is to be kept."""
    a, b = rng.choice(names, 2, replace=False)
    stiffness, damping = units.force / units.length, units.force * units.time / units.length
    between = {
        "spring": mbd.Spring(a, b, 3.0 * stiffness, 0.5 * units.length, 0.2 * damping, rng.normal(size=3) * units.length),
        "pull": mbd.Potential(attraction, a, b, {"strength": np.array(2 * units.energy * units.length), "size": np.array(units.length)}),
    }
    for name, joint in joints.items():
        if joint.kind.additive and joint.kind.coordinates:
            size = units.torque if joint.kind.angular[0] or isinstance(joint.kind, mbd.Screw) else stiffness * units.length
            each = 1.0 if joint.kind.angular[0] or isinstance(joint.kind, mbd.Screw) else units.length
            between[f"spring of {name}"] = mbd.JointSpring(name, 2.0 * size / each, 0.1 * each, 0.1 * size / each * units.time)
            between[f"motor of {name}"] = mbd.JointForce(name, 0.5 * size)
            break
    if floating:
        return between
    numbers = {"drag": np.array(0.1 * damping), "brake": np.array(0.1 * units.torque * units.time)}
    return between | {
        "gravity": mbd.Gravity(rng.normal(size=3) * units.length / units.time**2),
        "force": mbd.Force(a, rng.normal(size=3) * units.force, 0.2 * rng.normal(size=3) * units.length, follower=True),
        "torque": mbd.Torque(b, rng.normal(size=3) * units.torque),
        "drag": mbd.UserForce(drag, a, numbers),
    }


def tree(rng, units, floating):
    names = [f"body {i}" for i in range(4)]
    joints = {}
    for i, name in enumerate(names[1:] if floating else names):
        parent = str(rng.choice(names[: i + 1] if floating else ["ground", *names[:i]]))
        choice = kinds(rng, units)
        kind, at = choice[rng.integers(len(choice))], 2 * rng.normal(size=3) * units.length
        ends = {"on_a": at} if isinstance(kind, mbd.Distance) else {"at": at}
        joints[f"joint {i}"] = mbd.Joint(kind, parent, name, **ends)
    return names, joints


def loop(rng, units):
    names = [f"body {i}" for i in range(3)]
    ring = ["ground", *names, "ground"]
    axes = rng.normal(size=(4, 3))
    chosen = [mbd.Spherical(), mbd.Universal(*axes[:2]), mbd.Cylindrical(axes[2]), mbd.Revolute(axes[3])]
    points = 2 * rng.normal(size=(4, 3)) * units.length
    joints = {f"joint {i}": mbd.Joint(chosen[k], *ring[i : i + 2], at=points[i]) for i, k in enumerate(rng.permutation(4))}
    return names, joints


def mechanism(seed, units):
    """A tree on the ground, one that floats, or a loop, by turns."""
    rng, kind = np.random.default_rng(seed), seed % 3
    names, joints = loop(rng, units) if kind == 2 else tree(rng, units, kind == 1)
    parts = mbd.Mechanism({name: body(rng, units) for name in names}, joints, loads(rng, units, names, joints, kind == 1))
    return parts, {name: (2 * rng.normal(size=3) * units.length, rng.normal(size=3)) for name in names}, kind == 1


@jax.jit
def start(system, q0):
    """A random velocity that constraints admit."""
    directions = split.split(system, jnp.array(0.0), q0).basis
    v0 = directions @ jax.random.normal(jax.random.key(7), (directions.shape[1],))
    return v0 / jnp.max(jnp.abs(v0))


@jax.jit
def balance(system, motion):
    """Changes of energy in each step less the work of forces there, which act as in the middle of the step."""
    middle = lambda column: 0.5 * (column[1:] + column[:-1])
    rates = jnp.diff(motion.q, axis=0) / motion.dt
    forces = jax.vmap(system.forces)(middle(motion.t), middle(motion.q), rates)
    return jnp.diff(post.energy(system, motion)) - motion.dt * jnp.sum(forces * rates, axis=1)


def largest(values):
    return float(np.max(np.abs(np.asarray(values)), initial=0))


def check(seed, scheme, units, reference):
    """Constraints, energy balance and momentum in units of the mechanism; the motion is that in other units."""
    programs.drop_if_many()
    parts, placement, floating = mechanism(seed, units)
    system, q0 = mbd.assemble(parts, placement)
    lengths = jnp.asarray(coordinate_units(system, units))
    v0 = start(mbd.assemble(*mechanism(seed, Units())[:2])[0], q0 / lengths) * lengths / units.time
    motion = mbd.simulate(system, q0, v0, dt=DT * units.time, steps=STEPS, scheme=SCHEMES[scheme], throw=False)
    if not bool(motion.successful):
        return None, {"failed": 1.0}
    found = {
        "constraints": largest(post.constraint_residuals(system, motion) / row_units(system, units)),
        "motion": largest(motion.q / lengths - reference.q) if reference is not None else 0.0,
    }
    if scheme != "midpoint":
        found["energy"] = largest(balance(system, motion)) / units.energy
    if floating:
        found["linear"] = largest(np.ptp(post.linear_momentum(system, motion), axis=0)) * units.time / (units.mass * units.length)
        found["angular"] = largest(np.ptp(post.angular_momentum(system, motion), axis=0)) / (units.torque * units.time)
    return motion, found


def coordinate_units(system, units):
    """Origins and displacements are lengths; directors and angles are numbers."""
    model = system.params
    bodies = np.tile(np.repeat([units.length, 1.0], [3, 9]), (model.size - len(model.gauges)) // 12)
    number = lambda gauge: gauge.angular or isinstance(model.joints[gauge.group].kind, mbd.Screw)
    return np.concatenate([bodies, [1.0 if number(gauge) else units.length for gauge in model.gauges]])


def row_units(system, units):
    """The size of a constraint where coordinates are off by their units."""
    lengths = coordinate_units(system, units)
    G = np.asarray(mbd.constraints.calculus.constraint_jacobian(system, 0.0, jnp.asarray(lengths)))
    return np.maximum(np.abs(G) @ lengths, 1e-300)


BOUNDS = {"constraints": 1e-14, "motion": 1e-12, "energy": 1e-12, "linear": 1e-10, "angular": 1e-10}


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "scheme"), [*itertools.product(range(3 * TOPOLOGIES), SCHEMES)])
def test_promises_hold_in_all_units(seed, scheme):
    """A member that fails says so; those that do not keep what the scheme promises. Other units give the same motion."""
    reference, found = check(seed, scheme, Units(), None)
    rng = np.random.default_rng(seed)
    others = [check(seed, scheme, Units.random(rng), reference)[1] for _ in range(SCALES - 1)]
    worst = {name: max(one[name] for one in [found, *others] if name in one) for name in {name for one in [found, *others] for name in one}}
    print(seed, scheme, {name: f"{value:.1e}" for name, value in worst.items()})
    assert "failed" not in worst
    assert all(worst[name] < BOUNDS[name] for name in worst), worst
