"""Shapes of bodies: their surfaces, what bodies and assembled systems remember of them, and that motions do not see them."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.assembly.functions import kinetic
from jaxmbd.bodies import Box, Cylinder, Hull, Mesh, Sphere, Surface, Tube

TETRAHEDRON = np.array([(0.0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)])
TURNED = mbd.Frame(np.array([1.0, -2.0, 0.5]), np.asarray(mbd.rotation.exp(jnp.array([0.3, -0.8, 0.5]))))


def polygon(facets):
    """The area of a regular polygon in the unit circle."""
    return 0.5 * facets * np.sin(2 * np.pi / facets)


SHAPES = {
    "box": (Box((1.0, 2.0, 3.0)), lambda facets: 6.0),
    "cylinder": (Cylinder(0.5, 2.0), lambda facets: 0.5 * polygon(facets)),
    "tube": (Tube(0.5, 0.3, 2.0), lambda facets: 2 * (0.25 - 0.09) * polygon(facets)),
    "full tube": (Tube(0.5, 0.0, 2.0), lambda facets: 0.5 * polygon(facets)),
    "hull": (Hull(np.concatenate([TETRAHEDRON, [(0.1, 0.1, 0.1)]])), lambda facets: 1.0),
}


def moments(surface: Surface):
    """Volume, first and second moments, by the divergence theorem: tetrahedra from the origin to every triangle, with signs."""
    corners = surface.vertices[surface.faces]
    volumes = np.linalg.det(corners) / 6
    total = corners.sum(axis=1)
    second = np.einsum("t,tia,tib->ab", volumes, corners, corners) + np.einsum("t,ta,tb->ab", volumes, total, total)
    return volumes.sum(), volumes @ total / 4, second / 20


def assert_watertight(surface: Surface):
    """Every edge is run through once in each direction."""
    edges = [pair for a, b, c in surface.faces.tolist() for pair in ((a, b), (b, c), (c, a))]
    assert len(set(edges)) == len(edges) and {(b, a) for a, b in edges} == set(edges)
    assert set(np.unique(surface.faces)) == set(range(len(surface.vertices)))


@pytest.mark.parametrize("pose", [None, TURNED], ids=["in place", "moved"])
@pytest.mark.parametrize("name", SHAPES)
def test_surfaces_enclose_the_volume(name, pose):
    shape, volume = SHAPES[name]
    posed = jax.tree.map(lambda leaf: leaf, shape) if pose is None else type(shape)(**vars(shape) | {"pose": pose})
    for facets in (6, 33):
        surface = posed.surface(facets)
        assert_watertight(surface)
        np.testing.assert_allclose(moments(surface)[0], volume(facets), rtol=1e-13)
    if pose is not None:
        inside = (surface.vertices - np.asarray(pose.origin)) @ np.asarray(pose.rotation)
        np.testing.assert_allclose(inside, shape.surface(33).vertices, atol=1e-14)


def test_facets_of_spheres_come_closer_with_the_square_of_their_size():
    errors = []
    for facets in (16, 32, 64):
        surface = Sphere(1.5, pose=(1.0, 0.0, 0.0)).surface(facets)
        assert_watertight(surface)
        np.testing.assert_allclose(np.linalg.norm(surface.vertices - [1, 0, 0], axis=1), 1.5, rtol=1e-14)
        errors.append(1 - moments(surface)[0] / (4 / 3 * np.pi * 1.5**3))
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4, rtol=0.02)


def inertia_of(surface, density):
    volume, first, second = moments(surface)
    com = first / volume
    euler = second - volume * np.outer(com, com)
    return density * volume, density * (np.trace(euler) * np.eye(3) - euler), com


def test_inertia_of_bodies_is_that_of_their_surfaces():
    bodies = [
        (mbd.RigidBody.box(3.0, (1.0, 2.0, 3.0)), 0.5, 1e-13),
        (mbd.RigidBody.tetrahedron(TETRAHEDRON, 2.0), 2.0, 1e-12),
        (mbd.RigidBody.from_vertices(np.concatenate([TETRAHEDRON, TETRAHEDRON + 1]), 2.0), 2.0, 1e-12),
        (mbd.RigidBody.sphere(2.0, 0.5), 2.0 / (np.pi / 6), 4e-5),
        (mbd.RigidBody.cylinder(2.0, 0.5, 3.0), 2.0 / (0.75 * np.pi), 4e-5),
        (mbd.RigidBody.tube(2.0, 0.5, 0.4, 3.0), 2.0 / (0.09 * 3 * np.pi), 4e-5),
    ]
    for body, density, tolerance in bodies:
        (shape,) = body.shape
        mass, inertia, com = inertia_of(shape.surface(1000), density)
        np.testing.assert_allclose(mass, body.mass, rtol=tolerance)
        np.testing.assert_allclose(inertia, body.inertia, rtol=tolerance, atol=1e-14)
        np.testing.assert_allclose(com, body.com, rtol=tolerance, atol=1e-14)


def test_planar_bodies_and_rods_are_shown_with_a_thickness():
    extents = lambda body: np.ptp(body.shape[0].surface(400).vertices, axis=0)
    np.testing.assert_allclose(extents(mbd.PlanarBody.rod(1.0, 2.0)), (2.0, 0.04, 0.04))
    np.testing.assert_allclose(extents(mbd.PlanarBody.plate(1.0, (0.5, 2.0))), (0.5, 2.0, 0.04))
    np.testing.assert_allclose(extents(mbd.PlanarBody.disc(1.0, 2.0)), (4.0, 4.0, 0.04))
    np.testing.assert_allclose(extents(mbd.RigidBody.rod(1.0, 2.0)), (0.04, 0.04, 2.0))
    assert mbd.Particle(1.0).shape == () and mbd.bodies.Ground(shape=Box((1, 1, 1))).shape[0].size.shape == (3,)


CUBE = Box((1.0, 1.0, 1.0), pose=(0.5, 0.5, 0.5)).surface()


def write_binary(path):
    record = np.zeros(len(CUBE.faces), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    record["corners"] = CUBE.vertices[CUBE.faces]
    path.write_bytes(b"solid, although not of text".ljust(80) + len(record).to_bytes(4, "little") + record.tobytes())


def write_text(path):
    facet = "facet normal 0 0 0\n outer loop\n{}\n endloop\nendfacet"
    corners = ("\n".join(f"  vertex {x:e} {y:e} {z:e}" for x, y, z in triangle) for triangle in CUBE.vertices[CUBE.faces])
    path.write_text("\n".join(["solid cube", *map(facet.format, corners), "endsolid cube"]))


def write_obj(path):
    """Faces of four corners, some counted from the end, some with textures and normals."""
    corners = "\n".join(f"v {x} {y} {z}" for x, y, z in CUBE.vertices)
    faces = "f 1 2 4 3\nf -4 -2 -1 -3\nf 1/1 5/2 6/3 2/4\nf 3//1 4//1 8//1 7//1\nf 1/1/1 3/1/1 7/1/1 5/1/1\nf 2 6 8 4"
    path.write_text(f"# a cube\n{corners}\nvn 0 0 1\n{faces}\n")


@pytest.mark.parametrize(("name", "write"), [("a.stl", write_binary), ("b.STL", write_text), ("c.obj", write_obj)])
def test_meshes_are_read_when_they_are_needed(tmp_path, name, write):
    shape = Mesh(tmp_path / name, scale=2.0, pose=TURNED)  # the file is not there yet
    with pytest.raises(mbd.ModelError, match="there is no mesh file"):
        shape.surface()
    write(tmp_path / name)
    surface = shape.surface()
    assert_watertight(surface)
    assert len(surface.vertices) == 8
    volume, first, _ = moments(surface)
    np.testing.assert_allclose(volume, 8.0, rtol=1e-12)
    np.testing.assert_allclose(first / volume, TURNED.point(jnp.ones(3)), rtol=1e-12)


MISTAKES = {
    "negative": (lambda: Box((1, -1, 1)), r"size of a Box must be numbers of shape \(3,\) that are finite and not negative"),
    "count": (lambda: Box((1, 1)), r"size of a Box .* of shape \(2,\)"),
    "nan": (lambda: Sphere(np.nan), "radius of a Sphere must be a number .* but nan"),
    "infinite": (lambda: Cylinder(1.0, np.inf), "length of a Cylinder .* but inf"),
    "inside out": (lambda: mbd.RigidBody.tube(1.0, 0.3, 0.4, 1.0), "the inner one must be the smaller"),
    "points": (lambda: Hull(np.zeros((4, 2))), r"points of a Hull must be numbers of shape \(k, 3\) .* of shape \(4, 2\)"),
    "flat": (lambda: Hull(np.eye(3)).surface(), "3 points has no volume"),
    "plane": (lambda: Hull(np.array([(x, y, 0.0) for x in (0, 1) for y in (0, 1)])).surface(), "do not lie in a plane"),
    "pose": (lambda: Box((1, 1, 1), pose=(1.0, 2.0)), r"a Frame in body axes or a point"),
    "ending": (lambda: Mesh("ball.step").surface(), "end in .stl or .obj, not from 'ball.step'"),
    "no shape": (lambda: mbd.RigidBody(1.0, (1, 1, 1), shape="box"), "or several of them, not 'box'"),
    "no shape among": (lambda: mbd.Particle(1.0, shape=[Sphere(1.0), 2.0]), "or several of them, not 2.0"),
    "hidden": (lambda: jax.jit(lambda r: Sphere(r).surface().vertices)(1.0), "outside jit"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(mistake, words):
    with pytest.raises(mbd.ModelError, match=words):
        mistake()


def test_broken_meshes_are_named(tmp_path):
    for name, content, words in (
        ("a.stl", "solid nothing\nendsolid", "holds no triangles"),
        ("b.obj", "v 0 0 0\nf 1 2 3", "cannot be read"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(mbd.ModelError, match=words):
            Mesh(tmp_path / name).surface()


def chain(sizes, mass=1.0):
    """Boxes on hinges; the joints do not depend on the sizes."""
    names = [f"link {i}" for i in range(len(sizes))]
    bodies = {name: mbd.RigidBody(mass, (0.1, 0.1, 0.1), shape=Box(size)) for name, size in zip(names, sizes, strict=True)}
    ends = itertools.pairwise(["ground", *names])
    joints = {f"hinge {i}": mbd.Joint(mbd.Revolute((1, 0, 0)), a, b, at=(0, 0, -i)) for i, (a, b) in enumerate(ends)}
    return mbd.assemble(mbd.Mechanism(bodies, joints, [mbd.Gravity()]), {name: (0, 0.5, -i) for i, name in enumerate(names)})


def test_systems_know_shapes_by_name_stacked_by_kind():
    bodies = {
        "plain": mbd.RigidBody(1.0, (1, 1, 1)),
        "first": mbd.RigidBody.box(1.0, (1, 2, 3)),
        "dumbbell": mbd.RigidBody(1.0, (1, 1, 1), shape=[Sphere(0.1), Sphere(0.2, pose=(0, 0, 1)), Box((4, 5, 6))]),
        "disc": mbd.PlanarBody.disc(1.0, 0.5),
        "floor": mbd.bodies.Ground(shape=Box((9, 9, 1), pose=(0, 0, -1))),
    }
    system, _ = mbd.assemble(mbd.Mechanism(bodies))
    found = mbd.post.shapes(system)
    assert set(found) == {"first", "dumbbell", "disc", "floor"}
    assert sorted((type(shape).__name__, shape.pose is None) for shape in found["dumbbell"]) == [
        ("Box", True),
        ("Sphere", False),
        ("Sphere", True),
    ]
    np.testing.assert_array_equal(found["first"][0].size, (1, 2, 3))
    np.testing.assert_array_equal(found["floor"][0].pose.origin, (0, 0, -1))
    assert len(system.params.shapes) == 5 and {len(group.bodies) for group in system.params.shapes} == {1, 2}
    long, _ = chain([(1, 1, i) for i in range(1, 21)])
    assert len(jax.tree.leaves(long.params.shapes)) == 1
    assert mbd.post.shapes(long)["link 7"][0].size[2] == 8


def test_masses_on_beams_keep_their_shapes():
    section = mbd.Section((10.0, 10.0, 20.0, 3.0, 4.0, 5.0), 1.0, (0.1, 0.1))
    for kind in ("galerkin", "finite volume"):
        beam = mbd.Beam.line((0, 0, 0), (0, 0, 1), section, 2, masses={-1: mbd.RigidBody.box(1.0, (1, 2, 3))}, kind=kind)
        found = mbd.post.shapes(mbd.assemble(mbd.Mechanism({"beam": beam}))[0])
        assert set(found) == {"beam[2]"}
        np.testing.assert_array_equal(found["beam[2]"][0].size, (1, 2, 3))


def test_motions_do_not_see_shapes_and_sizes_share_programs():
    system, q0 = chain([(0.1, 0.1, 1.0), (0.2, 0.2, 0.9)])
    other, _ = chain([(3.0, 1.0, 1.0), (0.5, 0.2, 0.7)])
    run = lambda system: mbd.simulate(system, q0, dt=0.01, steps=3, formulation=mbd.Reparametrised())
    motion = run(system)
    compilations = []
    listen = lambda event, duration, **_: compilations.append(event) if "backend_compile" in event else None
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        np.testing.assert_array_equal(run(other).q, motion.q)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert not compilations


def test_steps_do_not_carry_shapes():
    """Nothing of a step depends on them: the compiled program only looks, once, whether they are finite."""
    system, q0 = chain([(0.1, 0.1, 1.0)] * 2)
    bare = system.with_params(type(system.params)(**vars(system.params) | {"shapes": ()}))
    program = lambda one: jax.jit(lambda one, q: mbd.simulate(one, q, dt=0.01, steps=2, throw=False).q).lower(one, q0).compile()
    flops = [program(one).cost_analysis()["flops"] for one in (system, bare)]
    assert 0 <= flops[0] - flops[1] <= 2 * sum(np.size(leaf) for leaf in jax.tree.leaves(system.params.shapes))


def test_traced_sizes_go_through_jit_vmap_and_grad():
    def spin(size):
        """The energy of a turning box, and the size that is remembered."""
        system, q0 = mbd.assemble(mbd.Mechanism({"body": mbd.RigidBody.box(1.0, (0.1, 0.1, size))}), {"body": (0, 0, 0)})
        v = jnp.zeros((4, 3)).at[2:].set(jnp.array([(0.0, 0, 1), (0, -1, 0)])).ravel()
        return kinetic(0.0, q0, v, system.params), mbd.post.shapes(system)["body"][0].size[2]

    sizes = jnp.array([0.5, 1.0])
    energies, shown = jax.jit(jax.vmap(spin))(sizes)
    np.testing.assert_array_equal(shown, sizes)
    np.testing.assert_allclose(energies, (0.01 + sizes**2) / 24, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda size: spin(size)[0]))(0.7), 0.7 / 12, rtol=1e-14)
    for make in (lambda x: mbd.RigidBody.sphere(1.0, x), lambda x: mbd.RigidBody.rod(1.0, x), lambda x: mbd.RigidBody.tube(1.0, x, 0.1, x),
                 lambda x: mbd.RigidBody.cylinder(1.0, x, 1.0), lambda x: mbd.PlanarBody.disc(1.0, x), lambda x: mbd.PlanarBody.rod(1.0, x),
                 lambda x: mbd.PlanarBody.plate(1.0, (x, 1.0)), lambda x: mbd.RigidBody.tetrahedron(x * TETRAHEDRON, 1.0)):  # fmt: skip
        np.testing.assert_allclose(jax.jit(lambda x, make=make: make(x).inertia)(0.7), make(0.7).inertia, rtol=1e-12, atol=1e-15)
