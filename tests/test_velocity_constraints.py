"""Constraints on velocities: closed forms with measured orders, what is kept, gradients, batches, bad input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.schemes import GeneralizedAlpha

from .mechanisms import chaplygin_sleigh, errors_after, inclined_coin, inclined_knife_edge

SCHEMES = {
    "midpoint": (mbd.Midpoint(), 2, 2),
    "trapezoidal": (mbd.Trapezoidal(), 2, 2),
    "galerkin 4": (mbd.Galerkin(4), 4, 2),
    "galerkin 4 gauss": (mbd.Galerkin(4, "gauss"), 4, 2),
    "galerkin 6": (mbd.Galerkin(6), 6, 4),
    "energy-momentum": (mbd.EnergyMomentum(), 2, 2),
    "generalized alpha": (GeneralizedAlpha(), 2, None),
}
SLEIGH_START = 0.4, -0.5, 1.5
"""Heading, speed of the blade and angular velocity."""


def sleigh_start(system, heading, speed, turning):
    """The blade at the origin."""
    return jnp.array([0.0, 0.0, heading]), jnp.array([speed * jnp.cos(heading), speed * jnp.sin(heading), turning])


def sleigh_motion(t):
    """Heading, speed of the blade, angular velocity and multiplier: v = V tanh k t, w = W sech k t on the curve of one energy."""
    p, (heading, speed, turning) = chaplygin_sleigh().params, SLEIGH_START
    J = p["I"] + p["m"] * p["a"] ** 2
    E = 0.5 * p["m"] * speed**2 + 0.5 * J * turning**2
    k, V, W = p["a"] / J * np.sqrt(2 * E * p["m"]), np.sqrt(2 * E / p["m"]), np.sqrt(2 * E / J)
    begun = np.arctanh(speed / V) / k
    v, w = V * np.tanh(k * (t + begun)), W / np.cosh(k * (t + begun))
    turned = lambda t: W / k * np.arctan(np.sinh(k * t))
    return heading + turned(t + begun) - turned(begun), v, w, -p["m"] * p["I"] / J * v * w


def knife_motion(t, turning=2.0):
    """Down the slope and back, and steadily across it: a cycloid."""
    g = inclined_knife_edge().params["g"]
    x, y = g / (2 * turning**2) * np.sin(turning * t) ** 2, g / (2 * turning**2) * (turning * t - 0.5 * np.sin(2 * turning * t))
    return x, y


def coin_motion(t, rolling=3.0, turning=1.5):
    """The vertical coin rolls as fast as the slope along its heading lets it, and turns steadily."""
    p = inclined_coin().params
    c = p["m"] * p["g"] * p["R"] / (p["I"] + p["m"] * p["R"] ** 2)
    rate = rolling + c / turning * np.sin(turning * t)
    x = p["R"] * (rolling / turning * np.sin(turning * t) + c / (2 * turning**2) * np.sin(turning * t) ** 2)
    across = c / (2 * turning**2) * (turning * t - 0.5 * np.sin(2 * turning * t))
    return x, p["R"] * (rolling / turning * (1 - np.cos(turning * t)) + across), rate


COIN_START = jnp.zeros(4), jnp.array([0.75, 0.0, 3.0, 1.5])


def some(*quick):
    """Every scheme, those that are not quick in the slow run alone."""
    return pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in SCHEMES])


@some("midpoint", "galerkin 4", "energy-momentum")
def test_chaplygin_sleigh_converges_to_its_closed_form(name):
    """Positions and velocities with the order of the scheme; multipliers are near."""
    scheme, order, _ = SCHEMES[name]
    system, counts = chaplygin_sleigh(), (20, 40)
    start = sleigh_start(system, *SLEIGH_START)
    run = lambda dt, steps: mbd.simulate(system, *start, dt=dt, steps=steps, scheme=scheme)

    def read(trajectory):
        heading, v = trajectory.q[:, 2], trajectory.v
        speed = v[:, 0] * jnp.cos(heading) + v[:, 1] * jnp.sin(heading)
        return heading, speed, v[:, 2], trajectory.multipliers[:, 0]

    *motion, multipliers = errors_after(2.0, counts, run, sleigh_motion(2.0), read)
    for errors in motion:
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)
        assert errors[1] < (2e-3 if order == 2 else 1e-6)
    assert multipliers[0] < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SCHEMES)[:-1])
def test_multipliers_of_the_sleigh_converge_with_their_own_order(name):
    scheme, _, order = SCHEMES[name]
    system, errors = chaplygin_sleigh(), []
    for steps in (20, 40):
        found = mbd.simulate(system, *sleigh_start(system, *SLEIGH_START), dt=2 / steps, steps=steps, scheme=scheme)
        errors.append(np.max(np.abs(found.multipliers[2:-1, 0] - sleigh_motion(np.asarray(found.t[2:-1]))[3])))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


@some()
def test_knife_edge_on_an_inclined_plane_converges_to_its_closed_form(name):
    scheme, order, _ = SCHEMES[name]
    run = lambda dt, steps: mbd.simulate(inclined_knife_edge(), jnp.zeros(3), jnp.array([0.0, 0.0, 2.0]), dt=dt, steps=steps, scheme=scheme)
    for errors in errors_after(2.0, (20, 40), run, knife_motion(2.0), lambda trajectory: trajectory.q.T[:2]):
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2) or errors[1] < 1e-10


@functools.cache
def rolling(scheme):
    """Twenty-four turns of the heading, and as many and more of the rolling coin."""
    return mbd.simulate(inclined_coin(), *COIN_START, dt=0.05, steps=2000, scheme=SCHEMES[scheme][0])


@pytest.mark.parametrize("name", ["midpoint", "energy-momentum"])
def test_rolling_coin_on_an_inclined_plane(name):
    """Near its closed form; the momentum of turning on the spot, which is a symmetry that the constraints admit, is kept exactly."""
    trajectory = rolling(name)
    x, y, rate = coin_motion(np.asarray(trajectory.t[:400]))
    np.testing.assert_allclose(trajectory.q[:400, 0], x, atol=5e-3)
    np.testing.assert_allclose(trajectory.q[:400, 1], y, atol=2e-2)
    np.testing.assert_allclose(trajectory.v[:400, 2], rate, atol=1e-2)
    turning = post.momentum_map(inclined_coin(), trajectory, lambda s, q: q.at[3].add(s))
    np.testing.assert_allclose(turning, turning[0], rtol=1e-12)
    rolled = post.momentum_map(inclined_coin(), trajectory, lambda s, q: q.at[2].add(s))
    assert np.ptp(rolled) > 0.1  # a symmetry of the Lagrangian that the constraints do not admit


def test_energy_of_the_coin():
    """Exact with the energy-momentum scheme; bounded without drift with a variational one, the motion being reversible."""
    exact, bounded = (np.asarray(post.energy(inclined_coin(), rolling(name))) for name in ("energy-momentum", "midpoint"))
    np.testing.assert_allclose(exact, exact[0], rtol=0, atol=1e-12)
    assert 1e-6 < np.ptp(bounded) < 5e-3
    assert np.max(np.abs(bounded[-84:] - bounded[0])) < 1.01 * np.max(np.abs(bounded[:85] - bounded[0]))  # a turn takes 84 steps


def test_rates_of_variational_motions_vanish_to_rounding():
    trajectory = rolling("midpoint")
    assert np.max(np.abs(post.constraint_rates(inclined_coin(), trajectory))) < 1e-14
    assert np.max(np.abs(post.hidden_velocity_constraints(inclined_coin(), trajectory))) < 1e-12  # in the middle of steps too
    table = post.summary(inclined_coin(), trajectory)
    assert table["constraint, at most"] == 0
    assert table["hidden constraint, at most"] < 1e-14


def test_goes_on_to_the_bit():
    system, start = chaplygin_sleigh(), sleigh_start(chaplygin_sleigh(), *SLEIGH_START)
    whole, first = (mbd.simulate(system, *start, dt=0.05, steps=steps) for steps in (40, 20))
    assert jnp.array_equal(mbd.simulate(system, start=first.final, steps=20).q[1:], whole.q[21:])


@pytest.mark.slow
def test_single_precision():
    system, start = chaplygin_sleigh(), sleigh_start(chaplygin_sleigh(), *SLEIGH_START)
    single = mbd.simulate(system, *(part.astype(jnp.float32) for part in start), dt=0.05, steps=20)
    assert single.q.dtype == jnp.float32
    np.testing.assert_allclose(single.q, mbd.simulate(system, *start, dt=0.05, steps=20).q, atol=1e-4)


@pytest.mark.slow
def test_a_start_from_two_positions():
    """The velocity that leads to a position of a motion is that of the motion; where no step can lead to is refused."""
    system, start = chaplygin_sleigh(), sleigh_start(chaplygin_sleigh(), *SLEIGH_START)
    motion = mbd.simulate(system, *start, dt=0.1, steps=40)
    np.testing.assert_allclose(mbd.simulate(system, start[0], q1=motion.q[1], dt=0.1, steps=40).q, motion.q, atol=1e-12)
    with pytest.raises(mbd.ModelError, match="none was found that leads to q1"):
        mbd.simulate(system, start[0], q1=motion.q[1] + jnp.array([0.0, 0.01, 0.0]), dt=0.1, steps=40)


@pytest.mark.parametrize("formulation", [mbd.Multipliers(), pytest.param(mbd.Reparametrised(), marks=pytest.mark.slow)])
def test_gradients_by_parameters_and_start_against_differences(formulation):
    def final(x):
        system = chaplygin_sleigh().with_params({"m": 1.2, "I": x[0], "a": x[1]})
        trajectory = mbd.simulate(system, *sleigh_start(system, *x[2:]), dt=0.1, steps=5, formulation=formulation, throw=False)
        return jnp.sum(jnp.sin(trajectory.q[-1] + trajectory.v[-1])) + trajectory.multipliers[2, 0]

    x, value = jnp.array([0.2, 0.3, *SLEIGH_START]), jax.jit(jax.value_and_grad(final))
    gradient = value(x)[1]
    differences = [(value(x + step)[0] - value(x - step)[0]) / 2e-5 for step in 1e-5 * jnp.eye(5)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)


def test_a_batch_survives_a_member_that_slips():
    system = mbd.find_rank(chaplygin_sleigh(), jnp.zeros(3))
    v0 = jnp.array([[1.0, 0.0, 0.5], [1.0, 0.3, 0.5], [0.0, 0.0, 1.0]])
    batch = jax.vmap(lambda v: mbd.simulate(system, jnp.zeros(3), v, dt=0.1, steps=40, throw=False))(v0)
    codes = [mbd.Result.SUCCESS, mbd.Result.INCONSISTENT_VELOCITY, mbd.Result.SUCCESS]
    np.testing.assert_array_equal(batch.final.status.result, codes)
    np.testing.assert_allclose(batch.q[2], mbd.simulate(system, jnp.zeros(3), v0[2], dt=0.1, steps=40).q, atol=1e-12)
    with pytest.raises(mbd.SimulationError, match=r"number 0, off at the rate 0\.3"):
        batch.check(system)


def test_starts_that_slip_are_refused_and_projected():
    system, q0, v0 = chaplygin_sleigh(), jnp.zeros(3), jnp.array([1.0, 0.3, 0.5])
    with pytest.raises(mbd.ModelError, match=r"v0 is not tangent to the constraints: number 0 changes at the rate 0\.3"):
        mbd.simulate(system, q0, v0, dt=0.1, steps=10)
    q, v = mbd.project(system, q0, v0)
    np.testing.assert_allclose(q, q0, atol=0)
    np.testing.assert_allclose(v, [1.0, 0.0, 0.5], atol=1e-15)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (lambda t, q, v, p: jnp.array([v[0], v[1] * v[2]]), "must be affine in v, .* but component 1 is not"),
        (lambda t, q, v, p: jnp.array([v[0] - t * v[1] ** 2]), "must be affine in v, .* but component 0 is not"),
        (lambda t, q, v, p: jnp.array([v[0], v[1] - q[0] * v[1] ** 2]), "must be affine in v, .* but component 1 is not"),
        (lambda t, q, v, p: v[1], r"must return a vector \(k,\), but returned shape \(\).*wrap it in jnp.array"),
        (lambda t, q, v: jnp.array([v[1]]), "velocity_constraints takes 3 positional arguments; it must take 4"),
        (lambda t, q, v, p: jnp.array([v[1] * q[7]]), "velocity_constraints reads index 7"),
    ],
)
def test_wrong_functions_are_refused(constraint, message):
    with pytest.raises(mbd.ModelError, match=message):
        system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, velocity_constraints=constraint)
        mbd.simulate(system, jnp.zeros(3), dt=0.1, steps=1)


def test_affine_functions_with_large_terms_are_not_refused():
    """What does not depend on velocities may be much larger than what does."""
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v @ v,
        velocity_constraints=lambda t, q, v, p: jnp.array([1e9 * jnp.cos(q[0]) * (v[0] - 1e3) + 1e-3 * v[1]]),
    )
    mbd.project(system, jnp.zeros(2))


def test_positions_of_rest_are_refused():
    for call in (mbd.equilibrium, mbd.modes):
        with pytest.raises(mbd.ModelError, match="hold wherever a system stands still"):
            call(chaplygin_sleigh(), jnp.zeros(3))


def test_schemes_that_do_not_discretise_them_say_so():
    with pytest.raises(mbd.ModelError, match="Midpoint does not discretise constraints on velocities; take one that does: "):
        mbd.schemes.AbstractScheme.slips(mbd.Midpoint(), jnp.zeros((1, 3)), None)


def test_constraints_that_come_to_contradict_each_other_are_named():
    """Two prescribed speeds of one coordinate, the same until the time 0.5."""
    speeds = lambda t, q, v, p: jnp.array([v[0] - 1, v[1], v[0] - 1 - jnp.maximum(t - 0.5, 0)])
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, velocity_constraints=speeds)
    with pytest.raises(mbd.SimulationError, match=r"RANK_CHANGED.*Worst constraint.*number [02]") as failure:
        mbd.simulate(system, jnp.zeros(3), jnp.array([1.0, 0.0, 2.0]), dt=0.1, steps=10)
    assert int(failure.value.trajectory.reached) == 5
    with pytest.raises(mbd.ModelError, match="number 2 changes at the rate"):
        mbd.simulate(system, jnp.zeros(3), jnp.array([1.0, 0.0, 2.0]), t0=2.0, dt=0.1, steps=10)


def test_what_slips_in_a_step_that_fails_is_named():
    """One iteration does not find a step along a curve; constraints on velocities count after the one on positions, which holds."""
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v @ v,
        constraints=lambda t, q, p: q[2:],
        velocity_constraints=lambda t, q, v, p: jnp.array([v[1] - v[0] * jnp.sin(5 * q[0])]),
    )
    with pytest.raises(mbd.SimulationError, match=r"NOT_CONVERGED.*Worst constraint.*number 1"):
        mbd.simulate(system, jnp.zeros(3), jnp.array([1.0, 0.0, 0.0]), dt=0.1, steps=2, newton=mbd.Newton(max_steps=1))
