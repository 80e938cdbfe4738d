"""Pictures: what was drawn, not how it looks."""

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

import jaxmbd as mbd

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from jaxmbd import viz
from jaxmbd.viz.skeleton import SAMPLES

SECTION = mbd.Section((10.0, 10.0, 20.0, 3.0, 4.0, 5.0), 1.0, (0.1, 0.1))
ANGLE = 0.8  # by which the beam of unit length is bent about its first director


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def cantilever(order=2, elements=3):
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 1), SECTION, elements, order, normal=(1, 0, 0))
    return mbd.assemble(mbd.Mechanism({"beam": beam}, {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}))


def arc(fraction, order=2, elements=3):
    """The cantilever bent to an arc in the plane of the second and third axis."""
    frames = []
    for x in np.linspace(0, 1, elements * order + 1):
        a = fraction * ANGLE * x
        along = np.array([0.0, -np.sin(a), np.cos(a)])
        point = np.array([0.0, np.cos(a) - 1, np.sin(a)]) / (fraction * ANGLE) if fraction else np.array([0.0, 0.0, x])
        frames.append([point, (1.0, 0.0, 0.0), np.cross(along, (1.0, 0.0, 0.0)), along])
    return jnp.asarray(np.array(frames).ravel())


@pytest.fixture(scope="module")
def linkage():
    """A rigid link on a hinge carries a beam with a mass in its middle and a slider on a guide at its end."""
    beam = mbd.Beam.line((1, 0, 0), (3, 0, 0), SECTION, 2, masses={1: 0.5})
    bodies = {"link": mbd.RigidBody.box(1.0, (1, 0.1, 0.1)), "beam": beam, "slider": mbd.RigidBody.box(1.0, (0.1, 0.1, 0.1))}
    joints = {
        "hinge": mbd.Joint(mbd.Revolute((0, 0, 1)), "ground", "link", at=(0, 0, 0)),
        "pin": mbd.Joint(mbd.Revolute((0, 0, 1)), "link", "beam[0]", at=(1, 0, 0)),
        "bolt": mbd.Joint(mbd.Revolute((0, 0, 1)), "beam[-1]", "slider", at=(3, 0, 0)),
        "guide": mbd.Joint(mbd.Prismatic((1, 0, 0)), "ground", "slider", on_a=(4, 0, 0)),
    }
    return mbd.assemble(mbd.Mechanism(bodies, joints), {"link": (0.5, 0, 0), "slider": (3, 0, 0)})


def ends_of(collection):
    """The points of a beam from segment to segment."""
    segments = np.asarray(collection.get_segments())
    return np.concatenate([segments[:1, 0], segments[:, 1]])


def test_curves_follow_the_shape_functions():
    for order, bow in ((1, 0.0), (2, 1.0), (3, 1.0)):
        system, q = cantilever(order, 1)
        nodes = np.array(q).reshape(-1, 4, 3)
        nodes[:, 0, 1] = nodes[:, 0, 2] ** 2
        drawing = viz.snapshots(system, nodes.ravel(), plane=(2, 1))
        z, y = ends_of(drawing.beams[0]).T
        np.testing.assert_allclose(y, z**2 if bow else z, atol=1e-14)
        assert z.size == SAMPLES + 1 and len(drawing.beams) == 1 and drawing.bar is None


def test_rows_are_drawn_together_or_on_axes_of_their_own():
    system, _ = cantilever()
    path = jnp.stack([arc(fraction) for fraction in (0.0, 0.25, 0.5, 0.75, 1.0)])
    assert len(viz.snapshots(system, path, plane=(1, 2)).beams) == 5
    assert len(viz.snapshots(system, path, 3, plane=(1, 2)).beams) == 3
    figure, axes = plt.subplots(1, 2)
    drawing = viz.snapshots(system, path, [1, -1], axes=axes, plane=(1, 2))
    assert drawing.figure is figure and drawing.axes == list(axes)
    for collection, one, row in zip(drawing.beams, axes, (1, 4), strict=True):
        assert collection.axes is one
        np.testing.assert_allclose(ends_of(collection)[-1], path[row].reshape(-1, 4, 3)[-1, 0, 1:], atol=1e-14)


