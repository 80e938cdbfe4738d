"""Beams reduced to Ritz forms: what they keep of the full beam, what the equations keep, and motions that only they survive."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post, rotation
from jaxmbd.gallery import ALUMINIUM_SECTION, three_bar_swing

SECTION = mbd.Section((3.0e4, 4.0e4, 9.0e4, 40.0, 25.0, 30.0), 2.0, (0.03, 0.05))
CLAMP = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}


def line(elements=3, order=1, section=SECTION, masses=None):
    return mbd.Beam.line((0, 0, 0), (0, 0, 1.0), section, elements, order, normal=(1, 0, 0), masses=masses)


def alone(beam, joints=(), loads=()):
    return mbd.assemble(mbd.Mechanism({"beam": beam}, joints, loads))


def table_1(elements, order):
    """The beam of the swing of S2 between pins, three forms of bending in its plane and one along it, and their frequencies."""
    middle, hinge = elements * order // 2, mbd.Revolute((1, 0, 0))
    ends = {node: mbd.Joint(hinge, "ground", node, at=(0, y, 0)) for node, y in (("beam[0]", 0.0), ("beam[-1]", 0.72))}
    beam = mbd.Beam.line((0, 0, 0), (0, 0.72, 0), ALUMINIUM_SECTION, elements, order, normal=(1, 0, 0), masses={middle: 0.5})
    system, q0 = alone(beam, {f"pin of {node}": joint for node, joint in ends.items()})
    found = mbd.modes(system, q0, count=30)
    along = np.abs(np.asarray(found.shapes).reshape(30, -1, 4, 3)[:, :, 0]).max(axis=1).argmax(axis=1)
    rows = np.array([*np.flatnonzero(along == 2)[:3], np.flatnonzero(along == 1)[0]])
    forms = np.asarray(found.shapes)[rows].reshape(4, -1, 4, 3)
    size = np.abs(forms).max(axis=(1, 2), keepdims=True)
    return system, q0, np.where(size > 1e-4 * size.max(axis=3, keepdims=True), forms, 0), found.frequencies[rows]


@pytest.fixture(scope="module")
def pinned():
    return table_1(6, 2)


def test_pinned_beam_keeps_the_frequencies_of_the_forms(pinned):
    """All four of table 1, of S2; the constraints of the second pin are redundant for a frame."""
    system, q0, forms, frequencies = pinned
    np.testing.assert_allclose(frequencies, [0.443, 18.17, 28.46, 319.5], rtol=0.01)
    reduced = mbd.reduction.ritz(system, q0, {"beam": forms})
    assert (reduced.q0.size, reduced.system.rank) == (12 + 21, 12 + 17)
    kept = mbd.modes(reduced.system, reduced.q0).frequencies
    np.testing.assert_allclose(kept[1:], frequencies[1:], rtol=1e-6)
    np.testing.assert_allclose(kept[0], frequencies[0], rtol=1e-3)  # lost digits of the full beam, whose fastest mode has 1e6 Hz
    np.testing.assert_allclose(reduced.coordinates(reduced.q0), q0, atol=1e-15)


@pytest.fixture(scope="module")
def all_forms():
    """A hub on a sprung hinge with three beams bolted to it, of which two are reduced with all forms that a clamp leaves them."""
    beam = line(2, 1, masses={1: mbd.RigidBody(0.3, (0.01, 0.02, 0.03), (0.0, 0.1, 0.0))})
    blade = mbd.Beam.curve(lambda x: (jnp.array([0.0, 0.0, x]), rotation.exp(jnp.array([0.0, 0.0, 0.4 * x]))), SECTION, 2)
    turn = rotation.exp(jnp.array([0.0, 2.0, 0.5]))
    placement = {"first": ((0.1, 0, 0), np.eye(3)), "second": (turn @ jnp.array([0.1, 0, 0]), turn), "third": ((0, 0, -1.2), np.eye(3))}
    bolt = lambda name, at: mbd.Joint(mbd.Fixed(), "hub", name, at=at)
    joints = {
        "hinge": mbd.Joint(mbd.Revolute((0, 1, 0)), "ground", "hub", at=(0, 0, 0)),
        "bolt 1": bolt("first[0]", placement["first"][0]),
        "bolt 2": bolt("second[0]", placement["second"][0]),
        "bolt 3": bolt("third[-1]", (0, 0, -0.2)),
    }
    loads = [mbd.JointSpring("hinge", 30.0), mbd.Spring("first[-1]", "third[1]", 50.0, rest=np.hypot(0.1, 1.7), damping=0.4)]
    bodies = {"first": beam, "hub": mbd.RigidBody(0.5, (0.02, 0.02, 0.02)), "second": beam, "third": blade}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints, loads), placement)
    forms = mbd.modes(*alone(beam, CLAMP)).shapes
    return system, q0, mbd.reduction.ritz(system, q0, {"second": forms, "first": forms})


def moved(reduced, key):
    """Any position and velocity, not even with orthonormal frames."""
    y, v = 0.3 * jax.random.normal(jax.random.key(key), (2, reduced.q0.size))
    return y + reduced.q0, v


def test_energies_and_forces_are_those_of_the_nodes(all_forms):
    """By substitution of the nodes, in any position: all but the strain energy of reduced beams, which is quadratic in amplitudes."""
    system, _, reduced = all_forms
    gravity, model = np.array([1.0, 2.0, -9.81]), reduced.system.params
    soft = lambda groups: [0 * jnp.asarray(group.stiffness) for group in groups]
    with_gravity = lambda m: eqx.tree_at(lambda m: (m.gravity, *(b.stiffness for b in m.beams)), m, (gravity, *soft(m.beams)))
    sections = lambda m: [group.sections for group in m.groups if group.flexible]
    heavy, loose = with_gravity(system.params), with_gravity(model)
    limp = eqx.tree_at(sections, loose, [0 * one for one in sections(loose)])
    y, v = moved(reduced, 1)
    (q, rates), pull = jax.jvp(reduced.coordinates, (y,), (v,)), jax.vjp(reduced.coordinates, y)[1]
    found, wanted = ({name: jax.jit(function) for name, function in of.functions.items()} for of in (reduced.system, system))
    np.testing.assert_allclose(found["kinetic"](0.0, y, v, limp), wanted["kinetic"](0.0, q, rates, heavy), rtol=1e-12)
    np.testing.assert_allclose(found["potential"](0.0, y, limp), wanted["potential"](0.0, q, heavy), rtol=1e-12)
    np.testing.assert_allclose(found["forces"](0.0, y, v, limp), pull(wanted["forces"](0.0, q, rates, heavy))[0], rtol=1e-10, atol=1e-12)
    strain = lambda y: found["potential"](0.0, y, loose) - found["potential"](0.0, y, limp)
    nodes = lambda y: total_strain_energy(system.params, reduced.coordinates(y), ("first", "second"))
    bent = lambda size: reduced.deformed({"first": size * jnp.cos(jnp.arange(12.0)), "second": size * jnp.sin(jnp.arange(12.0))})
    second = lambda energy: jax.jit(jax.grad(jax.grad(lambda size: energy(bent(size)))))(0.0)
    np.testing.assert_allclose(second(strain), second(nodes), rtol=1e-10)
    np.testing.assert_allclose(strain(bent(0.3)), 0.5 * 0.3**2 * second(nodes), rtol=1e-10)


def total_strain_energy(model, q, names):
    return sum(jnp.sum(group.only(names).energies(model.frames(q))) for group in model.beams)


def test_all_forms_have_all_frequencies(all_forms):
    """With as many forms as a clamped beam has degrees of freedom nothing is lost, gauges, springs and other beams in place."""
    system, q0, reduced = all_forms
    expected, found = mbd.modes(system, q0).squares, mbd.modes(reduced.system, reduced.q0).squares
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * float(expected[-1]))


def test_names_of_constraints_and_places(all_forms):
    _, _, reduced = all_forms
    owners = reduced.system.params.owners()
    assert len(owners) == reduced.system.constraints(0.0, reduced.q0).size
    assert owners[0] == "hub" and owners[-1] == "hinge" and owners.count("first") == owners.count("second") > 12
    np.testing.assert_allclose(
        reduced.q0[reduced.frames["first"]].reshape(4, 3), [[0.1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], atol=1e-15
    )
    amplitudes = {"first": jnp.arange(12.0), "second": -jnp.ones(12)}
    y = reduced.deformed(amplitudes)
    of_beams = np.array([owner in amplitudes for owner in owners])
    assert jnp.max(jnp.abs(reduced.system.constraints(0.0, y)[of_beams])) < 1e-14
    read = reduced.amplitudes(jnp.stack([y, reduced.q0]))
    np.testing.assert_allclose(read["first"], [amplitudes["first"], np.zeros(12)], atol=1e-14)
    np.testing.assert_allclose(read["second"], [amplitudes["second"], np.zeros(12)], atol=1e-14)
    with pytest.raises(mbd.ModelError, match="has 12 amplitudes"):
        reduced.deformed({"first": jnp.zeros(3)})
    with pytest.raises(mbd.ModelError, match="only second, first are reduced"):
        reduced.deformed({"third": jnp.zeros(3)})


@pytest.fixture(scope="module")
def cantilever():
    """A cantilever with a small load on its tip, and its modes."""
    system, q0 = alone(line(2, 2), CLAMP, [mbd.Force("beam[-1]", (1e-4, 0, 0))])
    return system, q0, mbd.modes(*alone(line(2, 2), CLAMP))


@pytest.mark.slow
def test_vibration_comes_closer_with_more_forms(cantilever):
    """The load acts all at once: the full beam beside one and three forms that it excites."""
    system, q0, found = cantilever
    excited = np.flatnonzero(np.abs(found.shapes[:, -12]) > 1e-3)
    run = lambda system, q0: mbd.simulate(system, q0, dt=2e-3, steps=150)
    tip = lambda q: np.asarray(q)[:, -12]
    expected, errors = tip(run(system, q0).q), []
    for count in (1, 3):
        reduced = mbd.reduction.ritz(system, q0, {"beam": found.shapes[excited[:count]]})
        errors.append(np.abs(tip(reduced.coordinates(run(reduced.system, reduced.q0).q)) - expected).max() / np.ptp(expected))
    assert errors[0] < 0.03 and errors[1] < 2e-4


@pytest.mark.slow
def test_a_static_form_has_the_static_answer(cantilever):
    """One form, that of the load at rest: the beam stays there, with its moments and the reaction at the clamp."""
    system, q0, found = cantilever
    form = (found.shapes[:, -12] / found.squares) @ found.shapes
    reduced = mbd.reduction.ritz(system, q0, {"beam": form[None]})
    rest = reduced.deformed({"beam": [1e-4]})
    motion = mbd.simulate(reduced.system, rest, dt=1e-3, steps=2)
    np.testing.assert_allclose(reduced.amplitudes(motion.q)["beam"][-1], [1e-4], rtol=1e-9)
    moments = post.stress_resultants(reduced.system, motion)["beam"]
    np.testing.assert_allclose(moments.values[-1, :, 4], 1e-4 * (1 - moments.s), rtol=1e-6)
    density = post.strain_energy(reduced.system, motion)["beam"].values
    assert density.shape == (3, 4)
    lifted = reduced.lift(motion)
    np.testing.assert_allclose(post.poses(system, lifted)["beam[4]"].origin[-1], q0[-12:-9] + 1e-4 * form[-12:-9], atol=1e-12)
    np.testing.assert_allclose(post.reactions(system, lifted)["clamp"].force[1], [-1e-4, 0, 0], atol=1e-10)
    np.testing.assert_allclose(post.reactions(system, lifted)["clamp"].torque[1], [0, -1e-4, 0], atol=1e-10)


@pytest.fixture(scope="module")
def flying():
    """Thrown and spun, with vibration in the six slowest forms of a clamp at its start."""
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 1.0), SECTION, 3, 1, normal=(1, 0, 0), masses={-1: 0.5})
    forms = mbd.modes(*alone(beam, CLAMP), count=6).shapes
    system, q0 = alone(beam)
    reduced = mbd.reduction.ritz(system, q0, {"beam": forms})
    omega, rates = jnp.array([3.0, -2.0, 4.0]), {"beam": 0.5 * jnp.cos(jnp.arange(6.0))}
    spin = jnp.cross(omega, reduced.q0.reshape(-1, 3)).at[0].add(jnp.array([0.5, 1.0, -0.3])).ravel()
    shake = jax.jvp(reduced.deformed, ({"beam": jnp.zeros(6)},), (rates,))[1]
    return reduced, spin + shake


@pytest.mark.parametrize(
    ("scheme", "drift", "formulation"),
    [
        (mbd.Midpoint(), 1e-3, mbd.Multipliers()),
        (mbd.EnergyMomentum(), 1e-13, mbd.NullSpace()),
        pytest.param(mbd.Midpoint(), 1e-3, mbd.NullSpace(), marks=pytest.mark.slow),
        pytest.param(mbd.EnergyMomentum(), 1e-13, mbd.Multipliers(), marks=pytest.mark.slow),
    ],
)
def test_a_flying_beam_keeps_momentum_and_energy(flying, scheme, drift, formulation):
    reduced, v0 = flying
    motion = mbd.simulate(reduced.system, reduced.q0, v0, dt=0.005, steps=100, scheme=scheme, formulation=formulation)
    lifted = reduced.lift(motion)
    for momentum in (post.linear_momentum, post.angular_momentum):
        assert np.ptp(momentum(reduced.full, lifted), axis=0).max() < 1e-11
        np.testing.assert_allclose(momentum(reduced.system, motion), momentum(reduced.full, lifted), rtol=0, atol=1e-11)
    energy = np.asarray(post.energy(reduced.system, motion))
    assert np.ptp(energy) < drift * energy[0]
    assert np.abs(post.constraint_residuals(reduced.system, motion)).max() < 1e-13
    assert np.abs(reduced.amplitudes(motion.q)["beam"]).max() > 0.02


def test_single_precision(flying):
    reduced, v0 = flying
    run = lambda dtype: mbd.simulate(reduced.system, reduced.q0.astype(dtype), v0.astype(dtype), dt=0.005, steps=100)
    motion = run(jnp.float32)
    assert motion.q.dtype == jnp.float32 and reduced.coordinates(motion.q).dtype == jnp.float32
    np.testing.assert_allclose(motion.q[-1], run(jnp.float64).q[-1], atol=2e-4)


def test_gradient_by_the_stiffness_of_the_section(cantilever):
    """Forms held fixed: reverse mode through the matrices and the motion against differences."""
    _, _, found = cantilever

    def end(factor):
        section = mbd.Section(factor * jnp.asarray(SECTION.stiffness), SECTION.mass, (0.03, 0.05))
        system, q0 = alone(line(2, 2, section), CLAMP, [mbd.Force("beam[-1]", (1.0, 0.5, 0))])
        reduced = mbd.reduction.ritz(system, q0, {"beam": found.shapes[:4]})
        motion = mbd.simulate(reduced.system, reduced.q0, dt=5e-3, steps=20, save="end", throw=False)
        return jnp.sum(reduced.coordinates(motion.q[-1])[-12:-9] * jnp.array([1.0, 2.0, 3.0]))

    value_and_slope, step = jax.jit(jax.value_and_grad(end)), 1e-5
    difference = (value_and_slope(1.1 + step)[0] - value_and_slope(1.1 - step)[0]) / (2 * step)
    np.testing.assert_allclose(value_and_slope(1.1)[1], difference, rtol=1e-6)


def test_what_cannot_be_reduced_is_told(cantilever):
    system, q0, found = cantilever
    free = mbd.modes(*alone(line(2, 2)), count=8).shapes
    with pytest.raises(mbd.ModelError, match="no beam of this mechanism; there are 'beam'"):
        mbd.reduction.ritz(system, q0, {"blade": found.shapes})
    with pytest.raises(mbd.ModelError, match="twelve for each of its 5 nodes"):
        mbd.reduction.ritz(system, q0, {"beam": found.shapes[:, :24]})
    with pytest.raises(mbd.ModelError, match="not independent"):
        mbd.reduction.ritz(system, q0, {"beam": free[5:]})
    with pytest.raises(mbd.ModelError, match="not independent"):
        mbd.reduction.ritz(system, q0, {"beam": found.shapes[np.array([0, 1, 0])]})
    with pytest.raises(mbd.ModelError, match="directors"):
        mbd.reduction.ritz(system, q0, {"beam": jnp.ones((1, q0.size))})
    with pytest.raises(mbd.ModelError, match="not free of stress"):
        mbd.reduction.ritz(system, q0.at[-12].add(0.1), {"beam": found.shapes})
    reduced = mbd.reduction.ritz(system, q0, {"beam": found.shapes})
    with pytest.raises(mbd.ModelError, match="has reduced beams already"):
        mbd.reduction.ritz(reduced.system, q0, {})
    with pytest.raises(mbd.ModelError, match="reduced beams have no chart"):
        mbd.joint_velocities(reduced.system, reduced.q0, {"clamp": 0.0})
    with pytest.raises(mbd.ModelError, match="rigid bodies alone"):
        mbd.simulate(reduced.system, reduced.q0, dt=0.01, steps=1, scheme=mbd.schemes.Newmark())


@pytest.fixture(scope="module")
def swing():
    """The stiff swing of S2, section 4.2, reduced to the four forms of table 1, and its motion past event X near 0.65 s in long steps."""
    _, _, forms, _ = table_1(14, 1)
    system, q0 = mbd.assemble(*three_bar_swing(14, 1, ALUMINIUM_SECTION, 0.5, 2.0, 0.256))
    reduced = mbd.reduction.ritz(system, q0, {"beam": forms})
    return q0, reduced, mbd.simulate(reduced.system, reduced.q0, dt=0.01, steps=170, scheme=mbd.EnergyMomentum())


@pytest.mark.slow
def test_the_stiff_swing_passes_event_x(swing):
    _, reduced, motion = swing
    assert (reduced.q0.size, reduced.system.rank) == (24 + 12 + 21, 12 + 16 + 6 + 17)
    energy = np.asarray(post.energy(reduced.system, motion))[26:]
    assert np.ptp(energy) < 1e-14
    np.testing.assert_allclose(energy[0], 0.0619, rtol=2e-3)
    assert np.abs(reduced.amplitudes(motion.q)["beam"]).max() > 0.05  # it does bend at event X


@pytest.mark.slow
def test_the_full_beam_moves_alike_until_it_fails_at_event_x(swing):
    q0, reduced, motion = swing
    full = mbd.simulate(reduced.full, q0, dt=0.01, steps=100, scheme=mbd.EnergyMomentum(), throw=False)
    assert 55 < full.reached < 100
    points = lambda q: np.asarray(jax.vmap(reduced.full.params.frames)(q))[:56, :, 0]
    assert np.abs(points(reduced.coordinates(motion.q)) - points(full.q)).max() < 2e-3
