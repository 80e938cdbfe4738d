"""Constructors of parts with wrong kinds, shapes and values: each ends right, or in an error that names the argument."""

import re
from typing import NamedTuple

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbd as mbd
from jaxmbd.bodies import Box, Cylinder, Ground, Hull, Mesh, Sphere, Tube

SECTION = mbd.Section.circle(0.1, 1.0, 1.0)
MIRROR = mbd.Frame((0, 0, 0), np.diag([1.0, 1.0, -1.0]))
SHEARED = mbd.Frame((0, 0, 0), np.eye(3) + 0.1 * np.eye(3, k=1))


class Opaque:
    """Something that nobody expects."""

    def __repr__(self):
        return "opaque"


class Kind(NamedTuple):
    """What is never right for an argument, and shapes of numbers that are."""

    wrong: tuple
    shapes: tuple = ()


STRANGE = (None, "1.0", "", Opaque(), Opaque, 1j, {"a": 1.0}, {1.0}, lambda: 1.0, [[1.0], [1.0, 2.0]], b"1", np.array("x"), object())
HOLLOW = (np.nan, np.inf, -np.inf)
FINITE = Kind((*STRANGE, True, *HOLLOW), ((),))
POSITIVE = Kind((*FINITE.wrong, 0.0, -1.0), ((),))
NOT_NEGATIVE = Kind((*FINITE.wrong, -1.0), ((),))
NOT_ZERO = Kind((*FINITE.wrong, 0.0), ((),))
POINT = Kind((*STRANGE, True, (np.nan, 0.0, 0.0), ("a", "b", "c"), (True, False, True)), ((3,),))
DIRECTION = Kind((*POINT.wrong, (0.0, 0.0, 0.0)), ((3,),))
WITHOUT_NONE = lambda kind: kind._replace(wrong=tuple(value for value in kind.wrong if value is not None))
FRAME = Kind((*(value for value in POINT.wrong if value is not None), MIRROR, SHEARED), ((3,),))
NAME = Kind((None, "", 1, 1.0, Opaque(), str, mbd.Particle(1.0), ["a"], b"a"))
INDEX = Kind((None, "0", 0.0, -1, True, (0,), int, 1j))
FUNCTION = Kind((None, "f", 1.0, Opaque, [1.0], {}))
FLAG = Kind((None, "yes", 1.0, 0, [True], bool))
PART = Kind(("box", 1.0, Opaque(), Box, [1.0]))

ANGLES = lambda t: jnp.sin(t)
FORCE = lambda t: jnp.array([1.0, 0.0, 0.0]) * t
HISTORY = Kind(tuple(value for value in POINT.wrong if not callable(value)), ((3,),))
SCALAR_HISTORY = Kind(tuple(value for value in FINITE.wrong if not callable(value)), ((),))
BALL = lambda a, b, params: b.origin - a.origin
INERTIA = Kind((*STRANGE, True, (np.nan, 0.0, 0.0)), ((3,), (3, 3)))
CURVE = lambda x: (jnp.array([0.0, 0.0, 1.0]) * x, jnp.eye(3))

