"""Post-processing that the verification of the pendulum does not cover."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

from .mechanisms import bead_on_moving_wire, chain, pendulum, stretched

SYSTEM = chain(2)


@pytest.fixture(scope="module")
def trajectory():
    return mbd.simulate(SYSTEM, stretched(2), [0.0, 1.0, 0.0, 2.0], dt=0.02, steps=50)


@pytest.mark.parametrize("scheme", [mbd.Midpoint(), mbd.Trapezoidal(), mbd.Galerkin(4)])
def test_constrained_momentum_is_the_same_from_both_sides(scheme):
    """(34) from the step that leaves a node equals (35) from the step that arrives."""
    trajectory = mbd.simulate(SYSTEM, stretched(2), [0.0, 1.0, 0.0, 2.0], dt=0.02, steps=50, scheme=scheme)
    leaving = trajectory.incoming - trajectory.reaction
    share = scheme.weights[0] / (scheme.weights[0] + scheme.weights[-1])
    from_the_right = leaving + share * trajectory.reaction
    np.testing.assert_allclose(post.momentum(SYSTEM, trajectory)[1:-1], from_the_right[1:-1], atol=1e-12)


def test_legendre_transforms_written_out(trajectory):
    """D_2 L_d of the midpoint rule by hand, and its projections."""
    q, m = np.asarray(trajectory.q), np.repeat([1.0, 2.0], 2)
    weight = 9.81 * np.array([0.0, 1.0, 0.0, 2.0])
    right = m * (q[1:] - q[:-1]) / 0.02 - 0.01 * weight
    np.testing.assert_allclose(post.momentum(SYSTEM, trajectory, "raw")[1:], right, atol=1e-11)
    for row in (1, 17):
        G = np.array([[q[row, 0], q[row, 1], 0, 0], np.concatenate([q[row, :2] - q[row, 2:], q[row, 2:] - q[row, :2]])])
        Q = np.eye(4) - G.T @ np.linalg.solve(G / m @ G.T, G / m)
        np.testing.assert_allclose(trajectory.p[row], Q @ right[row - 1], atol=1e-11)
        np.testing.assert_allclose(post.momentum(SYSTEM, trajectory, "projected")[row], Q @ right[row - 1], atol=1e-11)


def test_projected_momenta_of_a_scheme_that_carries_its_own_are_tangent():
    """Of a unit mass on a unit circle: what of the momentum is along the rod is taken off."""
    system = pendulum()
    trajectory = mbd.simulate(system, [1.0, 0.0], [0.0, 1.0], dt=0.05, steps=10, scheme=mbd.EnergyMomentum())
    q, p = np.asarray(trajectory.q), np.asarray(trajectory.p)
    along = np.sum(q * p, axis=1, keepdims=True)
    assert np.abs(along).max() > 1e-3
    np.testing.assert_allclose(post.momentum(system, trajectory, "projected"), p - along * q, rtol=0, atol=1e-12)


def test_hidden_velocity_constraints_of_a_moving_wire_are_taken_in_the_middle():
    """(45) written out for the plane that turns: its normal, and the rate of that, half a step on."""
    dt, rate, start = 0.05, 3.0, np.array([np.sin(0.7), 0.0, -np.cos(0.7)])
    system = bead_on_moving_wire()
    trajectory = mbd.simulate(system, start, [0.0, rate * start[0], 0.0], dt=dt, steps=4)
    angle, q = rate * (np.asarray(trajectory.t)[:-1] + 0.5 * dt), np.asarray(trajectory.q)
    normal = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    change = -rate * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    expected = np.sum(normal * np.diff(q, axis=0) / dt + change * 0.5 * (q[1:] + q[:-1]), axis=1)
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(post.hidden_velocity_constraints(system, trajectory)[:, 1], expected, rtol=0, atol=1e-12)


def test_reduced_momentum_of_the_pendulum_is_its_angular_momentum():
    system = pendulum()
    trajectory = mbd.simulate(system, [1.0, 0.0], [0.0, 1.0], dt=0.05, steps=10)
    q, p = trajectory.q, trajectory.incoming
    for source in ("user", "chart"):
        reduced = post.reduced_momentum(system, trajectory, source)
        np.testing.assert_allclose(reduced[:, 0], q[:, 0] * p[:, 1] - q[:, 1] * p[:, 0], atol=1e-13)
    assert jnp.max(jnp.abs(jnp.abs(post.reduced_momentum(system, trajectory, "qr")) - jnp.abs(reduced))) < 1e-13


def test_continuous_multipliers_are_the_rod_forces():
    """A pendulum at angle a turning with the rate w: lambda = w^2 - g sin(a) for unit length and mass."""
    system = pendulum()
    trajectory = mbd.simulate(system, [1.0, 0.0], [0.0, -2.0], dt=0.01, steps=60)
    q, v = trajectory.q, trajectory.v
    np.testing.assert_allclose(post.multipliers(system, trajectory)[:, 0], jnp.sum(v * v, axis=1) - 9.81 * q[:, 1], atol=1e-11)


def test_discrete_energy_of_a_user_scheme_is_minus_the_slope_by_the_step():
    system = pendulum()
    trajectory = mbd.simulate(system, [1.0, 0.0], dt=0.1, steps=10)
    q = trajectory.q
    middle, v = 0.5 * (q[1:] + q[:-1]), jnp.diff(q, axis=0) / 0.1
    np.testing.assert_allclose(post.discrete_energy(system, trajectory), 0.5 * jnp.sum(v * v, axis=1) + 9.81 * middle[:, 1], atol=1e-12)


def test_discrete_energy_of_galerkin_is_close_to_the_energy():
    trajectory = mbd.simulate(SYSTEM, stretched(2), dt=0.02, steps=20, scheme=mbd.Galerkin(6))
    E, H = post.discrete_energy(SYSTEM, trajectory), post.energy(SYSTEM, trajectory)
    np.testing.assert_allclose(E, H[:-1], atol=1e-6)


def test_neighbouring_steps_are_required():
    coarse = mbd.simulate(SYSTEM, stretched(2), dt=0.02, steps=20, save=5)
    for function in (post.discrete_energy, post.hidden_velocity_constraints):
        with pytest.raises(mbd.ModelError, match="every 5th was saved"):
            function(SYSTEM, coarse)


def test_order_of_a_power_law():
    assert post.order([0.4, 0.2, 0.1], [3 * h**4 for h in (0.4, 0.2, 0.1)]) == pytest.approx(4.0)


def test_summary_tells_what_was_kept(trajectory):
    table = post.summary(SYSTEM, trajectory)
    assert table["steps"] == 50 and table["redundant constraints"] == 0
    assert table["constraint, at most"] < 1e-14 and table["hidden constraint, at most"] < 1e-13
    H = post.energy(SYSTEM, trajectory)
    assert table["largest change of energy"] == pytest.approx(float(jnp.max(jnp.abs(H - H[0]))))


def test_condition_number_is_that_of_the_written_out_matrix():
    """The tangent of (22) for the pendulum at its first step, by hand."""
    system, h = pendulum(), 0.1
    trajectory = mbd.simulate(system, [1.0, 0.0], dt=h, steps=10)
    q0, q1 = trajectory.q[0], trajectory.q[1]
    matrix = np.block([[-np.eye(2) / h, -h * np.asarray(q0)[:, None]], [np.asarray(q1)[None, :], np.zeros((1, 1))]])
    condition = post.condition_number(system, trajectory, mbd.Multipliers())[0]
    assert condition == pytest.approx(np.linalg.cond(matrix), rel=1e-6)
