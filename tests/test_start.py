"""Consistent starts and the refusal of inconsistent ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.constraints import calculus

from .mechanisms import bead_on_moving_wire, chain, pendulum, redundant_pendulum, stretched

FREE = dict(lagrangian=lambda t, q, v, p: 0.5 * v @ v)


def system(**functions):
    return mbd.System.from_functions(**{**FREE, **functions})


def test_project_lands_on_the_manifold_and_its_tangent_space():
    triple = chain(3)
    q, v = mbd.project(triple, stretched(3) + 0.1 * jnp.arange(6.0), jnp.arange(6.0))
    t = jnp.array(0.0)
    assert jnp.max(jnp.abs(triple.constraints(t, q))) < 1e-14
    assert jnp.max(jnp.abs(calculus.constraint_rate(triple, t, q, v))) < 1e-14


def test_project_changes_nothing_that_is_consistent_and_velocity_least():
    q, v = mbd.project(pendulum(), [0.6, 0.8], [-0.8, 0.6])
    np.testing.assert_allclose(q, [0.6, 0.8], atol=1e-15)
    np.testing.assert_allclose(v, [-0.8, 0.6], atol=1e-15)
    _, v = mbd.project(pendulum(), [1.0, 0.0], [3.0, 2.0])
    np.testing.assert_allclose(v, [0.0, 2.0], atol=1e-15)


def test_project_refuses_what_was_not_solved_to_the_end():
    """One iteration leaves the length within what a start may be off, but not at rounding."""
    with pytest.raises(mbd.ModelError, match="not reached from this guess"):
        mbd.project(pendulum(), [1.0001, 0.0], newton=mbd.Newton(max_steps=1))
    assert mbd.project(pendulum(), [1.0001, 0.0])[0][0] == pytest.approx(1, abs=1e-15)


def test_project_follows_moving_constraints():
    bead, t = bead_on_moving_wire(), 0.4
    q, v = mbd.project(bead, [0.5, 0.4, -0.6], t=t)
    assert jnp.max(jnp.abs(bead.constraints(t, q))) < 1e-14
    assert jnp.max(jnp.abs(calculus.constraint_rate(bead, jnp.array(t), q, v))) < 1e-14 and jnp.max(jnp.abs(v)) > 0.1


def test_project_takes_redundant_constraints():
    q, _ = mbd.project(redundant_pendulum(), [0.9, 0.0, 0.1], [0.1, 0.2, 0.3])
    assert jnp.max(jnp.abs(redundant_pendulum().constraints(0.0, q))) < 1e-12


def parallelogram():
    """Two cranks of length one and two coupler points at half and at full height: the rod between the latter is redundant."""

    def constraints(t, q, p):
        a, b, c = q.reshape(3, 2)
        feet = jnp.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
        sides = [a - feet[0], b - feet[1], c - feet[2], b - a, c - b, c - a]
        return 0.5 * (jnp.array([side @ side for side in sides]) - jnp.array([1.0, 1.0, 1.0, 1.0, 1.0, 4.0]))

    return system(constraints=constraints)


def test_project_finds_the_manifold_of_a_redundant_loop():
    """From a guess off the manifold, where all six rods look independent; one freedom is left."""
    true = jnp.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]) + jnp.tile(jnp.array([jnp.cos(1.0), jnp.sin(1.0)]), 3)
    loop = parallelogram()
    q, v = mbd.project(loop, true + 0.03 * jnp.array([1.0, -1.0, 0.5, 0.3, -0.2, 1.0]), jnp.ones(6))
    assert jnp.max(jnp.abs(loop.constraints(0.0, q))) < 1e-12 and jnp.max(jnp.abs(q - true)) < 0.1
    assert np.all(np.isfinite(v))
    assert mbd.find_rank(loop, q).rank == 5
    trajectory = mbd.simulate(loop, q, v, dt=0.01, steps=20)
    assert trajectory.redundant == 1
    for function in (mbd.post.multipliers, mbd.post.reduced_momentum):
        values = function(loop, trajectory)
        assert np.all(np.isfinite(values)) and values.shape[1] > 0
    np.testing.assert_allclose(mbd.post.multipliers(loop, trajectory)[10], trajectory.multipliers[10], atol=0.05)


@pytest.mark.parametrize(
    "functions, words",
    [
        ({"null_space": lambda q: (q + jnp.array([-q[1], q[0]]))[:, None]}, r"columns of null_space leave"),
        ({"null_space": lambda q: jnp.eye(2)}, r"null_space must return a matrix of shape \(2, 1\)"),
        ({"chart": lambda u, q: jnp.array([jnp.cos(u[0]), jnp.sin(u[0])])}, r"chart\(0, q\) must be q"),
        ({"chart": lambda u, q: u}, r"chart must return coordinates of shape \(2,\)"),
    ],
)
def test_charts_and_null_spaces_that_do_not_fit_are_refused(functions, words):
    circle = system(constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - 1)]), **functions)
    with pytest.raises(mbd.ModelError, match=words):
        mbd.simulate(circle, [0.6, 0.8], dt=0.1, steps=2)


def test_rounding_is_not_refused():
    circle = system(constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - 1)]))
    mbd.simulate(circle, [1.0, 0.0], [np.cos(np.pi / 2), 0.0], dt=0.1, steps=1)
    moving = system(constraints=lambda t, q, p: jnp.array([q[0] - jnp.sin(t)]))
    mbd.simulate(moving, [0.0, 0.0], [-1.0, 0.0], dt=0.1, steps=1, t0=np.pi)


def test_project_is_differentiable():
    f = lambda x: jnp.concatenate(mbd.project(chain(2), stretched(2) + x * jnp.arange(4.0), jnp.arange(4.0) * (1 + x)))
    h = 1e-6
    np.testing.assert_allclose(jax.jacfwd(f)(0.1), (f(0.1 + h) - f(0.1 - h)) / (2 * h), atol=1e-8)


def test_a_guess_too_far_is_refused():
    unreachable = system(constraints=lambda t, q, p: jnp.array([q @ q + 1.0]))
    with pytest.raises(mbd.ModelError, match=r"was not reached from this guess.*number 0"):
        mbd.project(unreachable, [1.0, 2.0])


@pytest.mark.parametrize(
    "functions, start, words",
    [
        ({}, {"q0": [[1.0, 0.0]]}, "q0 must be a vector"),
        ({}, {"q0": [np.nan, 0.0]}, r"q0 has non-finite entries at \[0\]"),
        ({}, {"q0": [1.0, 0.0], "v0": [0.0]}, r"v0 has shape \(1,\)"),
        ({}, {"q0": [1.0, 0.0], "v0": [0.0, np.inf]}, "v0 has non-finite"),
        ({"lagrangian": lambda t, q, v, p: 0.5 * v}, {"q0": [1.0, 0.0]}, "must return a scalar"),
        ({"constraints": lambda t, q, p: q @ q - 1}, {"q0": [1.0, 0.0]}, r"must return a vector \(m,\)"),
        ({"forces": lambda t, q, v, p: q[:1]}, {"q0": [1.0, 0.0]}, r"forces must return a vector of shape \(2,\)"),
        ({"constraints": lambda t, q, p: jnp.array([q[0], q @ q - 1])}, {"q0": [0.0, 1.1]}, "q0 does not fulfil.*number 1 is off by 0.21"),
        (
            {"constraints": lambda t, q, p: jnp.array([q[0], q @ q - 1])},
            {"q0": [0.0, 1.0], "v0": [1.0, 0.0]},
            "v0 is not tangent.*number 0",
        ),
        ({"lagrangian": lambda t, q, v, p: 0.5 * v[0] ** 2 - q[1] ** 2}, {"q0": [1.0, 0.0]}, "singular.*mostly of coordinate 1"),
        ({"lagrangian": lambda t, q, v, p: 0.5 * p * v @ v, "params": np.nan}, {"q0": [1.0, 0.0]}, "parameter.*non-finite"),
        ({"constraints": lambda t, q, p: jnp.array([q[0], q[1], q[0] + 2 * q[1] - 1.0])}, {"q0": [0.0, 0.0]}, "number 2 is off"),
    ],
)
def test_bad_starts_are_refused(functions, start, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.simulate(system(**functions), **start, dt=0.1, steps=2)


def test_more_independent_constraints_than_freedom_is_refused():
    """Two coordinates, fixed altogether: nothing is left to move, and the step says so instead of inventing a motion."""
    fixed = system(constraints=lambda t, q, p: q - jnp.array([1.0, 0.0]))
    trajectory = mbd.simulate(fixed, [1.0, 0.0], dt=0.1, steps=3)
    np.testing.assert_allclose(trajectory.q, jnp.ones((4, 1)) * jnp.array([1.0, 0.0]), atol=1e-14)


def test_a_second_position_off_the_manifold_is_refused():
    with pytest.raises(mbd.ModelError, match="q1 does not fulfil"):
        mbd.simulate(pendulum(), [1.0, 0.0], q1=[1.0, 0.1], dt=0.1, steps=2)
