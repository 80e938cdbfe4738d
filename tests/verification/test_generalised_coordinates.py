"""Mechanisms against the same systems in generalised coordinates, integrated to 1e-12 by an adaptive Runge-Kutta method."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.geometry.rotation import axial, from_axis_angle

from ..mechanisms import errors_after

END = 0.8
COUNTS = (40, 80, 160)


def solve(lagrangian, x0, rate0):
    """Coordinates and rates at the end from the Euler-Lagrange equations of a Lagrangian of (x, rate)."""

    def field(t, state, args):
        x, rate = state
        slope, mass = jax.grad(lagrangian, 0)(x, rate), jax.hessian(lagrangian, 1)(x, rate)
        coupling = jax.jacfwd(jax.grad(lagrangian, 1), 0)(x, rate) @ rate
        return rate, jnp.linalg.solve(mass, slope - coupling)

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Dopri8(),
        0.0,
        END,
        1e-3,
        (x0, rate0),
        stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-12),
        max_steps=100_000,
    )
    return solution.ys[0][-1], solution.ys[1][-1]


def double_pendulum_lagrangian(x, rate):
    """Two boxes on hinges about e1 and then about the second axis of the first box; angles from hanging."""
    inertia = np.diag([1.01, 1.01, 0.02]) / 12

    def pose(x):
        first = from_axis_angle(jnp.array([1.0, 0.0, 0.0]), x[0])
        second = first @ from_axis_angle(jnp.array([0.0, 1.0, 0.0]), x[1])
        down = jnp.array([0.0, 0.0, -1.0])
        return (first @ down / 2, first @ down + second @ down / 2), (first, second)

    (centres, rotations), (velocities, spins) = jax.jvp(pose, (x,), (rate,))
    omegas = [R.T @ axial(spin @ R.T) for R, spin in zip(rotations, spins, strict=True)]
    kinetic = sum(0.5 * v @ v + 0.5 * w @ inertia @ w for v, w in zip(velocities, omegas, strict=True))
    return kinetic - 9.81 * sum(c[2] for c in centres)


def slider_crank_lagrangian(x, rate):
    """Crank angle alone: crank one, rod two, masses one, two and one and a half, gravity down the second axis."""

    def positions(angle):
        tilt = -jnp.arcsin(jnp.sin(angle) / 2)
        pin = jnp.array([jnp.cos(angle), jnp.sin(angle)])
        wrist = pin + 2 * jnp.array([jnp.cos(tilt), jnp.sin(tilt)])
        return pin / 2, (pin + wrist) / 2, wrist, tilt

    (crank, rod, slider, _), (v_crank, v_rod, v_slider, spin) = jax.jvp(positions, (x[0],), (rate[0],))
    kinetic = 0.5 * v_crank @ v_crank + 1.01 / 24 * rate[0] ** 2 + v_rod @ v_rod + 4.01 / 12 * spin**2 + 0.75 * v_slider @ v_slider
    return kinetic - 9.81 * (crank[1] + 2 * rod[1] + 1.5 * slider[1])


CASES = {
    "double pendulum": (
        gallery.chain(2, axes=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))),
        double_pendulum_lagrangian,
        {"joint 0": 1.0, "joint 1": 0.7},
    ),
    "slider-crank": (gallery.slider_crank(), slider_crank_lagrangian, {"bearing": 0.9}),
}


def measured_order(case):
    """The order of convergence, and the smallest error, of joint coordinates and rates at the end."""
    (mechanism, placement), lagrangian, start = CASES[case]
    system, q0 = mbd.assemble(mechanism, {**placement, **start})
    rates = {name: 1.5 - i for i, name in enumerate(start)}
    v0 = mbd.joint_velocities(system, q0, rates)
    expected = np.concatenate(solve(lagrangian, jnp.array(list(start.values())), jnp.array(list(rates.values()))))

    def coordinates_and_rates(run):
        found = [kind(system, run)[name][:, 0] for kind in (post.joint_coordinates, post.joint_rates) for name in start]
        return (np.stack(found, axis=1),)

    run = lambda dt, steps: mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised())
    (errors,) = errors_after(END, COUNTS, run, (expected,), coordinates_and_rates)
    return post.order([END / count for count in COUNTS], errors), errors[-1]


@pytest.mark.parametrize("case", [pytest.param(case, marks=[pytest.mark.slow] if case == "slider-crank" else []) for case in CASES])
def test_order_two_towards_generalised_coordinates(case):
    order, error = measured_order(case)
    assert abs(order - 2) < 0.01 and error < 5e-4
