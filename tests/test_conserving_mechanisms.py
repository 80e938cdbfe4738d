"""Schemes beside the variational ones, on mechanisms: energy and momenta, agreement of formulations, long runs, bodies that turn over."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post, rotation

from .mechanisms import optimised


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
    "joint multipliers": mbd.formulations.JointMultipliers(),
    "null space": mbd.NullSpace(),
    "chart": mbd.Reparametrised(),
}


@pytest.fixture(scope="module")
def motion():
    system, q0, v0 = machine()
    run = lambda scheme, formulation: mbd.simulate(system, q0, v0, dt=0.02, steps=100, scheme=scheme, formulation=formulation)
    directors = lambda: run(mbd.schemes.ConservativeDirector(), mbd.formulations.JointMultipliers())
    return system, functools.cache(lambda name: directors() if name == "directors" else run(mbd.EnergyMomentum(), FORMULATIONS[name]))


@pytest.mark.parametrize(
    "formulation", ["chart", *(pytest.param(name, marks=pytest.mark.slow) for name in ("joint multipliers", "null space"))]
)
def test_formulations_agree_and_keep_energy(formulation, motion):
    system, by = motion
    trajectory, other = by(formulation), by("multipliers")
    assert np.ptp(post.energy(system, trajectory)) < 1e-13 * abs(post.energy(system, trajectory)[0])
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13
    np.testing.assert_allclose(trajectory.q, other.q, rtol=0, atol=2e-13)
    np.testing.assert_allclose(trajectory.v, other.v, rtol=0, atol=1e-11)
    np.testing.assert_allclose(trajectory.multipliers, other.multipliers, rtol=0, atol=2e-10)


@pytest.mark.slow
def test_conservative_directors_on_the_same_machine(motion):
    system, by = motion
    trajectory = by("directors")
    assert np.ptp(post.energy(system, trajectory)) < 1e-13 * abs(post.energy(system, trajectory)[0])
    np.testing.assert_allclose(trajectory.q, by("multipliers").q, rtol=0, atol=5e-6)
    rates = post.constraint_rates(system, trajectory)
    assert jnp.max(jnp.abs(rates[:, :12])) < 1e-13 < jnp.max(jnp.abs(rates[:, 12:]))  # internal ones hold, those of joints up to the error


def test_rates_of_the_gauge_are_those_of_the_joint(motion):
    system, by = motion
    joint = post.joint_rates(system, by("directors"))["hinge"][:, 0]
    np.testing.assert_allclose(by("directors").v[:, -1], joint, atol=1e-12)


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


@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), pytest.param(mbd.schemes.ConservativeDirector(), marks=pytest.mark.slow)])
def test_energy_and_all_momenta_with_nonlinear_springs(scheme):
    system, q0, v0 = floating_chain()
    trajectory = mbd.simulate(system, q0, v0, dt=0.03, steps=300, scheme=scheme, formulation=mbd.formulations.JointMultipliers())
    E = post.energy(system, trajectory)
    assert np.ptp(E) < 2e-13 * E[0]
    assert np.max(np.ptp(post.linear_momentum(system, trajectory), axis=0)) < 2e-13
    assert np.max(np.ptp(post.angular_momentum(system, trajectory), axis=0)) < 1e-12
    np.testing.assert_allclose(trajectory.multipliers.shape, (301, 12))


def spun(mechanism, placement, joint, rate):
    system, q0 = mbd.assemble(mechanism, placement)
    return system, q0, mbd.joint_velocities(system, q0, {joint: rate})


def at_rest(mechanism, placement):
    system, q0 = mbd.assemble(mechanism, placement)
    return system, q0, None


LONG = {
    "chain on hinges": (lambda: at_rest(*gallery.hanging_chain()), mbd.schemes.ConservativeDirector(), 0.01, ()),
    "chain on balls": (lambda: at_rest(*gallery.hanging_chain(True)), mbd.schemes.ConservativeDirector(), 0.02, (2,)),
    "top": (lambda: spun(*gallery.spinning_top(), "tip", (0.0, -14.8, 47.8)), mbd.schemes.DirectorEnergyMomentum(), 0.01, (2,)),
    "linkage": (lambda: spun(*gallery.six_body_linkage(), "hinge 1", 30.0), mbd.EnergyMomentum(), 0.01, ()),
    "nonlinear springs": (lambda: floating_chain(), mbd.EnergyMomentum(), 0.02, (0, 1, 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_energy_over_a_hundred_thousand_steps(name):
    make, scheme, dt, symmetries = LONG[name]
    system, q0, v0 = make()
    formulation = mbd.NullSpace() if name == "linkage" else mbd.formulations.JointMultipliers()
    run = lambda: mbd.simulate(system, q0, v0, dt=dt, steps=100_000, scheme=scheme, formulation=formulation, save=1000)
    trajectory = optimised(run)
    E, momentum = post.energy(system, trajectory), post.angular_momentum(system, trajectory)
    assert np.ptp(E) < (2e-12 if name == "top" else 1e-12) * abs(E[0])  # half a radian a step: rounding walks farthest there
    assert all(np.ptp(momentum[:, axis]) < 1e-10 for axis in symmetries)
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13


@pytest.mark.slow
def test_planar_bodies_and_closed_loops_with_conservative_directors():
    """A slider-crank of planar bodies; energy exact, and the motion that of the variational scheme within its error."""
    system, q0 = mbd.assemble(*gallery.slider_crank())
    v0 = mbd.joint_velocities(system, q0, {"bearing": 2.0})
    found = {}
    for scheme in (mbd.schemes.ConservativeDirector(), mbd.Midpoint()):
        found[scheme] = mbd.simulate(system, q0, v0, dt=0.002, steps=200, scheme=scheme, formulation=mbd.formulations.JointMultipliers())
    exact, variational = found.values()
    assert np.ptp(post.energy(system, exact)) < 1e-13 * abs(post.energy(system, exact)[0])
    np.testing.assert_allclose(exact.q, variational.q, rtol=0, atol=4e-5)


def test_velocity_at_a_start_from_rest_is_zero():
    """Momentum zero from a guess that is not: the chart of a tree finds the velocity."""
    system, q0 = mbd.assemble(*gallery.hanging_chain(spherical=True))
    trajectory = mbd.simulate(system, q0, dt=0.01, steps=2, formulation=mbd.formulations.JointMultipliers())
    assert np.max(np.abs(np.asarray(trajectory.v[0]))) < 1e-14 and np.all(np.isfinite(post.energy(system, trajectory)))


@pytest.mark.slow
def test_redundant_loops_with_joint_multipliers():
    """A four-bar of spatial bodies: three constraints too many, all of joints; their multipliers are the smallest that act alike."""
    system, q0 = mbd.assemble(*gallery.four_bar())
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 3.0})
    trajectory = mbd.simulate(
        system, q0, v0, dt=0.01, steps=50, scheme=mbd.EnergyMomentum(), formulation=mbd.formulations.JointMultipliers()
    )
    assert np.ptp(post.energy(system, trajectory)) < 1e-11 and trajectory.redundant == 3
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13
    G = mbd.constraints.calculus.constraint_jacobian(system, 0.0, 0.5 * (trajectory.q[0] + trajectory.q[1]))
    first = trajectory.multipliers[0]
    np.testing.assert_allclose(jnp.linalg.pinv(G.T, rtol=1e-9) @ (G.T @ first), first, atol=1e-8 * jnp.max(jnp.abs(first)))


@pytest.mark.slow
def test_newmark_is_of_order_two_for_a_body():
    system, q0 = mbd.assemble(*gallery.spinning_top(inertia=(1.0, 2.2, 3.0)))
    v0 = mbd.joint_velocities(system, q0, {"tip": (2.0, 1.0, 3.0)})

    def after_half_a_second(dt, steps, scheme):
        run = mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.formulations.JointMultipliers())
        return np.concatenate([run.q[round(0.5 / dt)], run.v[round(0.5 / dt)]])

    reference = after_half_a_second(0.5 / 800, 800, mbd.schemes.DirectorEnergyMomentum())
    coarse, fine = (np.max(np.abs(after_half_a_second(dt, 40, mbd.schemes.Newmark()) - reference)) for dt in (0.025, 0.0125))
    assert 3.5 < coarse / fine < 4.5


def test_a_body_that_turns_over_in_one_step_is_reported():
    """A free body that spins so fast that the Cayley map gives 172 degrees: the predicted step is the root, and it is refused."""
    system, q0 = mbd.assemble(mbd.Mechanism({"body": mbd.RigidBody.sphere(1.0, 0.5)}, {}, []), {"body": ((0.0, 0.0, 0.0), np.eye(3))})
    angle = np.radians(172.0)
    turns = 2 * np.tan(angle / 2)  # h w with 2 arctan(h w / 2) = 172 degrees
    known = mbd.find_rank(system, q0)
    advance = jax.jit(
        lambda state: mbd.simulation.step(known, state, jnp.array(1.0), mbd.EnergyMomentum(), mbd.formulations.JointMultipliers())[0]
    )
    for rate, outcome in {turns: mbd.Result.TURNED_OVER, 1.0: mbd.Result.SUCCESS}.items():
        v0 = mbd.joint_velocities(system, q0, {"body": (0.0, 0.0, 0.0, 0.0, 0.0, rate)})
        moves = jnp.zeros_like(q0).at[3:].set((rotation.exp(jnp.array([0.0, 0.0, 2 * np.arctan(rate / 2)])) - jnp.eye(3)).T.ravel())
        state = mbd.simulation.initial_state(system, q0, v0, jnp.array(1.0), jnp.array(0.0), mbd.EnergyMomentum())
        state = eqx.tree_at(lambda s: s.displacement, state, moves[None])
        assert advance(state).status.result == outcome
