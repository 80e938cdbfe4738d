"""Pictures of shapes: what was drawn, not how it looks."""

import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

import jaxmbd as mbd

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from jaxmbd import viz
from jaxmbd.bodies import Box, Cylinder, Hull, Sphere, Tube
from jaxmbd.viz.solids import solid


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def area(path):
    """What triangles of a path cover, if they do not overlap."""
    a, b, c, _ = np.swapaxes(path.vertices.reshape(-1, 4, 2), 0, 1)
    return np.sum((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2


def placed(shapes, placement=None):
    """Bodies with shapes, without joints."""
    bodies = {name: mbd.RigidBody(1.0, (1, 1, 1), shape=shape) for name, shape in shapes.items()}
    return mbd.assemble(mbd.Mechanism(bodies), placement or {})


SIDES = {
    "box": (Box((1.0, 2.0, 3.0)), (2.0, 3.0, 6.0), 4),
    "cylinder": (Cylinder(0.5, 3.0), (16 * np.sin(np.pi / 16) * 0.25, 3.0, 3.0), 32),
    "tube": (Tube(0.5, 0.3, 3.0), (16 * np.sin(np.pi / 16) * (0.25 - 0.09), None, None), 64),
}


@pytest.mark.parametrize("name", ["box", "cylinder", "tube"])
def test_shapes_are_filled_outlines_in_a_plane(name):
    shape, sides, edges = SIDES[name]
    system, q = placed({"body": shape}, {"body": (5, 6, 7)})
    for plane, wanted in zip(((0, 1), (0, 2), (1, 2)), sides, strict=True):
        fill, line = viz.snapshots(system, q, plane=plane).bodies
        assert fill.get_gid() == "body"
        if wanted is not None:
            np.testing.assert_allclose(area(fill.get_path()), wanted, rtol=1e-12)
            middle = line.get_path().get_extents().get_points().mean(axis=0)
            np.testing.assert_allclose(middle, [(5, 6, 7)[i] for i in plane], atol=1e-12)
    from_above = viz.snapshots(system, q, plane=(0, 1)).bodies[1].get_path()
    assert len(from_above.vertices) == 2 * edges


def test_outlines_turn_with_the_body_and_seen_from_behind_are_the_same():
    turn = np.array([0.0, 0.0, np.pi / 6])
    system, q = placed({"body": Box((2.0, 1.0, 1.0))}, {"body": ((0, 0, 0), turn)})
    ahead, behind = (viz.snapshots(system, q, plane=plane).bodies[0].get_path() for plane in ((0, 1), (1, 0)))
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    np.testing.assert_allclose(ahead.get_extents().size, (2 * c + s, 2 * s + c), rtol=1e-12)
    np.testing.assert_allclose(behind.get_extents().size, (2 * s + c, 2 * c + s), rtol=1e-12)
    np.testing.assert_allclose([area(ahead), area(behind)], 2.0, rtol=1e-12)


def test_flat_parts_are_polygons_in_space_with_crisp_edges_where_they_meet_sharply():
    hexahedron = solid(Box((1, 1, 1)).surface(), Box((1, 1, 1)).surface().vertices[None])
    assert sorted(map(len, hexahedron.polygons)) == [4] * 6 and hexahedron.crisp.all() and hexahedron.edges.sharp.sum() == 12
    surface = Cylinder(1.0, 1.0).surface()
    cylinder = solid(surface, surface.vertices[None])
    assert sorted(map(len, cylinder.polygons)) == [4] * 32 + [32] * 2
    assert sorted(len(one) for one, crisp in zip(cylinder.polygons, cylinder.crisp, strict=True) if crisp) == [32, 32]
    surface = Hull(np.array([(0.0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])).surface()
    assert len(solid(surface, surface.vertices[None]).polygons) == 4


def test_shapes_in_space_are_drawn_where_the_bodies_are():
    system, q = placed({"a": Box((1, 1, 1)), "b": Sphere(1.0)}, {"a": (0, 0, 0), "b": (5, 0, 0)})
    drawing = viz.snapshots(system, jnp.stack([q, q]))
    assert len(drawing.bodies) == 2  # all bodies of a row at once
    faded, last = (one.get_facecolor()[:, 3] for one in drawing.bodies)
    assert faded.max() < last.min()
    np.testing.assert_allclose(drawing.axes[0].get_xlim(), (-0.5 - 0.06 * 6.5, 6 + 0.06 * 6.5))


def test_colours_of_bodies_fading_rows_and_scenery():
    bodies = {"a": mbd.RigidBody.box(1.0, (1, 1, 1)), "b": mbd.RigidBody.sphere(1.0, 1.0), "floor": mbd.bodies.Ground(shape=Box((9, 9, 1)))}
    system, q = mbd.assemble(mbd.Mechanism(bodies), {"b": (3, 0, 0)})
    colour = lambda drawing: {one.get_gid(): one.get_facecolor()[:3] for one in drawing.bodies if one.get_gid()}
    plain = colour(viz.snapshots(system, q, plane=(0, 1)))
    assert plain == {"a": matplotlib.colors.to_rgb(viz.BLUE), "b": matplotlib.colors.to_rgb(viz.ORANGE)}
    assert set(colour(viz.snapshots(system, q, plane=(0, 1), bodies="red")).values()) == {(1, 0, 0)}
    assert colour(viz.snapshots(system, q, plane=(0, 1), bodies={"b": "red"}))["b"] == (1, 0, 0)
    rows = viz.snapshots(system, jnp.stack([q] * 4), plane=(0, 1))
    strengths = [one.get_facecolor()[3] for one in rows.bodies if one.get_gid() == "a"]
    assert len(strengths) == 4 and strengths == sorted(strengths) and strengths[-1] > 2 * strengths[0]
    assert sum(one.get_gid() == "floor" for one in rows.axes[0].patches) == 1
    np.testing.assert_allclose(rows.axes[0].get_ylim(), (-4.5 - 0.54, 4.5 + 0.54))


def test_bodies_nearer_to_the_eye_are_drawn_later():
    system, q = placed({"near": Box((1, 1, 1)), "far": Box((1, 1, 1))}, {"near": (0, 0, 2), "far": (0, 0, 0)})
    order = lambda plane: [one.get_gid() for one in viz.snapshots(system, q, plane=plane).bodies if one.get_gid()]
    assert order((0, 1)) == ["far", "near"] and order((1, 0)) == ["near", "far"]


def test_rows_on_axes_of_their_own_tell_their_time():
    system, q = placed({"a": Box((1, 1, 1))})
    motion = mbd.simulate(system, q, dt=0.5, steps=2)
    figure, axes = viz.sheet("AB", {"A": "Two times", "B": "Later"})
    drawing = viz.snapshots(system, motion, [0, 2], axes=list(axes.values()), plane=(0, 1))
    assert [one.texts[0].get_text() for one in drawing.axes] == ["t = 0", "t = 1"]
    assert drawing.figure is figure and axes["B"].get_title(loc="left") == "2  Later" and not axes["A"].axison
