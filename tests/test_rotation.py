"""Rotations: exponential, Cayley map and logarithm against matrix functions, quaternions, axes and angles, smoothness at zero."""

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.linalg import expm, expm_frechet

from jaxmbd import rotation

# Hats of the three axes: the derivatives of exp and of the Cayley map at zero.
HATS = np.array([[[0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]], [[0, -1, 0], [1, 0, 0], [0, 0, 0]]], float)
MAPS = {"exp": rotation.exp, "cayley": rotation.cayley}
DIRECTION = np.array([2.0, -3.0, 6.0]) / 7
SEEDS = st.integers(0, 2**31 - 1)
QUICK = settings(max_examples=50, deadline=None, derandomize=True)

exp, cayley, log, basis = map(jax.jit, (rotation.exp, rotation.cayley, rotation.log, rotation.basis))
to_quaternion, from_quaternion, to_axis_angle, from_axis_angle = map(
    jax.jit, (rotation.to_quaternion, rotation.from_quaternion, rotation.to_axis_angle, rotation.from_axis_angle)
)
exp_slopes, exp_curvature = jax.jit(jax.jacfwd(rotation.exp)), jax.jit(jax.hessian(rotation.exp))


@jax.jit
def log_exp(theta):
    """The logarithm after the exponential, with first and second derivatives."""
    both = lambda theta: rotation.log(rotation.exp(theta))
    return both(theta), jax.jacfwd(both)(theta), jax.hessian(both)(theta)


def hat(a):
    return np.tensordot(a, HATS, 1)


def expm_curvature(theta):
    """Second derivatives of the matrix exponential: a block of the exponential of a larger matrix."""
    H, zero, second = hat(theta), np.zeros((3, 3)), np.zeros((3, 3, 3, 3))
    for i in range(3):
        for j in range(3):
            A, B = HATS[i], HATS[j]
            block = expm(np.block([[H, A, B, zero], [zero, H, zero, B], [zero, zero, H, A], [zero, zero, zero, H]]))
            second[:, :, i, j] = block[:3, 9:]
    return second


def random_vector(seed, longest=np.pi):
    """A rotation vector of a length that is spread over many magnitudes."""
    random = np.random.default_rng(seed)
    direction = random.normal(size=3)
    length = longest * (random.uniform() if random.uniform() < 0.5 else 10.0 ** random.uniform(-12, 0))
    return length * direction / np.linalg.norm(direction)


def assert_rotation(R, atol=1e-14):
    np.testing.assert_allclose(R @ R.T, np.eye(3), rtol=0, atol=atol)
    assert np.linalg.det(np.asarray(R, float)) > 0


@QUICK
@given(seed=SEEDS)
def test_exp_is_the_matrix_exponential_and_log_its_inverse(seed):
    theta = random_vector(seed, 0.999 * np.pi)
    R = exp(jnp.array(theta))
    assert_rotation(R)
    np.testing.assert_allclose(R, expm(hat(theta)), rtol=0, atol=2e-14)
    np.testing.assert_allclose(log(R), theta, rtol=1e-11, atol=1e-15)


@QUICK
@given(seed=SEEDS)
def test_exp_of_more_than_half_a_turn_is_the_same_rotation_as_its_log(seed):
    theta = random_vector(seed, 20.0)
    R = exp(jnp.array(theta))
    assert np.linalg.norm(log(R)) <= np.pi * (1 + 1e-15)
    np.testing.assert_allclose(exp(log(R)), R, rtol=0, atol=1e-13)