@pytest.mark.parametrize(("colour", "stiffness", "signed"), [("bending moment 1", 3.0, True), ("bending moment", 3.0, False)])
def test_colours_are_resultants(colour, stiffness, signed):
    system, _ = cantilever()
    path = jnp.stack([arc(0.0), arc(1.0), arc(-0.5)])
    drawing = viz.snapshots(system, path, colour=colour, plane=(1, 2))
    straight, bent, back = (np.asarray(collection.get_array()) for collection in drawing.beams)
    np.testing.assert_allclose(straight, 0, atol=1e-14)
    np.testing.assert_allclose(bent, stiffness * ANGLE, rtol=2e-3)  # of the interpolation of directors
    np.testing.assert_allclose(back, (-0.5 if signed else 0.5) * stiffness * ANGLE, rtol=2e-3)
    size = np.abs(bent).max()
    np.testing.assert_allclose(drawing.beams[0].get_clim(), (-size if signed else 0.0, size), atol=1e-14)
    assert drawing.bar.ax.get_ylabel() == colour


def test_colours_are_strain_energy_or_given_values():
    system, _ = cantilever()
    path = jnp.stack([arc(0.0), arc(1.0)])
    energy = viz.snapshots(system, path, colour="strain energy", plane=(1, 2)).beams[1].get_array()
    np.testing.assert_allclose(energy, 0.5 * 3.0 * ANGLE**2, rtol=5e-3)
    by_row = viz.snapshots(system, path, [1], colour=np.array([7.0, 9.0]), plane=(1, 2), limits=(0, 10), bar={"label": "time"})
    assert set(by_row.beams[0].get_array()) == {9.0} and by_row.beams[0].get_clim() == (0, 10) and by_row.bar.ax.get_ylabel() == "time"
    along = np.linspace(0, 1, 7)
    by_node = viz.snapshots(system, path[:1], colour={"beam": along[None]}, plane=(1, 2), bar=False)
    middles = (np.arange(3 * SAMPLES) + 0.5) / (3 * SAMPLES)
    np.testing.assert_allclose(by_node.beams[0].get_array(), middles, atol=1e-14)
    assert by_node.bar is None
    points = mbd.post.beams.along_beams(system.params, path[:1], mbd.post.beams.energy_density)["beam"].s
    inner = viz.snapshots(system, path[:1], colour=np.asarray(points)[None], plane=(1, 2)).beams[0].get_array()
    np.testing.assert_allclose(inner[3:-3], middles[3:-3], atol=1e-14)


def test_other_bodies_reach_to_their_joints(linkage):
    system, q = linkage
    axes = viz.snapshots(system, q, plane=(0, 1)).axes[0]
    lines = {line.get_gid(): np.unique(line.get_xydata().round(12), axis=0) for line in axes.lines if line.get_gid()}
    np.testing.assert_allclose(lines["link"], [[0, 0], [0.5, 0], [1, 0]], atol=1e-12)
    np.testing.assert_allclose(lines["slider"], [[3, 0]], atol=1e-12)
    marks = {line.get_marker(): line.get_xydata() for line in axes.lines if line.get_marker() in "^o" and line.get_mfc() != "white"}
    np.testing.assert_allclose(marks["^"], [[0, 0]], atol=1e-12)
    np.testing.assert_allclose(marks["o"], [[2, 0]], atol=1e-12)
    pins = next(line for line in axes.lines if line.get_mfc() == "white")
    np.testing.assert_allclose(np.sort(pins.get_xdata()), [1, 3], atol=1e-12)
    guide = next(line for line in axes.lines if line.get_linestyle() == "--")
    np.testing.assert_allclose(np.sort(guide.get_xdata()), [3, 4], atol=1e-12)


