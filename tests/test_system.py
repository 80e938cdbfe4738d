"""Systems from functions: what is accepted, what is refused, and that parameters are leaves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

from .mechanisms import kepler, pendulum


def test_leaves_are_the_parameters():
    system = pendulum()
    assert len(jax.tree.leaves(system)) == 3
    gradient = jax.grad(lambda s: s.lagrangian(0.0, jnp.ones(2), jnp.ones(2)))(system)
    assert float(gradient.params["m"]) == pytest.approx(1 - 9.81)


def test_callable_modules_keep_their_leaves():
    class Spring(eqx.Module):
        stiffness: jax.Array

        def __call__(self, t, q, params):
            return 0.5 * self.stiffness * q @ q

    system = mbd.System.from_functions(kinetic=lambda t, q, v, p: 0.5 * v @ v, potential=Spring(jnp.array(4.0)))
    loss = jax.jit(jax.value_and_grad(lambda s: mbd.simulate(s, [1.0], dt=0.01, steps=10).q[-1, 0]))
    h = 1e-6
    changed = lambda k: eqx.tree_at(lambda s: s.functions["potential"].stiffness, system, jnp.array(k))
    slope = loss(system)[1].functions["potential"].stiffness
    np.testing.assert_allclose(slope, (loss(changed(4 + h))[0] - loss(changed(4 - h))[0]) / (2 * h), rtol=1e-6)


def test_kinetic_and_potential_are_a_lagrangian():
    q, v = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    assert kepler().lagrangian(0.0, q, v) == pytest.approx(12.5 + 1 / np.sqrt(5))


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({}, "needs a lagrangian"),
        ({"potential": lambda t, q, p: 0.0}, "without kinetic"),
        ({"lagrangian": lambda t, q, v, p: 0.0, "kinetic": lambda t, q, v, p: 0.0}, "not both"),
        ({"lagrangian": lambda q, v: 0.0}, "takes 2 positional arguments"),
        ({"lagrangian": lambda t, q, v, p: 0.0, "constraints": lambda q: q}, "constraints takes 1"),
        ({"lagrangian": lambda t, q, v, p: 0.0, "chart": lambda u: u}, "chart takes 1"),
    ],
)
def test_wrong_functions_are_refused(arguments, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.System.from_functions(**arguments)


def test_something_that_is_no_function_is_refused():
    with pytest.raises(Exception, match="lagrangian"):
        mbd.System.from_functions(3.0)
