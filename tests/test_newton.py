"""Newton's method: convergence, codes, options, and derivatives by the implicit function theorem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.numerics.implicit import root_derivative
from jaxmbd.numerics.linear import refined_solve


def cubic(x, a):
    return jnp.array([x[0] ** 3 - a, x[0] * x[1] - 2.0])


def atan(x, args):
    return jnp.arctan(x - args)


@pytest.mark.parametrize("options", [{}, {"reuse": 3}, {"line_search": True}])
def test_finds_the_root(options):
    solution = mbd.Newton(**options)(cubic, jnp.array([1.5, 1.0]), jnp.array(8.0))
    np.testing.assert_allclose(solution.value, [2.0, 1.0], rtol=1e-14)
    assert solution.result == mbd.Result.SUCCESS and solution.residual < 1e-14


def test_line_search_rescues_a_far_guess():
    far = jnp.array([5.0])
    assert mbd.Newton()(atan, far, jnp.array(0.0)).result != mbd.Result.SUCCESS
    solution = mbd.Newton(line_search=True)(atan, far, jnp.array(0.0), scale=jnp.ones(1))
    assert solution.result == mbd.Result.SUCCESS and abs(solution.value[0]) < 1e-12


def test_reuse_takes_more_iterations_with_fewer_tangents():
    """Counts tangents by counting what a linear solver is asked for at run time."""
    counts = {}
    for reuse in (1, 4):
        calls = []

        def fn(x, a):
            return cubic(x, a)

        class Counting(mbd.linear.Dense):
            def tangent(self, fn, x, *given):
                jax.debug.callback(lambda: calls.append(1))  # noqa: B023
                return super().tangent(fn, x, *given)

        solution = mbd.Newton(reuse=reuse, linear=Counting())(fn, jnp.array([1.9, 1.0]), jnp.array(8.0))
        jax.block_until_ready(solution.value)
        jax.effects_barrier()
        counts[reuse] = (len(calls), int(solution.steps))
        np.testing.assert_allclose(solution.value, [2.0, 1.0], rtol=1e-12)
    assert counts[4][0] < counts[1][0] and counts[4][1] > counts[1][1]


def test_a_residual_that_stops_falling_at_rounding_is_a_root():
    """Large terms cancel in two equations that are nearly the same, so that rounding moves the unknowns by more than a last step may."""
    weights = jnp.arange(10.0, 20.0)

    def fn(x, a):
        angle = 1e3 * weights * x[:, None]
        return a @ (x - 1) + jnp.sum(10 * weights * (jnp.sin(angle) ** 2 + jnp.cos(angle) ** 2 - 1), axis=1)

    solution = mbd.Newton()(fn, jnp.array([1.5, 1.0]), jnp.array([[1.0, 1.0], [1.0, 1.0 + 1e-6]]))
    assert solution.result == mbd.Result.SUCCESS and solution.residual < 1e-13
    np.testing.assert_allclose(solution.value, [1.0, 1.0], rtol=0, atol=1e-6)


def test_codes_of_failure():
    assert mbd.Newton(max_steps=2)(cubic, jnp.array([30.0, 1.0]), jnp.array(8.0)).result == mbd.Result.NOT_CONVERGED
    assert mbd.Newton()(lambda x, a: jnp.log(x - a), jnp.array([0.5]), jnp.array(1.0)).result == mbd.Result.NON_FINITE
    assert mbd.Newton()(lambda x, a: 0 * x + a, jnp.array([0.5]), jnp.array(1.0)).result == mbd.Result.SINGULAR
    inactive, _ = mbd.Newton().solve(cubic, jnp.array([1.5, 1.0]), jnp.array(8.0), active=jnp.array(False))
    assert inactive.steps == 0 and inactive.value[0] == 1.5


def test_tolerance_follows_the_units():
    """The same problem in other units takes the same iterations."""
    steps = []
    for unit in (1e-12, 1.0, 1e12):
        fn = lambda x, a, unit=unit: unit * cubic(x, a)
        steps.append(int(mbd.Newton()(fn, jnp.array([1.5, 1.0]), jnp.array(8.0)).steps))
    assert len(set(steps)) == 1


def test_derivatives_of_the_root():
    root = lambda a: mbd.Newton()(cubic, jnp.array([1.5, 1.0]), a).value[0]
    a = jnp.array(8.0)
    np.testing.assert_allclose(jax.grad(root)(a), 1 / 12, rtol=1e-14)
    np.testing.assert_allclose(jax.jvp(root, (a,), (jnp.array(1.0),))[1], 1 / 12, rtol=1e-14)
    np.testing.assert_allclose(jax.hessian(root)(a), -2 / 9 * 8 ** (-5 / 3), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.grad(root))(jnp.array([8.0, 1.0])), [1 / 12, 1 / 3], rtol=1e-12)


def test_a_failed_solve_has_finite_derivatives():
    root = lambda a: mbd.Newton(max_steps=3)(lambda x, a: x**2 + a, jnp.array([0.0]), a).value[0]
    assert np.isfinite(jax.grad(root)(jnp.array(1.0)))


def test_the_derivative_of_a_root_is_zero_where_there_is_none_and_missing_where_nothing_varies():
    """Both roots of this library, of Newton's method and of a step, get theirs from here."""
    root, a = jnp.array([2.0, 1.0]), jnp.array(8.0)
    slopes = jax.jacobian(cubic)(root, a)
    derivative = lambda d_a, solved: root_derivative(cubic, root, a, d_a, lambda b: jnp.linalg.solve(slopes, b), jnp.array(solved))
    np.testing.assert_allclose(derivative(jnp.array(3.0), True), [3 / 12, -3 / 24], rtol=1e-15)
    np.testing.assert_array_equal(derivative(jnp.array(3.0), False), [0.0, 0.0])
    assert derivative(None, True) is None


def test_float32_tolerances_follow_the_dtype():
    solution = mbd.Newton()(lambda x, a: x**3 - a, jnp.array([1.5], jnp.float32), jnp.array(8.0, jnp.float32))
    assert solution.result == mbd.Result.SUCCESS and solution.value.dtype == jnp.float32 and solution.steps < 8


def test_bad_options():
    with pytest.raises(ValueError, match="max_steps"):
        mbd.Newton(max_steps=0)


def test_refined_solve_reaches_rounding_through_a_nearby_tangent():
    """Value, transposed solve and the identity where it is not valid; the tangent is off by a thousandth."""
    matrix, rhs = jax.random.normal(jax.random.key(0), (6, 6)) + 4 * jnp.eye(6), jnp.arange(1.0, 7.0)
    off = matrix + 1e-3 * jax.random.normal(jax.random.key(1), (6, 6))
    nearby = mbd.linear.Dense().tangent(lambda x, _: off @ x, rhs)
    solve = lambda b, valid: refined_solve(lambda x: matrix @ x, b, nearby, jnp.array(valid))
    np.testing.assert_allclose(solve(rhs, True), np.linalg.solve(matrix, rhs), rtol=1e-13)
    np.testing.assert_allclose(jax.grad(lambda b: rhs @ solve(b, True))(rhs), np.linalg.solve(matrix.T, rhs), rtol=1e-13)
    np.testing.assert_array_equal(solve(rhs, False), rhs)
