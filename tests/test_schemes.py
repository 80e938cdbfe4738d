"""Schemes: order, symplecticity, momentum, energy over long times, forces, and schemes written by the user."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints import calculus
from jaxmbd.numerics.polynomials import gauss, interpolation, lobatto

from .mechanisms import bead_on_moving_wire, chain, charged_particle, errors_after, kepler, pendulum, rotate, spherical_pendulum

SCHEMES = {
    "midpoint": (mbd.Midpoint(), 2),
    "trapezoidal": (mbd.Trapezoidal(), 2),
    "galerkin 4 lobatto": (mbd.Galerkin(4), 4),
    "galerkin 4 gauss": (mbd.Galerkin(4, "gauss"), 4),
    "galerkin 6 lobatto": (mbd.Galerkin(6), 6),
    "galerkin 6 gauss": (mbd.Galerkin(6, "gauss"), 6),
}
DOUBLE = chain(2, 3)
TWINS = ("galerkin 4 gauss", "galerkin 6 lobatto")  # of the same order, each with the quadrature of a quick one
ALL = [pytest.param(name, marks=pytest.mark.slow if name in TWINS else ()) for name in SCHEMES]


@pytest.fixture(scope="module")
def double_pendulum():
    q0, v0 = mbd.project(DOUBLE, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.3, 0.2, 0.0, -0.5])
    reference = mbd.simulate(DOUBLE, q0, v0, dt=0.4 / 200, steps=200, scheme=mbd.Galerkin(8), save=100)
    return q0, v0, reference, post.multipliers(DOUBLE, reference)


@pytest.mark.parametrize("name", ALL)
def test_order_on_a_constrained_nonlinear_problem(name, double_pendulum):
    """Spatial double pendulum in Cartesian coordinates: positions, momenta, velocities and multipliers converge with the order."""
    scheme, order = SCHEMES[name]
    q0, v0, reference, multipliers = double_pendulum
    counts = {2: (32, 64, 128), 4: (16, 32, 64), 6: (12, 16, 24)}[order]
    expected = (reference.q[-1], reference.p[-1], reference.v[-1], multipliers[-1])
    run = lambda dt, steps: mbd.simulate(DOUBLE, q0, v0, dt=dt, steps=steps, scheme=scheme)
    read = lambda trajectory: (trajectory.q, trajectory.p, trajectory.v, post.multipliers(DOUBLE, trajectory))
    for errors in errors_after(0.4, counts, run, expected, read):
        assert abs(post.order([1 / count for count in counts], errors) - order) < 0.2


@pytest.mark.parametrize("name, orders", [("midpoint", (1, 2, 1)), ("galerkin 4 lobatto", (2, 2, 2)), ("galerkin 6 gauss", (3, 4, 3))])
def test_discrete_multipliers_converge_with_their_own_order(name, orders, double_pendulum):
    """At the start, inside, and at the end of a trajectory, as the theory page says."""
    q0, v0, _, exact = double_pendulum
    errors = []
    for count in (16, 32):
        trajectory = mbd.simulate(DOUBLE, q0, v0, dt=0.4 / count, steps=count, scheme=SCHEMES[name][0], save=count // 2)
        errors.append(np.max(np.abs(trajectory.multipliers - exact), axis=1))
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), orders, atol=0.25)


@pytest.mark.parametrize("quadrature, simple", [("gauss", mbd.Midpoint()), ("lobatto", mbd.Trapezoidal())])
def test_degree_one_is_the_simple_scheme(quadrature, simple):
    system = pendulum()
    run = lambda scheme: mbd.simulate(system, [1.0, 0.0], dt=0.1, steps=20, scheme=scheme)
    one, other = run(mbd.Galerkin(2, quadrature)), run(simple)
    np.testing.assert_allclose(one.q, other.q, atol=1e-13)
    np.testing.assert_allclose(one.multipliers, other.multipliers, atol=1e-11)


def flow(system, scheme, q, v, dt):
    """One step as a map of (q, p), with the basis of the tangent space at both ends."""
    trajectory = mbd.simulate(system, q, v, dt=dt, steps=1, scheme=scheme, formulation=mbd.NullSpace("qr"))
    return trajectory.q[-1], trajectory.p[-1]


@pytest.fixture(scope="module")
def variations():
    """Position, velocity and momentum on the manifold, and their change with a guess off it: admissible variations."""
    system = mbd.find_rank(DOUBLE, [1.0, 0.0, 0.0, 2.0, 0.0, 0.0])
    guess, rates = jnp.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), jnp.array([0.0, 1.0, 0.3, 0.2, 0.0, -0.5])

    def start(z):
        q, v = mbd.project(system, guess + z[:6], rates + z[6:])
        return q, v, calculus.momentum(system, 0.0, q, v)

    return system, *jax.jit(lambda z: (start(z), jax.jacfwd(start)(z)))(jnp.zeros(12))


def two_form(dq, dp):
    return dq.T @ dp - dp.T @ dq


@pytest.mark.parametrize("name", ALL)
def test_flow_on_the_constraint_manifold_is_symplectic(name, variations):
    """The canonical two-form dq ^ dp of two admissible variations at the start equals that at the end of a step."""
    system, (q, v, _), (dq, dv, dp) = variations
    after = lambda dq, dv: jax.jvp(lambda q, v: flow(system, SCHEMES[name][0], q, v, jnp.array(0.1)), (q, v), (dq, dv))[1]
    start, end = two_form(dq, dp), two_form(*jax.jit(jax.vmap(after, in_axes=-1, out_axes=-1))(dq, dv))
    assert jnp.max(jnp.abs(start)) > 0.5
    np.testing.assert_allclose(end, start, rtol=0, atol=1e-10)


def test_a_scheme_that_is_not_symplectic_is_told_apart():
    """The same test sees a dissipative force."""
    damped = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, forces=lambda t, q, v, p: -v)
    jacobian = jax.jacfwd(lambda v: flow(damped, mbd.Midpoint(), jnp.zeros(1), v, 0.1)[1])(jnp.ones(1))
    assert jacobian[0, 0] < 0.95


MOTIONS = {
    "spherical pendulum": (spherical_pendulum, [0.8, 0.0, -0.6], [0.0, 1.5, 0.0], (0, 1)),
    "kepler": (kepler, [1.0, 0.0], [0.0, 1.2], (0, 1)),
    "charged particle": (charged_particle, [1.0, 0.0, 0.3], [0.0, 1.0, 0.5], (0, 1)),
}


def meeting(motion, name):
    """Each motion and each scheme meets the first of the others in the quick suite, the rest are slow."""
    quick = motion == "spherical pendulum" or name == "midpoint"
    return pytest.param(motion, name, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(
    ("motion", "name"),
    [meeting(*pair) for pair in itertools.product(MOTIONS, ["midpoint", "trapezoidal", "galerkin 4 lobatto", "galerkin 6 gauss"])],
)
def test_momentum_map_is_exact_and_energy_bounded(motion, name):
    """Rotation about the vertical is a symmetry of each: its momentum map stays to 1e-12."""
    build, q0, v0, plane = MOTIONS[motion]
    system = build()

    def action(s, q):
        return q.at[jnp.array(plane)].set(rotate(s, q[jnp.array(plane)]))

    scheme, order = SCHEMES[name]
    dt, bound = {2: (0.02, 5e-3), 4: (0.05, 1e-5), 6: (0.1, 5e-7)}[order]
    trajectory = mbd.simulate(system, q0, v0, dt=dt, steps=round(20 / dt), scheme=scheme)
    J, H = post.momentum_map(system, trajectory, action), post.energy(system, trajectory)
    assert np.ptp(J) < 1e-12 * max(1, abs(J[0]))
    assert np.ptp(H) < bound
    slope = np.polyfit(np.asarray(trajectory.t), np.asarray(H), 1)[0]
    assert abs(slope) * 20 < 0.2 * np.ptp(H) + 1e-12


def test_charged_particle_turns_at_the_cyclotron_frequency():
    """Without a trap a charge of mass one turns with the rate B."""
    system = charged_particle().with_params({"B": 5.0, "k": 0.0})
    trajectory = mbd.simulate(system, [0.2, 0.0, 0.0], [0.0, -1.0, 0.0], dt=2 * np.pi / 5 / 200, steps=200, scheme=mbd.Galerkin(6))
    np.testing.assert_allclose(trajectory.q[-1], trajectory.q[0], atol=1e-9)
    np.testing.assert_allclose(trajectory.q[100], [-0.2, 0.0, 0.0], atol=1e-9)


@pytest.fixture(scope="module")
def bead():
    """Where the bead starts on its turning hoop, and where it is after 0.5 s by its angle from the bottom alone."""
    theta, w, T = 0.7, 3.0, 0.5
    one = mbd.System.from_functions(lambda t, q, v, p: 0.5 * (v @ v + (w * jnp.sin(q[0])) ** 2) + 9.81 * jnp.cos(q[0]))
    exact = mbd.simulate(one, [theta], dt=T / 100, steps=100, scheme=mbd.Galerkin(6), save="end").q[-1, 0]
    end = np.array([np.cos(w * T) * np.sin(exact), np.sin(w * T) * np.sin(exact), -np.cos(exact)])
    return [np.sin(theta), 0.0, -np.cos(theta)], [0.0, w * np.sin(theta), 0.0], end


@pytest.mark.parametrize("name", ["midpoint", "galerkin 4 gauss"])
def test_moving_constraint_follows_the_motion_in_one_coordinate(name, bead):
    """Bead on a turning hoop against the ODE of its angle from the bottom, theta'' = w^2 sin cos - g sin."""
    scheme, order = SCHEMES[name]
    system, (q0, v0, end) = bead_on_moving_wire(), bead

    def read(trajectory):
        assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-14
        assert jnp.max(jnp.abs(post.constraint_rates(system, trajectory))) < 1e-14
        return (trajectory.q,)

    run = lambda dt, steps: mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=scheme)
    (errors,) = errors_after(0.5, (10, 20, 40), run, (end,), read)
    assert abs(post.order([4, 2, 1], errors) - order) < 0.2


def test_forces_dissipate_what_they_should():
    """Damped oscillator against its closed form, with the order of the scheme."""
    c = 0.3
    damped = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * q @ q, forces=lambda t, q, v, p: -2 * p * v, params=c)
    w = np.sqrt(1 - c**2)
    exact = np.exp(-c * 2.0) * (np.cos(w * 2.0) + c / w * np.sin(w * 2.0))
    for scheme, order in (SCHEMES[name] for name in ("midpoint", "trapezoidal", "galerkin 4 lobatto", "galerkin 6 gauss")):
        counts = (40, 80) if order == 2 else (8, 16) if order == 4 else (4, 8)
        run = lambda dt, steps, scheme=scheme: mbd.simulate(damped, [1.0], dt=dt, steps=steps, scheme=scheme)
        (errors,) = errors_after(2.0, counts, run, ([exact],), lambda trajectory: (trajectory.q,))
        assert abs(post.order([2, 1], errors) - order) < 0.3, (scheme, errors)


def test_own_discrete_lagrangian():
    """A user's discrete Lagrangian alone starts, runs and reads the motion; the midpoint rule written out is the midpoint scheme."""
    reference = pendulum()

    def discrete(t, dt, q0, q1, p):
        v, q = (q1 - q0) / dt, 0.5 * (q0 + q1)
        return dt * (0.5 * v @ v - p * q[1])

    own = mbd.System.from_functions(discrete_lagrangian=discrete, constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - 1)]), params=9.81)
    mine = mbd.simulate(own, [1.0, 0.0], [0.0, 0.5], dt=0.05, steps=50)
    other = mbd.simulate(reference, [1.0, 0.0], [0.0, 0.5], dt=0.05, steps=50)
    for column in ("q", "v", "p", "multipliers"):
        np.testing.assert_allclose(getattr(mine, column), getattr(other, column), atol=1e-10)
    np.testing.assert_allclose(post.discrete_energy(own, mine), post.discrete_energy(reference, other), atol=1e-10)
    with pytest.raises(mbd.ModelError, match="leave scheme unset"):
        mbd.simulate(own, [1.0, 0.0], dt=0.05, steps=1, scheme=mbd.Midpoint())


