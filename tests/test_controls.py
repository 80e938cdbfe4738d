"""Controls keep the order of every scheme, as functions of time and as tables."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmbd as mbd

DURATION = 2.0
COUNTS = (20, 40, 80)
SCHEMES = {
    "midpoint": mbd.Midpoint(),
    "trapezoidal": mbd.Trapezoidal(),
    "galerkin 4": mbd.Galerkin(4),
    "galerkin 4 gauss": mbd.Galerkin(4, "gauss"),
    "energy-momentum": mbd.EnergyMomentum(),
    "generalized-alpha": mbd.schemes.GeneralizedAlpha(),
}
FREE = {"newmark": mbd.schemes.Newmark(), "director": mbd.schemes.ConservativeDirector()}


@pytest.fixture(scope="module")
def spring():
    """A unit mass on a unit spring, pushed by its control."""
    forces = lambda t, q, v, p, control: control[None] - p * q
    return mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, forces=forces, params=1.0), jnp.zeros(1), 0


@pytest.fixture(scope="module")
def particle():
    """The same as a mass point of a mechanism, along its first axis."""
    system, q0 = mbd.assemble(mbd.Mechanism(bodies={"ball": mbd.RigidBody.sphere(1.0, 0.1)}, joints={}, loads=()))
    pushed = lambda t, q, v, model, control: jnp.zeros_like(q).at[0].set(control - q[0])
    return eqx.tree_at(lambda s: s.functions, system, system.functions | {"forces": Partial(pushed)}), q0, 0


def force(t):
    return jnp.sin(2 * t)


def position(t):
    """From rest: the force is at twice the frequency of the spring."""
    return (2 * jnp.sin(t) - jnp.sin(2 * t)) / 3


def errors(model, scheme, as_table):
    """Largest errors all along, for each number of steps; one program serves all, which go on after the duration."""
    system, q0, place = model
    steps = max(COUNTS)

    @jax.jit
    def run(dt):
        middle = dt * (jnp.arange(float(steps)) + 0.5)
        controls = jax.vmap(force)(middle) if as_table else force
        trajectory = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=scheme, controls=controls, throw=False)
        return jnp.abs(trajectory.q[:, place] - position(trajectory.t))

    return np.array([np.max(run(DURATION / count)[: count + 1]) for count in COUNTS])


def assert_order(found, order):
    rates = np.log2(found[:-1] / found[1:])
    assert np.all(np.abs(rates - order) < 0.3), (found, rates)


@pytest.mark.parametrize("as_table", [False, True], ids=["function", "table"])
@pytest.mark.parametrize("name", SCHEMES)
def test_controls_keep_the_order(spring, name, as_table):
    """A table holds each row over its step, which is of order two whatever the scheme is."""
    scheme = SCHEMES[name]
    assert_order(errors(spring, scheme, as_table), 4 if isinstance(scheme, mbd.Galerkin) and not as_table else 2)


@pytest.mark.parametrize("as_table", [False, True], ids=["function", "table"])
@pytest.mark.parametrize("name", FREE)
def test_controls_keep_the_order_of_schemes_for_rigid_bodies(particle, name, as_table):
    assert_order(errors(particle, FREE[name], as_table), 2)


@pytest.mark.parametrize("as_table", [False, True], ids=["function", "table"])
def test_multipliers_see_the_control_of_their_own_time(as_table):
    """A mass on a rail: its multiplier is the push across it at that time, also at the start and where a motion goes on."""
    forces = lambda t, q, v, p, control: jnp.array([0.0, control])
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, constraints=lambda t, q, p: q[1:], forces=forces)
    push = lambda t: jnp.cos(2 * t)
    controls = lambda first: jax.vmap(push)(0.01 * (jnp.arange(first, first + 20.0) + 0.5)) if as_table else push
    begun = mbd.simulate(system, [0.0, 0.0], dt=0.01, steps=20, scheme=mbd.schemes.GeneralizedAlpha(), controls=controls(0))
    for motion in (begun, mbd.simulate(system, start=begun.final, steps=20, controls=controls(20))):
        np.testing.assert_allclose(motion.multipliers[:, 0], push(motion.t), atol=3e-4 if as_table else 1e-12)
