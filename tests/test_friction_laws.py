"""Laws of friction by themselves, along coordinates that are given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from jaxmbd.friction.lugre import phi, psi

from .frictions import LAWS


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([name for name in LAWS if name != "LuGre"]),
    st.lists(st.floats(-1.0, 1.0), min_size=12, max_size=12),
    st.floats(1e-4, 1.0),
    st.floats(1e-6, 1.0),
)
def test_laws_dissipate_in_any_motion(name, places, scale, dt):
    """F (c1 - c0) = stored1 - stored0 + lost with lost >= 0, for random increments: tiny, none, and back and forth."""
    law, c = LAWS[name], scale * jnp.asarray(places)
    work, lost, stored = _walk(law, c, jnp.asarray(dt))
    size = np.abs(work).max() + np.abs(stored).max() + 1e-12
    assert np.abs(work - np.diff(stored) - lost).max() < 1e-13 * size
    assert np.min(lost) >= 0


@jax.jit
def _walk(law, c, dt):
    def move(state, ends):
        slip = law.slide(state, *ends, dt)
        return slip.state, (slip.force * (ends[1] - ends[0]), slip.dissipated, law.stored(slip.state, ends[1]))

    start = law.start(c[0])
    _, (work, lost, stored) = jax.lax.scan(move, start, (c[:-1], c[1:]))
    return work, lost, jnp.append(law.stored(start, c[0]), stored)


@pytest.mark.parametrize("name", LAWS)
def test_the_force_at_an_instant_is_that_of_a_short_increment(name):
    """In both directions, from where a law was bent or loaded within its limit."""
    law, dt = LAWS[name], jnp.asarray(1e-8)
    state, c = law.slide(law.start(jnp.zeros(())), jnp.zeros(()), jnp.asarray(0.05), jnp.asarray(0.02)).state, jnp.asarray(0.05)
    for rate in (0.3, -2.0):
        assert float(law.force(state, c, jnp.asarray(rate))) == pytest.approx(float(law.slide(state, c, c + rate * dt, dt).force), rel=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(-1.0, 1.0), st.floats(-9.0, 0.0))
def test_plastic_force_is_bounded_at_all_increments(tension, share, power):
    """Whatever small increment follows whatever tension, the force stays within the limit, and so does its slope."""
    law = LAWS["plastic"]
    state = law.start(jnp.zeros(()))
    c0, move = jnp.asarray(tension * 50 / 350), jnp.asarray(share * 10.0**power)
    force, slope = jax.value_and_grad(lambda move: law.slide(state, c0, c0 + move, jnp.ones(())).force)(move)
    assert abs(force) <= 50 * (1 + 1e-12)
    assert 0 <= slope <= 350 * (1 + 1e-9)


def test_small_arguments_of_bristle_functions():
    a = jnp.array([1e-12, 1e-6, 0.0199999, 0.0200001, 1.0, 50.0])
    exact = -np.expm1(-np.asarray(a)) / np.asarray(a)
    assert np.allclose(phi(a), exact, rtol=1e-14)
    assert np.allclose(psi(a)[2:], ((1 - exact) / a)[2:], rtol=1e-13)
    assert np.allclose(psi(a)[:2], 0.5, rtol=1e-6)
    assert phi(jnp.zeros(())) == 1 and psi(jnp.zeros(())) == 0.5


def test_hardening_in_closed_form():
    """Loaded beyond the limit, the tension grows by E H / (E + H)."""
    law, dt = LAWS["hardening"], jnp.ones(())
    _, rest, yielding = law.start(jnp.zeros(())), 50 / 350, 350 * 120 / (350 + 120)
    state, force = law.start(jnp.zeros(())), []
    for c0, c1 in [(0.0, 0.5), (0.5, 0.5 + 1e-6)]:
        state, force = (slip := law.slide(state, jnp.asarray(c0), jnp.asarray(c1), dt)).state, [*force, slip.force]
    assert float(force[-1]) == pytest.approx(50 + yielding * (0.5 - rest), rel=1e-6)