PARTS = {
    "RigidBody": (
        mbd.RigidBody,
        {"mass": (1.0, FINITE), "inertia": ((1, 1, 1), INERTIA), "com": ((0, 0, 0), POINT), "shape": (None, PART)},
    ),
    "box": (mbd.RigidBody.box, {"mass": (1.0, FINITE), "size": ((1, 1, 1), DIRECTION)}),
    "sphere": (mbd.RigidBody.sphere, {"mass": (1.0, FINITE), "radius": (1.0, POSITIVE)}),
    "cylinder": (mbd.RigidBody.cylinder, {"mass": (1.0, FINITE), "radius": (1.0, POSITIVE), "length": (1.0, POSITIVE)}),
    "tube": (
        mbd.RigidBody.tube,
        {"mass": (1.0, FINITE), "outer": (1.0, POSITIVE), "inner": (0.5, NOT_NEGATIVE), "length": (1.0, POSITIVE)},
    ),
    "rod": (mbd.RigidBody.rod, {"mass": (1.0, FINITE), "length": (1.0, POSITIVE)}),
    "tetrahedron": (mbd.RigidBody.tetrahedron, {"vertices": (np.eye(4, 3), Kind(STRANGE, ((4, 3),))), "density": (1.0, POSITIVE)}),
    "from_vertices": (
        mbd.RigidBody.from_vertices,
        {"vertices": (np.eye(4, 3), Kind((*STRANGE, np.eye(3), np.zeros((5, 3))))), "density": (1.0, POSITIVE)},
    ),
    "from_euler_tensor": (mbd.RigidBody.from_euler_tensor, {"mass": (1.0, FINITE), "euler": (np.eye(3), Kind(STRANGE, ((3, 3),)))}),
    "from_inertia_matrix": (mbd.RigidBody.from_inertia_matrix, {"theta": (np.eye(4), Kind(STRANGE, ((4, 4),)))}),
    "PlanarBody": (
        mbd.PlanarBody,
        {"mass": (1.0, FINITE), "inertia": (1.0, FINITE), "com": ((0, 0), Kind(STRANGE, ((2,),))), "shape": (None, PART)},
    ),
    "planar rod": (mbd.PlanarBody.rod, {"mass": (1.0, FINITE), "length": (1.0, POSITIVE)}),
    "plate": (mbd.PlanarBody.plate, {"mass": (1.0, FINITE), "size": ((1, 1), Kind((*STRANGE, (0.0, 1.0)), ((2,),)))}),
    "disc": (mbd.PlanarBody.disc, {"mass": (1.0, FINITE), "radius": (1.0, POSITIVE)}),
    "Particle": (mbd.Particle, {"mass": (1.0, FINITE), "shape": (None, PART)}),
    "Ground": (Ground, {"shape": (None, PART)}),
    "Box": (Box, {"size": ((1, 1, 1), POINT), "pose": (None, FRAME)}),
    "Sphere": (Sphere, {"radius": (1.0, NOT_NEGATIVE), "pose": (None, FRAME)}),
    "Cylinder": (Cylinder, {"radius": (1.0, NOT_NEGATIVE), "length": (1.0, NOT_NEGATIVE)}),
    "Tube": (Tube, {"outer": (1.0, NOT_NEGATIVE), "inner": (0.5, NOT_NEGATIVE), "length": (1.0, NOT_NEGATIVE)}),
    "Hull": (Hull, {"points": (np.eye(4, 3), Kind((*STRANGE, np.eye(4)), ((None, 3),)))}),
    "Mesh": (Mesh, {"path": ("a.stl", Kind((None, 1.0, Opaque(), str))), "scale": (1.0, POSITIVE)}),
    "Section": (
        mbd.Section,
        {
            "stiffness": (np.ones(6), Kind((*STRANGE, np.zeros(6)), ((6,),))),
            "mass": (1.0, POSITIVE),
            "second": ((1, 1), Kind((*STRANGE, (0.0, 1.0)), ((2,),))),
            "first": ((0, 0), Kind(STRANGE, ((2,),))),
        },
    ),
    "rectangle": (
        mbd.Section.rectangle,
        {
            **{name: (1.0, POSITIVE) for name in ("width", "height", "E", "density")},
            "nu": (0.3, Kind((*FINITE.wrong, -1.0, 0.6), ((),))),
        },
    ),
    "circle": (mbd.Section.circle, {"radius": (1.0, POSITIVE), "E": (1.0, POSITIVE), "density": (1.0, POSITIVE)}),
    "section tube": (
        mbd.Section.tube,
        {
            "outer": (1.0, POSITIVE),
            "inner": (0.5, Kind((*NOT_NEGATIVE.wrong, 1.0), ((),))),
            "E": (1.0, POSITIVE),
            "density": (1.0, POSITIVE),
        },
    ),
    "line": (
        mbd.Beam.line,
        {
            "start": ((0, 0, 0), POINT),
            "end": ((0, 0, 1), POINT),
            "section": (SECTION, Kind((None, 1.0, mbd.Section, [SECTION] * 3, [1.0, 2.0], lambda x: 1.0))),
            "elements": (2, Kind((*INDEX.wrong, 0))),
            "order": (1, Kind((*INDEX.wrong, 0, 9))),
            "normal": (None, WITHOUT_NONE(DIRECTION)),
            "masses": (None, Kind((1.0, "a", [1.0], {0: "a"}, {0: np.nan}, {9: 1.0}, {"0": 1.0}, {0: mbd.RigidBody}))),
            "kind": ("galerkin", Kind((None, 1.0, "finite", mbd.Beam, ["galerkin"]))),
            "corrected": (False, FLAG),
        },
    ),
    "curve": (
        mbd.Beam.curve,
        {
            "curve": (CURVE, Kind((*FUNCTION.wrong, lambda x: x, lambda x: (1.0, 2.0), lambda x: (jnp.zeros(3), "a"), lambda x: None))),
            "section": (SECTION, Kind((None, 1.0))),
            "elements": (1, INDEX),
        },
    ),
    **{
        kind.__name__: (kind, {"axis": ((0, 0, 1), DIRECTION)})
        for kind in (mbd.Revolute, mbd.Prismatic, mbd.Cylindrical, mbd.Planar, mbd.PointOnLine)
    },
    "Screw": (mbd.Screw, {"pitch": (1.0, NOT_ZERO), "axis": ((0, 0, 1), DIRECTION)}),
    "Universal": (mbd.Universal, {"axis": ((0, 0, 1), DIRECTION), "second": ((1, 0, 0), DIRECTION)}),
    "Distance": (mbd.Distance, {"length": (None, WITHOUT_NONE(POSITIVE))}),
    "RollingDisc": (
        mbd.joints.RollingDisc,
        {"radius": (1.0, POSITIVE), "axis": ((0, 1, 0), DIRECTION), "normal": ((0, 0, 1), DIRECTION)},
    ),
    "RollingBall": (mbd.joints.RollingBall, {"radius": (1.0, POSITIVE), "normal": ((0, 0, 1), DIRECTION), "pivoting": (True, FLAG)}),
    "KnifeEdge": (mbd.joints.KnifeEdge, {"axis": ((0, 1, 0), DIRECTION)}),
    "UserJoint": (
        mbd.UserJoint,
        {
            "function": (BALL, FUNCTION),
            "size": (0, INDEX),
            "relative_motion": (None, WITHOUT_NONE(FUNCTION)),
            "slip": (None, WITHOUT_NONE(FUNCTION)),
        },
    ),
    "Joint": (
        mbd.Joint,
        {
            "kind": (mbd.Fixed(), Kind((None, "Fixed", 1.0, mbd.Fixed, [mbd.Fixed()]))),
            "a": ("ground", NAME),
            "b": ("body", NAME),
            "at": (None, WITHOUT_NONE(POINT)),
        },
    ),
    "Joint on bodies": (
        mbd.Joint,
        {"kind": (mbd.Fixed(), FUNCTION), "a": ("ground", NAME), "b": ("body", NAME), "on_a": (None, FRAME), "on_b": (None, FRAME)},
    ),
    "Gear": (
        mbd.Gear,
        {
            "first": ("a", Kind((*NAME.wrong, "b"))),
            "second": ("b", NAME),
            "ratio": (2.0, NOT_ZERO),
            "indices": ((0, 0), Kind((None, 0, (0,), (0, -1), "00", (0.0, 0.0)))),
        },
    ),
    "Gravity": (mbd.Gravity, {"acceleration": ((0, 0, -9.81), Kind((*POINT.wrong, 9.81, (0, -9.81)), ((3,),)))}),
    "Force": (mbd.Force, {"body": ("a", NAME), "force": (FORCE, HISTORY), "at": ((0, 0, 0), POINT), "follower": (False, FLAG)}),
    "Torque": (mbd.Torque, {"body": ("a", NAME), "torque": ((0, 0, 1), HISTORY), "follower": (False, FLAG)}),
    "JointForce": (mbd.JointForce, {"joint": ("a", NAME), "force": (ANGLES, SCALAR_HISTORY), "index": (0, INDEX)}),
    "JointSpring": (
        mbd.JointSpring,
        {
            "joint": ("a", NAME),
            "stiffness": (1.0, FINITE),
            "rest": (0.0, FINITE),
            "damping": (None, WITHOUT_NONE(FINITE)),
            "index": (0, INDEX),
        },
    ),
    "Spring": (
        mbd.Spring,
        {
            "a": ("a", Kind((*NAME.wrong, "b"))),
            "b": ("b", NAME),
            "stiffness": (1.0, FINITE),
            "rest": (0.0, NOT_NEGATIVE),
            "damping": (None, WITHOUT_NONE(FINITE)),
            "at_a": ((0, 0, 0), POINT),
            "at_b": ((0, 0, 0), POINT),
        },
    ),
    "Potential": (mbd.Potential, {"function": (BALL, FUNCTION), "a": ("a", NAME), "b": ("ground", NAME)}),
    "UserForce": (mbd.UserForce, {"function": (BALL, FUNCTION), "body": ("a", NAME)}),
}
WRONG = [(part, name, value) for part, (_, arguments) in PARTS.items() for name, (_, kind) in arguments.items() for value in kind.wrong]
NUMBERS = [(part, name, kind.shapes) for part, (_, arguments) in PARTS.items() for name, (_, kind) in arguments.items() if kind.shapes]


