"""Projection by itself: a position, and single steps of a solver."""

import diffrax
import jax.numpy as jnp
import numpy as np
from diffrax._term import WrapTerm

import jaxmbd as mbd
from tests import mechanisms

odes = mbd.odes
DYNAMICS = odes.Dynamics.of(mechanisms.pendulum().with_rank(1))
START = odes.State(jnp.array([0.6, -0.8]), 2 * jnp.array([0.8, 0.6]))


def term(field):
    """As diffeqsolve hands it to solvers."""
    return WrapTerm(diffrax.ODETerm(field), 1)


def test_a_position_between_constraints_that_contradict_each_other_is_not_found():
    """Of two planes that do not meet the iteration ends in the middle, where it does not move any more."""
    planes = odes.Dynamics.from_functions(jnp.ones(2), lambda t, q, v, w, p: 0 * q, constraints=lambda t, q, p: jnp.array([q[0], q[0] - 1]))
    q, reached = odes.Projection().position(planes, jnp.array(0.0), jnp.array([0.3, 0.2]))
    np.testing.assert_allclose(q, [0.5, 0.2], rtol=0, atol=1e-14)
    assert not reached


def test_errors_of_a_step_count_along_the_constraints_alone():
    """Of the error of the inner solver, what the projection takes away must not reject steps: only what the constraints admit is left."""
    plain, field, t0, t1 = diffrax.Dopri5(), term(odes.Field(DYNAMICS)), jnp.array(0.0), jnp.array(0.2)
    step = lambda solver: solver.step(field, t0, t1, START, None, solver.init(field, t0, t1, START, None), False)[:2]
    (y1, error), (_, whole) = step(odes.Projected(plain, DYNAMICS)), step(plain)
    across = lambda change: float(jnp.abs(y1.q @ change.q) / jnp.linalg.norm(change.q))
    assert across(error) < 1e-13 < 1e-3 < across(whole)
    assert jnp.abs(error.q @ y1.v + y1.q @ error.v) < 1e-13 * jnp.linalg.norm(error.v)


def test_a_step_after_a_projection_begins_with_the_slope_of_the_projected_state():
    """Where ends of steps alone are projected, the last slope of the inner solver is that of another state."""
    at_ends, times = odes.Projection(inside=False), jnp.array([0.0, 0.5, 1.0])
    solver, field = odes.Projected(diffrax.Dopri5(), DYNAMICS, at_ends), term(odes.Field(DYNAMICS, at_ends))
    begin = lambda t0, t1, y: solver.init(field, t0, t1, y, None)
    step = lambda t0, t1, y, kept: solver.step(field, t0, t1, y, None, kept, False)
    y1, _, _, kept, _ = step(*times[:2], START, begin(*times[:2], START))
    onwards, anew = (step(*times[1:], y1, slope)[0] for slope in (kept, begin(*times[1:], y1)))
    np.testing.assert_allclose(onwards.q, anew.q, rtol=0, atol=1e-14)
