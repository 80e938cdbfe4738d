"""Leyendecker, Marsden, Ortiz 2008, section 3.1: the published figures of the mathematical pendulum."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

from ..mechanisms import pendulum

FORMULATIONS = {
    "(22)": mbd.Multipliers(),
    "(25)": mbd.NullSpace(),
    "(25) chart": mbd.NullSpace("chart"),
    "(25) QR": mbd.NullSpace("qr"),
    "(28)": mbd.Reparametrised(source="user"),
    "(30)": mbd.Reparametrised(source="chart"),
    "implicit chart": mbd.Reparametrised("implicit", "qr"),
}


@pytest.fixture(scope="module")
def circle():
    system = pendulum(gravity=0.0)
    return system, mbd.simulate(system, [1.0, 0.0], [0.0, 1.0], dt=0.1, steps=100)


@pytest.fixture(scope="module")
def swinging():
    system = pendulum()
    return system, mbd.simulate(system, [1.0, 0.0], dt=0.1, steps=100)


def test_multiplier_on_the_circle(circle):
    """All multipliers are 1.00251257867(6), the first and the last are no exception; in closed form 2 (1 - sqrt(1 - h^2)) / h^2."""
    _, trajectory = circle
    assert np.all(np.floor(np.asarray(trajectory.multipliers) * 1e11) == 100251257867)
    np.testing.assert_allclose(trajectory.multipliers, 2 * (1 - np.sqrt(1 - 0.1**2)) / 0.1**2, rtol=0, atol=5e-13)


def test_constraint_force_points_to_the_centre(circle):
    _, trajectory = circle
    force = -trajectory.reaction / trajectory.dt
    np.testing.assert_allclose(force[1:-1], -1.00251257867 * trajectory.q[1:-1], atol=1e-11)


def test_energies_on_the_circle(circle):
    """H_d keeps the initial energy 1/2 to rounding, E_d keeps another value."""
    system, trajectory = circle
    for p in (None, post.momentum(system, trajectory)):
        np.testing.assert_allclose(post.energy(system, trajectory, p), 0.5, rtol=0, atol=1e-14)
    E = post.discrete_energy(system, trajectory)
    q = trajectory.q
    np.testing.assert_allclose(E, 0.5 * jnp.sum((jnp.diff(q, axis=0) / 0.1) ** 2, axis=1), rtol=1e-13)
    assert np.ptp(E) < 1e-14 and abs(E[0] - 0.5) > 1e-3


def test_hidden_constraints_on_the_circle(circle):
    """(45), and (46) for the constrained momenta, hold to rounding without a potential."""
    system, trajectory = circle
    assert jnp.max(jnp.abs(post.hidden_velocity_constraints(system, trajectory))) < 1e-14
    assert jnp.max(jnp.abs(post.hidden_momentum_constraints(system, trajectory, post.momentum(system, trajectory)))) < 2e-15


def test_hidden_constraints_with_gravity(swinging):
    """(45) holds to rounding; (46) does not for p_n, and does for the projected p_n."""
    system, trajectory = swinging
    constrained = post.hidden_momentum_constraints(system, trajectory, post.momentum(system, trajectory))
    assert jnp.max(jnp.abs(post.hidden_velocity_constraints(system, trajectory))) < 3e-14
    assert jnp.max(jnp.abs(constrained)) > 0.1
    assert jnp.max(jnp.abs(post.hidden_momentum_constraints(system, trajectory, trajectory.p))) < 2e-15


def test_energies_with_gravity(swinging):
    """H_d oscillates with a smaller amplitude than E_d and to the other side."""
    system, trajectory = swinging
    H, E = post.energy(system, trajectory), post.discrete_energy(system, trajectory)
    H_constrained = post.energy(system, trajectory, post.momentum(system, trajectory))
    assert np.ptp(H) < 0.5 * np.ptp(E)
    assert np.max(H) < 1e-3 and np.min(H) < -0.3 and np.max(E) > 0.5
    assert np.corrcoef(0.5 * (H[1:] + H[:-1]), E)[0, 1] < -0.9
    assert np.max(np.abs(H - H_constrained)) < 0.03 * np.ptp(H)


@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("gravity", [0.0, 9.81])
def test_all_formulations_give_the_same_motion(name, gravity, circle, swinging):
    system, reference = circle if gravity == 0 else swinging
    trajectory = mbd.simulate(system, reference.q[0], reference.v[0], dt=0.1, steps=100, formulation=FORMULATIONS[name])
    for column in ("q", "v", "p", "multipliers"):
        np.testing.assert_allclose(getattr(trajectory, column), getattr(reference, column), rtol=0, atol=1e-10)
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13


def test_multipliers_of_the_solver_are_the_recovered_ones(swinging):
    """(36)-(38) recover what the constrained scheme (22) solves for."""
    system, trajectory = swinging
    row = 7
    from jaxmbd.schemes import StepInput
    from jaxmbd.simulation.solving import step_residual

    known = StepInput(system, trajectory.t[row], trajectory.dt, trajectory.q[row], trajectory.incoming[row])
    formulation = mbd.Multipliers()
    problem = formulation.prepare(mbd.Midpoint(), known)
    x0, scale = formulation.guess(trajectory.q[row + 1][None], problem)
    x = mbd.Newton()(step_residual, x0, (formulation, problem), scale).value
    np.testing.assert_allclose(x[2] / trajectory.dt**2, trajectory.multipliers[row, 0], rtol=1e-11)


def test_condition_numbers(swinging):
    """The constrained scheme gets worse as h^-2 or faster, the reparametrised one has condition 1 at any step."""
    system, _ = swinging
    conditions = {}
    for dt in (1e-2, 1e-3):
        trajectory = mbd.simulate(system, [1.0, 0.0], dt=dt, steps=4)
        conditions[dt] = post.condition_number(system, trajectory, mbd.Multipliers())[0]
        assert post.condition_number(system, trajectory, mbd.Reparametrised())[0] == pytest.approx(1.0)
        assert post.condition_number(system, trajectory, mbd.Multipliers(), scaled=True)[0] < 5
    assert conditions[1e-3] / conditions[1e-2] > 50
