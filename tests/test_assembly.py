"""Assembled systems under transformations: precision, batches, compilation, and programs that do not grow with the mechanism."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import jaxmbd as mbd
from jaxmbd import gallery, post

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def bent(links):
    """A chain with its first joint turned."""
    mechanism, placement = gallery.chain(links, AXES)
    return mbd.assemble(mechanism, {**placement, "joint 0": 1.0})


def operations(links, formulation):
    """How many operations a run of a chain is traced to."""
    system, q0 = bent(links)
    run = lambda q: mbd.simulate(system, q, dt=0.01, steps=5, formulation=formulation, throw=False).q

    def count(jaxpr):
        inner = [sub for equation in jaxpr.eqns for sub in jaxprs_in_params(equation.params)]
        return len(jaxpr.eqns) + sum(count(sub) for sub in inner)

    return count(jax.make_jaxpr(run)(q0).jaxpr)


@pytest.mark.parametrize(
    ("formulation", "shorter", "longer"), [(mbd.Multipliers(), 7, 8), (mbd.Reparametrised(), 7, 9)], ids=lambda f: type(f).__name__
)
def test_programs_do_not_grow_with_the_number_of_bodies(formulation, shorter, longer):
    """Elements of one kind are stacked: a longer chain has longer arrays, not more operations, as long as its linear solver is the same."""
    few, many = operations(shorter, formulation), operations(longer, formulation)
    assert few > 1000 and abs(many - few) <= 1  # a function that was traced before, for another purpose, may have one more


def test_sparse_programs_grow_less_than_the_levels_of_elimination():
    """Four times as many bodies take two levels more; most of them share a loop."""
    few, many = operations(16, mbd.Multipliers()), operations(64, mbd.Multipliers())
    assert few < many < 1.3 * few


def test_loads_and_gears_do_not_make_programs_grow():
    def operations(wheels):
        bodies = {f"wheel {i}": mbd.RigidBody.cylinder(1.0, 0.5, 0.1) for i in range(wheels)}
        hinges = {f"hinge {i}": mbd.Joint(mbd.Revolute((0.0, 0.0, 1.0)), "ground", f"wheel {i}") for i in range(wheels)}
        gears = {f"gear {i}": mbd.Gear(f"hinge {i}", f"hinge {i + 1}", -2.0) for i in range(wheels - 1)}
        loads = [mbd.JointSpring(f"hinge {i}", 1.0, damping=0.1) for i in range(wheels)]
        system, q0 = mbd.assemble(mbd.Mechanism(bodies, {**hinges, **gears}, loads))
        t = jnp.array(0.0)
        functions = (system.constraints, lambda t, q: system.lagrangian(t, q, q), lambda t, q: system.forces(t, q, q))
        return [len(jax.make_jaxpr(function)(t, q0).jaxpr.eqns[0].params["jaxpr"].eqns) for function in functions]

    assert operations(3) == operations(6)


@pytest.mark.slow
def test_float32_keeps_joints_to_its_own_rounding():
    system, q0 = bent(2)
    single = mbd.simulate(system, q0.astype(jnp.float32), dt=0.01, steps=50, formulation=mbd.NullSpace())
    double = mbd.simulate(system, q0, dt=0.01, steps=50, formulation=mbd.NullSpace())
    assert single.q.dtype == jnp.float32
    assert jnp.max(jnp.abs(post.constraint_residuals(system, single))) < 1e-5
    np.testing.assert_allclose(single.q, double.q, rtol=0, atol=2e-3)


def test_a_batch_of_mechanisms_gives_the_same_as_a_loop():
    system, q0 = bent(2)

    def end(factor):
        inertia = system.params.inertia * jnp.ones(3).at[0].set(factor)[:, None, None]
        model = eqx.tree_at(lambda model: model.inertia, system.params, inertia)
        return mbd.simulate(system.with_params(model), q0, dt=0.01, steps=20, save="end", throw=False).q[-1]

    factors = jnp.array([0.5, 1.0, 2.0])
    single = jax.jit(end)
    np.testing.assert_allclose(jax.jit(jax.vmap(end))(factors), jnp.stack([single(factor) for factor in factors]), rtol=0, atol=1e-12)


def test_tables_of_constraints_follow_their_order():
    """A constraint depends on the coordinates of the part that owns it; loops that are closed, gauges on both and a gear among them."""
    mechanism, placement = gallery.four_bar()
    springs = [mbd.JointSpring(name, 1.0) for name in mechanism.joints]
    joints = {**mechanism.joints, "gear": mbd.Gear("hinge 1", "hinge 2", 2.0)}
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    system, q0 = mbd.assemble(mbd.Mechanism({**bodies, "point": mbd.Particle(1.0)}, joints, springs), placement)
    model, zero = system.params, jnp.zeros(())
    G = np.asarray(jax.jacfwd(lambda q: system.constraints(zero, q))(q0))
    parts = np.array([*model.bodies, *(gauge.name for gauge in model.gauges)])[list(model.parts_of_coordinates())]
    felt = lambda row: set(parts[np.flatnonzero(G[row])])
    assert len(model.owners()) == G.shape[0] and len({gauge.group < len(model.tree) for gauge in model.gauges}) == 2
    assert all(felt(row) == {owner} == {parts[place]} for place, row in model.internal_rows() for owner in [model.owners()[row]])
    assert [G[row, place] for place, row in model.gauge_rows()] == [1.0] * len(model.gauges)
    assert [model.owners()[row] for _, row in model.gauge_rows()] == [gauge.name for gauge in model.gauges]
    for group, rows in model.joint_rows():
        ends = {name: {model.bodies[a], model.bodies[b]} - {"ground"} for name, a, b in zip(group.names, group.a, group.b, strict=True)}
        assert all(felt(row) == ends[model.owners()[row]] for row in rows)
    assert felt(G.shape[0] - 1) == {"hinge 1", "hinge 2"} and model.owners()[-1] == "gear"
    P = np.asarray(jax.jacfwd(lambda u: system.chart(u, q0, zero, zero))(jnp.zeros(model.increments)))
    assert np.abs(G[: G.shape[0] - model.closures] @ P).max() < 1e-14 < 0.1 < np.abs(G[-model.closures :] @ P).max(axis=1).max()


@pytest.mark.slow
def test_assembly_inside_jit_with_a_rank_from_outside():
    mechanism, placement = gallery.four_bar()
    system, q0 = mbd.assemble(mechanism, placement)
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 3.0})

    def end(mass):
        bodies = {**mechanism.bodies, "rocker": mbd.RigidBody.box(mass, (2.0, 0.1, 0.05))}
        del bodies["ground"]
        other, q = mbd.assemble(mbd.Mechanism(bodies, mechanism.joints, mechanism.loads), placement)
        return mbd.simulate(other.with_rank(system.rank), q, v0, dt=0.01, steps=10, save="end", throw=False).q[-1]

    expected = mbd.simulate(system, q0, v0, dt=0.01, steps=10, save="end").q[-1]
    np.testing.assert_allclose(jax.jit(end)(jnp.array(2.0)), expected, rtol=0, atol=1e-12)
