"""Derivatives of whole simulations: forward and reverse mode, finite differences, second order, every scheme and formulation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

from ..mechanisms import chain, pendulum, redundant_pendulum, stretched

SCHEMES = {
    "midpoint": mbd.Midpoint(),
    "trapezoidal": mbd.Trapezoidal(),
    "galerkin 4": mbd.Galerkin(4),
    "galerkin 6": mbd.Galerkin(6, "gauss"),
    "energy-momentum": mbd.EnergyMomentum(),
}
FORMULATIONS = {
    "multipliers": mbd.Multipliers(),
    "null space": mbd.NullSpace(),
    "null space qr": mbd.NullSpace("qr"),
    "chart": mbd.Reparametrised(),
    "implicit chart": mbd.Reparametrised("implicit", "qr"),
}
SYSTEM = pendulum()
WEIGHTS = jnp.array([0.3, -0.7])


def start(x):
    """Position and velocity from an angle and a rate, so that every variation is admissible."""
    q0 = x["length"] * jnp.array([jnp.cos(x["angle"]), jnp.sin(x["angle"])])
    return q0, x["rate"] * x["length"] * jnp.array([-jnp.sin(x["angle"]), jnp.cos(x["angle"])])


def loss(x, scheme, formulation):
    """Final position, velocity and momentum, and a multiplier on the way, of a pendulum with everything variable."""
    system = SYSTEM.with_params({"m": x["mass"], "l": x["length"], "g": x["gravity"]})
    q0, v0 = start(x)
    trajectory = mbd.simulate(system, q0, v0, dt=x["dt"], steps=8, scheme=scheme, formulation=formulation)
    return WEIGHTS @ (trajectory.q[-1] + trajectory.v[-1] + trajectory.p[-1]) + trajectory.multipliers[4, 0]


POINT = {
    name: jnp.array(value) for name, value in {"mass": 1.3, "length": 0.8, "gravity": 9.0, "angle": 0.4, "rate": 0.9, "dt": 0.03}.items()
}


def central_differences(f, x, h=1e-5):
    shifted = lambda name, by: f({**x, name: x[name] + by})
    return {name: (shifted(name, h) - shifted(name, -h)) / (2 * h) for name in x}


def slope_and_difference(f, x, h=1e-5):
    """The derivative of a function of a number, and a central difference, by one compiled program."""
    both = jax.jit(jax.value_and_grad(f))
    return both(x)[1], (both(x + h)[0] - both(x - h)[0]) / (2 * h)


def pair(scheme, formulation):
    """Schemes and formulations do not know each other: each meets the first of the others in the quick suite, the rest are slow.

    So are twins there: a second scheme with no node inside steps, a second one with some, and a second null space without a chart.
    """
    twin = scheme in ("trapezoidal", "galerkin 4") or formulation == "null space qr"
    quick = not twin and (scheme == "midpoint" or formulation == "multipliers" or (scheme, formulation) == ("galerkin 6", "null space"))
    return pytest.param(scheme, formulation, marks=() if quick else pytest.mark.slow, id=f"{formulation}-{scheme}")


@pytest.mark.parametrize(("scheme", "formulation"), [pair(scheme, formulation) for formulation in FORMULATIONS for scheme in SCHEMES])
def test_forward_reverse_and_differences_agree(scheme, formulation):
    f = lambda x: loss(x, SCHEMES[scheme], FORMULATIONS[formulation])
    both = jax.jit(lambda x: (*jax.value_and_grad(f)(x), jax.jacfwd(f)(x)))
    _, reverse, forward = both(POINT)
    differences = central_differences(lambda x: both(x)[0], POINT)
    for name in POINT:
        np.testing.assert_allclose(forward[name], reverse[name], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(reverse[name], differences[name], rtol=1e-6, atol=1e-6)


def test_generalized_alpha_has_right_gradients():
    both = jax.jit(jax.value_and_grad(lambda x: loss(x, mbd.schemes.GeneralizedAlpha(0.7), mbd.Multipliers())))
    gradient, differences = both(POINT)[1], central_differences(lambda x: both(x)[0], POINT)
    for name in POINT:
        np.testing.assert_allclose(gradient[name], differences[name], rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_a_mechanism_with_joint_multipliers():
    """Inertia, a spring and a rate at the start of a body on a hinge, by a scheme that carries velocities of bodies."""
    joints = {"hinge": mbd.Joint(mbd.Revolute((1.0, 0.0, 0.3)), "ground", "a", at=(0.0, 0.0, 0.0))}
    spring = mbd.Spring("ground", "a", stiffness=5.0, rest=1.0, at_a=(1.0, 0.0, 0.0))
    mechanism = mbd.Mechanism({"a": mbd.RigidBody.box(1.0, (0.2, 0.1, 1.0))}, joints, [mbd.Gravity(), spring])
    system, q0 = mbd.assemble(mechanism, {"a": ((0.0, 0.0, -0.5), np.eye(3))})
    v0 = mbd.joint_velocities(system, q0, {"hinge": 2.0})

    def f(x):
        varied = system.with_params(eqx.tree_at(lambda model: model.inertia, system.params, system.params.inertia * x[0]))
        varied = eqx.tree_at(lambda s: s.params.loads[0].load.stiffness, varied, jnp.array([5.0]) * x[1])
        choice = {"scheme": mbd.schemes.ConservativeDirector(), "formulation": mbd.formulations.JointMultipliers()}
        trajectory = mbd.simulate(varied, q0, x[2] * v0, dt=0.02, steps=8, throw=False, save="end", **choice)
        return jnp.sum(trajectory.q[-1] ** 3) + jnp.sum(trajectory.v[-1] ** 2)

    both = jax.jit(jax.value_and_grad(f))
    x, h = jnp.array([1.1, 0.9, 1.0]), 1e-5
    differences = [(both(x.at[i].add(h))[0] - both(x.at[i].add(-h))[0]) / (2 * h) for i in range(3)]
    np.testing.assert_allclose(both(x)[1], differences, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    "formulation",
    [pytest.param(name, marks=() if name in ("multipliers", "implicit chart") else pytest.mark.slow) for name in FORMULATIONS],
)
def test_a_parameter_that_no_constraint_depends_on(formulation):
    """Gravity alone is varied; the constraints, and an implicit chart made of them, do not see it."""

    def f(gravity):
        system = SYSTEM.with_params({**SYSTEM.params, "g": gravity})
        return WEIGHTS @ mbd.simulate(system, [1.0, 0.0], dt=0.03, steps=4, formulation=FORMULATIONS[formulation]).q[-1]

    np.testing.assert_allclose(*slope_and_difference(f, 9.81), rtol=1e-6)


def test_second_derivatives():
    f = lambda x: loss({**POINT, "mass": x[0], "length": x[1], "angle": x[2], "dt": x[3]}, mbd.Midpoint(), mbd.Multipliers())
    x, h = jnp.array([1.3, 0.8, 0.4, 0.03]), 1e-5
    gradient, hessian = jax.jit(jax.grad(f)), jax.jit(jax.hessian(f))(x)
    differences = np.stack([(gradient(x.at[i].add(h)) - gradient(x.at[i].add(-h))) / (2 * h) for i in range(4)])
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(hessian, differences, rtol=1e-5, atol=1e-5)


def test_redundant_constraints_have_right_gradients():
    """Positions and least-norm multipliers, with the rank found outside the transformation by `simulate` itself."""

    def f(rate):
        trajectory = mbd.simulate(redundant_pendulum(), [1.0, 0.0, 0.0], rate * jnp.array([0.0, 0.0, -1.0]), dt=0.03, steps=8)
        return trajectory.q[-1, 2] + trajectory.multipliers[4] @ jnp.array([1.0, 2.0, 30.0])

    h = 1e-5
    np.testing.assert_allclose(jax.grad(f)(1.0), (f(1.0 + h) - f(1.0 - h)) / (2 * h), rtol=1e-6)


def test_start_from_two_positions_has_right_gradients():
    def f(angle):
        q0, q1 = (jnp.array([jnp.cos(a), jnp.sin(a)]) for a in (0.4, 0.4 + angle))
        return WEIGHTS @ mbd.simulate(SYSTEM, q0, q1=q1, dt=0.03, steps=8).q[-1]

    np.testing.assert_allclose(*slope_and_difference(f, 0.02, 1e-6), rtol=1e-6)


def test_no_gradient_is_nan_at_rest():
    """A chain hanging at rest, where norms and angles are zero."""
    system = chain(3)
    hanging = jnp.array([0.0, -1.0, 0.0, -2.0, 0.0, -3.0])

    def f(v0):
        return jnp.sum(mbd.simulate(system, hanging, v0, dt=0.05, steps=5).q[-1] ** 2)

    gradient = jax.jit(jax.grad(f))(jnp.zeros(6))
    assert np.all(np.isfinite(gradient))


def test_a_batch_of_gradients():
    system = chain(2)
    f = lambda g: mbd.simulate(system.with_params({**system.params, "g": g}), stretched(2), dt=0.02, steps=8).q[-1, 3]
    gravities = jnp.array([1.0, 9.81])
    batch = jax.jit(jax.vmap(jax.grad(f)))(gravities)
    single = jax.jit(jax.grad(f))
    np.testing.assert_allclose(batch, [single(g) for g in gravities], rtol=1e-12)


def test_derivatives_of_failed_runs_inside_jit_are_not_numbers():
    """A derivative may be taken without its value, which would have raised an error: then it must not look like one."""
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 50 * jnp.sum(q**4))
    newton = mbd.Newton(max_steps=1, residual_tolerance=0.0, step_tolerance=0.0)
    end = lambda x: mbd.simulate(system, x * jnp.ones(1), dt=0.5, steps=3, newton=newton).q[-1, 0]
    assert np.isnan(jax.jit(jax.grad(end))(1.0))