def made(part, **changed):
    make, arguments = PARTS[part]
    return make(**{name: value for name, (value, _) in arguments.items()} | changed)


def assert_named(part, name, value):
    with pytest.raises(mbd.ModelError) as found:
        made(part, **{name: value})
    assert re.search(rf"\b{name}\b", str(found.value)), f"{part}({name}=...): {found.value}"


@pytest.mark.parametrize("part", PARTS)
def test_right_arguments_are_taken(part):
    made(part)


@pytest.mark.parametrize("part", PARTS)
def test_what_is_never_right_is_refused_by_name(part):
    for name, value in [(name, value) for other, name, value in WRONG if other == part]:
        assert_named(part, name, value)


junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.lists(st.one_of(st.floats(), st.text(max_size=1), st.none()), max_size=4),
    st.dictionaries(st.text(max_size=1), st.floats(), max_size=2),
    st.sampled_from(
        [
            "ground",
            "galerkin",
            0,
            1,
            2,
            float,
            mbd.RigidBody,
            mbd.Particle(1.0),
            mbd.Revolute(),
            SECTION,
            MIRROR,
            jnp.ones(3),
            np.ones((3, 3)),
        ]
    ),
    st.tuples(*[st.floats()] * 3),
)


def ends_right_or_named(case, value):
    part, name = case
    try:
        made(part, **{name: value})
    except mbd.ModelError as error:
        assert re.search(rf"\b{name}\b", str(error)), f"{part}({name}=...): {error}"


