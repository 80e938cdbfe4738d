"""Where in a step Lagrangians and forces are taken: schemes keep their order when these depend on time, against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

from .mechanisms import errors_after

VARIATIONAL = {
    "midpoint": (mbd.Midpoint(), 2),
    "trapezoidal": (mbd.Trapezoidal(), 2),
    "galerkin lobatto": (mbd.Galerkin(4), 4),
    "galerkin gauss": (mbd.Galerkin(4, "gauss"), 4),
    "energy-momentum": (mbd.EnergyMomentum(), 2),
    "generalized alpha": (mbd.schemes.GeneralizedAlpha(0.9), 2),
}
COUNTS = (16, 32, 64)
PUSH = lambda t: jnp.sin(3 * t)
IN_THE_LAGRANGIAN = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * q @ q + q[0] * PUSH(t))
AS_A_FORCE = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * q @ q, forces=lambda t, q, v, p: PUSH(t) * jnp.ones_like(q))


@pytest.mark.parametrize("name", VARIATIONAL)
@pytest.mark.parametrize("system", [IN_THE_LAGRANGIAN, AS_A_FORCE], ids=["lagrangian", "force"])
def test_a_pushed_oscillator(system, name):
    """$\\ddot q + q = \\sin 3t$ from rest."""
    scheme, order = VARIATIONAL[name]
    exact = ((3 * np.sin(1.0) - np.sin(3.0)) / 8, (3 * np.cos(1.0) - 3 * np.cos(3.0)) / 8)
    run = lambda dt, steps: mbd.simulate(system, jnp.zeros(1), dt=dt, steps=steps, scheme=scheme)
    for errors in errors_after(1.0, COUNTS, run, exact, lambda motion: (motion.q[:, 0], motion.v[:, 0])):
        assert abs(post.order([1 / count for count in COUNTS], errors) - order) < 0.2


RIGID = {
    "newmark": mbd.schemes.Newmark(),
    "conservative directors": mbd.schemes.ConservativeDirector(),
    "directors": mbd.schemes.DirectorEnergyMomentum(),
}


@pytest.mark.parametrize("name", RIGID)
def test_a_pushed_body(name):
    """$\\ddot x = \\cos 3t$ by a force, and $\\ddot y = \\cos 3t$ by a potential that depends on time, by schemes of rigid bodies."""
    push = mbd.Force("ball", lambda t: jnp.array([1.0, 0.0, 0.0]) * jnp.cos(3 * t))
    pull = mbd.Potential(lambda t, a, b, p: -jnp.cos(3 * t) * a.origin[1], "ball")
    system, q0 = mbd.assemble(mbd.Mechanism({"ball": mbd.RigidBody.sphere(1.0, 0.5)}, {}, [push, pull]))
    run = lambda dt, steps: mbd.simulate(system, q0, dt=dt, steps=steps, scheme=RIGID[name])
    exact = ((1 - np.cos(3.0)) / 9, (1 - np.cos(3.0)) / 9, np.sin(3.0) / 3, np.sin(3.0) / 3)
    for errors in errors_after(1.0, COUNTS, run, exact, lambda motion: (*motion.q[:, :2].T, *motion.v[:, :2].T)):
        assert abs(post.order([1 / count for count in COUNTS], errors) - 2) < 0.2


def test_newmark_keeps_the_spin_of_a_falling_body_up_to_its_error():
    """Euler's equations about the centre of mass, which is off the origin of the body: no torque acts there, and the body tumbles."""
    com = np.array([0.2, -0.1, 0.3])
    system, q0 = mbd.assemble(mbd.Mechanism({"body": mbd.RigidBody(1.0, (1.0, 2.2, 3.0), com)}, loads=[mbd.Gravity()]))
    v0 = mbd.joint_velocities(system, q0, {"body": (0.0, 0.0, 0.0, 2.0, 1.0, 3.0)})
    motion = mbd.simulate(system, q0, v0, dt=0.01, steps=20, scheme=RIGID["newmark"])
    frames = post.poses(system, motion)["body"]
    centre = frames.origin + frames.rotation @ com
    spin = post.angular_momentum(system, motion) - np.cross(centre, post.linear_momentum(system, motion))
    np.testing.assert_allclose(spin[0], [2.0, 2.2, 9.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(spin[-1], spin[0], rtol=0, atol=2e-3)


def test_a_damped_spring_is_the_linear_oscillator():
    """A mass point on the line of a spring and damper, against the closed form."""
    mass, stiffness, damping = 2.0, 50.0, 3.0
    spring = mbd.Spring("ground", "mass", stiffness, rest=1.0, damping=damping)
    system, q0 = mbd.assemble(mbd.Mechanism({"mass": mbd.Particle(mass)}, {}, [spring]), {"mass": (1.3, 0, 0)})
    motion = mbd.simulate(system, q0, dt=1e-3, steps=1000, scheme=mbd.Galerkin(4), save=50)
    decay = damping / (2 * mass)
    omega = np.sqrt(stiffness / mass - decay**2)
    t = np.asarray(motion.t)
    exact = 1 + 0.3 * np.exp(-decay * t) * (np.cos(omega * t) + decay / omega * np.sin(omega * t))
    np.testing.assert_allclose(motion.q[:, 0], exact, rtol=0, atol=1e-9)
