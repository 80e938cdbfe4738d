"""Schemes beside the variational ones: exact energy, momentum, order, agreement of formulations, damping, failure."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post

from .mechanisms import bead_on_moving_wire, chain, charged_particle, kepler, pendulum, rotate

DOUBLE = chain(2, 3)


def double_pendulum_angles():
    """A double pendulum in two angles: the mass matrix depends on the position."""

    def lagrangian(t, q, v, p):
        a, b = q
        return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * jnp.cos(a - b) + p * (2 * jnp.cos(a) + jnp.cos(b))

    return mbd.System.from_functions(lagrangian, params=9.81)


FREE = {
    "pendulum": (pendulum(), [1.0, 0.0], [0.0, 0.0], 0.05),
    "angles": (double_pendulum_angles(), [1.5, 1.0], [0.0, 0.3], 0.01),
    "charge": (charged_particle(), [1.0, 0.0, 0.3], [0.0, 0.5, 0.0], 0.05),
    "kepler": (kepler(), [1.0, 0.0], [0.0, 1.2], 0.1),
}


@pytest.mark.parametrize("name", FREE)
def test_energy_is_exact_for_any_lagrangian(name):
    """Constraints, a mass matrix that varies, velocity-dependent potentials and a pole: energy stays to rounding."""
    system, q0, v0, dt = FREE[name]
    trajectory = mbd.simulate(system, q0, v0, dt=dt, steps=500, scheme=mbd.EnergyMomentum())
    E = post.energy(system, trajectory)
    assert np.ptp(E) < 2e-12 * np.max(np.abs(trajectory.p * trajectory.v))
    assert np.ptp(trajectory.q[:, 0]) > 0.1
    if name == "kepler":
        np.testing.assert_allclose(post.momentum_map(system, trajectory, rotate), 1.2, atol=1e-12)
        assert np.ptp(post.energy(system, mbd.simulate(system, q0, v0, dt=dt, steps=500))) > 1e-4


@pytest.fixture(scope="module")
def double_pendulum():
    q0, v0 = mbd.project(DOUBLE, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.3, 0.2, 0.0, -0.5])
    return q0, v0, mbd.simulate(DOUBLE, q0, v0, dt=0.4 / 100, steps=100, scheme=mbd.Galerkin(6), save="end")


@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), mbd.GeneralizedAlpha(0.6)])
def test_order_two(scheme, double_pendulum):
    q0, v0, reference = double_pendulum
    run = lambda dt: mbd.simulate(DOUBLE, q0, v0, dt=dt, steps=round(0.4 / dt), scheme=scheme, save="end")
    fields = ("q", "p", "v", lambda trajectory: post.multipliers(DOUBLE, trajectory))
    table = post.convergence(run, [0.4 / count for count in (64, 128)], reference, fields)
    for field, (_, slope) in table.items():
        assert abs(slope - 2) < 0.2, (field, slope)


def test_multipliers_of_intervals_are_means_at_nodes(double_pendulum):
    """Inside a trajectory they converge with order two, although those of single steps alternate by more."""
    q0, v0, _ = double_pendulum
    exact = post.multipliers(DOUBLE, mbd.simulate(DOUBLE, q0, v0, dt=0.4 / 100, steps=100, scheme=mbd.Galerkin(6), save=50))
    errors = []
    for count in (64, 128):
        trajectory = mbd.simulate(DOUBLE, q0, v0, dt=0.4 / count, steps=count, scheme=mbd.EnergyMomentum(), save=count // 2)
        errors.append(np.max(np.abs(trajectory.multipliers - exact), axis=1))
    assert 3 < errors[0][1] / errors[1][1] < 5
    assert errors[1][1] < 0.1 * errors[1][0] and 1.5 < errors[0][0] / errors[1][0] < 3


def test_moving_constraints():
    """A bead on a turning hoop: the constraint holds at every node, and the motion is that of the variational scheme."""
    system, q0 = bead_on_moving_wire(), [1.0, 0.0, 0.0]
    ends = {}
    for name, scheme in {"energy": mbd.EnergyMomentum(), "galerkin": mbd.Galerkin(4)}.items():
        trajectory = mbd.simulate(system, q0, [0.0, 3.0, 0.5], dt=0.005, steps=200, scheme=scheme)
        assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-14
        ends[name] = trajectory.q[-1]
    np.testing.assert_allclose(ends["energy"], ends["galerkin"], atol=5e-4)


def test_damping_dissipates_and_forces_do_work():
    """With forces, energy changes by their discrete work alone."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        potential=lambda t, q, p: 0.25 * jnp.sum(q**4),
        forces=lambda t, q, v, p, u: -p * v + u,
        params=0.3,
    )
    push = lambda t: jnp.stack([jnp.sin(t), 0.0 * t])
    trajectory = mbd.simulate(system, [1.0, 0.5], [0.0, 0.0], dt=0.05, steps=100, scheme=mbd.EnergyMomentum(), controls=push)
    q, middle = np.asarray(trajectory.q), np.asarray(trajectory.t[:-1]) + 0.025
    force = -0.3 * np.diff(q, axis=0) / 0.05 + np.stack([np.sin(middle), 0 * middle], axis=1)
    np.testing.assert_allclose(np.diff(post.energy(system, trajectory)), np.sum(force * np.diff(q, axis=0), axis=1), atol=1e-14)


