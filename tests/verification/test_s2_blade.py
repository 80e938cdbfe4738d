"""Masarati 2011, section 4.3: flap and pitch of a rotor blade (30), with a pitch link as a constraint (28), (29) or as a stiffness."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import odes

from ..octave import Ode45

SPEED, FLAP, TWIST, CROSS = 40.0, 416.67, 9.375e-2, 1.875e-2
RATIO = 1.0625  # table 3 prints the square of the flap frequency ratio sqrt(1 + 1.5 * 0.2 / 4.8)
HINGE, ARM, BALL = np.array([0.2, 0.0, 0.0]), (0.05, 0.2), np.array([0.25, 0.2, -0.15])
INERTIA = np.array([[FLAP, -CROSS], [-CROSS, TWIST]])
STIFFNESS = SPEED**2 * (INERTIA + np.diag([FLAP * (RATIO - 1), 0.0]))


def forces(t, q, v, w, control):
    flap = -0.5 * SPEED * FLAP * v[0] + 1e4 * jnp.cos(SPEED * t + jnp.pi / 2)
    return jnp.stack([flap, control * (-q[1] - 0.25 * q[0])]) - STIFFNESS @ q


def link(t, q, control):
    (flap, pitch), (along, across) = q, ARM
    out, up = along, across * jnp.sin(pitch)
    upper = [jnp.cos(flap) * out - jnp.sin(flap) * up, across * jnp.cos(pitch), jnp.sin(flap) * out + jnp.cos(flap) * up]
    rod = HINGE + jnp.stack(upper) - BALL
    return jnp.sqrt(rod @ rod)[None] - 0.15


RIGID = odes.Dynamics.from_functions(INERTIA, forces, constraints=link, independent=True, params=0.0)
STIFF = odes.Dynamics.from_functions(INERTIA, forces, params=1.6538e4)
LIMITS = {"t1": 2.0, "dt0": 0.01, "solver": diffrax.Dopri5(), "saveat": np.linspace(0, 2, 801)}
PAPER = {"rtol": 1e-2, "atol": 1e-4, "dtmax": 0.01}


@functools.cache
def constrained(method):
    return odes.integrate(RIGID, [0.0, 0.0], method=method(), **LIMITS, **PAPER)


def off(motion):
    values = jax.jit(jax.vmap(lambda q, v: jax.jvp(lambda q: link(0.0, q, 0.0)[0], (q,), (v,))))(motion.q, motion.v)
    return [np.abs(np.asarray(one)).max() for one in values]


@pytest.mark.parametrize("method", [odes.Projection, odes.Baseline])
def test_constrained_models_run_with_the_longest_step(method):
    assert (int(constrained(method).scheme.accepted), int(constrained(method).scheme.rejected)) == (200, 0)


def test_present_does_not_drift_and_the_baseline_does():
    assert max(off(constrained(odes.Projection))) < 1e-15
    length, rate = off(constrained(odes.Baseline))
    assert length > 1e-11 and rate > 1e-9


def test_the_link_is_unloaded_but_for_a_small_third_harmonic():
    r"""The link makes $y_\theta \sin\theta = -x_\theta \tan\beta$ up to fourth order: odd, so that the first harmonic to come is the third,
    $8 \Omega^2 I_f (K_p/3 + K_p^3/6)\,b^3/(4 y_\theta)$ with the amplitude $b$ of the flap. At the frequency of the rotor the twist has no
    stiffness.
    """
    motion = constrained(odes.Projection)
    t, last = np.asarray(motion.t), np.asarray(motion.t) > 2 - 6 * np.pi / SPEED
    waves = np.stack([np.ones(last.sum()), *(f(k * SPEED * t[last]) for k in range(1, 5) for f in (np.cos, np.sin))], axis=1)
    part = np.linalg.lstsq(waves, np.stack([motion.multipliers[last, 0], motion.q[last, 0]], axis=1))[0]
    force, flap = np.hypot(part[1::2], part[2::2]).T
    third = 8 * SPEED**2 * TWIST * (0.25 / 3 + 0.25**3 / 6) * flap[0] ** 3 / (4 * 0.2)
    np.testing.assert_allclose(force[2], third, rtol=0.03)
    assert max(force[0], force[1], force[3]) < 0.05 * force[2] < 2e-4


@pytest.mark.slow
def test_the_penalty_needs_nearly_700_steps_with_the_control_of_the_paper():
    motion = odes.integrate(STIFF, [0.0, 0.0], controller=Ode45(1e-2, 1e-4, 0.01), **LIMITS)
    assert 650 < int(motion.scheme.accepted) < 750
    present = constrained(odes.Projection)
    assert np.abs(motion.q[:, 0] - present.q[:, 0]).max() < 1e-3 < np.abs(motion.v[:, 1] - present.v[:, 1]).max()
    assert off(motion)[0] > 1e-5
