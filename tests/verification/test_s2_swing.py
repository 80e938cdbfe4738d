"""Masarati 2011, section 4.2: a stiff beam on two links as an ordinary differential equation, by finite volumes and by a few Ritz forms."""

import functools

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import odes, post
from jaxmbd.gallery import ALUMINIUM_SECTION

from ..test_ritz import table_1

PAPER = {"dt0": 1e-5, "rtol": 1e-3, "atol": 1e-6, "dtmax": 1e-3, "solver": diffrax.Dopri5()}


def swing(elements, **kind):
    """Links without mass are distances to the ground."""
    beam = mbd.Beam.line((0, 0, 0), (0, 0.72, 0), ALUMINIUM_SECTION, elements, normal=(1, 0, 0), masses={elements // 2: 0.5}, **kind)
    joints = {
        "left": mbd.Joint(mbd.joints.Distance(0.36), "ground", "beam[0]", on_a=(0, 0, 0.36), on_b=(0, 0, 0)),
        "right": mbd.Joint(mbd.joints.Distance(0.36 * np.sqrt(2)), "ground", "beam[-1]", on_a=(0, 1.08, 0.36), on_b=(0, 0, 0)),
    }
    pulse = lambda t: jnp.array([0.0, 2.0, 0.0]) * jnp.maximum(0, 1 - jnp.abs(2 * t / 0.256 - 1))
    return mbd.assemble(mbd.Mechanism({"beam": beam}, joints, [mbd.Force(f"beam[{elements // 2}]", pulse)]))


@functools.cache
def reduced(count):
    forms = table_1(14, 1)[2]
    return mbd.reduction.ritz(*swing(14), {"beam": forms[:count]})


@functools.cache
def run(count, method, end):
    small = reduced(count)
    return odes.integrate(small.system, small.q0, t1=end, method=method(), saveat=21, **PAPER)


def off(system, motion):
    return [np.abs(np.asarray(part(system, motion))).max() for part in (post.constraint_residuals, post.constraint_rates)]


@pytest.mark.slow
def test_without_the_axial_form_steps_are_the_longest_in_both():
    """1,103 in a second, the longest step being 1e-3; a tenth of it here."""
    present, baseline = (run(3, method, 0.1) for method in (odes.Projection, odes.Baseline))
    assert int(present.scheme.accepted) == int(baseline.scheme.accepted) <= 110
    assert max(off(reduced(3).system, present)) < 1e-13


@pytest.mark.slow
def test_the_axial_form_costs_some_twenty_times_as_many_steps():
    """23,075 and 28,103 beside 1,103."""
    steps = int(run(4, odes.Projection, 0.05).scheme.accepted)
    assert 10 < steps / 50 < 40


@pytest.mark.slow
def test_the_motion_is_that_of_the_energy_momentum_scheme():
    small = reduced(3)
    reference = mbd.simulate(small.system, small.q0, dt=2.5e-4, steps=400, scheme=mbd.EnergyMomentum(), save="end")
    places = [np.asarray(small.coordinates(motion.q[-1])) for motion in (reference, run(3, odes.Projection, 0.1))]
    moved = np.abs(places[0] - np.asarray(small.coordinates(small.q0))).max()
    assert np.abs(places[1] - places[0]).max() < 2e-3 * moved


@pytest.mark.slow
def test_finite_volumes_need_as_many_steps_projected_as_not():
    """69,033 to 0.69 s both, since the stability of the steps decides; a 300th of it here."""
    system, q0 = swing(4, kind="finite volume", corrected=True)
    present, baseline = (
        odes.integrate(system, q0, t1=0.0023, method=method(), saveat=3, **PAPER) for method in (odes.Projection, odes.Baseline)
    )
    counts = [int(motion.scheme.accepted) for motion in (present, baseline)]
    assert abs(counts[0] - counts[1]) <= 2 and 50 < counts[0] < 350
    assert max(off(system, present)) < 1e-12
