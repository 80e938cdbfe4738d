"""Beams of finite volumes (S2, appendix): forces, inertia, and what they keep; statics and vibration against published figures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post, rotation
from jaxmbd.assembly import functions as assembly
from jaxmbd.beams.finite_volume import ConservativeFiniteVolumes, FiniteVolumes
from jaxmbd.gallery import ALUMINIUM_SECTION

from .test_beams import LINE, PULSE, SECTION, free, helix, moved

KIND, CONSERVATIVE = "finite volume", "conservative finite volume"
RANDOM = np.random.default_rng(0).standard_normal((6, 6))
STIFFNESS = RANDOM @ RANDOM.T
BENT = np.stack([np.concatenate([np.asarray(x)[None], np.asarray(R).T]) for x, R in (helix(0.0), helix(0.2))])


def element(reference, conservative=False):
    kind = ConservativeFiniteVolumes if conservative else FiniteVolumes
    return kind(reference[None], STIFFNESS[None], None, ((0,), (1,)), ("beam",), (1,))


def displaced(reference, seed, size=0.6):
    """Nodes that were moved and turned at random."""
    change = size * np.random.default_rng(seed).standard_normal((2, 2, 3))
    turned = [rotation.exp(jnp.asarray(theta)) @ rows[1:].T for theta, rows in zip(change[0], reference, strict=True)]
    return jnp.stack([jnp.concatenate([(rows[0] + x)[None], R.T]) for rows, x, R in zip(reference, change[1], turned, strict=True)])


@jax.jit
def rates(rows, velocity, spin):
    return jnp.concatenate([velocity[:, None], jnp.cross(spin[:, None], rows[:, 1:])], axis=1)


@jax.jit
def total_power(group, rows, virtual):
    """Of the potential and of the forces beside it."""
    return group.power(rows, virtual) - jax.jvp(lambda rows: jnp.sum(group.energies(rows)), (rows,), (virtual,))[1]


@jax.jit
def middle(rows):
    """Eqs. (36), (37): the section at mid-span and the rotation vector."""
    first, second = rows[0, 1:].T, rows[1, 1:].T
    theta = rotation.log(first.T @ second)
    return first @ rotation.exp(0.5 * theta), theta


@pytest.mark.parametrize("seed", range(3))
def test_forces_are_those_of_the_paper(seed):
    """Eqs. (31)-(37) as they are printed, of a curved element; the forces on nodes are minus those of (31)."""
    rows, length = displaced(BENT, seed), np.linalg.norm(BENT[1, 0] - BENT[0, 0])
    (R, theta), (R0, theta0) = middle(rows), middle(jnp.asarray(BENT))
    strains = jnp.concatenate([R.T @ (rows[1, 0] - rows[0, 0]) - R0.T @ (BENT[1, 0] - BENT[0, 0]), theta - theta0]) / length
    group = element(BENT)
    np.testing.assert_allclose(group.strains(rows)[0, 0], strains, rtol=0, atol=1e-14)
    f, m = (R @ part for part in jnp.split(STIFFNESS @ strains, 2))
    centre = rows[:, 0].mean(axis=0)
    forces = [-((-1) ** n) * f for n in (1, 2)]
    moments = [-((-1) ** n) * (jnp.cross(centre - x, f) + m) for n, x in zip((1, 2), rows[:, 0], strict=True)]
    velocity, spin = np.random.default_rng(seed + 10).standard_normal((2, 2, 3))
    expected = jnp.sum(jnp.stack(forces) * velocity) + jnp.sum(jnp.stack(moments) * spin)
    np.testing.assert_allclose(total_power(group, rows, rates(rows, velocity, spin)), expected, rtol=1e-12)


def test_no_force_and_no_moment_in_total():
    """Virtual rigid motions find no power, also where directors are not orthonormal, as in the middle of a step."""
    rows = displaced(BENT, 1) + 0.1 * np.random.default_rng(5).standard_normal((2, 4, 3))
    rigid = jnp.cross(jnp.array([0.3, -1.2, 0.7]), rows).at[:, 0].add(jnp.array([1.0, 2.0, -0.5]))
    other = rates(rows, jnp.ones((2, 3)), jnp.eye(3)[:2])
    assert abs(total_power(element(BENT), rows, rigid)) < 1e-13 * abs(total_power(element(BENT), rows, other))


def test_the_difference_to_a_potential_is_of_second_order():
    """Power of what has no potential: a quarter in elements half as long, and none where the rotation keeps its axis."""

    def share(length, bending):
        line = np.stack([np.concatenate([[[0, 0, z]], np.eye(3)]) for z in (0.0, length)])
        curve = lambda t: jnp.stack(
            [jnp.concatenate([1.1 * rows[:1], rotation.exp((jnp.array([0.7, -0.4, 1.0]) + t * bending) * rows[0, 2]).T]) for rows in line]
        )
        rows, virtual = jax.jvp(curve, (0.0,), (1.0,))
        return element(line).power(rows, virtual) / total_power(element(line), rows, virtual)

    skew = jnp.array([0.3, 0.9, -0.5])
    assert abs(share(0.1, jnp.array([0.7, -0.4, 1.0]))) < 1e-14
    np.testing.assert_allclose(share(0.1, skew) / share(0.05, skew), 4, rtol=0.02)
    assert element(BENT, conservative=True).power(displaced(BENT, 0), displaced(BENT, 1)) == 0


def test_strains_see_no_rigid_motion_and_are_smooth():
    system, q = free(mbd.Beam.curve(helix, SECTION, 3, kind=KIND))
    (group,) = system.params.beams
    at_rest = system.params.frames(q)
    rows = at_rest + 0.1 * jax.random.normal(jax.random.key(0), at_rest.shape)
    far = moved(rows, [0.8, -1.1, 2.0], [3.0, -2.0, 5.0])
    np.testing.assert_allclose(group.strains(far), group.strains(rows), rtol=0, atol=1e-13 * float(jnp.abs(group.strains(rows)).max() + 10))
    assert jnp.max(jnp.abs(group.strains(at_rest))) == 0  # the reference is free of stress, though curved
    line = np.stack([np.concatenate([[[0, 0, z]], np.eye(3)]) for z in (0.0, 0.3)])
    hessian = jax.jit(jax.hessian(lambda rows: jnp.sum(element(line).strains(rows) * jnp.arange(1.0, 7.0))))
    turned = rates(jnp.asarray(line), jnp.zeros((2, 3)), jnp.array([[0.0, 0, 0], [0.2, -0.1, 0.3]]))
    np.testing.assert_allclose(hessian(jnp.asarray(line)), hessian(line + 1e-7 * turned), atol=1e-5)


def test_stiffness_is_symmetric_at_rest_on_a_line():
    line = np.stack([np.concatenate([[[0, 0, z]], np.eye(3)]) for z in (0.0, 0.3)])

    @jax.jit
    def stiffness(rows):
        group, basis = element(rows), jnp.eye(12).reshape(12, 2, 2, 3)
        motions = jax.vmap(lambda u: rates(rows, u[0], u[1]))(basis)
        power = lambda rows: jax.vmap(lambda virtual: total_power(group, rows, virtual))(motions)
        return jax.vmap(lambda direction: jax.jvp(power, (rows,), (direction,))[1])(motions)

    K, bent = stiffness(line), stiffness(BENT)
    assert jnp.abs(K - K.T).max() < 1e-14 * jnp.abs(K).max()
    assert 1e-3 < jnp.abs(bent - bent.T).max() / jnp.abs(bent).max() < 0.1  # an element turned by more than half a radian


def test_nodes_have_the_inertia_of_their_chunks():
    """The momenta of a beam in rigid motion, by its mass and by integrals over its length and section; each node moves by itself."""
    first = mbd.Section(np.diag(SECTION.stiffness), 2.0, (0.03, 0.05), (0.2, -0.1))
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 3.0), first, 4, normal=(1, 0, 0), masses={-1: 7.0}, kind=KIND)
    system, q = free(beam)
    model, omega = system.params, jnp.array([0.3, -0.2, 0.5])
    rows = model.frames(q)
    momenta = jax.grad(model.inertia_form)(rows, jnp.cross(omega, rows).at[-1].set(0.0))
    linear, angular = jnp.sum(momenta[:, 0], axis=0), jnp.sum(jnp.cross(rows, momenta), axis=(0, 1))
    across, along, second = 3.0 * np.array([0.2, -0.1]), 2.0 * 3.0**2 / 2 + 7.0 * 3.0, 2.0 * 3.0**3 / 3 + 7.0 * 3.0**2
    mixed = np.array([0.2, -0.1]) * 3.0**2 / 2
    euler = jnp.array([[3 * 0.03, 0, mixed[0]], [0, 3 * 0.05, mixed[1]], [mixed[0], mixed[1], second]])
    np.testing.assert_allclose(linear, jnp.cross(omega, jnp.array([*across, along])), rtol=1e-12)
    np.testing.assert_allclose(angular, (jnp.trace(euler) * jnp.eye(3) - euler) @ omega, rtol=1e-12)
    assert np.linalg.eigvalsh(model.inertia[:-1]).min() > 1e-3


def test_kinds_of_beams_side_by_side():
    beams = {kind: mbd.Beam.line(**LINE, kind=kind) for kind in ("galerkin", KIND, CONSERVATIVE)}
    system, _ = mbd.assemble(mbd.Mechanism(beams))
    assert [group.names for group in system.params.beams] == [(kind,) for kind in beams]
    assert system.has("forces") and not mbd.assemble(mbd.Mechanism({"b": beams[CONSERVATIVE]}))[0].has("forces")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "volume"}, "derived from AbstractElements, not 'volume'"),
        ({"kind": KIND, "order": 2}, "of order 2"),
        ({"corrected": True}, "gain nothing"),
    ],
    ids=range(3),
)
def test_mistakes_are_named(given, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.Beam.line(**LINE, **given)


def test_single_precision():
    system, q = free(mbd.Beam.curve(helix, SECTION, 3, kind=KIND))
    q = q + 0.05 * jax.random.normal(jax.random.key(0), q.shape)
    force = lambda q, model: assembly.forces(q[0], q, q, model) - jax.grad(assembly.potential, 1)(q[0], q, model)
    single = force(q.astype(jnp.float32), system.astype(jnp.float32).params)
    double = force(q, system.params)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, double, atol=1e-5 * float(jnp.abs(double).max()))


@pytest.fixture(scope="module")
def flying():
    """A curved beam that was hit at both ends flies and vibrates."""
    runs = {"finite volume": (KIND, mbd.schemes.ConservativeDirector()), "conservative": (CONSERVATIVE, mbd.EnergyMomentum())}
    found = {}
    for name, (kind, scheme) in runs.items():
        system, q = free(mbd.Beam.curve(helix, SECTION, 8, masses={4: 1.0}, kind=kind), PULSE)
        found[name] = system, mbd.simulate(system, q, dt=0.005, steps=80, scheme=scheme)
    return found


AFTER = 21


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tolerance"), [("finite volume", 0.02), ("conservative", 1e-12)])
def test_a_flying_beam_keeps_momentum_and_energy(flying, name, tolerance):
    """Energy up to the work of the forces without a potential; the scheme of rigid bodies moves nodes too."""
    system, motion = flying[name]
    linear, angular = post.linear_momentum(system, motion), post.angular_momentum(system, motion)
    energy = post.energy(system, motion)
    assert jnp.max(jnp.abs(linear[AFTER:] - linear[AFTER])) < 1e-11 * jnp.max(jnp.abs(linear))
    assert jnp.max(jnp.abs(angular[AFTER:] - angular[AFTER])) < 1e-10 * jnp.max(jnp.abs(angular))
    assert jnp.max(jnp.abs(energy[AFTER:] - energy[AFTER])) < tolerance * energy[AFTER]


@pytest.mark.slow
def test_motions_are_those_of_other_elements(flying):
    """Beside elements of order 2: the ends of the beam went 0.37 or so, and differ by a tenth of that with 8 elements."""
    system, q = free(mbd.Beam.curve(helix, SECTION, 8, 2, masses={8: 1.0}), PULSE)
    motion = mbd.simulate(system, q, dt=0.005, steps=80, scheme=mbd.EnergyMomentum())
    ends = lambda system, motion, last: jax.vmap(system.params.frames)(motion.q)[:, [0, last], 0]
    fine = ends(system, motion, 16)
    assert jnp.abs(fine[-1] - fine[0]).max() > 0.3
    for name in flying:
        np.testing.assert_allclose(ends(*flying[name], 8), fine, rtol=0, atol=0.035)


@pytest.mark.slow
def test_post_reads_the_middle_of_elements(flying):
    system, motion = flying["finite volume"]
    strains, resultants = post.strains(system, motion)["beam"], post.stress_resultants(system, motion)["beam"]
    chords = np.linalg.norm(np.diff(np.asarray(system.params.frames(motion.q[0])[:9, 0]), axis=0), axis=1)
    np.testing.assert_allclose(strains.s, np.cumsum(chords) - 0.5 * chords, rtol=1e-12)
    assert strains.values.shape == (81, 8, 6)
    np.testing.assert_allclose(resultants.values, strains.values @ np.asarray(SECTION.stiffness), rtol=1e-10, atol=1e-10)
    density = post.strain_energy(system, motion)["beam"].values
    np.testing.assert_allclose(density, 0.5 * jnp.sum(strains.values * resultants.values, axis=-1), rtol=1e-10, atol=1e-12)


CLAMP = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}


def cantilever(length, section, elements, loads, **given):
    beam = mbd.Beam.line((0, 0, 0), (0, 0, length), section, elements, normal=(1, 0, 0), **given)
    return mbd.assemble(mbd.Mechanism({"beam": beam}, CLAMP, loads))


def tip(q):
    return q.reshape(-1, 4, 3)[-1, 0]


@pytest.mark.slow
def test_a_moment_rolls_a_beam_up_into_an_exact_circle():
    """In a plane conservative elements are the same as others, and faster to compile."""
    section = mbd.Section.rectangle(1e-4, 1e-4, 1e9, 1e3)
    moment = 2 * np.pi * float(section.stiffness[3, 3])
    found = mbd.equilibrium(*cantilever(1.0, section, 8, [mbd.Torque("beam[-1]", (moment, 0, 0))], kind=CONSERVATIVE), steps=20)
    assert jnp.linalg.norm(tip(found.q)) < 1e-13


@pytest.mark.slow
def test_large_deflection_of_a_cantilever():
    """The published figures by a few elements with corrected stiffness, and the slope by the modulus of elasticity."""

    def deflection(modulus):
        section = mbd.Section.rectangle(0.1, 0.5, modulus, 7800.0, nu=0.3)
        system, q = cantilever(2.0, section, 8, [mbd.Force("beam[-1]", (0, 6.25e7, 0))], kind=KIND, corrected=True)
        found = mbd.equilibrium(system, q, steps=4, throw=False)
        return tip(found.q)[1], tip(found.q)[2]

    bent = jax.jit(jax.value_and_grad(deflection, has_aux=True))
    (found, height), slope = bent(2.07e11)
    np.testing.assert_allclose(2.0 - height, 0.150971, atol=4e-4)
    np.testing.assert_allclose(found, 0.710568, atol=4e-4)
    difference = (bent(2.07e11 * (1 + 1e-5))[0][0] - bent(2.07e11 * (1 - 1e-5))[0][0]) / (2e-5 * 2.07e11)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


@pytest.mark.parametrize(
    ("corrected", "digits"),
    [
        (True, ("0.443", "18.17", "28.46", "319.5")),
        pytest.param(False, ("0.443", "18.19", "28.54", "319.5"), marks=pytest.mark.slow),
    ],
)
def test_frequencies_of_the_swing_beam_of_s2(corrected, digits):
    """Table 1 of the paper, to all its digits, is that of elements with corrected stiffness to shear."""
    ends = {
        "start": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "beam[0]", at=(0, 0, 0)),
        "end": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "beam[-1]", at=(0, 0.72, 0)),
    }
    given = {"normal": (1, 0, 0), "masses": {20: 0.5}, "kind": KIND, "corrected": corrected}
    beam = mbd.Beam.line((0, 0, 0), (0, 0.72, 0), ALUMINIUM_SECTION, 40, **given)
    found = mbd.modes(*mbd.assemble(mbd.Mechanism({"beam": beam}, ends)), count=30)
    largest = np.abs(np.asarray(found.shapes).reshape(30, -1, 4, 3)[:, :, 0]).max(axis=1).argmax(axis=1)
    frequencies = np.asarray(found.frequencies)
    values = [*frequencies[largest == 2][:3], frequencies[largest == 1][0]]
    assert tuple(f"{value:.4g}" if value > 1 else f"{value:.3f}" for value in values) == digits
