"""Closed loops with redundant constraints: they stay closed, and derivatives through them are finite and right."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post, rotation

from .mechanisms import optimised

TURN = np.asarray(rotation.exp(jnp.array([0.4, -0.7, 1.1])))
MECHANISM, PLACEMENT = gallery.four_bar(turn=TURN)
SYSTEM, Q0 = mbd.assemble(MECHANISM, PLACEMENT)
V0 = mbd.joint_velocities(SYSTEM, Q0, {"hinge 1": 8.0})


def simulate(steps, save):
    return mbd.simulate(SYSTEM, Q0, V0, dt=0.01, steps=steps, formulation=mbd.NullSpace(), save=save)


def assert_stays_closed(motion):
    assert motion.redundant == 3
    assert jnp.max(jnp.abs(post.constraint_residuals(SYSTEM, motion))) < 1e-11
    H = post.energy(SYSTEM, motion)
    assert jnp.max(H) < 206.9 and jnp.min(H) > 200.9  # the range measured over 20,000 steps is 200.99 to 206.84


def test_tilted_four_bar_stays_closed():
    assert_stays_closed(simulate(5000, 50))


@pytest.mark.slow
def test_tilted_four_bar_stays_closed_for_a_million_steps():
    assert_stays_closed(optimised(lambda: simulate(1_000_000, 1000)))


def test_orientation_does_not_matter():
    upright, q0 = mbd.assemble(*gallery.four_bar())
    v0 = mbd.joint_velocities(upright, q0, {"hinge 1": 8.0})
    run = lambda system, q0, v0: mbd.simulate(system, q0, v0, dt=0.01, steps=50, formulation=mbd.Reparametrised())
    angles = [post.joint_coordinates(system, run(system, *start))["hinge 1"] for system, *start in ((upright, q0, v0), (SYSTEM, Q0, V0))]
    np.testing.assert_allclose(*angles, rtol=0, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    "formulation",
    [pytest.param(mbd.Multipliers(), marks=pytest.mark.slow), mbd.NullSpace(), pytest.param(mbd.Reparametrised(), marks=pytest.mark.slow)],
    ids=lambda f: type(f).__name__,
)
def test_derivatives_through_redundant_constraints(formulation):
    """By a mass and by the initial rate: forward and reverse mode agree, and agree with central differences."""

    def end(x):
        inertia = SYSTEM.params.inertia * jnp.ones(4).at[1].set(x[0])[:, None, None]
        system = SYSTEM.with_params(eqx.tree_at(lambda model: model.inertia, SYSTEM.params, inertia))
        motion = mbd.simulate(system, Q0, V0 * x[1], dt=0.02, steps=15, formulation=formulation, save="end", throw=False)
        return jnp.sum(jnp.sin(motion.q[-1])) + jnp.sum(motion.v[-1] ** 2) + jnp.sum(motion.multipliers[-1] ** 2) * 1e-6

    x = jnp.array([1.2, 0.9])
    values = jax.jit(lambda x: (*jax.value_and_grad(end)(x), jax.jacfwd(end)(x)))
    _, reverse, forward = values(x)
    np.testing.assert_allclose(forward, reverse, rtol=1e-9)
    step = 1e-5
    differences = [(values(x.at[i].add(step))[0] - values(x.at[i].add(-step))[0]) / (2 * step) for i in range(2)]
    np.testing.assert_allclose(reverse, differences, rtol=1e-6)


@pytest.mark.slow
def test_derivatives_through_assembly():
    """A slider-crank told on points of its bodies, assembled anew for each length of the rod, with the loop closed by search."""

    def mechanism(length):
        z = mbd.Revolute((0.0, 0.0, 1.0))
        joints = {
            "bearing": mbd.Joint(z, "ground", "crank", on_b=(-0.5, 0.0, 0.0)),
            "pin": mbd.Joint(z, "crank", "rod", on_a=(0.5, 0.0, 0.0), on_b=(-length / 2, 0.0, 0.0)),
            "wrist": mbd.Joint(z, "rod", "slider", on_a=(length / 2, 0.0, 0.0)),
            "guide": mbd.Joint(mbd.Prismatic((1.0, 0.0, 0.0)), "ground", "slider"),
        }
        bodies = {
            "crank": mbd.PlanarBody.rod(1.0, 1.0),
            "rod": mbd.PlanarBody.rod(2.0, length),
            "slider": mbd.PlanarBody.plate(1.5, (0.4, 0.2)),
        }
        return mbd.Mechanism(bodies, joints, [mbd.Gravity((0.0, -9.81, 0.0))])

    def end(length):
        system, q0 = mbd.assemble(mechanism(length), {"bearing": 0.7})
        motion = mbd.simulate(system, q0, dt=0.02, steps=10, save="end")
        return post.joint_coordinates(system, motion)["guide"][-1, 0]

    value, slope = jax.value_and_grad(end)(2.0)
    assert np.isclose(value, np.cos(0.7) + 2 * np.cos(np.arcsin(np.sin(0.7) / 2)), atol=0.3)
    np.testing.assert_allclose(slope, (end(2.0 + 1e-5) - end(2.0 - 1e-5)) / 2e-5, rtol=1e-6)


def test_a_loop_that_only_repeats_what_is_said_changes_nothing():
    """A pendulum that a guide keeps in the plane in which it swings anyway: all constraints of the loop are redundant."""
    body, hinge = {"rod": mbd.RigidBody.box(1.0, (1.0, 0.1, 0.1))}, mbd.Joint(mbd.Revolute((0, 1, 0)), "ground", "rod", at=(0, 0, 0))
    guide = mbd.Joint(mbd.Planar((0, 1, 0)), "ground", "rod", at=(0.5, 0, 0))
    ends = []
    for joints in ({"hinge": hinge}, {"hinge": hinge, "guide": guide}):
        system, q0 = mbd.assemble(mbd.Mechanism(body, joints, [mbd.Gravity()]), {"rod": (0.5, 0, 0)})
        ends.append(mbd.simulate(system, q0, dt=0.02, steps=10).q[-1])
    assert np.abs(ends[0] - ends[1]).max() < 1e-13
