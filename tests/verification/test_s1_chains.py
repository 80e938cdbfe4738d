"""Nielsen, Krenk (2013), section 6: hanging chains of four boxes, figures 2-7."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.assembly.rigid_motion import Spread, angular_rates, directors, lifted

CHAINS = {"hinges": (False, 0.01, 300, 68), "ball joints": (True, 0.1, 100, 60)}


@pytest.fixture(scope="module", params=CHAINS)
def chain(request):
    spherical, dt, steps, unknowns = CHAINS[request.param]
    system, q0 = mbd.assemble(*gallery.hanging_chain(spherical))
    trajectory = mbd.simulate(
        system, q0, dt=dt, steps=steps, scheme=mbd.schemes.ConservativeDirector(), formulation=mbd.formulations.JointMultipliers()
    )
    return request.param, system, trajectory, unknowns


def test_inertia_and_placement():
    mechanism, placement = gallery.hanging_chain()
    np.testing.assert_allclose(np.diagonal(mechanism.bodies["link 1"].inertia), [9.25, 10.0, 1.25], rtol=1e-14)
    axes = [placement[f"link {i}"][1][:, 2] for i in range(1, 5)]
    assert abs(axes[0][2] - np.cos(np.pi / 4)) < 1e-15 and abs(axes[1] @ axes[2]) < 1e-15


def test_unknowns(chain):
    """12 n + m, counted as the paper does: multipliers of joints only."""
    _, system, trajectory, unknowns = chain
    state = trajectory.final
    step = mbd.schemes.StepInput(system, state.t, trajectory.dt, state.q, state.incoming, None, state.carried)
    formulation = mbd.formulations.JointMultipliers()
    x, _ = formulation.guess(state.displacement, formulation.prepare(mbd.schemes.ConservativeDirector(), step))
    assert x.size == unknowns


def test_energy_and_angular_momentum(chain):
    """Figures 3 and 6: energy to 1e-12; only l_1 in the plane; l_3 to 1e-10 in space."""
    name, system, trajectory, _ = chain
    E, momentum = post.energy(system, trajectory), np.abs(post.angular_momentum(system, trajectory)).max(axis=0)
    assert np.ptp(E) < 1e-13 * abs(E[0])
    assert momentum[0] > 1e3 and momentum[2] < 3e-12
    assert momentum[1] < 3e-12 if name == "hinges" else momentum[1] > 100


def test_constraints(chain):
    """Figures 4 and 7: e(q), C(q) p and those of joints, far below the paper's tolerance 1e-8; p is the momentum (12) in base vectors."""
    _, system, trajectory, _ = chain
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory))) < 1e-13
    assert jnp.max(jnp.abs(displacement_momentum(system, trajectory))) < 1e-13


def displacement_momentum(system, trajectory):
    r"""$C(q) p$ (18) with $p_I = \frac12 (R J \Omega) \times q_I$, whose moments $\sum q_I \times p_I$ are $R J \Omega$."""
    model, found = system.params, []
    for q, v in zip(trajectory.q[::20], trajectory.v[::20], strict=True):
        rows = model.frames(q)
        spin = jnp.einsum("nij,njk,nk->ni", directors(rows), Spread.of(model).inertia, angular_rates(rows, lifted(model, v)))
        p, d = 0.5 * jnp.cross(spin[:, None], rows[:, 1:]), rows[:, 1:]
        found.append(jnp.einsum("nai,nbi->nab", p, d) + jnp.einsum("nai,nbi->nab", d, p))
        np.testing.assert_allclose(jnp.sum(jnp.cross(d, p), axis=1), spin, atol=1e-9)
    return jnp.stack(found)


def test_same_motion_as_other_schemes():
    """With the schemes of S0 and S4 the chain with hinges goes the same way, the difference falls at least with the square of the step."""
    system, q0 = mbd.assemble(*gallery.hanging_chain())

    def after_two_fifths(scheme, dt):
        steps = 300 if isinstance(scheme, mbd.schemes.ConservativeDirector) else 40  # as many as above, by the same program
        trajectory = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.formulations.JointMultipliers())
        return trajectory.q[round(0.4 / dt)]

    ours = {dt: after_two_fifths(mbd.schemes.ConservativeDirector(), dt) for dt in (0.02, 0.01)}
    for scheme in (mbd.EnergyMomentum(), mbd.Midpoint()):
        coarse, fine = (np.max(np.abs(after_two_fifths(scheme, dt) - ours[dt])) for dt in ours)
        assert coarse / fine > 3.5 and fine < 2e-4