def machine():
    """A cart on a rail with a pendulum, springs and a torsional spring: constraints and potentials that are not quadratic."""
    bodies = {"cart": mbd.RigidBody.box(2.0, (0.5, 0.3, 0.2)), "arm": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0))}
    joints = {
        "rail": mbd.Joint(mbd.Prismatic((1.0, 0.0, 0.0)), "ground", "cart", at=(0.0, 0.0, 0.0)),
        "hinge": mbd.Joint(mbd.Revolute((0.0, 1.0, 1.0)), "cart", "arm", at=(0.0, 0.0, 0.0)),
    }
    loads = [
        mbd.Gravity(),
        mbd.Spring("ground", "cart", stiffness=20.0, rest=0.4, at_a=(-0.6, 0.0, 0.1)),
        mbd.Spring("ground", "arm", stiffness=15.0, rest=1.2, at_b=(0.1, 0.0, -0.5)),
        mbd.JointSpring("hinge", stiffness=3.0, rest=0.2),
    ]
    placement = {"cart": ((0.0, 0.0, 0.0), np.eye(3)), "arm": ((0.0, 0.0, -0.5), np.eye(3))}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints, loads), placement)
    return system, q0, mbd.joint_velocities(system, q0, {"rail": 0.7, "hinge": 2.5})


FORMULATIONS = {
    "multipliers": mbd.Multipliers(),
    "joint multipliers": mbd.JointMultipliers(),
    "null space": mbd.NullSpace(),
    "chart": mbd.Reparametrised(),
}


@pytest.fixture(scope="module")
def motions():
    system, q0, v0 = machine()
    run = lambda scheme, formulation: mbd.simulate(system, q0, v0, dt=0.02, steps=100, scheme=scheme, formulation=formulation)
    found = {name: run(mbd.EnergyMomentum(), formulation) for name, formulation in FORMULATIONS.items()}
    return system, found | {"conservative": run(mbd.ConservativeDirector(), mbd.JointMultipliers())}


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_formulations_agree_and_keep_energy(formulation, motions):
    system, found = motions
    trajectory = found[formulation]
    assert np.ptp(post.energy(system, trajectory)) < 1e-12 * abs(post.energy(system, trajectory)[0])
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13
    np.testing.assert_allclose(trajectory.q, found["multipliers"].q, atol=1e-11)
    np.testing.assert_allclose(trajectory.v, found["multipliers"].v, atol=1e-9)
    np.testing.assert_allclose(trajectory.multipliers, found["multipliers"].multipliers, atol=1e-8)


