"""Random chains of masses and rods: what must hold for every one of them."""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbd as mbd
from jaxmbd import post

from ..mechanisms import chain, stretched

LINKS = 3
SYSTEM = mbd.find_rank(chain(LINKS, 3), stretched(LINKS, 3))
SCHEMES = {"midpoint": mbd.Midpoint(), "galerkin 4": mbd.Galerkin(4)}
FORMULATIONS = {"multipliers": mbd.Multipliers(), "null space": mbd.NullSpace(), "implicit chart": mbd.Reparametrised()}


def turn(angle, q):
    """Rotation of all points about the vertical."""
    x, y, z = q.reshape(LINKS, 3).T
    return jnp.stack([jnp.cos(angle) * x - jnp.sin(angle) * y, jnp.sin(angle) * x + jnp.cos(angle) * y, z], axis=1).ravel()


def _run(seed, scheme, formulation):
    """A chain with random masses, lengths, directions and velocities."""
    keys = jax.random.split(jax.random.key(seed), 4)
    lengths = jax.random.uniform(keys[0], (LINKS,), minval=0.3, maxval=1.5)
    masses = jnp.exp(jax.random.uniform(keys[1], (LINKS,), minval=-1.0, maxval=1.0))
    directions = jax.random.normal(keys[2], (LINKS, 3))
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    system = SYSTEM.with_params({"m": masses, "l": lengths, "g": jnp.array(9.81)})
    q0 = jnp.cumsum(lengths[:, None] * directions, axis=0).ravel()
    q0, v0 = mbd.project(system, q0, jax.random.normal(keys[3], (3 * LINKS,)))
    trajectory = mbd.simulate(system, q0, v0, dt=5e-3, steps=40, scheme=scheme, formulation=formulation, throw=False)
    return trajectory, {
        "constraints": jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))),
        "rates": jnp.max(jnp.abs(post.constraint_rates(system, trajectory))),
        "momentum": jnp.ptp(post.momentum_map(system, trajectory, turn)),
        "energy": jnp.max(jnp.abs(post.energy(system, trajectory) - post.energy(system, trajectory)[0])),
    }


RUN = {
    (s, f): jax.jit(lambda seed, scheme=scheme, formulation=formulation: _run(seed, scheme, formulation))
    for s, scheme in SCHEMES.items()
    for f, formulation in FORMULATIONS.items()
}


@pytest.mark.parametrize("scheme", [pytest.param(name, marks=[pytest.mark.slow] if name == "galerkin 4" else []) for name in SCHEMES])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**31 - 1))
def test_random_chains(scheme, seed):
    """All formulations agree, constraints and momentum hold to rounding, energy stays near its value."""
    results = {name: RUN[scheme, name](seed) for name in FORMULATIONS}
    reference, _ = results["multipliers"]
    for trajectory, kept in results.values():
        assert trajectory.successful
        np.testing.assert_allclose(trajectory.q, reference.q, rtol=0, atol=1e-9)
        assert kept["constraints"] < 1e-13 and kept["rates"] < 1e-11
        assert kept["momentum"] < 1e-11
        assert kept["energy"] < {"midpoint": 0.5, "galerkin 4": 0.02}[scheme]
