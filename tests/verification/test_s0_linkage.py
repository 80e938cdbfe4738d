"""Leyendecker, Marsden, Ortiz (2008), section 5.5: the six-body linkage (97)-(111), figures 12-17 and table 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.constraints import counts

MECHANISM, PLACEMENT = gallery.six_body_linkage()
SYSTEM, Q0 = mbd.assemble(MECHANISM, PLACEMENT)
V0 = mbd.joint_velocities(SYSTEM, Q0, {"hinge 1": 30.0})
EXPLICIT = SYSTEM.with_chart(gallery.six_body_chart)
WAYS = {
    "multipliers": (SYSTEM, mbd.Multipliers(), 143),
    "null space": (SYSTEM, mbd.NullSpace(), 72),
    "tree": (SYSTEM, mbd.Reparametrised(), 5),
    "implicit chart": (SYSTEM, mbd.Reparametrised("implicit"), 1),
    "explicit chart": (EXPLICIT, mbd.Reparametrised(), 1),
}


def run(way, dt=0.01):
    system, formulation, _ = WAYS[way]
    return mbd.simulate(system, Q0, V0, dt=dt, steps=100, formulation=formulation)


@pytest.fixture(scope="module")
def motions():
    return {way: run(way) for way in WAYS}


@pytest.fixture(scope="module")
def angles(motions):
    return {name: np.asarray(values[:, 0]) for name, values in post.joint_coordinates(SYSTEM, motions["tree"]).items()}


def test_inertia_of_the_bodies():
    """Mass and principal moments, (101) with the density that its printed form lacks."""
    a, length, density = np.tan(0.16 * np.pi), 0.1, 1000.0
    body = MECHANISM.bodies["body 0"]
    assert np.isclose(body.mass, density * a**2 * length**3 / 6, rtol=1e-13)
    root = np.sqrt(a**4 + 1)
    moments = density * a**2 * length**5 / 120 * np.array([a**2 + 1, (2 * a**2 + 1 + root) / 2, (2 * a**2 + 1 - root) / 2])
    np.testing.assert_allclose(np.sort(np.diagonal(body.inertia)), np.sort(moments), rtol=1e-12)
    np.testing.assert_allclose(PLACEMENT["body 0"][0], [a * length / 4, length / 2, -a * length / 4], atol=1e-15)


def test_one_of_72_constraints_is_redundant_all_along(motions):
    assert Q0.size == 72 and SYSTEM.constraints(0.0, Q0).size == 72
    ranks = jax.jit(jax.vmap(lambda q: counts.matrix_rank(mbd.constraints.calculus.constraint_jacobian(SYSTEM, 0.0, q))))(motions["tree"].q)
    assert set(np.asarray(ranks).tolist()) == {71}
    assert motions["multipliers"].redundant == 1
    description = mbd.assembly.describe(SYSTEM, Q0)
    assert "1 redundant" in description and "hinge 6" in description


@pytest.mark.parametrize("way", WAYS)
def test_unknowns_and_same_motion(way, motions):
    system, formulation, unknowns = WAYS[way]
    step = mbd.schemes.StepInput(system, jnp.array(0.0), jnp.array(0.01), Q0, V0)
    x, _ = formulation.guess(Q0[None], formulation.prepare(mbd.Midpoint(), step))
    assert x.size == unknowns
    np.testing.assert_allclose(motions[way].q, motions["multipliers"].q, rtol=0, atol=1e-10)
    assert jnp.max(jnp.abs(post.constraint_residuals(SYSTEM, motions[way]))) < 1e-12


def test_angles_and_full_revolutions(angles):
    """(106), (107) and figure 12: both angles cover their whole range and return."""
    for i in range(1, 5):
        np.testing.assert_allclose(angles[f"hinge {i + 2}"], angles[f"hinge {i}"], rtol=0, atol=1e-11)
    first, second = angles["hinge 1"], angles["hinge 2"]
    np.testing.assert_allclose(np.sin(first) * (1 + np.sin(second)), np.sin(second), rtol=0, atol=1e-11)
    assert -7 * np.pi / 6 - 1e-9 < first.min() < -7 * np.pi / 6 + 0.1 and np.pi / 6 - 0.1 < first.max() < np.pi / 6 + 1e-9
    assert -np.pi / 6 - 1e-9 < second.min() < -np.pi / 6 + 0.1 and 7 * np.pi / 6 - 0.1 < second.max() < 7 * np.pi / 6 + 1e-9


def test_space_diagonals_keep_their_length(motions):
    """Figure 13: distances of opposite corners."""
    poses = post.poses(SYSTEM, motions["tree"])
    corners = [np.asarray(MECHANISM.joints[f"hinge {i or 6}"].at) for i in range(6)]

    def path(i):
        frame = poses[f"body {i}"]
        local = frame.rotation[0].T @ (corners[i] - frame.origin[0])
        return frame.origin + frame.rotation @ local

    for i in range(3):
        np.testing.assert_allclose(jnp.linalg.norm(path(i) - path(i + 3), axis=1), 0.1 * np.sqrt(3), rtol=0, atol=1e-10)


def test_energies(motions):
    """Figures 16 and 17: the amplitude of H_d is smaller than that of E_d, and both fall with the square of the step."""
    amplitude = lambda motion: [np.ptp(kind(SYSTEM, motion)) for kind in (post.energy, post.discrete_energy)]
    coarse, fine = amplitude(motions["tree"]), amplitude(run("tree", 1e-3))
    assert coarse[0] < coarse[1] and fine[0] < fine[1]
    assert all(50 < a / b < 200 for a, b in zip(coarse, fine, strict=True))


@pytest.mark.parametrize(("dt", "published"), [(1e-2, 5e4), (1e-3, 3e7), (1e-4, 3e10)])
def test_condition_numbers(dt, published):
    """Table 1 within a factor of ten for the multipliers; one unknown has the condition number one."""
    motion = run("tree", dt)
    with_multipliers = post.condition_number(SYSTEM, motion, mbd.Multipliers())
    assert 0.1 < with_multipliers[0] / published < 10
    np.testing.assert_allclose(post.condition_number(EXPLICIT, motion, mbd.Reparametrised()), 1.0)


@pytest.mark.slow
def test_condition_numbers_of_the_energy_momentum_scheme():
    """Table 1, left columns, within a factor of ten; figure 15: energy exact."""
    for dt, published in ((1e-2, 1e5), (1e-3, 1e8), (1e-4, 1e11)):
        motion = mbd.simulate(SYSTEM, Q0, V0, dt=dt, steps=20, scheme=mbd.EnergyMomentum(), save=20)
        E = post.energy(SYSTEM, motion)
        assert abs(E[1] - E[0]) < 1e-14
        assert 0.1 < post.condition_number(SYSTEM, motion, mbd.Multipliers())[0] / published < 10
