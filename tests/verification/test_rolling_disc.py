"""Le Saux, Leine, Glocker: dynamics of a rolling disk, steady rolling on a circle; and its closed forms of motion and force.

The tilt is that of the disc against the vertical, gamma' the spin about its axle against the plane of axle and vertical, alpha' the rate at
which it goes round. That the contact runs equally far on rim and table, r gamma' = R |alpha'|, makes R the radius of the circle of the
contact; the centre is on one of radius R - r sin(tilt). The balance of angular momentum about the contact is then the published relation,

  m r^2 rho gamma'^2 cos b (3/2 - 5/4 rho sin b) = m g r sin b,  rho = r/R.
"""

import functools

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import joints, odes, post, rotation

MASS, RADIUS, CIRCLE, GRAVITY = 0.3048, 0.05, 0.5, 9.81
PUBLISHED = {5: (10.7364981632612, 5.852173782956319), 20: (22.13684778502703, 2.838337855595421)}
SCHEMES = {"midpoint": mbd.Midpoint(), "energy-momentum": mbd.EnergyMomentum()}


@functools.cache
def steady(degrees):
    """The disc at the start of its circle, and its spin and its rate around."""
    b, ratio = np.radians(degrees), RADIUS / CIRCLE
    spin = np.sqrt(4 * GRAVITY / RADIUS * np.sin(b) / ((6 - 5 * ratio * np.sin(b)) * ratio * np.cos(b)))
    ahead, axle, up = np.array([[0.0, 1, 0], [-np.cos(b), 0, -np.sin(b)], [-np.sin(b), 0, np.cos(b)]])
    disc = mbd.RigidBody(MASS, MASS * RADIUS**2 * np.array([0.25, 0.5, 0.25]))
    contact = mbd.Joint(joints.RollingDisc(RADIUS), "ground", "disc")
    mechanism = mbd.Mechanism({"disc": disc}, {"contact": contact}, [mbd.Gravity((0, 0, -GRAVITY))])
    centre = np.array([CIRCLE, 0, 0]) + RADIUS * up
    system, q0 = mbd.assemble(mechanism, {"disc": (centre, np.stack([ahead, axle, up], axis=1))})
    turning = np.array([0, 0, ratio * spin]) + spin * axle
    v0 = mbd.joint_velocities(system, q0, {"disc": (*np.cross(turning, RADIUS * up), *turning)})
    return system, q0, v0, spin, ratio * spin


def exact(degrees, t):
    """The coordinates at a time: turned about the vertical, and about the axle."""
    _, q0, _, spin, around = steady(degrees)
    centre, pose = q0[:3], q0[3:].reshape(3, 3).T
    turn = rotation.exp(jnp.array([0, 0, around * t]))
    return jnp.concatenate([turn @ centre, (turn @ pose @ rotation.exp(jnp.array([0, spin * t, 0]))).T.ravel()])


@functools.cache
def run(degrees, scheme, steps, parts, periods=1.0):
    """A motion in steps of a part of the period."""
    system, q0, v0, _, around = steady(degrees)
    dt = periods * 2 * np.pi / around / parts
    return mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=SCHEMES[scheme])


@pytest.mark.parametrize("degrees", PUBLISHED)
def test_rates_and_periods_are_the_published_ones(degrees):
    _, _, _, spin, around = steady(degrees)
    np.testing.assert_allclose((spin, 2 * np.pi / around), PUBLISHED[degrees], rtol=2e-15)


@pytest.mark.parametrize("scheme", ["midpoint", pytest.param("energy-momentum", marks=pytest.mark.slow)])
def test_the_motion_is_the_steady_one_to_second_order(scheme):
    """A twentieth of the period, half a turn of the disc, in steps of the period over 1000 and 2000."""
    errors = []
    for parts in (1000, 2000):
        motion = run(20, scheme, 100, parts)
        row = parts // 20
        errors.append(float(jnp.abs(motion.q[row] - exact(20, motion.t[row])).max()))
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.03 and errors[1] < 2e-3


@pytest.mark.parametrize("scheme", ["midpoint", pytest.param("energy-momentum", marks=pytest.mark.slow)])
def test_the_rim_stays_on_the_table_and_does_not_slip(scheme):
    """Height at the ends of steps, slip in their middle."""
    system, motion = steady(20)[0], run(20, scheme, 100, 1000)
    assert np.abs(post.constraint_residuals(system, motion)).max() < 1e-14
    for q0, q1 in zip(motion.q[:5], motion.q[1:6], strict=True):
        assert np.abs(system.velocity_constraints(0.0, 0.5 * (q0 + q1), (q1 - q0) / motion.dt)).max() < 1e-12


@pytest.mark.slow
def test_energy_stays():
    system, motion = steady(20)[0], run(20, "energy-momentum", 100, 1000)
    energy = post.energy(system, motion)
    assert np.ptp(energy) < 2e-14 * energy[0]


def test_the_reaction_carries_the_weight_and_keeps_the_centre_on_its_circle():
    """The normal force is $m g$, friction $m v^2/R_c$ towards the axis of the circle, their torque that of the arm to the contact."""
    errors = []
    for parts in (1000, 2000):
        system, motion = steady(20)[0], run(20, "midpoint", 100, parts)
        around, centre = steady(20)[4], np.asarray(post.point(system, motion, "disc").position)
        wrench = post.reactions(system, motion)["contact"]
        inwards = -MASS * around**2 * centre[:, :2]
        wanted = np.concatenate([inwards, np.full((101, 1), MASS * GRAVITY)], axis=1)
        errors.append(np.abs(np.asarray(wrench.force) - wanted)[1:-1].max())
        arm = np.asarray(motion.q)[:, :3] * [CIRCLE / np.linalg.norm(centre[0, :2]), CIRCLE / np.linalg.norm(centre[0, :2]), 0] - centre
        np.testing.assert_allclose(wrench.torque[1:-1], np.cross(arm, wrench.force)[1:-1], rtol=0, atol=3e-3 if parts == 1000 else 8e-4)
    assert errors[1] < 3e-4 and 3.5 < errors[0] / errors[1] < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("degrees", PUBLISHED)
def test_after_a_period_the_disc_is_back(degrees):
    errors = [float(jnp.abs(run(degrees, "midpoint", n, n).q[-1] - steady(degrees)[1]).max()) for n in (500, 1000)]
    assert abs(np.log2(errors[0] / errors[1]) - 2) < 0.02 and errors[1] < {5: 2e-2, 20: 2e-3}[degrees]


@pytest.mark.slow
def test_after_a_period_an_adaptive_solver_is_back_with_the_force_of_the_closed_form():
    """Constraints on velocities beside one on the height, by projection and a method of order eight."""
    system, q0, v0, _, around = steady(20)
    motion = odes.integrate(system, q0, v0, t1=2 * np.pi / around, solver=diffrax.Dopri8(), rtol=1e-6, atol=1e-6, saveat=5)
    force = np.asarray(post.reactions(system, motion)["contact"].force)
    inwards = MASS * around**2 * (CIRCLE - RADIUS * np.sin(np.radians(20)))
    assert np.abs(motion.q[-1] - q0).max() < 1e-5 and int(motion.scheme.accepted) < 100
    assert max(np.abs(part(system, motion)).max() for part in (post.constraint_residuals, post.constraint_rates)) < 1e-13
    np.testing.assert_allclose(force[:, 2], MASS * GRAVITY, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(force[:, :2], axis=1), inwards, rtol=1e-5)
