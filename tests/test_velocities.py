"""Consistent velocities: what hangs on a driven joint goes along, beams as rigid unless they cannot."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.geometry.frame import Frame, twist

X, Y, Z = np.eye(3)
SECTION = mbd.Section.rectangle(0.02, 0.01, 7e10, 2700.0)
HUB, RADIUS, RATE = 0.1, 1.1, 30.0
TURNED = mbd.rotation.exp(jnp.array([0.3, -0.5, 0.9]))


def moving(system, q, v):
    """Velocity and angular velocity of all bodies, by name."""
    model = system.params
    rows, rates = jax.jvp(model.frames, (q,), (v,))
    pairs = [twist(Frame.from_rows(row), Frame.from_rows(rate)) for row, rate in zip(rows, rates, strict=True)]
    return {name: np.concatenate(pair) for name, pair in zip(model.bodies, pairs, strict=True)}


def rigid(system, q, spin, point=(0.0, 0.0, 0.0)):
    """The same for a rotation of everything but the ground about a point."""
    rows = np.asarray(system.params.frames(q))
    found = {name: np.concatenate([np.cross(spin, row[0] - point), spin]) for name, row in zip(system.params.bodies, rows, strict=True)}
    return found | {"ground": np.zeros(6)}


def strain_rates(system, q, v):
    rates = [jax.jvp(lambda q, group=group: group.strains(system.params.frames(q)), (q,), (v,))[1] for group in system.params.beams]
    return max(float(jnp.abs(rate).max()) for rate in rates)


def admissible(system, q, v):
    rates = jax.jvp(lambda q: system.constraints(0.0, q), (q,), (v,))[1]
    return float(jnp.abs(rates).max()) < 1e-12 * float(jnp.abs(v).max())


def agree(found, expected, atol=1e-12):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=atol, err_msg=name)


@functools.cache
def spinning(**blade):
    """A blade along the first axis on a hub that turns about the third one."""
    beam = mbd.Beam.line(HUB * X, RADIUS * X, SECTION, normal=Z, **{"elements": 4} | blade)
    bodies = {"hub": mbd.RigidBody.cylinder(1.0, HUB, 0.05), "blade": beam}
    joints = {
        "bearing": mbd.Joint(mbd.Revolute(Z), "ground", "hub", at=(0, 0, 0)),
        "root": mbd.Joint(mbd.Fixed(), "hub", "blade[0]", at=HUB * X),
    }
    return mbd.assemble(mbd.Mechanism(bodies, joints))


@pytest.mark.parametrize("blade", [{}, {"order": 3, "elements": 2}, {"kind": "finite volume"}], ids=["linear", "cubic", "volumes"])
def test_a_blade_turns_with_its_hub(blade):
    system, q = spinning(**blade)
    v = mbd.joint_velocities(system, q, {"bearing": RATE})
    agree(moving(system, q, v), rigid(system, q, RATE * Z))
    assert strain_rates(system, q, v) < 1e-14 * RATE and admissible(system, q, v)


def test_the_root_of_a_spinning_blade_carries_its_centrifugal_force():
    r"""On average over ten vibrations along it, which begin as it is not stretched yet, $\frac12 A_\rho \omega^2 (R^2 - r^2)$."""
    system, q = spinning()
    period = 4 * (RADIUS - HUB) * np.sqrt(2700.0 / 7e10)
    v = mbd.joint_velocities(system, q, {"bearing": RATE})
    run = mbd.simulate(system, q, v, dt=period / 20, steps=200)
    tension = mbd.post.stress_resultants(system, run)["blade"]
    there = HUB + float(tension.s[0])
    expected = 0.5 * float(SECTION.mass) * RATE**2 * (RADIUS**2 - there**2)
    np.testing.assert_allclose(np.mean(tension.values[:, 0, 2]), expected, rtol=0.02)


def curved(x):
    """Three quarters of a turn about the third axis."""
    angle = 1.5 * np.pi * x
    c, s = np.cos(angle), np.sin(angle)
    return jnp.array([c, s, 0.2 * x]), jnp.array([[c, 0.0, -s], [s, 0.0, c], [0.0, -1.0, 0.0]])


def test_beams_on_beams_and_what_hangs_on_them_go_along():
    """A bent beam on a turned pivot, on its end a hinge with another beam, on that a weight and a mass point on a rod."""
    bodies = {
        "bow": mbd.Beam.curve(curved, SECTION, 5, order=2),
        "arm": mbd.Beam.line((0, -1, 0.2), (0, -1, 2.2), SECTION, 4),
        "weight": mbd.RigidBody.sphere(1.0, 0.1),
        "bob": mbd.Particle(0.5),
    }
    joints = {
        "pivot": mbd.Joint(mbd.Spherical(), "ground", "bow[0]", on_a=mbd.Frame(X, TURNED), on_b=mbd.Frame((0, 0, 0), TURNED)),
        "hinge": mbd.Joint(mbd.Revolute(X), "bow[-1]", "arm[0]", at=(0, -1, 0.2)),
        "bolt": mbd.Joint(mbd.Fixed(), "arm[-1]", "weight", at=(0, -1, 2.2)),
        "rod": mbd.Joint(mbd.Distance(), "weight", "bob"),
    }
    placement = {"weight": (0, -1, 2.3), "bob": (0.5, -1, 2.3)}
    system, q = mbd.assemble(mbd.Mechanism(bodies, joints), placement)
    turn = np.array([2.0, -1.0, 3.0])
    v = mbd.joint_velocities(system, q, {"pivot": turn})
    expected = rigid(system, q, np.asarray(TURNED) @ turn, X)
    expected["bob"][3:] = 0
    agree(moving(system, q, v), expected)
    assert strain_rates(system, q, v) < 1e-12
    swung = moving(system, q, mbd.joint_velocities(system, q, {"pivot": turn, "hinge": 4.0}))
    np.testing.assert_allclose(swung["arm[3]"] - expected["arm[3]"], [0, -4.0 * 1.5, 0, 4.0, 0, 0], atol=1e-12)


def test_redundant_closures_that_are_rounding_alone_do_not_count():
    """A four-bar in a tilted plane: three of its closures are zero but for rounding."""
    system, q = mbd.assemble(*mbd.gallery.four_bar(turn=np.asarray(TURNED)))
    v = mbd.joint_velocities(system, q, {"hinge 1": 8.0})
    assert admissible(system, q, v)
    np.testing.assert_allclose(np.linalg.norm(moving(system, q, v)[system.params.bodies[0]][3:]), 8.0, rtol=1e-12)


@functools.cache
def slider_crank():
    """A crank of one and a rod of two, an elastic one, in the plane of the first two axes, stretched out."""
    bodies = {"crank": mbd.RigidBody.box(1.0, (1.0, 0.1, 0.1)), "rod": mbd.Beam.line(X, 3 * X, SECTION, 3, order=2, normal=Z)}
    joints = {
        "bearing": mbd.Joint(mbd.Revolute(Z), "ground", "crank", at=(0, 0, 0)),
        "crank pin": mbd.Joint(mbd.Revolute(Z), "crank", "rod[0]", at=X),
        "wrist pin": mbd.Joint(mbd.Revolute(Z), "rod[-1]", "slider", at=3 * X),
        "guide": mbd.Joint(mbd.Prismatic(X), "ground", "slider", at=3 * X),
    }
    bodies["slider"] = mbd.RigidBody.box(0.1, (0.1, 0.1, 0.1))
    return mbd.assemble(mbd.Mechanism(bodies, joints), {"crank": 0.5 * X, "slider": 3 * X})


def test_an_elastic_rod_in_a_loop_moves_as_a_rigid_one():
    """Stretched out, the rod turns about the wrist pin at half the rate of the crank."""
    system, q = slider_crank()
    v = mbd.joint_velocities(system, q, {"bearing": 8.0})
    found, expected = moving(system, q, v), rigid(system, q, -4.0 * Z, 3 * X)
    expected |= {"crank": np.array([0, 4.0, 0, 0, 0, 8.0]), "slider": np.zeros(6)}
    agree(found, expected)
    assert strain_rates(system, q, v) < 1e-12 and admissible(system, q, v)


@pytest.fixture(scope="module")
def bridge():
    """A beam between a wall and a body that moves in all directions without turning."""
    bodies = {"beam": mbd.Beam.line((0, 0, 0), 2 * X, SECTION, 8, normal=Z), "end": mbd.RigidBody.sphere(1.0, 0.1)}
    gliding = lambda u, a, b, params: mbd.geometry.Motion.move(u)
    level = lambda a, b, params: jnp.array([a.x @ b.y, a.y @ b.z, a.z @ b.x])
    joints = {
        "wall": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0)),
        "bolt": mbd.Joint(mbd.Fixed(), "end", "beam[-1]", at=2 * X),
        "glide": mbd.Joint(mbd.UserJoint(level, None, gliding, 3), "ground", "end", at=2 * X),
    }
    return mbd.assemble(mbd.Mechanism(bodies, joints), {"end": 2 * X})


def test_a_beam_that_must_stretch_does_so_everywhere_alike(bridge):
    found = moving(*bridge, mbd.joint_velocities(*bridge, {"glide": (3.0, 0.0, 0.0)}))
    for i in range(9):
        np.testing.assert_allclose(found[f"beam[{i}]"], [3.0 * i / 8, 0, 0, 0, 0, 0], atol=1e-12)


def test_a_beam_that_must_bend_does_so_from_both_ends_alike(bridge):
    system, q = bridge
    v = mbd.joint_velocities(system, q, {"glide": (0.0, 1.0, 0.0)})
    found = moving(system, q, v)
    middle = found["beam[4]"]
    np.testing.assert_allclose(middle[:5], [0, 0.5, 0, 0, 0], atol=1e-12)
    assert middle[5] > 0.6 and admissible(system, q, v)
    for i in range(9):
        np.testing.assert_allclose(found[f"beam[{i}]"] - middle, (middle - found[f"beam[{8 - i}]"]) * [1, 1, 1, 1, 1, -1], atol=1e-12)


def test_what_is_told_of_nodes_holds():
    """A node that is told to stretch the blade does, and those beyond it follow; told again as it moves anyway it changes nothing."""
    system, q = spinning()
    stretched = moving(system, q, mbd.joint_velocities(system, q, {"bearing": RATE, "blade[2]": (1.0, 0.6 * RATE, 0, 0, 0, RATE)}))
    expected = rigid(system, q, RATE * Z)
    for i, along in enumerate((0.0, 0.5, 1.0, 1.0, 1.0)):
        np.testing.assert_allclose(stretched[f"blade[{i}]"] - expected[f"blade[{i}]"], [along, 0, 0, 0, 0, 0], atol=1e-12)
    told = {f"blade[{i}]": expected[f"blade[{i}]"] for i in range(1, 5)}
    agree(moving(system, q, mbd.joint_velocities(system, q, {"bearing": RATE, **told})), expected)
    agree(moving(system, q, mbd.joint_velocities(system, q, {"blade[0]": expected["blade[0]"]})), expected)


def test_a_mechanism_in_free_flight_moves_with_the_body_that_is_told():
    """Whichever of its bodies begins the tree."""
    bodies = {"beam": mbd.Beam.line((0, 0, 0), Z, SECTION, 3), "body": mbd.RigidBody.sphere(1.0, 0.1)}
    bolt = {"bolt": mbd.Joint(mbd.Fixed(), "body", "beam[1]", at=(0, 0, 1 / 3))}
    system, q = mbd.assemble(mbd.Mechanism(bodies, bolt), {"body": (0.2, 0.1, 0.3)})
    spin, velocity = np.array([1.0, -2.0, 0.5]), np.array([4.0, 5.0, 6.0])
    expected = rigid(system, q, spin, np.array([0.2, 0.1, 0.3]))
    expected = {name: value + (name != "ground") * np.concatenate([velocity, np.zeros(3)]) for name, value in expected.items()}
    agree(moving(system, q, mbd.joint_velocities(system, q, {"body": (*velocity, *spin)})), expected)


def test_bodies_that_only_equations_hold_go_along():
    """A ball joint written as a function, and a beam in space on a hub in the plane."""
    ball = lambda a, b, params: b.origin - a.origin
    bodies = {"hub": mbd.RigidBody.sphere(1.0, 0.1), "arm": mbd.RigidBody.sphere(1.0, 0.1)}
    joints = {
        "bearing": mbd.Joint(mbd.Revolute(Z), "ground", "hub", at=(0, 0, 0)),
        "ball": mbd.Joint(mbd.UserJoint(ball), "hub", "arm", at=X),
    }
    system, q = mbd.assemble(mbd.Mechanism(bodies, joints), {"arm": 2 * X})
    agree(moving(system, q, mbd.joint_velocities(system, q, {"bearing": 2.0})), rigid(system, q, 2 * Z))
    bodies = {"hub": mbd.PlanarBody.disc(1.0, 0.1), "blade": mbd.Beam.line(HUB * X, X, SECTION, 3)}
    joints |= {"ball": mbd.Joint(mbd.Fixed(), "hub", "blade[0]", at=HUB * X)}
    system, q = mbd.assemble(mbd.Mechanism(bodies, joints))
    agree(moving(system, q, mbd.joint_velocities(system, q, {"bearing": 2.0})), rigid(system, q, 2 * Z))


def test_transformations_and_single_precision():
    system, q = slider_crank()
    given = lambda rate: mbd.joint_velocities(system, q, {"bearing": rate})
    v = given(8.0)
    np.testing.assert_allclose(jax.jit(given)(8.0), v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(jax.jacfwd(given)(8.0), v / 8, rtol=0, atol=1e-12)
    np.testing.assert_allclose(jax.vmap(given)(jnp.array([8.0, -4.0])), jnp.stack([v, -v / 2]), rtol=0, atol=1e-12)
    single = mbd.joint_velocities(system, q.astype(jnp.float32), {"bearing": 8.0})
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, v, rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"baering": 1.0}, r"rates name 'baering'.*did you mean 'bearing'\?"),
        ({"blade": 1.0}, r"rates name 'blade'.*'blade\[\d\]'"),
        ({"bearing": "fast"}, "rate of 'bearing'"),
        ({"bearing": np.nan}, "rate of 'bearing'"),
        ({"bearing": np.ones((1, 1))}, "rate of 'bearing'"),
        ({"blade[2]": (1.0, 2.0)}, r"'blade\[2\]' takes 6 rates, but 2"),
        ({"root": 1.0}, "'root' takes 0 rates, but 1"),
        ({3: 1.0}, "each key of rates"),
        ([("bearing", 1.0)], "rates must be a dictionary"),
        ({"bearing": 1.0, "hub": (1.0, 0, 0, 0, 0, 1.0)}, "no motion has these rates of bearing, hub"),
    ],
    ids=range(10),
)
def test_rates_that_cannot_be_are_named(rates, words):
    with pytest.raises(mbd.ModelError, match=words):
        mbd.joint_velocities(*spinning(), rates)


@pytest.mark.slow
def test_a_long_blade_costs_no_large_matrix():
    """The pseudo-inverse of all increments of 3,000 nodes would take hours."""
    system, q = spinning(elements=3000)
    v = mbd.joint_velocities(system, q, {"bearing": RATE})
    agree(moving(system, q, v), rigid(system, q, RATE * Z), atol=1e-10)
