"""Beams: sections, strains, inertia, names of nodes, and motions that keep what a free beam keeps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post, rotation

SECTION = mbd.Section((3.0e4, 4.0e4, 9.0e4, 40.0, 25.0, 30.0), 2.0, (0.03, 0.05))


def helix(x):
    """A curve of constant curvature and torsion, with its tangent as third director."""
    angle = 3.0 * x
    position = jnp.array([jnp.cos(angle), jnp.sin(angle), 0.5 * angle])
    tangent = jnp.array([-jnp.sin(angle), jnp.cos(angle), 0.5]) / jnp.sqrt(1.25)
    inward = jnp.array([-jnp.cos(angle), -jnp.sin(angle), 0.0])
    return position, jnp.stack([inward, jnp.cross(tangent, inward), tangent], axis=1)


def free(beam, loads=()):
    return mbd.assemble(mbd.Mechanism({"beam": beam}, loads=loads))


def frames(system, q, key):
    """Any frames of nodes, not even orthonormal."""
    rows = system.params.frames(q)
    return rows + 0.3 * jax.random.normal(key, rows.shape)


def moved(rows, theta, shift):
    R = rotation.exp(jnp.asarray(theta))
    turned = rows @ R.T
    return turned.at[:, 0].add(jnp.asarray(shift))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_strains_see_no_rigid_motion(order):
    system, q = free(mbd.Beam.curve(helix, SECTION, 3, order))
    (group,) = system.params.beams
    rows = frames(system, q, jax.random.key(order))
    far = moved(rows, [0.8, -1.1, 2.0], [3.0, -2.0, 5.0])
    np.testing.assert_allclose(group.strains(far), group.strains(rows), rtol=0, atol=1e-13 * float(jnp.abs(group.strains(rows)).max() + 10))
    np.testing.assert_allclose(jnp.sum(group.energies(far)), jnp.sum(group.energies(rows)), rtol=1e-13)
    assert jnp.max(jnp.abs(group.strains(system.params.frames(q)))) == 0  # the reference is free of stress, though curved


def test_strains_of_known_deformations():
    """A straight beam bent about its first director, twisted, sheared and stretched, each by the same amount everywhere."""
    system, q = free(mbd.Beam.line((0, 0, 0), (0, 0, 2.0), SECTION, 50, 2, normal=(1, 0, 0)))
    (group,) = system.params.beams
    s = np.linspace(0, 2, 101)

    def strained(position, theta):
        rotations = np.stack([np.asarray(rotation.exp(jnp.asarray(angle))) for angle in theta])
        rows = np.concatenate([position[:, None], np.swapaxes(rotations, 1, 2)], axis=1)
        return np.asarray(group.strains(jnp.concatenate([jnp.asarray(rows), system.params.frames(q)[-1:]])))

    zero = np.zeros_like(s)
    bent = strained(np.stack([zero, (np.cos(0.4 * s) - 1) / 0.4, np.sin(0.4 * s) / 0.4], axis=1), np.outer(0.4 * s, [1, 0, 0]))
    np.testing.assert_allclose(bent, np.broadcast_to([0, 0, 0, 0.4, 0, 0], bent.shape), atol=2e-6)
    twisted = strained(np.stack([0.02 * s, -0.03 * s, 1.05 * s], axis=1), np.outer(0.3 * s, [0, 0, 1]))
    turned = [0.02 * np.cos(0.3 * 1.0) - 0.03 * np.sin(0.3 * 1.0), -0.03 * np.cos(0.3 * 1.0) - 0.02 * np.sin(0.3 * 1.0), 0.05, 0, 0, 0.3]
    middle = twisted[24:26].reshape(-1, 6).mean(axis=0)  # shear in the axes of the section half way along
    np.testing.assert_allclose(middle, turned, atol=1e-5)


def test_inertia_of_a_beam_is_that_of_its_body():
    """The momenta of a beam in rigid motion, by its mass and by integrals over its length and section."""
    system, q = free(mbd.Beam.line((0, 0, 0), (0, 0, 3.0), SECTION, 4, 1, normal=(1, 0, 0), masses={-1: 7.0}))
    model, omega = system.params, jnp.array([0.3, -0.2, 0.5])
    rows = model.frames(q)
    rates = jnp.cross(omega, rows).at[-1].set(0.0)
    momenta = jax.grad(model.inertia_form)(rows, rates)
    linear, angular = jnp.sum(momenta[:, 0], axis=0), jnp.sum(jnp.cross(rows, momenta), axis=(0, 1))
    first, second = 2.0 * 3.0**2 / 2 + 7.0 * 3.0, 2.0 * 3.0**3 / 3 + 7.0 * 3.0**2
    inertia = jnp.diag(jnp.array([second + 3 * 0.05, second + 3 * 0.03, 3 * 0.08]))
    np.testing.assert_allclose(linear, jnp.cross(omega, jnp.array([0.0, 0.0, first])), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(angular, inertia @ omega, rtol=1e-12, atol=1e-12)


def test_sections_of_known_shapes():
    square, slab = mbd.Section.rectangle(2.0, 2.0, 1.0, 3.0, nu=0.0), mbd.Section.rectangle(100.0, 0.1, 1.0, 1.0, nu=0.0)
    np.testing.assert_allclose(np.diag(square.stiffness), [10 / 12 * 2, 10 / 12 * 2, 4, 4 / 3, 4 / 3, 0.5 * 0.140577 * 16], rtol=1e-5)
    np.testing.assert_allclose(slab.stiffness[5, 5], 0.5 * 100.0 * 0.1**3 / 3 * (1 - 0.63e-3), rtol=1e-5)
    circle, tube = mbd.Section.circle(2.0, 1.0, 1.0), mbd.Section.tube(2.0, 2.0 - 1e-6, 1.0, 1.0)
    np.testing.assert_allclose(circle.stiffness[3, 3], np.pi * 4.0, rtol=1e-12)
    np.testing.assert_allclose(tube.stiffness[3, 3] / tube.stiffness[2, 2], 2.0, rtol=1e-6)
    np.testing.assert_allclose(tube.stiffness[0, 0] / tube.stiffness[2, 2], 2 * 1.3 / (4 + 3 * 0.3) / (2 * 1.3), rtol=1e-5)  # thin tube
    np.testing.assert_allclose(np.trace(square.inertia_matrix), 3.0 * (4 + 8 / 3), rtol=1e-12)
    assert square.inertia_matrix[3, 3] == 0
    slope = jax.grad(lambda width: mbd.Section.rectangle(width, 0.5, 1.0, 1.0).stiffness[5, 5])(1.0)
    other = [float(mbd.Section.rectangle(width, 0.5, 1.0, 1.0).stiffness[5, 5]) for width in (1.0 + 1e-5, 1.0 - 1e-5)]
    np.testing.assert_allclose(slope, (other[0] - other[1]) / 2e-5, rtol=1e-6)


LINE = {"start": (0, 0, 0), "end": (0, 0, 1), "section": SECTION, "elements": 2}


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda: mbd.Beam.line(**LINE | {"end": (0, 0, 0)}), "no length"),
        (lambda: mbd.Beam.line(**LINE, normal=(0, 0, 1)), "normal of a beam lies along it"),
        (lambda: mbd.Beam.line(**LINE, order=4), "order 1, 2 or 3"),
        (lambda: mbd.Beam.line(**LINE, masses={3: 1.0}), "node 3 of a beam whose nodes are 0 to 2"),
        (lambda: mbd.Beam.line(**LINE, masses={1: -1.0}), "positive"),
        (lambda: mbd.Beam.line(**LINE | {"section": [SECTION]}), "list with one for each"),
        (lambda: mbd.Beam.curve(lambda x: (jnp.array([0, 0, x]), jnp.ones((3, 3))), SECTION, 2), "rotation matrix"),
        (lambda: mbd.Section((1.0, 1.0, 1.0, 1.0, 1.0, 0.0), 1.0, (1.0, 1.0)), "positive definite"),
        (lambda: mbd.Section((1.0, 1.0), 1.0, (1.0, 1.0)), "stiffness of a Section .*shape"),
        (lambda: mbd.Mechanism({"b": mbd.Beam.line(**LINE)}, {"j": mbd.Joint(mbd.Fixed(), "ground", "b")}), r"nodes .* b\[0\] to b\[2\]"),
        (lambda: mbd.Mechanism({"b": mbd.Beam.line(**LINE)}, loads=[mbd.Force("b[3]", (1, 0, 0))]), r"b\[0\] to b\[2\]"),
        (lambda: mbd.assemble(mbd.Mechanism({"b": mbd.Beam.line(**LINE)}), solve=True), "placed by poses"),
    ],
    ids=range(12),
)
def test_mistakes_are_named(mistake, words):
    with pytest.raises(mbd.ModelError, match=words):
        mistake()


def test_schemes_of_rigid_bodies_refuse_beams():
    system, q = free(mbd.Beam.line(**LINE))
    with pytest.raises(mbd.ModelError, match="not beams"):
        mbd.simulate(system, q, dt=0.01, steps=1, scheme=mbd.schemes.ConservativeDirector())


PULSE = [mbd.Force("beam[-1]", lambda t: jnp.array([40.0, 10.0, -20.0]) * jnp.maximum(0, 1 - jnp.abs(t / 0.05 - 1)))]
PULSE.append(mbd.Torque("beam[0]", lambda t: jnp.array([0.0, 8.0, 15.0]) * jnp.maximum(0, 1 - jnp.abs(t / 0.05 - 1))))


@pytest.fixture(scope="module")
def flying():
    """A curved beam that was hit at both ends flies and vibrates, by two schemes and three formulations."""
    system, q = free(mbd.Beam.curve(helix, SECTION, 4, masses={2: 1.0}), PULSE)
    runs = {
        "energy-momentum": {"scheme": mbd.EnergyMomentum()},
        "midpoint": {},
        "null space": {"formulation": mbd.NullSpace()},
        "joint multipliers": {"formulation": mbd.formulations.JointMultipliers()},
        "reparametrised": {"formulation": mbd.Reparametrised()},
    }
    return system, {name: mbd.simulate(system, q, dt=0.005, steps=80, **given) for name, given in runs.items()}


def test_a_flying_beam_keeps_momentum_and_energy(flying):
    system, motions = flying
    after = 21
    for name, tolerance in (("energy-momentum", 1e-12), ("midpoint", 0.05)):
        motion = motions[name]
        linear, angular = post.linear_momentum(system, motion), post.angular_momentum(system, motion)
        energy = post.energy(system, motion)
        assert jnp.max(jnp.abs(linear[after:] - linear[after])) < 1e-11 * jnp.max(jnp.abs(linear))
        assert jnp.max(jnp.abs(angular[after:] - angular[after])) < 1e-10 * jnp.max(jnp.abs(angular))
        assert jnp.max(jnp.abs(energy[after:] - energy[after])) < tolerance * energy[after]
    strain = jnp.sum(post.strain_energy(system, motions["midpoint"])["beam"].values, axis=1)
    assert jnp.max(strain[after:]) > 2 * jnp.min(strain[after:]) > 0  # it does vibrate


def test_formulations_move_a_beam_alike(flying):
    _, motions = flying
    for name in ("null space", "joint multipliers", "reparametrised"):
        np.testing.assert_allclose(motions[name].q, motions["midpoint"].q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(motions[name].v, motions["midpoint"].v, rtol=0, atol=1e-9)


def test_sparse_and_dense_tangents_move_a_beam_alike(flying):
    system, motions = flying
    dense, q0 = motions["midpoint"], motions["midpoint"].q[0]
    sparse = mbd.simulate(system, q0, dt=0.005, steps=80, newton=mbd.Newton(linear=mbd.linear.Sparse()))
    np.testing.assert_allclose(sparse.q, dense.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(sparse.multipliers, dense.multipliers, rtol=0, atol=1e-7 * float(jnp.abs(dense.multipliers).max()))


def test_resultants_along_a_beam_balance_its_inertia(flying):
    """The axial force and moments vanish towards free ends; points are counted along the reference curve."""
    system, motions = flying
    found = post.stress_resultants(system, motions["midpoint"])["beam"]
    assert found.values.shape == (81, 4, 6)
    chords = np.linalg.norm(np.diff(np.asarray(system.params.frames(motions["midpoint"].q[0])[:5, 0]), axis=0), axis=1)
    np.testing.assert_allclose(found.s, np.cumsum(chords) - 0.5 * chords, rtol=1e-12)
    strains = post.strains(system, motions["midpoint"])["beam"].values
    np.testing.assert_allclose(found.values, strains @ np.asarray(SECTION.stiffness), rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_gradients_by_stiffness_and_density(flying):
    system, motions = flying
    q0 = motions["midpoint"].q[0]

    def end(factors):
        (group,) = system.params.beams
        changed = eqx.tree_at(
            lambda group: (group.stiffness, group.inertia), group, (group.stiffness * factors[0], jnp.asarray(group.inertia) * factors[1])
        )
        other = system.with_params(eqx.tree_at(lambda model: model.beams, system.params, (changed,)))
        motion = mbd.simulate(other, q0, dt=0.005, steps=30, save="end", throw=False)
        return jnp.cos(jnp.arange(q0.size, dtype=q0.dtype)) @ motion.q[-1]

    at, step = jnp.array([1.1, 0.9]), 3e-5
    both = jax.jit(jax.value_and_grad(end))
    differences = [(both(at + step * e)[0] - both(at - step * e)[0]) / (2 * step) for e in jnp.eye(2)]
    np.testing.assert_allclose(both(at)[1], differences, rtol=2e-6)
