"""What is judged inside `jit` beside starts of motions: positions of rest, modes about them, joints that do not meet."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import Result


def hanging(length):
    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[1],
        constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - p**2)]),
        params=length,
    )


def test_equilibria():
    rest = lambda length, throw=False: mbd.equilibrium(hanging(length), jnp.array([1.2, -1.6]), steps=3, throw=throw)
    batch = jax.jit(jax.vmap(rest))(jnp.array([2.0, jnp.nan, 1.9, jnp.inf]))
    np.testing.assert_array_equal(batch.successful, [True, False, True, False])
    np.testing.assert_array_equal(batch.results[1], [Result.NON_FINITE_INPUT, *[Result.NOT_REACHED] * 2])
    np.testing.assert_allclose(batch.q[2], [0.0, -1.9], atol=1e-12)
    with pytest.raises(mbd.ModelError, match=r"2 of 4 batch members failed: 1, 3 with NON_FINITE_INPUT. Member 1: the start was refused"):
        batch.check()
    jax.tree.map(lambda leaf: leaf[2], batch).check()
    with pytest.raises(Exception, match="the start was refused with NON_FINITE_INPUT"):
        jax.block_until_ready(jax.jit(lambda length: rest(length, True).q)(jnp.nan))
    path = jax.jit(lambda length: mbd.statics.equilibrium_path(hanging(length), jnp.array([1.2, -1.6]), steps=2, throw=False))(jnp.nan)
    np.testing.assert_array_equal(path.results, [Result.NON_FINITE_INPUT, Result.NOT_REACHED])


def test_modes_out_of_balance_are_not_a_number():
    squares = jax.jit(lambda q: mbd.modes(hanging(2.0), q).squares)
    np.testing.assert_allclose(squares(jnp.array([0.0, -2.0])), [9.81 / 2], rtol=1e-12)
    assert np.isnan(squares(jnp.array([1.2, -1.6]))).all()


ARM = mbd.Mechanism(
    {"upper": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0)), "lower": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0))},
    {
        "shoulder": mbd.Joint(mbd.Revolute((0, 1, 0)), "ground", "upper", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 1, 0)), "upper", "lower", on_a=(0, 0, -0.5), on_b=(0, 0, 0.5)),
    },
)


def test_joints_that_do_not_meet_inside_jit():
    def begin(gap):
        placement = {"upper": (0.0, 0.0, -0.5), "lower": jnp.stack([gap, jnp.zeros(()), jnp.full((), -1.5)])}
        system, q0 = mbd.assemble(ARM, placement)
        return mbd.simulate(system, q0, dt=0.01, steps=1, throw=False)

    both = jax.jit(jax.vmap(begin))(jnp.array([0.0, 1e-3]))
    np.testing.assert_array_equal(both.results[:, 0], [Result.SUCCESS, Result.INCONSISTENT_POSITION])
    with pytest.raises(mbd.SimulationError, match=r"1 of 2 batch members failed: 1 with .*\(of 'elbow'\), off by 0.001"):
        both.check(mbd.assemble(ARM, {"upper": (0.0, 0.0, -0.5)})[0])
    with pytest.raises(mbd.ModelError, match="'elbow' does not meet"):
        begin(1e-3)


@pytest.mark.slow
def test_loops_are_closed_inside_jit():
    mechanism, placement = mbd.gallery.four_bar()
    at = lambda angle: mbd.assemble(mechanism, placement | {"hinge 1": angle})[1]
    system, rigid = mbd.assemble(mechanism, placement)
    inside, outside = jax.jit(at)(0.3), at(0.3)
    assert np.abs(inside - rigid).max() > 0.1 and np.abs(system.constraints(0.0, inside)).max() < 1e-12
    np.testing.assert_allclose(inside, outside, atol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(at))(0.3), jax.jacfwd(at)(0.3), atol=1e-10)