def test_conservative_directors_on_the_same_machine(motions):
    system, found = motions
    trajectory = found["conservative"]
    assert np.ptp(post.energy(system, trajectory)) < 1e-12 * abs(post.energy(system, trajectory)[0])
    np.testing.assert_allclose(trajectory.q, found["multipliers"].q, atol=1e-2)
    rates = post.constraint_rates(system, trajectory)
    assert jnp.max(jnp.abs(rates[:, :12])) < 1e-13 < jnp.max(jnp.abs(rates[:, 12:]))  # internal ones hold, those of joints up to the error


def test_rates_of_the_gauge_are_those_of_the_joint(motions):
    system, found = motions
    joint = post.joint_rates(system, found["conservative"])["hinge"][:, 0]
    np.testing.assert_allclose(found["conservative"].v[:, -1], joint, atol=1e-12)


def floating_chain():
    """Balls and mass points in space, held together by springs of the Duffing kind."""

    def duffing(t, a, b, p):
        rod = b.origin - a.origin
        x = jnp.sqrt(rod @ rod) - p["rest"]
        return 0.5 * p["k"] * x**2 + 0.25 * p["k3"] * x**4

    names = ["a", "b", "c", "d"]
    bodies = {name: mbd.Particle(1.5) if i % 2 else mbd.RigidBody.sphere(1.0, 0.3) for i, name in enumerate(names)}
    params = {"rest": np.array(1.0), "k": np.array(50.0), "k3": np.array(2000.0)}
    springs = [mbd.Potential(duffing, a, b, params=params) for a, b in itertools.pairwise(names)]
    placement = {name: ((1.1 * i, 0.1 * i**2, 0.0), np.eye(3)) for i, name in enumerate(names)}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, {}, springs), placement)
    masses, random = np.array([1.0, 1.5, 1.0, 1.5]), np.random.default_rng(0)
    velocities = random.normal(size=(4, 3))
    velocities -= masses @ velocities / masses.sum()  # it stays where it is, so that coordinates do not grow
    rates = {
        name: u if i % 2 else np.concatenate([u, random.normal(size=3)]) for i, (name, u) in enumerate(zip(names, velocities, strict=True))
    }
    return system, q0, mbd.joint_velocities(system, q0, rates)


@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), mbd.ConservativeDirector()])
def test_energy_and_all_momenta_with_nonlinear_springs(scheme):
    system, q0, v0 = floating_chain()
    trajectory = mbd.simulate(system, q0, v0, dt=0.03, steps=300, scheme=scheme, formulation=mbd.JointMultipliers())
    E = post.energy(system, trajectory)
    assert np.ptp(E) < 1e-12 * E[0]
    assert np.max(np.ptp(post.linear_momentum(system, trajectory), axis=0)) < 1e-12
    assert np.max(np.ptp(post.angular_momentum(system, trajectory), axis=0)) < 1e-11
    np.testing.assert_allclose(trajectory.multipliers.shape, (301, 12))


def spun(mechanism, placement, joint, rate):
    system, q0 = mbd.assemble(mechanism, placement)
    return system, q0, mbd.joint_velocities(system, q0, {joint: rate})


def at_rest(mechanism, placement):
    system, q0 = mbd.assemble(mechanism, placement)
    return system, q0, None


