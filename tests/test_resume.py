"""Motions that go on from where they ended, to the bit; and what is saved of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post

from .pairs import some_pairs

SCHEMES = [
    mbd.Midpoint(),
    mbd.Trapezoidal(),
    mbd.Galerkin(4),
    mbd.EnergyMomentum(),
    mbd.schemes.ConservativeDirector(),
    mbd.schemes.DirectorEnergyMomentum("exponential"),
    mbd.schemes.GeneralizedAlpha(),
    mbd.schemes.Newmark(),
]
FORMULATIONS = [mbd.Multipliers(), mbd.NullSpace(), mbd.Reparametrised(), mbd.formulations.JointMultipliers()]


@pytest.fixture(scope="module")
def loop():
    """A loop of joints with redundant constraints."""
    system, q0 = mbd.assemble(*gallery.four_bar())
    return system, q0, mbd.joint_velocities(system, q0, {"hinge 1": 2.0})


def driven(t, q, v, params, control):
    return jnp.array([control, -0.1 * v[1]])


def in_pieces(system, q0, v0, pieces, steps, controls=None, **options):
    """One motion in several calls, each from the last state of the one before."""
    table = lambda i: controls if callable(controls) or controls is None else controls[i * steps : (i + 1) * steps]
    parts = [mbd.simulate(system, q0, v0, dt=0.01, steps=steps, controls=table(0), **options)]
    for i in range(1, pieces):
        parts.append(mbd.simulate(system, start=parts[-1].final, steps=steps, controls=table(i), **options))
    return parts


def assert_same(whole, parts, multipliers=True):
    steps = parts[0].t.size - 1
    for i, part in enumerate(parts):
        rows = slice(i * steps, (i + 1) * steps + 1)
        for field in ("t", "q", "v", "p", "incoming"):
            assert np.array_equal(getattr(whole, field)[rows], getattr(part, field)), (field, i)
        inner = slice(1, -1)
        if multipliers:
            assert np.array_equal(whole.multipliers[rows][inner], part.multipliers[inner])
        assert np.array_equal(whole.newton_steps[rows][1:], part.newton_steps[1:])
    ends = [eqx.tree_at(lambda s: s.origin, one.final, None) for one in (whole, parts[-1])]
    assert eqx.tree_equal(*ends)


PAIRS = [*((scheme, mbd.Multipliers()) for scheme in SCHEMES), *((mbd.Midpoint(), formulation) for formulation in FORMULATIONS[1:])]


@pytest.fixture(scope="module")
def top():
    system, q0 = mbd.assemble(*gallery.heavy_top())
    return system, q0, mbd.joint_velocities(system, q0, {"tip": (0.3, 0.1, 5.0)})


@pytest.mark.parametrize("scheme, formulation", PAIRS, ids=lambda choice: type(choice).__name__)
def test_in_pieces_is_the_same_to_the_bit(top, scheme, formulation):
    options = {"scheme": scheme, "formulation": formulation}
    whole = mbd.simulate(*top, dt=0.01, steps=8, **options)
    assert_same(whole, in_pieces(*top, 2, 4, **options))


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "formulation"), some_pairs(SCHEMES, FORMULATIONS), ids=lambda choice: type(choice).__name__)
def test_a_thousand_steps_in_ten_pieces(loop, scheme, formulation):
    options = {"scheme": scheme, "formulation": formulation}
    whole = mbd.simulate(*loop, dt=0.005, steps=1000, **options)
    part = mbd.simulate(*loop, dt=0.005, steps=100, **options)
    for i in range(1, 10):
        part = mbd.simulate(loop[0], start=part.final, steps=100, **options)
        assert np.array_equal(part.q, whole.q[100 * i : 100 * i + 101]) and np.array_equal(part.v, whole.v[100 * i : 100 * i + 101])


@pytest.mark.parametrize("as_function", [True, False])
@pytest.mark.parametrize("scheme", [mbd.Midpoint(), mbd.EnergyMomentum(), mbd.schemes.GeneralizedAlpha()], ids=lambda s: type(s).__name__)
def test_controls_go_on_too(scheme, as_function):
    constraints = lambda t, q, p: jnp.array([0.5 * (q @ q - 1.0)])
    lagrangian = lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[1]
    system = mbd.System.from_functions(lagrangian, constraints=constraints, forces=driven)
    control = lambda t: jnp.sin(3 * t)
    controls = control if as_function else jax.vmap(control)(0.01 * (jnp.arange(40.0) + 0.5))
    start = (jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))
    whole = mbd.simulate(system, *start, dt=0.01, steps=40, controls=controls, scheme=scheme)
    assert_same(whole, in_pieces(system, *start, 4, 10, controls, scheme=scheme))


@pytest.mark.slow
def test_first_rows_of_pieces_have_multipliers_of_both_sides(loop):
    whole = mbd.simulate(*loop, dt=0.01, steps=20)
    _, second = in_pieces(*loop, 2, 10)
    assert np.array_equal(second.multipliers[0], whole.multipliers[10])


@pytest.mark.slow
def test_resuming_inside_jit_and_vmap(loop):
    system, q0, v0 = loop
    onward = jax.jit(lambda state: mbd.simulate(system, start=state, steps=5, save="end", throw=False).q[-1])
    begun = jax.vmap(lambda scale: mbd.simulate(system, q0, scale * v0, dt=0.01, steps=5, throw=False))(jnp.array([0.5, 1.0]))
    both = jax.vmap(onward)(begun.final)
    alone = mbd.simulate(system, q0, v0, dt=0.01, steps=10, save="end").q[-1]
    np.testing.assert_allclose(both[1], alone, rtol=0, atol=1e-13)


@pytest.mark.slow
def test_derivatives_through_the_seam(loop):
    system, q0, v0 = loop

    def end(scale, pieces):
        part = mbd.simulate(system, q0, scale * v0, dt=0.01, steps=10 // pieces, save="end")
        for _ in range(1, pieces):
            part = mbd.simulate(system, start=part.final, steps=10 // pieces, save="end")
        return part.q[-1, 0]

    whole, seamed = (jax.grad(end)(1.0, pieces) for pieces in (1, 2))
    assert abs(whole) > 1e-3
    np.testing.assert_allclose(seamed, whole, rtol=1e-12)


def test_what_does_not_go_on_is_refused(loop):
    system, q0, _ = loop
    final = mbd.simulate(*loop, dt=0.01, steps=2).final
    other, _ = mbd.assemble(*gallery.chain(2))
    heavier, _ = mbd.assemble(*gallery.four_bar(lengths=(1.0, 2.5, 2.1, 2.2)))
    for wrong, words in [
        ({"dt": 0.02}, "dt = 0.02"),
        ({"scheme": mbd.EnergyMomentum()}, "cannot go on with EnergyMomentum"),
        ({"q0": q0}, "not both"),
        ({"start": eqx.tree_at(lambda s: s.origin, final, None)}, "last state of a trajectory"),
        ({"system": heavier}, "another system"),
        ({"system": other}, "another system"),
    ]:
        given = {"system": system, "start": final, "steps": 2} | wrong
        with pytest.raises(mbd.ModelError, match=words):
            mbd.simulate(given.pop("system"), **given)
    with pytest.raises(mbd.ModelError, match="q0 and dt"):
        mbd.simulate(system, steps=2)


@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), pytest.param(mbd.Midpoint(), marks=pytest.mark.slow)])
def test_fields_that_are_not_asked_for_are_not_there(top, scheme):
    everything = mbd.simulate(*top, dt=0.01, steps=6, scheme=scheme)
    for fields in ("q", ("v",), ("q", "multipliers"), ("reaction", "stages")):
        part = mbd.simulate(*top, dt=0.01, steps=6, save=mbd.Save(fields=fields), scheme=scheme)
        for name in mbd.simulation.FIELDS:
            if name in ((fields,) if isinstance(fields, str) else fields):
                np.testing.assert_allclose(getattr(part, name), getattr(everything, name), rtol=0, atol=1e-12)
            else:
                assert getattr(part, name) is None


def test_what_was_not_saved_cannot_be_read(top):
    system = top[0]
    only_q = mbd.simulate(*top, dt=0.01, steps=6, save=mbd.Save(fields="q"))
    with pytest.raises(mbd.ModelError, match="energy reads v, p"):
        post.energy(system, only_q)
    assert post.poses(system, only_q)["top"].origin.shape == (7, 3)


def test_every_and_end_pick_rows(loop):
    whole = mbd.simulate(*loop, dt=0.01, steps=12)
    third = mbd.simulate(*loop, dt=0.01, steps=12, save=mbd.Save(3))
    end = mbd.simulate(*loop, dt=0.01, steps=12, save=mbd.Save("end"))
    for field in ("t", "q", "v", "p", "multipliers"):
        np.testing.assert_allclose(getattr(third, field), getattr(whole, field)[::3], rtol=0, atol=1e-12)
        np.testing.assert_allclose(getattr(end, field), getattr(whole, field)[-1:], rtol=0, atol=1e-12)


def test_reductions_see_every_step(loop):
    whole = mbd.simulate(*loop, dt=0.01, steps=12)
    save = mbd.Save("end", fields=(), reduce=lambda top, row: jnp.maximum(top, jnp.abs(row.v).max()), initial=0.0)
    reduced = mbd.simulate(*loop, dt=0.01, steps=12, save=save)
    np.testing.assert_allclose(reduced.reduced, np.abs(whole.v[1:]).max(), rtol=1e-13)
    assert reduced.q is None
    mean = mbd.Save("end", "q", lambda total, row: total + row.q / 12, jnp.zeros_like(loop[1]))
    slope = jax.grad(lambda s: mbd.simulate(loop[0], loop[1], s * loop[2], dt=0.01, steps=12, save=mean).reduced[0])(1.0)
    h = 1e-5
    at = lambda s: mbd.simulate(loop[0], loop[1], s * loop[2], dt=0.01, steps=12).q[1:, 0].mean()
    np.testing.assert_allclose(slope, (at(1 + h) - at(1 - h)) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"every": 0}, "positive whole number"),
        ({"every": "last"}, "'end'"),
        ({"fields": ("velocity",)}, "no field"),
        ({"fields": ("multiplier",)}, "did you mean 'multipliers'"),
        ({"reduce": lambda total, row: total}, "needs both"),
        ({"reduce": 3, "initial": 0.0}, "must be a function"),
    ],
)
def test_what_cannot_be_saved_is_refused(arguments, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.Save(**arguments)


def test_points_by_name(loop):
    """A point of the crank against its circle, and accelerations against differences of velocities."""
    system = loop[0]
    motion = mbd.simulate(*loop, dt=1e-3, steps=8)
    tip = post.point(system, motion, "crank", (0.5, 0.0, 0.0))
    rate = post.joint_rates(system, motion)["hinge 1"]
    np.testing.assert_allclose(np.linalg.norm(tip.position, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(tip.velocity, axis=1), np.abs(rate[:, 0]), atol=1e-10)
    middle = post.point(system, motion, "coupler")
    slopes = (middle.velocity[2:] - middle.velocity[:-2]) / 2e-3
    np.testing.assert_allclose(middle.acceleration[1:-1], slopes, atol=1e-4 * float(jnp.abs(slopes).max()))
    with pytest.raises(mbd.ModelError, match="did you mean 'coupler'"):
        post.point(system, motion, "coupling")
    with pytest.raises(mbd.ModelError, match="three components"):
        post.point(system, motion, "coupler", (0.0, 1.0))
