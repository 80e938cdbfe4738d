"""Uhlar, Betsch, section 6: the free-floating manipulator whose platform follows a figure of eight, with friction and without."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import inverse, post

STEPS = 60
RUN = {"dt": 0.01, "steps": STEPS, "scheme": mbd.EnergyMomentum()}


def eight(t):
    """Where the middle of the platform is to be, from rest to rest without jerk."""
    s = t / (STEPS * RUN["dt"])
    phase = 2 * jnp.pi * s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)
    return jnp.stack([0.25 * jnp.sin(phase), 0.12 * jnp.sin(2 * phase)])


@pytest.fixture(scope="module")
def followed():
    """The motion with friction in the hinges of its motors, E = 350 and F_max = 50, and with a limit of zero, which is none."""
    system, q0 = mbd.assemble(*mbd.gallery.floating_manipulator(mbd.friction.Plasticity(350.0, 50.0)))
    motion = {"path": inverse.Point("platform", eight, along="xy"), "attitude": inverse.Orientation("platform", np.eye(3), about="z")}
    without = system.replace({f"bearing {i}.limit": 0.0 for i in (1, 2, 3)})
    return [(one, inverse.inverse_dynamics(one, q0, 0 * q0, motion=motion, **RUN)) for one in (without, system)]


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["without friction", "with friction"])
def test_path_momenta_energy_and_playback(followed, which):
    system, found = followed[which]
    motion = found.trajectory
    platform, angles = post.poses(system, motion)["platform"], post.joint_coordinates(system, motion)
    np.testing.assert_allclose(platform.origin[:, :2], jax.vmap(eight)(motion.t), rtol=0, atol=1e-12)
    np.testing.assert_allclose(platform.rotation, np.broadcast_to(np.eye(3), platform.rotation.shape), rtol=0, atol=1e-12)
    for momentum in (post.linear_momentum, post.angular_momentum):
        assert np.abs(momentum(system, motion)).max() < 1e-11
    work = sum(found.inputs[f"motor {i}"] * np.diff(angles[f"foot {i}"][:, 0]) for i in (1, 2, 3))
    energy, lost = post.energy(system, motion), post.dissipated(system, motion)
    assert np.abs(np.diff(energy + lost) - work).max() < 1e-12 * np.abs(energy).max()
    assert np.diff(lost).min() >= 0 and (lost[-1] > 1) == (which == 1)
    back = mbd.simulate(system, motion.q[0], controls=found.controls, **RUN)
    np.testing.assert_allclose(back.q, motion.q, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_friction_is_what_the_torques_differ_by(followed):
    """As in figure 5a: the motion is the same, so that motors have to overcome what rubs, and no more."""
    (_, easy), (system, found) = followed
    for i in (1, 2, 3):
        rubbing = post.friction(system, found.trajectory)[f"bearing {i}"].force[1:]
        more = found.inputs[f"motor {i}"] - easy.inputs[f"motor {i}"]
        assert np.abs(rubbing).max() > 40
        np.testing.assert_allclose(more, rubbing, rtol=0, atol=1e-8 * np.abs(easy.inputs[f"motor {i}"]).max())