LONG = {
    "chain on hinges": (lambda: at_rest(*gallery.hanging_chain()), mbd.ConservativeDirector(), 0.01, ()),
    "chain on balls": (lambda: at_rest(*gallery.hanging_chain(True)), mbd.ConservativeDirector(), 0.02, (2,)),
    "top": (lambda: spun(*gallery.spinning_top(), "tip", (0.0, -14.8, 47.8)), mbd.DirectorEnergyMomentum(), 0.01, (2,)),
    "linkage": (lambda: spun(*gallery.six_body_linkage(), "hinge 1", 30.0), mbd.EnergyMomentum(), 0.01, ()),
    "nonlinear springs": (lambda: floating_chain(), mbd.EnergyMomentum(), 0.02, (0, 1, 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_energy_over_a_hundred_thousand_steps(name):
    make, scheme, dt, symmetries = LONG[name]
    system, q0, v0 = make()
    formulation = mbd.NullSpace() if name == "linkage" else mbd.JointMultipliers()
    trajectory = mbd.simulate(system, q0, v0, dt=dt, steps=100_000, scheme=scheme, formulation=formulation, save=1000)
    E, momentum = post.energy(system, trajectory), post.angular_momentum(system, trajectory)
    assert np.ptp(E) < 1e-12 * abs(E[0])
    assert all(np.ptp(momentum[:, axis]) < 1e-10 for axis in symmetries)
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13


def test_planar_bodies_and_closed_loops_with_conservative_directors():
    """A slider-crank of planar bodies; energy exact, and the motion that of the variational scheme within its error."""
    system, q0 = mbd.assemble(*gallery.slider_crank())
    v0 = mbd.joint_velocities(system, q0, {"bearing": 2.0})
    found = {}
    for scheme in (mbd.ConservativeDirector(), mbd.Midpoint()):
        found[scheme] = mbd.simulate(system, q0, v0, dt=0.002, steps=200, scheme=scheme, formulation=mbd.JointMultipliers())
    exact, variational = found.values()
    assert np.ptp(post.energy(system, exact)) < 1e-12 * abs(post.energy(system, exact)[0])
    np.testing.assert_allclose(exact.q, variational.q, atol=1e-4)


def test_velocity_at_a_start_from_rest_is_zero():
    """Momentum zero from a guess that is not: the chart of a tree finds the velocity."""
    system, q0 = mbd.assemble(*gallery.hanging_chain(spherical=True))
    trajectory = mbd.simulate(system, q0, dt=0.01, steps=2, formulation=mbd.JointMultipliers())
    assert np.max(np.abs(np.asarray(trajectory.v[0]))) < 1e-14 and np.all(np.isfinite(post.energy(system, trajectory)))


def test_redundant_loops_with_joint_multipliers():
    """A four-bar of spatial bodies: three constraints too many, all of joints; their multipliers are the smallest that act alike."""
    system, q0 = mbd.assemble(*gallery.four_bar())
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 3.0})
    trajectory = mbd.simulate(system, q0, v0, dt=0.01, steps=50, scheme=mbd.EnergyMomentum(), formulation=mbd.JointMultipliers())
    assert np.ptp(post.energy(system, trajectory)) < 1e-11 and trajectory.redundant == 3
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13
    G = mbd.calculus.constraint_jacobian(system, 0.0, 0.5 * (trajectory.q[0] + trajectory.q[1]))
    first = trajectory.multipliers[0]
    np.testing.assert_allclose(jnp.linalg.pinv(G.T, rtol=1e-9) @ (G.T @ first), first, atol=1e-8 * jnp.max(jnp.abs(first)))


def test_generalized_alpha_damps_high_frequencies():
    """A stiff oscillator beside a soft one, steps that resolve the soft one: rho = 0 annihilates the stiff motion, rho = 1 keeps it."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v, potential=lambda t, q, p: 0.5 * p @ q**2, params=jnp.array([1.0, 1e8])
    )
    ends = {}
    for rho in (0.0, 1.0):
        trajectory = mbd.simulate(system, [1.0, 1e-3], dt=0.05, steps=100, scheme=mbd.GeneralizedAlpha(rho))
        ends[rho] = np.max(np.abs(trajectory.q[50:]), axis=0)
    assert ends[0.0][1] < 1e-12 and ends[1.0][1] > 5e-4
    assert abs(ends[0.0][0] - 1) < 0.05


def test_newmark_is_of_order_two_for_a_body():
    system, q0 = mbd.assemble(*gallery.spinning_top(inertia=(1.0, 2.2, 3.0)))
    v0 = mbd.joint_velocities(system, q0, {"tip": (2.0, 1.0, 3.0)})

    def after_half_a_second(dt, steps, scheme):
        run = mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.JointMultipliers())
        return np.concatenate([run.q[round(0.5 / dt)], run.v[round(0.5 / dt)]])

    reference = after_half_a_second(0.5 / 800, 800, mbd.DirectorEnergyMomentum())
    coarse, fine = (np.max(np.abs(after_half_a_second(dt, 40, mbd.Newmark()) - reference)) for dt in (0.025, 0.0125))
    assert 3.5 < coarse / fine < 4.5


def stiff_pendulum(ratio=1e4):
    """A mass on a spring whose frequency is `ratio` times that of its swing."""
    return mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        potential=lambda t, q, p: 0.5 * p * (jnp.sqrt(q @ q) - 1) ** 2 + q[1],
        params=float(ratio) ** 2,
    )


def test_energy_momentum_is_stable_where_the_symplectic_scheme_is_not():
    """A spring ten thousand times faster than the swing, steps that resolve the swing alone, released from the side."""
    system = stiff_pendulum()
    energies, lengths = {}, {}
    for scheme in (mbd.EnergyMomentum(), mbd.Midpoint()):
        trajectory = mbd.simulate(system, [1.0, 0.0], dt=0.1, steps=1000, scheme=scheme, newton=mbd.Newton(max_steps=50), throw=False)
        name = type(scheme).__name__
        energies[name] = np.max(np.abs(post.energy(system, trajectory)))
        lengths[name] = np.max(np.abs(np.linalg.norm(trajectory.q, axis=1) - 1))
    assert energies["EnergyMomentum"] < 1e-11 and lengths["EnergyMomentum"] < 1e-5
    assert energies["Midpoint"] > 1e3 and lengths["Midpoint"] > 0.01


def test_a_body_that_turns_over_in_one_step_is_reported():
    """Half a turn in a step is no motion that equations in directors can tell from others."""
    system, q0 = mbd.assemble(*gallery.spinning_top())
    v0 = mbd.joint_velocities(system, q0, {"tip": np.array([0.0, 0.0, 200.0])})
    trajectory = mbd.simulate(
        system, q0, v0, dt=1.0, steps=3, scheme=mbd.DirectorEnergyMomentum(), formulation=mbd.JointMultipliers(), throw=False
    )
    assert trajectory.final.status.result in (mbd.Result.TURNED_OVER, mbd.Result.NOT_CONVERGED)
    assert "smaller dt" in mbd.Result.TURNED_OVER.meaning


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mbd.GeneralizedAlpha(1.2), "between 0 and 1"),
        (lambda: mbd.Newmark(beta=0.0), "beta must be positive"),
        (lambda: mbd.simulate(pendulum(), [1.0, 0.0], dt=0.1, steps=1, scheme=mbd.ConservativeDirector()), "system from assemble"),
        (lambda: mbd.simulate(pendulum(), [1.0, 0.0], dt=0.1, steps=1, formulation=mbd.JointMultipliers()), "system from assemble"),
        (lambda: mbd.simulate(pendulum(), [1.0, 0.0], q1=[1.0, 0.0], dt=0.1, steps=1, scheme=mbd.EnergyMomentum()), "give v0"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(mbd.ModelError, match=message):
        make()


def test_float32_follows_the_input():
    system = pendulum()
    trajectory = mbd.simulate(system, np.array([1.0, 0.0], np.float32), dt=0.05, steps=50, scheme=mbd.EnergyMomentum())
    assert trajectory.v.dtype == jnp.float32
    assert np.ptp(post.energy(system, trajectory)) < 2e-4


def test_a_batch_survives_a_member_that_fails():
    """One member starts with a step that cannot be solved; the others keep their energy."""
    system, steps = pendulum(), jnp.array([0.01, 0.02, 1e3])
    run = lambda dt: mbd.simulate(system, [1.0, 0.0], [0.0, 1.0], dt=dt, steps=20, scheme=mbd.EnergyMomentum(), throw=False)
    batch = jax.vmap(run)(steps)
    assert batch.successful.tolist()[:2] == [True, True]
    assert np.max(np.ptp(jax.vmap(lambda one: post.energy(system, one))(batch)[:2], axis=1)) < 1e-12