CASES = st.sampled_from([(part, name) for part, (_, arguments) in PARTS.items() for name in arguments if part not in ("line", "curve")])


SIZED = [(part, name) for part, name, shapes in NUMBERS if () in shapes and part not in ("line", "curve")]


@pytest.mark.parametrize("value", [7e-248, 1e-320, 1e-100, 1e99])
def test_numbers_whose_powers_are_none_end_right_or_are_named(value):
    """What a size came to, an area or an inertia, is told by the argument that it came from."""
    for case in SIZED:
        ends_right_or_named(case, value)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(case=CASES, value=junk)
def test_anything_ends_right_or_in_an_error_that_names_the_argument(case, value):
    ends_right_or_named(case, value)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(case=CASES, value=junk)
def test_anything_at_all(case, value):
    ends_right_or_named(case, value)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(case=st.sampled_from(NUMBERS), shape=st.lists(st.integers(0, 4), max_size=3).map(tuple))
def test_shapes_are_judged_where_numbers_are_hidden(case, shape):
    part, name, shapes = case
    if any(len(shape) == len(one) and all(b in (None, a) for a, b in zip(shape, one, strict=True)) for one in shapes):
        return
    with pytest.raises(mbd.ModelError, match=rf"\b{name}\b"):
        jax.eval_shape(lambda value: jax.tree.leaves(made(part, **{name: value})), jnp.zeros(shape))


@pytest.mark.parametrize(("part", "name"), [(part, name) for part, name, shapes in NUMBERS if () in shapes])
def test_numbers_may_be_hidden(part, name):
    made_of = lambda value: [leaf for leaf in jax.tree.leaves(made(part, **{name: value})) if isinstance(leaf, jax.Array)]
    assert jax.eval_shape(made_of, jnp.ones(()))
