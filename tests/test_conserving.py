"""Schemes beside the variational ones, on systems of functions: exact energy, order, moving constraints, damping, stiffness, failure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

from .mechanisms import bead_on_moving_wire, chain, charged_particle, kepler, pendulum, rotate

DOUBLE = chain(2, 3)


def double_pendulum_angles():
    """A double pendulum in two angles: the mass matrix depends on the position."""

    def lagrangian(t, q, v, p):
        a, b = q
        return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(a - b) + p * (2 * jnp.cos(a) + jnp.cos(b))

    return mbd.System.from_functions(lagrangian, params=9.81)


FREE = {
    "pendulum": (pendulum(), [1.0, 0.0], [0.0, 0.0], 0.05),
    "angles": (double_pendulum_angles(), [1.5, 1.0], [0.0, 0.3], 0.01),
    "charge": (charged_particle(), [1.0, 0.0, 0.3], [0.0, 0.5, 0.0], 0.05),
    "kepler": (kepler(), [1.0, 0.0], [0.0, 1.2], 0.1),
}


@pytest.mark.parametrize("name", FREE)
def test_energy_is_exact_for_any_lagrangian(name):
    """Constraints, a mass matrix that varies, velocity-dependent potentials and a pole: energy stays to rounding."""
    system, q0, v0, dt = FREE[name]
    trajectory = mbd.simulate(system, q0, v0, dt=dt, steps=500, scheme=mbd.EnergyMomentum())
    E = post.energy(system, trajectory)
    assert np.ptp(E) < 2e-12 * np.max(np.abs(trajectory.p * trajectory.v))
    assert np.ptp(trajectory.q[:, 0]) > 0.1
    if name == "kepler":
        np.testing.assert_allclose(post.momentum_map(system, trajectory, rotate), 1.2, atol=1e-12)
        assert np.ptp(post.energy(system, mbd.simulate(system, q0, v0, dt=dt, steps=500))) > 1e-4


@pytest.fixture(scope="module")
def double_pendulum():
    q0, v0 = mbd.project(DOUBLE, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.3, 0.2, 0.0, -0.5])
    return q0, v0, mbd.simulate(DOUBLE, q0, v0, dt=0.4 / 100, steps=100, scheme=mbd.Galerkin(6), save=50)


@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), mbd.schemes.GeneralizedAlpha(0.6)])
def test_order_two(scheme, double_pendulum):
    q0, v0, reference = double_pendulum
    run = lambda dt: mbd.simulate(DOUBLE, q0, v0, dt=dt, steps=round(0.4 / dt), scheme=scheme, save="end")
    fields = ("q", "p", "v", lambda trajectory: post.multipliers(DOUBLE, trajectory))
    table = post.convergence(run, [0.4 / count for count in (64, 128)], reference, fields)
    for field, (_, slope) in table.items():
        assert abs(slope - 2) < 0.2, (field, slope)


def test_multipliers_of_intervals_are_means_at_nodes(double_pendulum):
    """Inside a trajectory they converge with order two, although those of single steps alternate by more."""
    q0, v0, reference = double_pendulum
    exact = post.multipliers(DOUBLE, reference)
    errors = []
    for count in (64, 128):
        trajectory = mbd.simulate(DOUBLE, q0, v0, dt=0.4 / count, steps=count, scheme=mbd.EnergyMomentum(), save=count // 2)
        errors.append(np.max(np.abs(trajectory.multipliers - exact), axis=1))
    assert 3 < errors[0][1] / errors[1][1] < 5
    assert errors[1][1] < 0.1 * errors[1][0] and 1.5 < errors[0][0] / errors[1][0] < 3


def test_moving_constraints():
    """A bead on a turning hoop: the constraint holds at every node, and the motion is that of the variational scheme."""
    system, q0 = bead_on_moving_wire(), [1.0, 0.0, 0.0]
    ends = {}
    for name, scheme in {"energy": mbd.EnergyMomentum(), "galerkin": mbd.Galerkin(4)}.items():
        trajectory = mbd.simulate(system, q0, [0.0, 3.0, 0.5], dt=0.005, steps=200, scheme=scheme)
        assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-14
        ends[name] = trajectory.q[-1]
    np.testing.assert_allclose(ends["energy"], ends["galerkin"], atol=3e-4)


def test_damping_dissipates_and_forces_do_work():
    """With forces, energy changes by their discrete work alone."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        potential=lambda t, q, p: 0.25 * jnp.sum(q**4),
        forces=lambda t, q, v, p, u: -p * v + u,
        params=0.3,
    )
    push = lambda t: jnp.stack([jnp.sin(t), 0.0 * t])
    trajectory = mbd.simulate(system, [1.0, 0.5], [0.0, 0.0], dt=0.05, steps=100, scheme=mbd.EnergyMomentum(), controls=push)
    q, middle = np.asarray(trajectory.q), np.asarray(trajectory.t[:-1]) + 0.025
    force = -0.3 * np.diff(q, axis=0) / 0.05 + np.stack([np.sin(middle), 0 * middle], axis=1)
    np.testing.assert_allclose(np.diff(post.energy(system, trajectory)), np.sum(force * np.diff(q, axis=0), axis=1), atol=1e-14)


