"""Formulations: the same motion from all of them, redundant constraints, ranks that change, charts that do not fit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints import calculus, split

from .mechanisms import bead_on_moving_wire, chain, kepler, pendulum, redundant_pendulum, stretched

FORMULATIONS = {
    "multipliers": mbd.Multipliers(),
    "null space": mbd.NullSpace(),
    "implicit chart": mbd.Reparametrised(),
}
SCHEMES = {
    "midpoint": mbd.Midpoint(),
    "trapezoidal": mbd.Trapezoidal(),
    "galerkin 4": mbd.Galerkin(4),
    "galerkin 6": mbd.Galerkin(6, "gauss"),
}
CHAIN = chain(3, 3)
MOTIONS = {
    "chain of three": (CHAIN, stretched(3, 3), jnp.array([0.0, 0.5, 0.0, 0.0, 0.2, 1.0, 0.0, -0.4, 0.3])),
    "bead on a moving wire": (bead_on_moving_wire(), jnp.array([np.sin(0.7), 0.0, -np.cos(0.7)]), jnp.array([0.0, 3 * np.sin(0.7), 0.0])),
    "no constraints": (kepler(), jnp.array([1.0, 0.0]), jnp.array([0.0, 1.2])),
    "redundant": (redundant_pendulum(), jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 0.0, -1.0])),
}


@functools.cache
def run(motion, scheme, formulation="multipliers"):
    system, q0, v0 = MOTIONS[motion]
    return mbd.simulate(system, q0, v0, dt=0.02, steps=50, scheme=SCHEMES[scheme], formulation=FORMULATIONS[formulation])


def pair(motion, scheme):
    """Every motion with the first scheme, the first motion with every scheme, and redundant constraints with nodes inside steps."""
    quick = scheme == "midpoint" or motion == "chain of three" or (motion, scheme) == ("redundant", "galerkin 4")
    return pytest.param(motion, scheme, marks=() if quick else pytest.mark.slow, id=f"{motion}-{scheme}")


@pytest.mark.parametrize(("motion", "scheme"), [pair(motion, scheme) for motion in MOTIONS for scheme in SCHEMES])
@pytest.mark.parametrize("formulation", ["null space", "implicit chart"])
def test_same_motion(motion, scheme, formulation):
    system, reference, trajectory = MOTIONS[motion][0], run(motion, scheme), run(motion, scheme, formulation)
    for column in ("q", "v", "p"):
        np.testing.assert_allclose(getattr(trajectory, column), getattr(reference, column), rtol=0, atol=1e-10)
    scale = 1 + float(jnp.max(jnp.abs(reference.multipliers), initial=0))
    np.testing.assert_allclose(trajectory.multipliers, reference.multipliers, rtol=0, atol=1e-9 * scale)
    assert jnp.max(jnp.abs(post.constraint_residuals(system, trajectory)), initial=0) < 1e-12


def test_redundant_constraints_are_counted_and_carry_least_norm_multipliers():
    system, q0, v0 = MOTIONS["redundant"]
    trajectory = run("redundant", "midpoint")
    assert trajectory.redundant == 1
    G = jax.vmap(lambda t, q: calculus.constraint_jacobian(system, t, q))(trajectory.t, trajectory.q)
    smallest = jax.vmap(lambda G, f: jnp.linalg.lstsq(G.T, f)[0])(G[1:-1], trajectory.reaction[1:-1])
    np.testing.assert_allclose(trajectory.multipliers[1:-1], smallest / 0.02, atol=1e-8)
    independent = mbd.System.from_functions(
        system.functions["lagrangian"].func, constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - 1), q[1]])
    )
    np.testing.assert_allclose(trajectory.q, mbd.simulate(independent, q0, v0, dt=0.02, steps=50).q, atol=1e-11)


def test_more_constraints_than_coordinates_run_if_redundant():
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[1], constraints=lambda t, q, p: 0.5 * (q @ q - 1) * jnp.arange(1.0, 5.0)
    )
    trajectory = mbd.simulate(system, [1.0, 0.0], dt=0.05, steps=20)
    assert trajectory.redundant == 3
    np.testing.assert_allclose(trajectory.q, mbd.simulate(pendulum(), [1.0, 0.0], dt=0.05, steps=20).q, atol=1e-11)


def test_redundant_constraints_inside_jit_need_their_rank():
    system, q0, v0 = MOTIONS["redundant"]
    run = jax.jit(lambda s: mbd.simulate(s, q0, v0, dt=0.02, steps=5, throw=False))
    assert run(system).final.status.result == mbd.Result.RANK_CHANGED
    np.testing.assert_allclose(run(mbd.find_rank(system, q0)).q, mbd.simulate(system, q0, v0, dt=0.02, steps=5).q, atol=1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_rank_that_falls_is_reported(formulation):
    """The gradient of a surface that vanishes at the height one, which the eighth step would reach."""
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v @ v, constraints=lambda t, q, p: jnp.array([(q[1] - q[0] ** 2) * (q[2] - 1)])
    )
    with pytest.raises(mbd.SimulationError, match=r"RANK_CHANGED|SINGULAR") as failure:
        mbd.simulate(system, [0.5, 0.25, 0.0], [0.0, 0.0, 1.0], dt=0.125, steps=20, formulation=FORMULATIONS[formulation])
    trajectory = failure.value.trajectory
    reached = int(trajectory.reached)
    assert reached in (7, 8)
    np.testing.assert_allclose(trajectory.q[: reached + 1, 2], 0.125 * np.arange(reached + 1), atol=1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_rank_that_rises_is_reported(formulation):
    """Twice the same plane, until the second one starts to bend."""
    bend = lambda x: jnp.where(x > 0.35, (x - 0.35) ** 2, 0.0)
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, constraints=lambda t, q, p: jnp.array([q[1], q[1] + bend(q[0])]))
    with pytest.raises(mbd.SimulationError, match="RANK_CHANGED"):
        mbd.simulate(system, [0.0, 0.0], [1.0, 0.0], dt=0.1, steps=20, formulation=FORMULATIONS[formulation])


def test_a_rank_is_regular_if_it_is_the_one_asked_for():
    """Neither fewer nor more independent constraints than there are."""
    system, q0, _ = MOTIONS["redundant"]
    assert [bool(split.split(system.with_rank(rank), 0.0, q0).regular) for rank in (1, 2, 3)] == [False, True, False]


def test_a_chart_that_leaves_the_manifold_is_reported():
    functions = pendulum().functions
    wrong = mbd.System.from_functions(
        functions["lagrangian"].func,
        constraints=functions["constraints"].func,
        chart=lambda u, q: q + u[0] * jnp.array([-q[1], q[0]]),  # tangent at u = 0, but a straight line
        params=pendulum().params,
    )
    with pytest.raises(mbd.SimulationError, match="OFF_MANIFOLD"):
        mbd.simulate(wrong, [1.0, 0.0], dt=0.1, steps=10, formulation=mbd.Reparametrised())


def test_a_chart_that_moves_with_time_and_parameters():
    """The hoop turned by its own chart: u is the angle in the hoop, the plane turns with the rate."""

    def chart(u, q, p, t0, t1):
        turn = lambda a, q: jnp.array([jnp.cos(a) * q[0] - jnp.sin(a) * q[1], jnp.sin(a) * q[0] + jnp.cos(a) * q[1], q[2]])
        q = turn(-p["rate"] * t0, q)
        q = jnp.array([jnp.cos(u[0]) * q[0] - jnp.sin(u[0]) * q[2], 0.0, jnp.sin(u[0]) * q[0] + jnp.cos(u[0]) * q[2]])
        return turn(p["rate"] * t1, q)

    plain, q0, v0 = MOTIONS["bead on a moving wire"]
    system = mbd.System.from_functions(
        plain.functions["lagrangian"].func, constraints=plain.functions["constraints"].func, chart=chart, params=plain.params
    )
    for scheme in ("midpoint", "galerkin 4"):
        trajectory = mbd.simulate(system, q0, v0, dt=0.02, steps=50, scheme=SCHEMES[scheme], formulation=mbd.Reparametrised())
        np.testing.assert_allclose(trajectory.q, run("bead on a moving wire", scheme).q, atol=1e-10)


def test_singular_mass_held_by_a_constraint():
    """A massless point tied to a moving one: the mass matrix is singular, but not for admissible velocities."""
    system = mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v[:2] @ v[:2] - 9.81 * q[1] - 0.5 * (q[2] - 2) ** 2,
        constraints=lambda t, q, p: jnp.array([0.5 * (q[:2] @ q[:2] - 1), q[2] - q[0] * q[1]]),
    )
    for formulation in FORMULATIONS.values():
        trajectory = mbd.simulate(system, [1.0, 0.0, 0.0], dt=0.01, steps=100, formulation=formulation)
        np.testing.assert_allclose(trajectory.q[:, 2], trajectory.q[:, 0] * trajectory.q[:, 1], atol=1e-12)
        assert np.ptp(post.energy(system, trajectory)) < 5e-3
        assert np.all(np.isfinite(trajectory.v))


def test_unknown_sources_are_refused():
    plain = chain(2)
    for formulation in (mbd.NullSpace("user"), mbd.NullSpace("chart"), mbd.Reparametrised("user")):
        with pytest.raises(mbd.ModelError):
            mbd.simulate(plain, stretched(2), dt=0.1, steps=1, formulation=formulation)


def test_null_spaces_agree():
    """The user's, the chart's and the corrected one span the same space, and all lie in the null space of G."""
    system = mbd.find_rank(pendulum(), [0.6, 0.8])
    t, q = jnp.array(0.0), jnp.array([0.6, 0.8])
    G = calculus.constraint_jacobian(system, t, q)
    at = split.split(system, t, q)
    bases = [split.null_space(system, t, q, source, at) for source in ("user", "chart", "qr")]
    for P in bases:
        assert jnp.max(jnp.abs(G @ P)) < 1e-15
        assert jnp.linalg.matrix_rank(jnp.hstack([P, bases[0]]), rtol=1e-12) == 1


def test_corrected_null_space_has_the_right_derivative():
    """P(q) stays in the null space of G(q) when q changes while the frame is held."""
    system = mbd.find_rank(CHAIN, stretched(3, 3))
    t, q = jnp.array(0.0), stretched(3, 3)
    at = split.split(system, t, q)
    product = lambda q: calculus.constraint_jacobian(system, t, q) @ split.null_space(system, t, q, "qr", at)
    assert jnp.max(jnp.abs(jax.jacfwd(product)(q))) < 1e-14
