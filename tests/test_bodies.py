"""Bodies: kinetic energy of a given motion, inertia of shapes, gradients by sizes, refusal of impossible numbers."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post

POSITION, TURN = np.array([0.3, -1.2, 0.7]), np.array([0.4, 1.1, -0.6])
VELOCITY, SPIN = np.array([1.5, -0.2, 0.8]), np.array([-0.7, 2.0, 1.3])
COM = np.array([0.2, -0.3, 0.5])
FULL = np.array([[2.0, 0.3, -0.2], [0.3, 1.5, 0.1], [-0.2, 0.1, 1.8]])
IMPOSSIBLE = {"zero": 0.0, "negative": -1.0, "not a number": np.nan, "infinite": np.inf}


def assembled(body, pose=(POSITION, TURN)):
    return mbd.assemble(mbd.Mechanism({"thing": body}), {"thing": pose})


def kinetic_energy(body, pose=(POSITION, TURN), rates=(*VELOCITY, *SPIN)):
    """Of a free body whose origin has a velocity and that has an angular velocity, both in space."""
    system, q = assembled(body, pose)
    return system.lagrangian(0.0, q, mbd.joint_velocities(system, q, {"thing": rates}))


def exact_moments(vertices, density):
    """Mass, centre of mass and inertia about it of a tetrahedron, by a quadrature that is exact for quadratic functions."""
    vertices = np.asarray(vertices)
    volume = abs(np.linalg.det(vertices[1:] - vertices[0])) / 6
    points = ((5 - np.sqrt(5)) / 20 + np.eye(4) * np.sqrt(5) / 5) @ vertices
    com = vertices.mean(axis=0)
    return density * volume, com, density * volume / 4 * sum(inertia_of_point(x - com) for x in points)


def inertia_of_point(x):
    return x @ x * np.eye(3) - np.outer(x, x)


def test_a_rigid_body_has_the_kinetic_energy_of_its_centre_and_of_its_spin():
    R = np.asarray(mbd.rotation.exp(jnp.array(TURN)))
    centre = VELOCITY + np.cross(SPIN, R @ COM)
    expected = 0.5 * 3.0 * centre @ centre + 0.5 * SPIN @ R @ FULL @ R.T @ SPIN
    np.testing.assert_allclose(kinetic_energy(mbd.RigidBody(3.0, FULL, COM)), expected, rtol=1e-14)


def test_principal_moments_are_a_diagonal_tensor():
    np.testing.assert_array_equal(mbd.RigidBody(1.0, (1.0, 2.0, 3.0)).inertia, np.diag([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(mbd.RigidBody(1.0, jnp.array([1.0, 2.0, 3.0])).inertia, np.diag([1.0, 2.0, 3.0]))


def test_a_body_described_about_another_point_moves_with_the_same_energy():
    """Parallel axes: the origin may sit anywhere on the body, if its position and velocity are those of that point."""
    R = np.asarray(mbd.rotation.exp(jnp.array(TURN)))
    shift = np.array([1.0, 2.0, -3.0])
    rates = (*(VELOCITY + np.cross(SPIN, R @ shift)), *SPIN)
    moved = mbd.RigidBody(3.0, FULL, COM - shift)
    expected = kinetic_energy(mbd.RigidBody(3.0, FULL, COM))
    np.testing.assert_allclose(kinetic_energy(moved, (POSITION + R @ shift, TURN), rates), expected, rtol=1e-14)


def test_a_pure_spin_about_the_origin_shows_steiners_theorem():
    about_origin = FULL + 3.0 * inertia_of_point(COM)
    energy = kinetic_energy(mbd.RigidBody(3.0, FULL, COM), ((0.0, 0.0, 0.0), np.eye(3)), (0.0, 0.0, 0.0, *SPIN))
    np.testing.assert_allclose(energy, 0.5 * SPIN @ about_origin @ SPIN, rtol=1e-14)


def test_the_euler_tensor_is_the_other_way_to_give_an_inertia():
    euler = 0.5 * np.trace(FULL) * np.eye(3) - FULL
    body = mbd.RigidBody.from_euler_tensor(3.0, euler, COM)
    np.testing.assert_allclose(body.inertia, FULL, rtol=1e-15)
    np.testing.assert_allclose(body.inertia_matrix[1:, 1:], euler + 3.0 * np.outer(COM, COM), rtol=1e-15)
    np.testing.assert_allclose(body.inertia_matrix[0], [3.0, *(3.0 * COM)], rtol=1e-15)


@pytest.mark.parametrize(
    ("body", "principal"),
    [
        (mbd.RigidBody.box(6.0, (1.0, 2.0, 3.0)), [6.5, 5.0, 2.5]),
        (mbd.RigidBody.sphere(5.0, 3.0), [18.0, 18.0, 18.0]),
        (mbd.RigidBody.cylinder(12.0, 2.0, 3.0), [21.0, 21.0, 24.0]),
        (mbd.RigidBody.rod(6.0, 2.0), [2.0, 2.0, 0.0]),
    ],
    ids=["box", "sphere", "cylinder", "rod"],
)
def test_moments_of_inertia_of_textbooks(body, principal):
    """m(b^2 + c^2)/12, 2mr^2/5, m(3r^2 + l^2)/12 with mr^2/2 about the axis, and ml^2/12."""
    np.testing.assert_allclose(body.inertia, np.diag(principal), rtol=1e-15, atol=1e-15)
    np.testing.assert_array_equal(body.com, np.zeros(3))


def test_a_tetrahedron_by_exact_quadrature():
    vertices = np.random.default_rng(1).normal(size=(4, 3))
    for corners in (vertices, vertices[[1, 0, 2, 3]]):
        body = mbd.RigidBody.tetrahedron(corners, 7.0)
        for found, expected in zip((body.mass, body.com, body.inertia), exact_moments(vertices, 7.0), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def test_the_tetrahedron_of_the_six_body_linkage():
    """The closed formula of the paper agrees with the exact integral in every entry."""
    density, length, a = 1000.0, 0.1, np.tan(0.16 * np.pi)
    quarter, half = a * length / 4, length / 2
    vertices = [[-quarter, -half, quarter], [3 * quarter, -half, quarter], [-quarter, half, quarter], [-quarter, half, -3 * quarter]]
    body = mbd.RigidBody.tetrahedron(np.array(vertices), density)
    side = 1 / 3 + a**2 / 4
    tensor = np.array([[side, a / 6, -(a**2) / 12], [a / 6, a**2 / 2, a / 6], [-(a**2) / 12, a / 6, side]])
    expected = density * a**2 * length**3 / 6, np.zeros(3), density * length**5 * a**2 / 40 * tensor
    for found, closed, exact in zip((body.mass, body.com, body.inertia), expected, exact_moments(vertices, density), strict=True):
        np.testing.assert_allclose(found, closed, rtol=1e-13, atol=1e-16)
        np.testing.assert_allclose(exact, closed, rtol=1e-13, atol=1e-16)


def test_bodies_of_the_gallery_linkage_are_that_tetrahedron():
    """Six congruent bodies: equal masses and equal principal moments."""
    density, length, a = 1000.0, 0.1, np.tan(0.16 * np.pi)
    side = 1 / 3 + a**2 / 4
    tensor = np.array([[side, a / 6, -(a**2) / 12], [a / 6, a**2 / 2, a / 6], [-(a**2) / 12, a / 6, side]])
    mechanism, _ = mbd.gallery.six_body_linkage()
    for name in (f"body {i}" for i in range(6)):
        body = mechanism.bodies[name]
        np.testing.assert_allclose(body.mass, density * a**2 * length**3 / 6, rtol=1e-13)
        np.testing.assert_allclose(np.diag(body.inertia), density * length**5 * a**2 / 40 * np.linalg.eigvalsh(tensor), rtol=1e-12)


def test_the_hull_of_corners_is_a_box():
    """Points inside the hull do not matter, nor where it lies."""
    size, shift = np.array([1.0, 2.0, 3.0]), np.array([4.0, -5.0, 6.0])
    corners = np.array(list(itertools.product([-0.5, 0.5], repeat=3))) * size
    inside = 0.2 * corners[:3]
    body = mbd.RigidBody.from_vertices(np.concatenate([corners, inside]) + shift, 2.0)
    np.testing.assert_allclose(body.mass, 12.0, rtol=1e-14)
    np.testing.assert_allclose(body.com, shift, rtol=1e-14)
    np.testing.assert_allclose(body.inertia, mbd.RigidBody.box(12.0, tuple(size)).inertia, rtol=0, atol=1e-12)


def test_a_hull_turned_and_moved_has_the_turned_inertia():
    points = np.random.default_rng(2).normal(size=(12, 3))
    R = np.asarray(mbd.rotation.exp(jnp.array(TURN)))
    body, turned = (mbd.RigidBody.from_vertices(x, 2.0) for x in (points, points @ R.T + POSITION))
    np.testing.assert_allclose(turned.mass, body.mass, rtol=1e-13)
    np.testing.assert_allclose(turned.com, R @ body.com + POSITION, rtol=0, atol=1e-13)
    np.testing.assert_allclose(turned.inertia, R @ body.inertia @ R.T, rtol=0, atol=1e-12)


CORNERS = np.array(list(itertools.product([-0.5, 0.5], repeat=3)))
SHAPES = {
    "box": lambda x: mbd.RigidBody.box(2.0, (x, 2.0 * x, 1.0)),
    "mass of a box": lambda x: mbd.RigidBody.box(x, (1.0, 2.0, 3.0)),
    "sphere": lambda x: mbd.RigidBody.sphere(2.0, x),
    "cylinder": lambda x: mbd.RigidBody.cylinder(2.0, x, 1.5 * x),
    "rod": lambda x: mbd.RigidBody.rod(2.0, x),
    "tetrahedron": lambda x: mbd.RigidBody.tetrahedron(x * CORNERS[[0, 1, 2, 4]], 3.0),
    "hull": lambda x: mbd.RigidBody.from_vertices(x * CORNERS, 3.0),
    "density of a hull": lambda x: mbd.RigidBody.from_vertices(CORNERS, x),
    "centre of mass": lambda x: mbd.RigidBody(2.0, FULL, jnp.array([0.0, 1.0, 2.0]) * x),
    "planar rod": lambda x: mbd.PlanarBody.rod(2.0, x),
    "planar plate": lambda x: mbd.PlanarBody.plate(x, (x, 2.0)),
    "planar disc": lambda x: mbd.PlanarBody.disc(2.0, x),
}


@pytest.mark.parametrize("name", SHAPES)
def test_gradients_of_an_inertia_by_a_size_are_those_of_finite_differences(name):
    """All formulas are polynomials of degree five at most, for which this quotient of five points is almost exact."""
    matrix, x, h = lambda x: jnp.asarray(SHAPES[name](x).inertia_matrix), 1.3, 1e-2
    quotient = (matrix(x - 2 * h) - 8 * matrix(x - h) + 8 * matrix(x + h) - matrix(x + 2 * h)) / (12 * h)
    slope = jax.jacfwd(matrix)(jnp.array(x))
    assert jnp.max(jnp.abs(slope)) > 0.1
    np.testing.assert_allclose(slope, quotient, rtol=1e-6, atol=1e-12)


def test_an_inertia_that_no_body_has_warns_and_runs():
    with pytest.warns(UserWarning, match="'thing'.*triangle inequality"):
        system, q = assembled(mbd.RigidBody(1.0, (1.0, 2.0, 4.0)))
    v = mbd.joint_velocities(system, q, {"thing": (*VELOCITY, *SPIN)})
    trajectory = mbd.simulate(system, q, v, dt=0.01, steps=10)
    momentum, energy = post.angular_momentum(system, trajectory), post.energy(system, trajectory)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), rtol=0, atol=1e-11)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-3)


@pytest.mark.parametrize("inertia", [(1.0, 2.0, 3.0), (1.0, 1.0, 0.0), (0.0, 0.0, 0.0)], ids=["flat", "rod", "point"])
def test_an_inertia_at_the_limit_of_the_triangle_inequality_does_not_warn(inertia):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        mbd.Mechanism({"thing": mbd.RigidBody(1.0, inertia)})


@pytest.mark.parametrize("mass", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@pytest.mark.parametrize(
    "make",
    [lambda mass: mbd.RigidBody(mass, (1.0, 1.0, 1.0)), lambda mass: mbd.PlanarBody(mass, 1.0), mbd.Particle],
    ids=["rigid", "planar", "particle"],
)
def test_impossible_masses_are_refused_with_the_name_of_the_body(make, mass):
    for value in (mass, jnp.array(mass)):
        told = "'thing' has mass" if np.isfinite(mass).all() and np.ndim(mass) == 0 else "mass of a .* must be a number that is finite"
        with pytest.raises(mbd.ModelError, match=told):
            mbd.Mechanism({"sound": mbd.Particle(1.0), "thing": make(value)})


@pytest.mark.parametrize(
    "body",
    [
        mbd.RigidBody(1.0, (1.0, -1.0, 1.0)),
        mbd.RigidBody(1.0, [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        mbd.PlanarBody(1.0, -1.0),
    ],
    ids=["negative", "not symmetric", "planar negative"],
)
def test_impossible_inertias_are_refused_with_the_name_of_the_body(body):
    with pytest.raises(mbd.ModelError, match="'thing'"):
        mbd.Mechanism({"thing": body})


def test_inertias_and_centres_of_wrong_shape_are_refused():
    for arguments in ((1.0, (1.0, 2.0)), (1.0, 1.0), (1.0, np.eye(2)), (1.0, (1.0, 1.0, 1.0), (0.0, 0.0))):
        with pytest.raises(mbd.ModelError, match="shape"):
            mbd.RigidBody(*arguments)
    for arguments in ((1.0, (1.0, 1.0, 1.0)), (1.0, 1.0, (0.0, 0.0, 0.0))):
        with pytest.raises(mbd.ModelError, match="shape"):
            mbd.PlanarBody(*arguments)


def test_a_planar_body_has_the_kinetic_energy_of_its_centre_and_of_its_spin():
    angle, spin, com, velocity = 0.8, 1.7, np.array([0.4, -0.3]), np.array([1.0, 2.0])
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ com
    centre = velocity + spin * np.array([-turned[1], turned[0]])
    energy = kinetic_energy(mbd.PlanarBody(3.0, 0.9, com), ((0.3, -1.2), angle), (*velocity, spin))
    np.testing.assert_allclose(energy, 0.5 * 3.0 * centre @ centre + 0.5 * 0.9 * spin**2, rtol=1e-14)


def test_moments_of_inertia_in_the_plane():
    np.testing.assert_allclose(mbd.PlanarBody.rod(6.0, 2.0).inertia, 2.0, rtol=1e-15)
    np.testing.assert_allclose(mbd.PlanarBody.plate(6.0, (1.0, 3.0)).inertia, 5.0, rtol=1e-15)
    np.testing.assert_allclose(mbd.PlanarBody.disc(6.0, 2.0).inertia, 12.0, rtol=1e-15)


def test_a_particle_has_the_kinetic_energy_of_a_point():
    energy = kinetic_energy(mbd.Particle(3.0), POSITION, VELOCITY)
    np.testing.assert_allclose(energy, 1.5 * VELOCITY @ VELOCITY, rtol=1e-15)