def test_generalized_alpha_damps_high_frequencies():
    """A stiff oscillator beside a soft one, steps that resolve the soft one: rho = 0 annihilates the stiff motion, rho = 1 keeps it."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v, potential=lambda t, q, p: 0.5 * p @ q**2, params=jnp.array([1.0, 1e8])
    )
    ends = {}
    for rho in (0.0, 1.0):
        trajectory = mbd.simulate(system, [1.0, 1e-3], dt=0.05, steps=100, scheme=mbd.schemes.GeneralizedAlpha(rho))
        ends[rho] = np.max(np.abs(trajectory.q[50:]), axis=0)
    assert ends[0.0][1] < 1e-12 and ends[1.0][1] > 5e-4
    assert abs(ends[0.0][0] - 1) < 0.05


def stiff_pendulum(ratio=1e4):
    """A mass on a spring whose frequency is `ratio` times that of its swing."""
    return mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        potential=lambda t, q, p: 0.5 * p * (jnp.sqrt(q @ q) - 1) ** 2 + q[1],
        params=float(ratio) ** 2,
    )


def test_energy_momentum_is_stable_where_the_symplectic_scheme_is_not():
    """A spring ten thousand times faster than the swing, steps that resolve the swing alone, released from the side."""
    system = stiff_pendulum()
    energies, lengths = {}, {}
    for scheme in (mbd.EnergyMomentum(), mbd.Midpoint()):
        trajectory = mbd.simulate(system, [1.0, 0.0], dt=0.1, steps=1000, scheme=scheme, newton=mbd.Newton(max_steps=50), throw=False)
        name = type(scheme).__name__
        energies[name] = np.max(np.abs(post.energy(system, trajectory)))
        lengths[name] = np.max(np.abs(np.linalg.norm(trajectory.q, axis=1) - 1))
    assert energies["EnergyMomentum"] < 1e-11 and lengths["EnergyMomentum"] < 1e-5
    assert energies["Midpoint"] > 1e3 and lengths["Midpoint"] > 0.01


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mbd.schemes.GeneralizedAlpha(1.2), "between 0 and 1"),
        (lambda: mbd.schemes.Newmark(beta=0.0), "beta must be positive"),
        (lambda: mbd.simulate(pendulum(), [1.0, 0.0], dt=0.1, steps=1, scheme=mbd.schemes.ConservativeDirector()), "system from assemble"),
        (
            lambda: mbd.simulate(pendulum(), [1.0, 0.0], dt=0.1, steps=1, formulation=mbd.formulations.JointMultipliers()),
            "system from assemble",
        ),
        (lambda: mbd.simulate(pendulum(), [1.0, 0.0], q1=[1.0, 0.0], dt=0.1, steps=1, scheme=mbd.EnergyMomentum()), "give v0"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(mbd.ModelError, match=message):
        make()


def test_float32_follows_the_input():
    system = pendulum()
    trajectory = mbd.simulate(system, np.array([1.0, 0.0], np.float32), dt=0.05, steps=50, scheme=mbd.EnergyMomentum())
    assert trajectory.v.dtype == jnp.float32
    assert np.ptp(post.energy(system, trajectory)) < 4e-5


def test_a_batch_survives_a_member_that_fails():
    """One member starts with a step that cannot be solved; the others keep their energy."""
    system, steps = pendulum(), jnp.array([0.01, 0.02, 1e3])
    run = lambda dt: mbd.simulate(system, [1.0, 0.0], [0.0, 1.0], dt=dt, steps=20, scheme=mbd.EnergyMomentum(), throw=False)
    batch = jax.vmap(run)(steps)
    assert batch.successful.tolist() == [True, True, False]
    assert np.max(np.ptp(jax.vmap(lambda one: post.energy(system, one))(batch)[:2], axis=1)) < 1e-12
