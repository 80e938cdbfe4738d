"""The three-bar swing of S0, section 6.2: a flexible beam between rigid links."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post


@pytest.fixture(scope="module")
def swing():
    return mbd.assemble(*gallery.three_bar_swing())


@pytest.fixture(scope="module")
def motions(swing):
    schemes = {"symplectic": mbd.Midpoint(), "energy-momentum": mbd.EnergyMomentum()}
    return {name: mbd.simulate(*swing, dt=1e-2, steps=60, scheme=scheme) for name, scheme in schemes.items()}


def test_its_size_is_that_of_the_paper(swing):
    system, q0 = swing
    assert (q0.size, system.constraints(0.0, q0).size) == (276, 154)
    assert mbd.simulation.sparsity(system, q0).size == 430
    assert (system.params.increments, system.params.closures) == (122, 0)


@pytest.mark.slow
def test_energy_after_the_load_ends(swing, motions):
    """Exact with energy-momentum, oscillating with the symplectic scheme, which the load gave the same energy up to its error."""
    exact, oscillating = (np.asarray(post.energy(swing[0], motions[name]))[26:] for name in ("energy-momentum", "symplectic"))
    assert np.ptp(exact) < 1e-13 * 60 * exact[0]
    assert 1e-6 * exact[0] < np.ptp(oscillating) < 1e-3 * exact[0]
    np.testing.assert_allclose(oscillating, exact[0], rtol=1e-3)
    np.testing.assert_allclose(exact[0], 140.59, rtol=1e-4)


@pytest.mark.slow
def test_the_motion_stays_in_its_plane(swing, motions):
    system, _ = swing
    for motion in motions.values():
        angular = np.abs(np.asarray(post.angular_momentum(system, motion))).max(axis=0)
        assert angular[0] > 1 and angular[1:].max() < 1e-12 * angular[0]
        assert jnp.max(jnp.abs(post.constraint_residuals(system, motion))) < 1e-14


@pytest.mark.slow
def test_both_schemes_move_it_alike(motions):
    first, second = (np.asarray(motions[name].q) for name in ("energy-momentum", "symplectic"))
    moved = np.abs(first[-1] - first[0]).max()
    assert np.abs(first - second).max() < 0.02 * moved
