"""Random mechanisms: trees of all joints, planar and spatial loops, tied to the ground or floating."""

import os

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbd as mbd
from jaxmbd import post, rotation
from jaxmbd.constraints import split

from .. import programs

EXAMPLES = 2 * int(os.environ.get("JAXMBD_RANDOM_TOPOLOGIES", "2"))

DT, STEPS = 2e-3, 20
FORMULATIONS = (mbd.Multipliers(), mbd.NullSpace(), mbd.Reparametrised())
KINDS = (
    lambda axis, second: mbd.Revolute(axis),
    lambda axis, second: mbd.Prismatic(axis),
    lambda axis, second: mbd.Cylindrical(axis),
    lambda axis, second: mbd.Spherical(),
    lambda axis, second: mbd.Planar(axis),
    lambda axis, second: mbd.Universal(axis, second),
    lambda axis, second: mbd.Screw(0.7, axis),
    lambda axis, second: mbd.PointOnLine(axis),
    lambda axis, second: mbd.Fixed(),
)


def random_body(rng):
    """A body with a random mass, a random possible inertia and its centre of mass anywhere."""
    points = rng.normal(size=(6, 3))
    masses = rng.uniform(0.2, 1.0, 6)
    com = masses @ points / masses.sum()
    euler = (points - com).T @ (masses[:, None] * (points - com))
    return mbd.RigidBody.from_euler_tensor(masses.sum(), euler, 0.3 * rng.normal(size=3))


def random_poses(rng, names):
    return {name: (2 * rng.normal(size=3), rng.normal(size=3)) for name in names}


def random_tree(seed, floating):
    """Up to twelve bodies, each on an earlier one (or on the ground) by a random joint in either direction."""
    rng = np.random.default_rng(seed)
    names = [f"body {i}" for i in range(rng.integers(3, 13))]
    joints = {}
    for i, name in enumerate(names[1:] if floating else names):
        parent = rng.choice(names[: i + 1]) if floating else rng.choice(["ground", *names[:i]])
        ends = (parent, name) if rng.random() < 0.5 else (name, parent)
        kind = KINDS[rng.integers(len(KINDS))](rng.normal(size=3), rng.normal(size=3))
        joints[f"joint {i}"] = mbd.Joint(kind, *ends, at=2 * rng.normal(size=3))
    loads = [] if floating else [mbd.Gravity(rng.normal(size=3))]
    return mbd.Mechanism({name: random_body(rng) for name in names}, joints, loads), random_poses(rng, names)


def random_planar_loop(seed):
    """A closed polygon of spatial bodies with parallel hinges in an arbitrary orientation: three constraints too many."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 6))
    R = np.asarray(rotation.exp(jnp.asarray(rng.normal(size=3))))
    angles = np.sort(rng.uniform(0, 2 * np.pi, count + 1))
    corners = [R @ (rng.uniform(0.5, 2) * np.array([np.cos(a), np.sin(a), 0.0])) for a in angles]
    names = [f"body {i}" for i in range(count)]
    ring = ["ground", *names, "ground"]
    joints = {
        f"hinge {i}": mbd.Joint(mbd.Revolute(R[:, 2]), a, b, at=corner)
        for i, (a, b, corner) in enumerate(zip(ring, ring[1:], corners, strict=False))
    }
    mechanism = mbd.Mechanism({name: random_body(rng) for name in names}, joints, [mbd.Gravity(R @ [0.0, -1.0, 0.0])])
    return mechanism, random_poses(rng, names)


def random_spatial_loop(seed):
    """A ring of three bodies between ball, universal and cylindrical joints in random places, with some freedom left."""
    rng = np.random.default_rng(seed)
    names = [f"body {i}" for i in range(3)]
    ring = ["ground", *names, "ground"]
    kinds = [
        mbd.Spherical(),
        mbd.Universal(rng.normal(size=3), rng.normal(size=3)),
        mbd.Cylindrical(rng.normal(size=3)),
        mbd.Revolute(rng.normal(size=3)),
    ]
    rng.shuffle(kinds)
    joints = {
        f"joint {i}": mbd.Joint(kind, a, b, at=2 * rng.normal(size=3))
        for i, (kind, a, b) in enumerate(zip(kinds, ring, ring[1:], strict=False))
    }
    return mbd.Mechanism({name: random_body(rng) for name in names}, joints, [mbd.Gravity()]), random_poses(rng, names)


def check(mechanism, placement, floating=False):
    """All formulations agree, joints hold, momenta of a floating mechanism stay, energy keeps near its value."""
    programs.drop_if_many()  # many mechanisms in one test
    system, q0 = mbd.assemble(mechanism, placement)
    directions = split.split(system, jnp.array(0.0), q0).basis
    freedom = directions.shape[1]
    assert freedom == q0.size - system.rank
    v0 = directions @ jax.random.normal(jax.random.key(freedom), (freedom,))
    v0 = v0 / max(1.0, float(jnp.max(jnp.abs(v0))))
    runs = [mbd.simulate(system, q0, v0, dt=DT, steps=STEPS, formulation=formulation) for formulation in FORMULATIONS]
    length = float(jnp.max(jnp.abs(q0)))
    for run in runs:
        np.testing.assert_allclose(run.q, runs[0].q, rtol=0, atol=1e-9 * length)
        assert jnp.max(jnp.abs(post.constraint_residuals(system, run))) < 1e-12 * length
        energy = post.energy(system, run)
        assert jnp.max(jnp.abs(energy - energy[0])) < 1e-3 * (1 + jnp.max(jnp.abs(energy)))
        if floating:
            assert jnp.max(jnp.ptp(post.linear_momentum(system, run), axis=0)) < 1e-10 * length
            assert jnp.max(jnp.ptp(post.angular_momentum(system, run), axis=0)) < 1e-10 * length**2
    return system


def check_tree(floating, seed):
    system = check(*random_tree(seed, floating), floating)
    assert system.closures == 0 and system.rank == system.constraints(0.0, jnp.zeros(system.params.size)).size


@pytest.mark.slow
@pytest.mark.parametrize(("floating", "seed"), [(False, 14), (True, 2083), (False, 5), (True, 3)])
def test_random_trees_with_all_joints(floating, seed):
    """Two on the ground and two that float, which have all kinds of joints between them."""
    check_tree(floating, seed)


@pytest.mark.slow
@pytest.mark.parametrize("floating", [False, True])
@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=st.integers(0, 2**31 - 1))
def test_random_trees(floating, seed):
    check_tree(floating, seed)


def check_planar_loop(seed):
    system = check(*random_planar_loop(seed))
    assert system.constraints(0.0, jnp.zeros(system.params.size)).size - system.rank == 3


def check_spatial_loop(seed):
    system = check(*random_spatial_loop(seed))
    assert system.params.size - system.rank == 2  # 3 + 2 + 2 + 1 freedoms less six


LOOPS = pytest.mark.parametrize("check_loop", [check_planar_loop, check_spatial_loop])


@pytest.mark.parametrize("check_loop", [check_planar_loop, pytest.param(check_spatial_loop, marks=pytest.mark.slow)])
def test_a_random_loop(check_loop):
    check_loop(seed=1)


@pytest.mark.slow
@LOOPS
@settings(max_examples=EXAMPLES, deadline=None)
@given(seed=st.integers(0, 2**31 - 1))
def test_random_loops(check_loop, seed):
    check_loop(seed)