@QUICK
@given(seed=SEEDS)
def test_cayley_is_the_matrix_fraction_and_turns_by_twice_the_arc_tangent(seed):
    theta = random_vector(seed, 30.0)
    R, half = cayley(jnp.array(theta)), 0.5 * hat(theta)
    assert_rotation(R)
    np.testing.assert_allclose(R, np.linalg.solve(np.eye(3) - half, np.eye(3) + half), rtol=0, atol=1e-13)
    size = np.linalg.norm(theta)
    np.testing.assert_allclose(R, exp(jnp.array(theta / size * 2 * np.arctan(size / 2))), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", MAPS)
def test_value_slope_and_curvature_at_zero(name):
    """$I$, $\\hat e_i$ and $\\frac12(\\hat e_i \\hat e_j + \\hat e_j \\hat e_i)$, the terms that both maps share."""
    function, zero = MAPS[name], jnp.zeros(3)
    products = np.einsum("iab,jbc->acij", HATS, HATS)
    np.testing.assert_array_equal(function(zero), np.eye(3))
    np.testing.assert_allclose(jax.jacfwd(function)(zero), np.moveaxis(HATS, 0, -1), rtol=0, atol=1e-16)
    np.testing.assert_allclose(jax.jacrev(function)(zero), np.moveaxis(HATS, 0, -1), rtol=0, atol=1e-16)
    np.testing.assert_allclose(jax.hessian(function)(zero), 0.5 * (products + np.swapaxes(products, 2, 3)), rtol=0, atol=1e-16)


@pytest.mark.parametrize("name", MAPS)
def test_third_derivatives_at_zero_tell_exp_and_cayley_apart(name):
    """$\\sin$ has $-\\frac16 \\hat\\theta|\\theta|^2$ where Cayley's map has $-\\frac14$."""
    along = lambda s: MAPS[name](s * jnp.array(DIRECTION))
    third = jax.jacfwd(jax.jacfwd(jax.jacfwd(along)))(jnp.zeros(()))
    np.testing.assert_allclose(third, {"exp": -1.0, "cayley": -1.5}[name] * hat(DIRECTION), rtol=0, atol=1e-15)


@pytest.mark.parametrize("square", [1e-16, 1e-4, 0.5, 1 - 1e-9, 1 + 1e-9, 1.5, 9.0])
def test_derivatives_of_exp_on_either_side_of_the_switch_to_the_closed_form(square):
    theta = np.sqrt(square) * DIRECTION
    slopes = np.stack([expm_frechet(hat(theta), A, compute_expm=False) for A in HATS], axis=-1)
    np.testing.assert_allclose(exp_slopes(jnp.array(theta)), slopes, rtol=0, atol=1e-14)
    np.testing.assert_allclose(exp_curvature(jnp.array(theta)), expm_curvature(theta), rtol=0, atol=1e-13)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 2 * np.arcsin(np.sqrt(0.05)) - 1e-9, 2 * np.arcsin(np.sqrt(0.05)) + 1e-9, 1.0, 2.5, 3.1])
def test_log_after_exp_has_the_derivatives_of_the_identity(angle):
    """At zero, on both sides of the switch to the closed form (sin(angle/2)^2 = 0.05), and elsewhere."""
    theta = jnp.array(angle * DIRECTION)
    value, slope, curvature = log_exp(theta)
    np.testing.assert_allclose(value, theta, rtol=0, atol=2e-14)
    np.testing.assert_allclose(slope, np.eye(3), rtol=0, atol=1e-12)
    np.testing.assert_allclose(curvature, np.zeros((3, 3, 3)), rtol=0, atol=1e-11)


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("direction", [*np.eye(3), DIRECTION, -DIRECTION, np.array([1.0, 1.0, 0.0]) / np.sqrt(2)])
def test_log_near_half_a_turn(gap, direction):
    """A vector of length pi - gap comes back; at exactly pi it may come back as its opposite."""
    R = exp(jnp.array((np.pi - gap) * direction))
    found = log(R)
    np.testing.assert_allclose(np.linalg.norm(found), np.pi - gap, rtol=0, atol=1e-14)
    np.testing.assert_allclose(exp(found), R, rtol=0, atol=1e-14)
    side = 1.0 if gap > 1e-12 else np.sign(found @ direction)
    np.testing.assert_allclose(found, side * (np.pi - gap) * direction, rtol=0, atol=1e-13)


@pytest.mark.parametrize("direction", [*np.eye(3), DIRECTION])
def test_log_of_exactly_half_a_turn(direction):
    """$2 n n^T - I$ is symmetric to the last bit, so that it tells nothing of the sense of turning."""
    R = jnp.array(2 * np.outer(direction, direction) - np.eye(3))
    np.testing.assert_allclose(abs(log(R)), np.pi * abs(direction), rtol=0, atol=1e-14)
    np.testing.assert_allclose(exp(log(R)), R, rtol=0, atol=1e-14)
    assert np.isfinite(jax.jacfwd(rotation.log)(R)).all()


@QUICK
@given(seed=SEEDS)
def test_quaternions_of_any_length_and_back(seed):
    random = np.random.default_rng(seed)
    quaternion = random.normal(size=4) * 10.0 ** random.uniform(-5, 5)
    R, unit = from_quaternion(jnp.array(quaternion)), quaternion / np.linalg.norm(quaternion)
    assert_rotation(R)
    found = to_quaternion(R)
    assert found[0] >= 0
    np.testing.assert_allclose(found, unit * np.sign(unit[0]), rtol=0, atol=1e-14)
    np.testing.assert_allclose(from_quaternion(-jnp.array(quaternion)), R, rtol=0, atol=1e-14)