def test_a_new_scheme_is_one_method():
    """Simpson's rule on the straight line through both ends."""

    class Simpson(mbd.schemes.AbstractVariational):
        fractions = (0.0, 1.0)
        weights = (0.5, 0.5)

        def discrete_lagrangian(self, system, t, dt, q):
            v = (q[1] - q[0]) / dt
            at = lambda a: system.lagrangian(t + a * dt, (1 - a) * q[0] + a * q[1], v)
            return dt / 6 * (at(0.0) + 4 * at(0.5) + at(1.0))

    system = pendulum()
    runs = [mbd.simulate(system, [1.0, 0.0], dt=0.4 / n, steps=256, scheme=Simpson()).q[n] for n in (16, 32, 256)]
    ratio = jnp.max(jnp.abs(runs[0] - runs[2])) / jnp.max(jnp.abs(runs[1] - runs[2]))
    assert 3.5 < ratio < 4.5


@pytest.mark.parametrize("steps", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_energy_does_not_drift(steps):
    system = pendulum()
    trajectory = mbd.simulate(system, [1.0, 0.0], dt=0.05, steps=steps, formulation=mbd.NullSpace(), save=steps // 200)
    H = np.asarray(post.energy(system, trajectory))
    bound = np.ptp(np.asarray(post.energy(system, mbd.simulate(system, [1.0, 0.0], dt=0.05, steps=2000))))
    assert np.max(np.abs(H)) < 1.01 * bound
    assert abs(np.polyfit(np.linspace(0, 1, H.size), H, 1)[0]) < 0.1 * bound
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-14


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_quadrature_is_exact_to_its_degree(count):
    for rule, number, degree in ((gauss, count, 2 * count - 1), (lobatto, count + 1, 2 * count - 1)):
        points, weights = rule(number)
        for k in range(degree + 1):
            assert weights @ points**k == pytest.approx(1 / (k + 1), abs=1e-14)
        assert weights @ points ** (degree + 1) != pytest.approx(1 / (degree + 2), abs=1e-9)


def test_interpolation_is_exact_for_polynomials():
    nodes, _ = lobatto(4)
    at = np.array([-1.0, 0.3, 1.7])
    np.testing.assert_allclose(interpolation(nodes, at) @ nodes**3, at**3, atol=1e-13)
    np.testing.assert_allclose(interpolation(nodes, at, 1) @ nodes**3, 3 * at**2, atol=1e-12)


@pytest.mark.parametrize("arguments", [{"order": 3}, {"order": 0}, {"quadrature": "simpson"}])
def test_bad_galerkin(arguments):
    with pytest.raises(mbd.ModelError):
        mbd.Galerkin(**arguments)


def test_schemes_are_pytrees_without_leaves():
    assert all(not jax.tree.leaves(eqx.filter(scheme, eqx.is_array)) for scheme, _ in SCHEMES.values())
