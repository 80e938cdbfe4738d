"""Inputs of a servo that do not act in proportion, that have limits, or that are not enough."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.inverse import Coordinate, Function, Servo, inverse_dynamics
from jaxmbd.loads.drives import saturated

RUN = {"dt": 0.02, "steps": 20}
ALPHA = mbd.schemes.GeneralizedAlpha()


def way(t):
    """A motion that begins without acceleration and jerk."""
    return 0.5 * jnp.sin(t) ** 4


def lifted(law):
    """A mass that an input lifts by its law, by up to 5.6."""
    return mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 4.905 * q[0], forces=lambda t, q, v, p, u: law(u)[None])


LIFT = {"height": Function(lambda t, q, p: q[0], way)}
LAWS = {"limit just above the need": lambda u: saturated(u, 5.7), "cubic": lambda u: u + u**3}


@pytest.mark.parametrize(
    "scheme", [pytest.param(mbd.Midpoint(), id="midpoint"), pytest.param(ALPHA, id="generalised alpha", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("law", LAWS)
def test_inputs_that_do_not_act_in_proportion(law, scheme):
    """Their forces are those of inputs that do, from the first instant on, and they return the motion."""
    find = lambda law: inverse_dynamics(lifted(law), [0.0], motion=LIFT, inputs=0.0, scheme=scheme, **RUN)
    plain, found = find(lambda u: u), find(LAWS[law])
    np.testing.assert_allclose(LAWS[law](found.inputs), plain.inputs, rtol=1e-10)
    back = mbd.simulate(lifted(LAWS[law]), [0.0], scheme=scheme, controls=found.controls, **RUN)
    np.testing.assert_allclose(back.q, found.trajectory.q, atol=1e-10)
    if scheme is ALPHA:
        np.testing.assert_allclose(LAWS[law](found.controls.values[0]), 4.905, rtol=1e-10)


def wheel(limit):
    """A rod on a hinge with a motor, which carries up to 5.2."""
    hinge = mbd.Joint(mbd.Revolute(), "ground", "rod", at=(0, 0, 0))
    loads = {"weight": mbd.Gravity((0, -9.81, 0)), "motor": mbd.Motor("hinge", limit=limit)}
    return mbd.assemble(mbd.Mechanism({"rod": mbd.PlanarBody.rod(1.0, 1.0)}, {"hinge": hinge}, loads), {"rod": (0.5, 0, 0)})


def test_a_motor_with_a_limit():
    """Above what is needed its control is found, below it there is none: the target is told, which the last iterate still meets."""
    target = {"angle": Coordinate("hinge", way)}
    system, q0 = wheel(5.3)
    found = inverse_dynamics(system, q0, motion=target, **RUN)
    back = mbd.simulate(system, q0, controls=found.controls, **RUN)
    np.testing.assert_allclose(back.q, found.trajectory.q, atol=1e-10)
    for limit in (3.0, 4.8):
        weak = system.replace({"motor.limit": limit})
        with pytest.raises(mbd.SimulationError, match=r"NOT_DRIVEN.* Worst target: 'angle', of which the inputs lose their hold"):
            inverse_dynamics(weak, q0, motion=target, **RUN)


def test_a_step_that_fails_for_another_reason_keeps_its_code():
    """A coordinate beside, on a stiff spring that is not linear, takes more iterations than there are; the target is met."""
    potential = lambda q: 50 * jnp.sin(30 * q[1]) + q[0]
    push = lambda t, q, v, p, u: jnp.array([u, 0.0])
    beside = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - potential(q), forces=push)
    start = {"q0": [0.0, 0.3], "v0": [0.0, 6.0], "dt": 0.2, "steps": 20}
    motion = mbd.simulate(beside, servo=Servo(LIFT, 0.0), newton=mbd.Newton(max_steps=3), throw=False, **start)
    assert motion.final.status.result == mbd.Result.NOT_CONVERGED
    with pytest.raises(mbd.SimulationError, match=r"^((?!target).)*$"):
        motion.check()


def test_starts_that_inputs_cannot_drive_tell_when_and_what_else():
    run = lambda system, q0, targets: mbd.simulate(system, q0, t0=0.5, servo=Servo(targets, 0.0), throw=False, **RUN)
    both = {"first": lambda system, t, q: q, "second": lambda system, t, q: q}
    with pytest.raises(mbd.ModelError, match=r"at t = 0.5 .* there is only input 'control' to meet them.*mbd\.inverse\.follow"):
        run(lifted(lambda u: u), [0.0], both)
    with pytest.raises(mbd.ModelError, match=r"at t = 0.5 the input 'control' drives only 0 .* inputs must act with a slope"):
        run(lifted(lambda u: u**2), [0.0], {"first": both["first"]})


def test_what_is_given_is_not_unknown():
    with pytest.raises(mbd.ModelError, match="controls give 'motor', which the inputs"):
        system, q0 = wheel(None)
        mbd.simulate(system, q0, servo=Servo(Coordinate("hinge", way), "motor"), controls={"motor": jnp.ones(20)}, **RUN)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Function(lambda t, q, p: q[0], lambda t: jnp.zeros(3)), r"target 'x': its function returns .* \(\), but its history .* \(3,\)"),
        (Function(lambda t, q, p: q[:2], lambda t: jnp.zeros((2, 1))), r"target 'x': .* \(2,\), but its history .* \(2, 1\)"),
        (Coordinate("hinge", lambda t: jnp.zeros(2)), r"target 'x': a coordinate of joint 'hinge' is one number.*\(2,\)"),
    ],
)
def test_targets_are_wanted_in_the_shape_in_which_they_are_measured(target, message):
    system, q0 = wheel(None)
    with pytest.raises(mbd.ModelError, match=message):
        Servo({"x": target}, "motor").rows(system, q0)
    assert len(Servo(Function(lambda t, q, p: q[:2], lambda t: 0.0), "motor").rows(system, q0)) == 2
