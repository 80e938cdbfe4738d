"""Friction and motors on random mechanisms: energy balances in every step, and friction never gives any."""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints import split
from jaxmbd.friction import Plasticity, Stribeck, Viscous

from .. import programs
from ..frictions import LAWS
from .test_random_graphs import random_planar_loop, random_tree

STEPS = 30


def arm():
    """A hinge, a slider and a hinge across, with friction of each kind, one of it along a measured distance."""
    box = mbd.RigidBody.box(1.0, (0.8, 0.1, 0.1))
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((0, 1, 0)), "ground", "upper", at=(0, 0, 0)),
        "slide": mbd.Joint(mbd.Prismatic((1, 0, 0)), "upper", "rod", at=(0.8, 0, 0)),
        "wrist": mbd.Joint(mbd.Revolute((1, 1, 0)), "rod", "hand", at=(1.6, 0, 0)),
        "reach": mbd.Joint(mbd.joints.Length(), "ground", "hand", on_a=(0, 0, 1), on_b=(0.4, 0, 0)),
    }
    loads = {
        "gravity": mbd.Gravity(),
        "dry": mbd.Friction("shoulder", Plasticity(200.0, 3.0, hardening=20.0)),
        "falling": mbd.Friction("slide", Stribeck(300.0, 3.0, 1.5, 0.3, 0.2)),
        "wet": mbd.Friction("wrist", Viscous(0.1)),
        "cable": mbd.Friction("reach", Plasticity(100.0, 1.0)),
        "lift": mbd.Motor("shoulder"),
        "push": mbd.Motor("slide", limit=20.0),
    }
    placement = {"upper": (0.4, 0, 0), "rod": (1.2, 0, 0), "hand": (2.0, 0, 0)}
    return mbd.assemble(mbd.Mechanism(dict.fromkeys(placement, box), joints, loads), placement)


def linkage():
    """A four-bar in the plane that is driven at one hinge and rubs in the others."""
    mechanism, placement = mbd.gallery.four_bar(planar=True)
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    loads = {
        "dry": mbd.Friction("hinge 2", Plasticity(100.0, 0.5)),
        "falling": mbd.Friction("hinge 4", Stribeck(100.0, 0.8, 0.4, 0.5)),
        "drive": mbd.Motor("hinge 1"),
    }
    return mbd.assemble(mbd.Mechanism(bodies, mechanism.joints, {**mechanism.loads, **loads}), placement)


def balances_of(make):
    """A function of a seed: imbalances in each step, and the least energy dissipated, both beside the energies that turn over."""
    system, q0 = make()
    names = system.params.motor_names
    laws = [name for name in system.parameters if name.split(".")[0] in ("dry", "falling", "wet", "cable") and "hardening" not in name]

    @jax.jit
    def run(seed):
        keys = jax.random.split(jax.random.key(seed), 3)
        scales = jnp.exp(jax.random.uniform(keys[0], (len(laws),), minval=-2.0, maxval=2.0))
        changed = system.replace({name: system.parameters[name] * scale for name, scale in zip(laws, scales, strict=True)})
        q, v = mbd.project(changed, q0, 2 * jax.random.normal(keys[1], q0.shape))
        controls = dict(zip(names, 10 * jax.random.normal(keys[2], (len(names), STEPS)), strict=True))
        motion = mbd.simulate(changed, q, v, dt=0.01, steps=STEPS, controls=controls, scheme=mbd.EnergyMomentum(), throw=False)
        return motion.successful, *balance(changed, motion, controls)

    return run


def balance(system, motion, controls):
    """The imbalance of energy in a step, at most, and the least energy dissipated, both beside the energies that turn over."""
    H, D, move = post.energy(system, motion), post.dissipated(system, motion), jnp.diff(motion.q, axis=0)
    middle = 0.5 * (motion.t[1:] + motion.t[:-1])
    rate = lambda t, q, dq, u: system.forces(t, q, dq / motion.dt, u) @ dq
    work = jax.vmap(rate)(middle, 0.5 * (motion.q[1:] + motion.q[:-1]), move, controls)
    size = jnp.max(jnp.abs(H)) + jnp.max(jnp.abs(work)) + D[-1]
    return jnp.max(jnp.abs(jnp.diff(H + D) - work)) / size, jnp.min(jnp.diff(D)) / size


@pytest.mark.parametrize("make", [arm, pytest.param(linkage, marks=pytest.mark.slow)], ids=lambda make: make.__name__)
def test_energy_balances_with_friction_and_motors(make):
    run, failed = balances_of(make), []

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**31 - 1))
    def holds(seed):
        successful, imbalance, least = map(np.asarray, run(seed))
        failed.append(not successful)
        assert imbalance < 1e-12 and least >= 0

    holds()
    assert np.mean(failed) < 0.1


def rubbed(mechanism, rng):
    """The same with a random law on every coordinate of its joints, and a motor at each joint that has one."""
    loads, passive = dict(mechanism.loads), [law for name, law in LAWS.items() if name != "LuGre"]
    for name, joint in mechanism.joints.items():
        count = len(joint.kind.coordinates) if joint.kind.additive else 0
        loads |= {f"{name} rubs, {i}": mbd.Friction(name, passive[rng.integers(len(passive))], i) for i in range(count)}
        loads |= {f"{name} driven": mbd.Motor(name, int(rng.integers(count)))} if count else {}
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    return mbd.Mechanism(bodies, mechanism.joints, loads)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda seed: random_tree(seed, floating=False), random_planar_loop], ids=["trees", "loops"])
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31 - 1))
def test_energy_balances_on_random_mechanisms(make, seed):
    """Trees of all joints, and planar loops with redundant constraints."""
    programs.drop_if_many()
    (mechanism, placement), rng = make(seed), np.random.default_rng(seed)
    system, q0 = mbd.assemble(rubbed(mechanism, rng), placement)
    directions = split.split(system, jnp.array(0.0), q0).basis
    v0 = directions @ rng.normal(size=directions.shape[1])
    controls = {name: 10 * rng.normal(size=STEPS) for name in system.params.motor_names}
    motion = mbd.simulate(system, q0, v0, dt=2e-3, steps=STEPS, controls=controls or None, scheme=mbd.EnergyMomentum())
    imbalance, least = balance(system, motion, controls)
    assert imbalance < 1e-12 and least >= 0
