"""Masarati 2011, section 4.1: a pendulum as an ordinary differential equation with a constraint; and SUNDIALS' pendulum with projection."""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import odes, post

from ..octave import Ode45

TOLERANCES = {"loose": (1e-3, 1e-6), "tight": (1e-9, 1e-9)}
METHODS = {
    "present": odes.Projection(tolerance=1e-12),
    "baseline": odes.Baseline(),
    "Baumgarte": odes.Baumgarte(2.0, 2.0),
    "Braun, Goldfarb": odes.BraunGoldfarb(),
}
SYSTEM = mbd.System.from_functions(
    kinetic=lambda t, q, v, p: 0.5 * v @ v,
    potential=lambda t, q, p: p * q[1],
    constraints=lambda t, q, p: jnp.sqrt(q @ q)[None] - 1,
    params=9.81,
)
PAPER = {"t1": 10.0, "dt0": 0.01, "solver": diffrax.Dopri5()}


@functools.cache
def run(method, tolerances, octave=False):
    rtol, atol = TOLERANCES[tolerances]
    control = {"controller": Ode45(rtol, atol, 0.1)} if octave else {"rtol": rtol, "atol": atol, "dtmax": 0.1}
    return odes.integrate(SYSTEM, [1.0, 0.0], method=METHODS[method], saveat=401, **PAPER, **control)


def errors(motion):
    """Of the length, and the velocity along the rod."""
    length = np.linalg.norm(motion.q, axis=1)
    return length - 1, np.sum(np.asarray(motion.q * motion.v), axis=1) / length


@pytest.mark.parametrize("tolerances", TOLERANCES)
def test_length_and_velocity_hold_at_the_inner_tolerance_between_steps_too(tolerances):
    length, along = errors(run("present", tolerances))
    assert np.abs(length).max() < 1e-12 and np.abs(along).max() < 1e-12


def test_energy_is_essentially_kept_at_the_tight_tolerance():
    changes = [np.ptp(post.energy(SYSTEM, run("present", tolerances))) for tolerances in TOLERANCES]
    assert changes[0] < 9.81 * 1e-3 and changes[1] < 5e-7


def test_the_baseline_drifts():
    length, _ = errors(run("baseline", "loose"))
    assert np.abs(length[:40]).max() < 1e-3 < 8e-3 < np.abs(length[-40:]).min()


def test_steps_of_the_loose_tolerance_are_the_longest():
    assert int(run("present", "loose").scheme.accepted) == int(run("baseline", "loose").scheme.accepted) == 101


@pytest.mark.slow
def test_steps_with_the_control_of_the_paper():
    """About 200 and 850."""
    for method in ("present", "baseline", "Baumgarte"):
        assert 190 < int(run(method, "loose", octave=True).scheme.accepted) < 260
        assert 800 < int(run(method, "tight", octave=True).scheme.accepted) < 1050


@pytest.mark.slow
def test_baumgarte_holds_what_drifts_but_not_at_the_tolerance():
    length, _ = errors(run("Baumgarte", "loose"))
    assert 1e-5 < np.abs(length[200:]).max() < 3e-4


@pytest.mark.slow
def test_braun_and_goldfarb_with_a_gain_that_stays_take_more_steps():
    """With the gain 1/0.1 some half as many again; with that of the current step the order falls, and steps are 40 times as many."""
    dynamics = odes.Dynamics.of(SYSTEM, independent=True)

    def steps(field):
        y0 = odes.State(jnp.array([1.0, 0.0]), jnp.zeros(2))
        limits = {"stepsize_controller": Ode45(1e-9, 1e-9, 0.1), "max_steps": 10_000, "saveat": diffrax.SaveAt(t1=True)}
        return int(diffrax.diffeqsolve(diffrax.ODETerm(field), diffrax.Dopri5(), 0.0, 10.0, 0.01, y0, **limits).stats["num_accepted_steps"])

    fixed = steps(lambda t, y, args: METHODS["Braun, Goldfarb"].instant(dynamics, jnp.asarray(t), y, jnp.array(0.1)).rate)
    plain = steps(odes.Field(dynamics, METHODS["baseline"]))
    assert 1.2 < fixed / plain < 2.2
    assert int(run("Braun, Goldfarb", "tight").scheme.accepted) > 20 * plain


GRAVITY = 13.750371636040745654980191559621  # fifteen periods in 30 s
CVODE = {1e-5: (2.25e-3, 1663 + 96), 1e-7: (7.79e-5, 3293 + 204), 1e-9: (1.79e-6, 7056 + 436)}
"""SUNDIALS' own pendulum with projection: by its tolerance the error of y, and evaluations of the right-hand side as it prints them."""


@functools.cache
def fifteen_periods(solver):
    system = SYSTEM.with_params(GRAVITY)

    @jax.jit
    def go(tolerance):
        smooth = {"pcoeff": 0.1, "icoeff": 0.3} if isinstance(solver, diffrax.Dopri8) else {}
        controller = diffrax.PIDController(tolerance, tolerance, **smooth)
        return odes.integrate(system, jnp.array([1.0, 0.0]), t1=30.0, solver=solver, controller=controller, saveat=2)

    return go


def error_and_evaluations(solver, tolerance):
    """One evaluation a stage; the last slope of a step is the first of the next."""
    motion = fifteen_periods(solver)(tolerance)
    steps = int(motion.scheme.accepted + motion.scheme.rejected)
    return abs(float(motion.q[-1, 1])), steps * (solver.tableau.num_stages - 1) + 1


@pytest.mark.slow
@pytest.mark.parametrize("published, own", [(1e-5, 1.5e-4), (1e-7, 3e-6), (1e-9, 1e-7)])
def test_sundials_pendulum_with_order_eight(published, own):
    error, evaluations = error_and_evaluations(diffrax.Dopri8(), own)
    assert error < CVODE[published][0] and evaluations < CVODE[published][1]


@pytest.mark.slow
@pytest.mark.parametrize("published, own", [(1e-5, 2.5e-4), (1e-7, 4e-6), (1e-9, 1e-7)])
def test_sundials_pendulum_with_order_five(published, own):
    error, evaluations = error_and_evaluations(diffrax.Tsit5(), own)
    assert error < CVODE[published][0] and evaluations < CVODE[published][1]


@pytest.mark.slow
@pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Dopri8()], ids=["order 5", "order 8"])
def test_sundials_pendulum_at_its_own_tolerances(solver):
    assert all(error_and_evaluations(solver, tolerance)[0] < error for tolerance, (error, _) in CVODE.items())
