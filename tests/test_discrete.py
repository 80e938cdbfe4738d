"""Discrete gradients: the increment of a function is met exactly, quadratic functions and invariances are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import rotation
from jaxmbd.numerics.discrete_gradient import discrete_gradient, discrete_jacobian, discrete_vjp

A = jnp.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 3.0]])
FUNCTIONS = {
    "quadratic": lambda x: 0.5 * x @ A @ x + jnp.array([1.0, 2.0, 3.0]) @ x,
    "quartic": lambda x: jnp.sum((x - 0.3) ** 4) + x[0] * x[1] ** 3,
    "spring": lambda x: 0.5 * (jnp.linalg.norm(x) - 0.7) ** 2,
    "angles": lambda x: jnp.arctan2(x[0], x[1]) * jnp.sin(x[2]) + jnp.cos(x[0] * x[1]),
    "quotient": lambda x: x[0] / (1 + x[1] ** 2) + jnp.exp(-x[2]) + x[2] ** 2.5,
    "pieces": lambda x: jnp.where(x[0] > 0.4, x[0] ** 2, jnp.abs(x[1]) - 1) + jnp.maximum(x[1], x[2]),
    "linear algebra": lambda x: x @ jnp.linalg.solve(A + jnp.outer(x, x), x[::-1]),
    "loop": lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c) @ x * c, None), x, None, length=3)[0].sum(),
    "batch": lambda x: jnp.sum(jax.vmap(lambda y: y / jnp.sqrt(1 + y @ y))(jnp.outer(x, x)) ** 3),
    "call": lambda x: jax.jit(jax.checkpoint(lambda y: jnp.sum(jax.nn.softplus(y) ** 2)))(x),
}
START = jnp.array([0.5, 0.8, 1.3])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-6])
def test_increments_are_met_exactly(name, size):
    f, end = FUNCTIONS[name], START + size * jnp.array([0.3, -0.5, 0.4])
    gradient = discrete_gradient(f, START, end)
    assert abs(gradient @ (end - START) - (f(end) - f(START))) < 1e-14 * (1 + abs(f(end)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_where_the_points_meet_it_is_the_gradient(name):
    f = FUNCTIONS[name]
    np.testing.assert_allclose(discrete_gradient(f, START, START), jax.grad(f)(START), rtol=1e-12, atol=1e-14)
    near = START + 1e-4 * jnp.array([0.3, -0.5, 0.4])
    np.testing.assert_allclose(discrete_gradient(f, START, near), jax.grad(f)(0.5 * (START + near)), rtol=1e-6, atol=1e-7)


def test_quadratic_functions_get_the_midpoint_gradient():
    f, end = FUNCTIONS["quadratic"], jnp.array([-2.0, 5.0, 1.0])
    np.testing.assert_allclose(discrete_gradient(f, START, end), jax.grad(f)(0.5 * (START + end)), rtol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_functions_of_scalar_products_exert_no_moment(seed):
    """A potential of three points that does not see rotations: the discrete forces at the mean points have no moment."""

    def potential(x):
        a, b, c = x
        return jnp.linalg.norm(a - b) ** 3 + jnp.exp(b @ c) / (1 + a @ a) + jnp.arccos(0.1 * (a - c) @ (b - c))

    points = jax.random.normal(jax.random.key(seed), (2, 3, 3)) * 0.7
    force = discrete_gradient(potential, *points)
    np.testing.assert_allclose(jnp.sum(jnp.cross(points.mean(axis=0), force), axis=0), 0, atol=1e-13)
    turn = rotation.exp(jnp.array([0.3, -1.1, 0.4]))
    np.testing.assert_allclose(discrete_gradient(potential, *(points @ turn.T)), force @ turn.T, atol=1e-12)


def test_jacobian_and_derivatives_of_it():
    """The matrix meets increments of a vector function; it can itself be differentiated, as Newton's method needs."""
    f = lambda x: jnp.stack([FUNCTIONS["spring"](x), FUNCTIONS["angles"](x), FUNCTIONS["quartic"](x)])
    end = jnp.array([0.9, 0.2, 1.0])
    J = jax.jit(lambda a, b: discrete_jacobian(f, a, b))(START, end)
    np.testing.assert_allclose(J @ (end - START), f(end) - f(START), rtol=1e-13)
    tangent = jax.jacfwd(lambda b: discrete_jacobian(f, START, b))(end)
    h = 1e-6
    for i, step in enumerate(h * jnp.eye(3)):
        difference = (discrete_jacobian(f, START, end + step) - discrete_jacobian(f, START, end - step)) / (2 * h)
        np.testing.assert_allclose(tangent[..., i], difference, atol=1e-8)


def test_several_arguments_and_results():
    f = lambda state: {"energy": state[0] @ state[0] * state[1][0], "rest": (state[1] ** 3, 2.0)}
    start, end = (START, jnp.array([1.0, 2.0])), (START + 0.3, jnp.array([1.5, 1.0]))
    before, after, pullback = discrete_vjp(f, start, end)
    assert before["rest"][1] == 2.0
    weights = {"energy": jnp.array(0.7), "rest": (jnp.array([0.2, -0.4]), jnp.array(1.0))}
    pulled = pullback(weights)
    work = sum(jnp.sum(g * (b - a)) for g, a, b in zip(pulled, start, end, strict=True))
    gain = weights["energy"] * (after["energy"] - before["energy"]) + weights["rest"][0] @ (after["rest"][0] - before["rest"][0])
    np.testing.assert_allclose(work, gain, rtol=1e-13)