def test_snapshots_in_space_of_a_trajectory():
    body = {"body": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0))}
    hinge = {"hinge": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "body", at=(0, 0, 0))}
    system, q0 = mbd.assemble(mbd.Mechanism(body, hinge, [mbd.Gravity()]), {"body": (0, 0.5, 0)})
    motion = mbd.simulate(system, q0, dt=0.1, steps=2)
    axes = viz.snapshots(system, motion, rows=[0, 2]).axes[0]
    assert axes.name == "3d" and not axes.collections
    lines = [np.transpose(line.get_data_3d()) for line in axes.lines if line.get_gid() == "body"]
    centres = np.asarray(motion.q)[[0, 2], :3]
    np.testing.assert_allclose([line[-1] for line in lines], centres, atol=1e-12)


def test_modes_are_drawn_about_the_equilibrium_by_the_size_of_the_mechanism():
    system, q = cantilever()
    shapes = np.zeros((3, 7, 4, 3))
    shapes[0, :, 0, 1], shapes[1, :, 0, 0], shapes[2, :, 1, 1] = np.linspace(0, 1, 7) ** 2, 5.0, 1.0
    found = mbd.Modes(jnp.array([1.0, -4.0, 9.0]) * (2 * np.pi) ** 2, jnp.asarray(shapes.reshape(3, -1)))
    drawing = viz.modes(system, q, found, plane=(2, 1), amplitude=0.2)
    assert [one.get_title() for one in drawing.axes] == ["1 Hz", "-2 Hz", "3 Hz"]
    z, y = ends_of(drawing.beams[0]).T
    np.testing.assert_allclose(y, 0.2 * z**2, atol=1e-12)
    np.testing.assert_allclose(ends_of(drawing.beams[1])[:, 1], 0, atol=1e-12)  # a vibration out of the plane
    np.testing.assert_allclose(ends_of(drawing.beams[2])[:, 1], 0, atol=1e-12)  # torsion
    assert len(viz.modes(system, q, found, count=1).axes) == 1


PARTICLE = mbd.System.from_functions(lagrangian=lambda t, q, v, p: 0.5 * v @ v)
MISTAKES = {
    "colour": (lambda s, q: viz.snapshots(s, q, colour="bendin moment", plane=(1, 2)), "shear force, axial force.*'bendin moment'"),
    "values": (lambda s, q: viz.snapshots(s, q, colour=np.zeros((1, 5)), plane=(1, 2)), r"beam 'beam' have shape \(1, 5\).*6 .*7 "),
    "names": (lambda s, q: viz.snapshots(s, q, colour={"rod": np.zeros(1)}, plane=(1, 2)), "given for rod, but the beams are beam"),
    "plane": (lambda s, q: viz.snapshots(s, q, plane=(1, 1)), r"two axes of space.*not by \(1, 1\)"),
    "rows": (lambda s, q: viz.snapshots(s, q, [3], plane=(1, 2)), "numbers from 0 to 0"),
    "axes": (lambda s, q: viz.snapshots(s, q, axes=plt.subplots()[1]), "projection='3d'"),
    "number of axes": (lambda s, q: viz.snapshots(s, q, axes=plt.subplots(1, 2)[1], plane=(1, 2)), "1 rows.*not on 2"),
    "no axes": (lambda s, q: viz.snapshots(s, q, axes=plt.figure(), plane=(1, 2)), "not a Figure"),
    "positions": (lambda s, q: viz.snapshots(s, q[:-1], plane=(1, 2)), r"84 coordinates.*\(83,\)"),
    "system": (lambda s, q: viz.snapshots(PARTICLE, q, plane=(1, 2)), "from assemble"),
    "modes": (lambda s, q: viz.modes(s, q, mbd.Modes(jnp.ones(1), jnp.ones((1, 3)))), r"shapes are \(1, 3\)"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(mistake, words):
    with pytest.raises(mbd.ModelError, match=words):
        mistake(*cantilever())


def test_beams_are_needed_for_colours():
    system, q = mbd.assemble(mbd.Mechanism({"body": mbd.RigidBody.box(1.0, (1, 1, 1))}))
    assert len(viz.snapshots(system, q, plane=(0, 1)).axes[0].lines) == 1
    with pytest.raises(mbd.ModelError, match="has none"):
        viz.snapshots(system, q, colour="torque", plane=(0, 1))
