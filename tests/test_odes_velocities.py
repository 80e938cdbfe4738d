"""Constraints on velocities by adaptive solvers: the Chaplygin sleigh against its closed form, and derivatives."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

from .mechanisms import chaplygin_sleigh
from .test_velocity_constraints import SLEIGH_START, sleigh_motion, sleigh_start

odes = mbd.odes


@functools.cache
def sleigh(tolerance):
    system = chaplygin_sleigh()
    return odes.integrate(system, *sleigh_start(system, *SLEIGH_START), t1=2.0, rtol=tolerance, atol=tolerance, saveat=11)


def errors(motion):
    """Of heading, speed of the blade, angular velocity and force of the blade, in all rows."""
    heading, v, w, force = sleigh_motion(np.asarray(motion.t))
    speed = motion.v[:, 0] * jnp.cos(motion.q[:, 2]) + motion.v[:, 1] * jnp.sin(motion.q[:, 2])
    found = motion.q[:, 2] - heading, speed - v, motion.v[:, 2] - w, motion.multipliers[:, 0] - force
    return float(np.max(np.abs(found)))


def test_sleigh_against_its_closed_form():
    motion = sleigh(1e-8)
    assert errors(motion) < 6e-8
    assert np.abs(post.constraint_rates(chaplygin_sleigh(), motion)).max() < 1e-14
    assert motion.carried.w is None and motion.carried.velocity_multipliers.shape == (11, 1)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance, error", [(1e-5, 6e-5), (1e-11, 6e-11)])
def test_sleigh_at_other_tolerances(tolerance, error):
    assert errors(sleigh(tolerance)) < error


def pushed(x, start):
    """A sleigh with a motor that has a lag; x are inertia, distance of the centre of mass, and lag, the start ends with the force."""
    system = mbd.System.from_functions(
        **chaplygin_sleigh().functions,
        forces=lambda t, q, v, p, force: force * jnp.array([jnp.cos(q[2]), jnp.sin(q[2]), 0.1]),
        params={"m": 1.2, "I": x[0], "a": x[1], "lag": x[2]},
    )
    dynamics = odes.Dynamics.of(
        system, controls=lambda t, q, v, w: w, states=lambda t, q, v, w, p: (jnp.sin(3 * t) - w) / p["lag"], independent=True
    )
    begun = sleigh_start(system, *start[:3])
    motion = odes.integrate(dynamics, *begun, start[3], t1=1.0, rtol=1e-9, atol=1e-9, saveat=3, max_steps=300, throw=False)
    return jnp.concatenate([motion.q[-1], motion.v[1], motion.multipliers[-1], motion.carried.w[1:]])


@pytest.mark.slow
def test_gradients_with_other_states_and_constraints_on_velocities():
    """By parameters and by the start, against differences."""
    x, step = jnp.array([0.2, 0.3, 0.15, 0.4, -0.5, 1.5, 0.7]), 1e-5
    ends = lambda x: pushed(x[:3], x[3:])
    runs, shift = jax.jit(jax.vmap(ends)), step * jnp.eye(7)
    differences = (runs(x + shift) - runs(x - shift)).T / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.jacrev(ends))(x), differences, atol=1e-6 * np.max(np.abs(differences)))
