"""Consistent starts and the refusal of inconsistent ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import calculus

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


def test_project_follows_moving_constraints():
    bead, t = bead_on_moving_wire(), 0.4
    q, v = mbd.project(bead, [0.5, 0.4, -0.6], t=t)
    assert jnp.max(jnp.abs(bead.constraints(t, q))) < 1e-14
    assert jnp.max(jnp.abs(calculus.constraint_rate(bead, jnp.array(t), q, v))) < 1e-14 and jnp.max(jnp.abs(v)) > 0.1


def test_project_takes_redundant_constraints():
    q, _ = mbd.project(redundant_pendulum(), [0.9, 0.0, 0.1], [0.1, 0.2, 0.3])
    assert jnp.max(jnp.abs(redundant_pendulum().constraints(0.0, q))) < 1e-12


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
        ({"lagrangian": lambda t, q, v, p: 0.5 * v}, {"q0": [1.0, 0.0]}, "must be a scalar"),
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
