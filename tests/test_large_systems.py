"""Long chains, trees, ladders and strings: the sparse way gives what the dense one gives, at sizes that only it can reach."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.constraints.rank import with_rank_if_cheap

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
SIDEWAYS = (5.0, 5.0, -3.0)


def string(particles):
    """Mass points on rods of unit length, as two functions for all of them, stretched out along the first axis."""

    def lagrangian(t, q, v, p):
        return 0.5 * p["m"] * v @ v - 9.81 * p["m"] * jnp.sum(q[2::3])

    def constraints(t, q, p):
        rods = jnp.diff(q.reshape(-1, 3), axis=0, prepend=jnp.zeros((1, 3), q.dtype))
        return 0.5 * (jnp.sum(rods**2, axis=1) - p["l"] ** 2)

    system = mbd.System.from_functions(lagrangian=lagrangian, constraints=constraints, params={"m": 0.1, "l": 1.0})
    return system, jnp.arange(1.0, particles + 1)[:, None] @ jnp.array([[1.0, 0.0, 0.0]])


CASES = {
    "hinges": lambda: mbd.assemble(*gallery.chain(10, AXES, gravity=SIDEWAYS)),
    "tree": lambda: mbd.assemble(*gallery.tree(10, gravity=SIDEWAYS)),
    "string": lambda: (lambda system, q: (system, q.ravel()))(*string(70)),
}


LONGER = {"tree", "string"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in LONGER else []) for name in CASES])
def test_sparse_and_dense_give_the_same_motion(name):
    system, q0 = CASES[name]()
    run = lambda linear: mbd.simulate(system, q0, dt=0.02, steps=30, newton=mbd.Newton(linear=linear))
    sparse, dense = run(mbd.linear.Auto()), run(mbd.linear.Dense())
    np.testing.assert_allclose(sparse.q, dense.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(sparse.v, dense.v, rtol=0, atol=1e-10)
    assert jnp.max(jnp.abs(post.constraint_residuals(system, sparse))) < 1e-13
    assert jnp.linalg.norm(sparse.q[-1] - q0) > 0.1  # it did move


@pytest.mark.slow
def test_a_large_ladder_runs_without_its_rank_and_shares_loads():
    """Redundant constraints made soft hold as well as those that a null space combines away, with sparse and dense factors."""
    system, q0 = mbd.assemble(*gallery.ladder(5, gravity=SIDEWAYS))
    assert "not looked for" in mbd.assembly.describe(system, q0)
    run = lambda formulation, linear=mbd.linear.Auto(): mbd.simulate(
        system, q0, dt=0.02, steps=10, formulation=formulation, newton=mbd.Newton(linear=linear)
    )
    soft, joints, projected = run(mbd.Multipliers()), run(mbd.formulations.JointMultipliers(), mbd.linear.Dense()), run(mbd.NullSpace())
    assert projected.redundant == 15
    for other in (joints, projected):
        np.testing.assert_allclose(soft.q, other.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(soft.v, other.v, rtol=0, atol=1e-11)
    hinge = "bottom right 2"
    shared, least = (post.reactions(system, motion)[hinge].force for motion in (soft, projected))
    np.testing.assert_allclose(shared, least, rtol=0, atol=5e-5)  # shares of redundant constraints are known to some six digits
    assert jnp.max(jnp.abs(post.constraint_residuals(system, soft))) < 1e-13


@pytest.mark.parametrize(
    "scheme",
    [mbd.EnergyMomentum(), pytest.param(mbd.schemes.ConservativeDirector(), marks=pytest.mark.slow)],
    ids=lambda scheme: type(scheme).__name__,
)
def test_conserving_schemes_are_sparse_too(scheme):
    system, q0 = mbd.assemble(*gallery.chain(10, (None,), gravity=(6.0, 0.0, -6.0)))
    structure = mbd.simulation.sparsity(system, q0, scheme=scheme)
    longer = mbd.simulation.sparsity(*mbd.assemble(*gallery.chain(20, (None,))), scheme=scheme)
    assert longer.pattern.nnz < 2.1 * structure.pattern.nnz
    motion = mbd.simulate(system, q0, dt=0.02, steps=30, scheme=scheme)
    energy = post.energy(system, motion)
    assert jnp.max(jnp.abs(energy - energy[0])) < 1e-12 * 0.5 * jnp.max(jnp.sum(motion.p * motion.v, axis=1))


@pytest.mark.slow
def test_invariants_of_a_thousand_bodies():
    """A chain on ball joints, turned sideways: energy, the momentum about the vertical, and all constraints."""
    system, q0 = mbd.assemble(*gallery.chain(1000, (None,), gravity=(0.0, -9.81, 0.0)))
    motion = mbd.simulate(system, q0, dt=0.01, steps=8, save=4, scheme=mbd.EnergyMomentum())
    energy, angular = post.energy(system, motion), post.angular_momentum(system, motion)[:, 1]
    speed = jnp.max(jnp.abs(motion.v))
    assert speed > 0.5
    assert jnp.max(jnp.abs(energy - energy[0])) < 1e-11 * 0.5 * jnp.max(jnp.sum(motion.p * motion.v, axis=1))
    assert jnp.max(jnp.abs(angular)) < 1e-11 * 1000 * speed * 1000
    assert jnp.max(jnp.abs(post.constraint_residuals(system, motion))) < 1e-15 * 1000


def test_a_string_of_two_thousand_particles_needs_nothing_from_its_user():
    system, q0 = string(2000)
    q0 = q0.ravel()
    structure = mbd.simulation.sparsity(system, q0)
    assert structure.colours <= 9
    assert "8000 unknowns" in str(structure)
    motion = mbd.simulate(system, q0, dt=0.01, steps=20, save="end")
    assert jnp.max(jnp.abs(system.constraints(0.0, motion.q[-1]))) < 1e-12 * 2000
    np.testing.assert_allclose(motion.q[-1].reshape(-1, 3)[:, 1], 0, atol=1e-13)
    falling = motion.q[-1].reshape(-1, 3)[1000, 2]  # far from its ends it has not noticed that it hangs
    np.testing.assert_allclose(falling, -0.5 * 9.81 * 0.2**2, rtol=1e-3)


@pytest.mark.parametrize(("offset", "cheap", "found"), [(0.0, None, 100), (1e-8, None, 101), (0.3, 101, 101)])
def test_independence_of_many_constraints_is_seen_without_a_decomposition(offset, cheap, found):
    """A brace over the first two rods of a string says nothing new where they are in line, and locks them where they are bent."""
    plain, points = string(100)
    assert with_rank_if_cheap(plain, points.ravel()).rank == 100
    brace = lambda t, q, p: jnp.append(plain.constraints(t, q), 0.5 * q[3:6] @ q[3:6])
    braced = mbd.System.from_functions(lagrangian=lambda t, q, v, p: 0.5 * v @ v, constraints=brace)
    q = points.at[0, 1].set(offset).ravel()
    assert with_rank_if_cheap(braced, q).rank == cheap
    assert mbd.find_rank(braced, q).rank == found


@pytest.mark.slow
def test_gradients_through_a_sparse_chain():
    system, q0 = mbd.assemble(*gallery.chain(24, AXES, gravity=SIDEWAYS))

    def end(factor):
        model = eqx.tree_at(
            lambda model: model.inertia, system.params, system.params.inertia * (1 + factor * jnp.linspace(0, 1, 25))[:, None, None]
        )
        motion = mbd.simulate(system.with_params(model), q0, dt=0.01, steps=20, save="end")
        return jnp.cos(jnp.arange(q0.size, dtype=q0.dtype)) @ motion.q[-1]

    value, slope = jax.jit(jax.value_and_grad(end))(0.3)
    other = jax.jit(end)
    np.testing.assert_allclose(value, other(0.3), rtol=0, atol=1e-13)
    difference = (other(0.3 + 1e-4) - other(0.3 - 1e-4)) / 2e-4
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.slow
def test_a_batch_of_chains_equals_single_runs():
    system, q0 = mbd.assemble(*gallery.chain(10, AXES))

    def end(gravity):
        model = eqx.tree_at(lambda model: model.gravity, system.params, gravity)
        return mbd.simulate(system.with_params(model), q0, dt=0.02, steps=10, save="end", throw=False).q[-1]

    batch = jnp.array([[3.0, 0.0, -9.0], [0.0, 5.0, 1.0]])
    single = jax.jit(end)
    np.testing.assert_allclose(jax.jit(jax.vmap(end))(batch), jnp.stack([single(gravity) for gravity in batch]), rtol=0, atol=1e-12)


def test_a_large_start_is_made_consistent():
    """Positions and velocities off the manifold are projected without dense matrices."""
    system, q0 = mbd.assemble(*gallery.chain(40, AXES))
    noise = 1e-3 * jax.random.normal(jax.random.key(0), (2, q0.size))
    q, v = mbd.project(system, q0 + noise[0], noise[1])
    assert jnp.max(jnp.abs(system.constraints(0.0, q))) < 1e-12
    assert jnp.max(jnp.abs(jax.jvp(lambda q: system.constraints(0.0, q), (q,), (v,))[1])) < 1e-12
    assert jnp.max(jnp.abs(q - q0)) < 0.01


def test_a_chain_in_single_precision():
    system, q0 = mbd.assemble(*gallery.chain(20, AXES, gravity=SIDEWAYS))
    motion = mbd.simulate(system, q0.astype(jnp.float32), dt=0.01, steps=10, save="end")
    assert motion.q.dtype == jnp.float32
    assert jnp.max(jnp.abs(system.constraints(0.0, motion.q[-1].astype(float)))) < 2e-5


def test_the_picture_of_a_structure():
    pytest.importorskip("matplotlib").use("Agg")
    structure = mbd.simulation.sparsity(*CASES["string"]())
    for ordered in (False, True):
        (marks,) = structure.spy(ordered=ordered).lines
        assert len(marks.get_xdata()) == structure.pattern.nnz