@pytest.mark.parametrize("component", range(4))
def test_quaternions_have_the_scalar_first(component):
    """Half turns about the axes, and none: every component is the largest once."""
    quaternion = np.eye(4)[component]
    R = np.diag(np.array([[1.0, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])[component])
    np.testing.assert_array_equal(from_quaternion(jnp.array(quaternion)), R)
    np.testing.assert_array_equal(abs(to_quaternion(jnp.array(R))), quaternion)


def test_a_quarter_turn_about_z_takes_x_to_y():
    quarter = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(exp(jnp.array([0.0, 0.0, np.pi / 2])), quarter, atol=1e-15)
    np.testing.assert_allclose(from_axis_angle(jnp.array([0.0, 0.0, 3.0]), np.pi / 2), quarter, atol=1e-15)
    np.testing.assert_allclose(from_quaternion(jnp.array([2.0, 0.0, 0.0, 2.0])), quarter, atol=1e-15)
    np.testing.assert_allclose(to_quaternion(jnp.array(quarter)), [half, 0, 0, half], atol=1e-15)
    np.testing.assert_allclose(log(jnp.array(quarter)), [0, 0, np.pi / 2], atol=1e-15)


@QUICK
@given(seed=SEEDS)
def test_axis_and_angle_and_back(seed):
    theta = random_vector(seed, 0.99 * np.pi)
    angle = np.linalg.norm(theta)
    R = from_axis_angle(jnp.array(5.0 * theta / angle), angle)
    np.testing.assert_allclose(R, exp(jnp.array(theta)), rtol=0, atol=1e-14)
    axis, found = to_axis_angle(R)
    np.testing.assert_allclose(found, angle, rtol=1e-11)
    np.testing.assert_allclose(axis, theta / angle, rtol=0, atol=1e-11)


def test_no_rotation_has_angle_zero_and_a_unit_axis():
    axis, angle = to_axis_angle(jnp.eye(3))
    assert angle == 0
    np.testing.assert_array_equal(axis, [0, 0, 1])
    np.testing.assert_array_equal(log(jnp.eye(3)), np.zeros(3))


@QUICK
@given(seed=SEEDS)
def test_a_basis_is_a_rotation_with_the_axis_as_third_column(seed):
    axis = random_vector(seed, 5.0)
    R = basis(jnp.array(axis))
    assert_rotation(R)
    np.testing.assert_allclose(R[:, 2], axis / np.linalg.norm(axis), rtol=0, atol=1e-14)


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), [0.0, 1e-9, 1.0], [0.6, 0.0, -0.8], [np.sqrt(0.19), 0.0, 0.9]])
def test_bases_of_axes_near_the_vertical(axis):
    R = basis(jnp.array(axis))
    assert_rotation(R)
    np.testing.assert_allclose(R[:, 2], axis, rtol=0, atol=1e-15)
    if abs(axis[2]) < 0.89:
        assert abs(R[2, 0]) < 1e-15


def test_skew_is_the_cross_product_and_axial_its_inverse():
    a, b = jnp.array([1.0, -2.0, 3.0]), jnp.array([0.5, 4.0, -1.0])
    np.testing.assert_array_equal(rotation.skew(a) @ b, np.cross(a, b))
    np.testing.assert_array_equal(rotation.axial(rotation.skew(a)), a)
    np.testing.assert_array_equal(rotation.axial(rotation.skew(a) + jnp.outer(b, b)), a)


@pytest.mark.parametrize("size", [0.0, 1e-4, 0.3, 0.9999, 1.0001, 3.0])
def test_single_precision_stays_single(size):
    theta = jnp.array(size * DIRECTION, jnp.float32)
    R = exp(theta)
    axis, angle = to_axis_angle(R)
    results = [R, cayley(theta), log(R), to_quaternion(R), from_quaternion(to_quaternion(R)), axis, angle, basis(axis)]
    assert {result.dtype for result in results} == {jnp.dtype(jnp.float32)}
    np.testing.assert_allclose(R, expm(hat(np.asarray(theta, float))), rtol=0, atol=5e-7)
    np.testing.assert_allclose(log(R), theta, rtol=0, atol=3e-6)
    np.testing.assert_allclose(from_quaternion(to_quaternion(R)), R, rtol=0, atol=1e-6)
    np.testing.assert_allclose(from_axis_angle(axis, angle), R, rtol=0, atol=2e-6)
    for derivative in (exp_slopes(theta), exp_curvature(theta), *log_exp(theta)):
        assert derivative.dtype == jnp.float32 and np.isfinite(derivative).all()
