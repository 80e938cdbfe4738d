"""Mechanisms: assembling and closing, mistakes and their messages, degrees of freedom, and rates of joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.geometry.frame import Frame

BALL = mbd.RigidBody.sphere(2.0, 0.5)


def pose(system, q, name):
    """The frame of a body."""
    return Frame.from_rows(system.params.frames(q)[system.params.bodies.index(name)])


# Assembling


def test_bodies_and_joints_are_found_by_name():
    mechanism, placement = mbd.gallery.chain(2)
    system, q = mbd.assemble(mechanism, placement)
    assert set(system.params.bodies) == {"link 0", "link 1", "ground"}
    assert {name for group in system.params.joints for name in group.names} == {"joint 0", "joint 1"}
    assert set(system.params.owners()) == {"link 0", "link 1", "joint 0", "joint 1"}
    np.testing.assert_allclose(pose(system, q, "link 1").origin, [0, 0, -1.5], atol=1e-15)


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        (0.3, (0.0, 0.0, 0.3)),
        ((0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
        ((np.cos(0.15), 0.0, np.sin(0.15), 0.0), (0.0, 0.3, 0.0)),
        (np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]), (np.pi / 2, 0.0, 0.0)),
    ],
    ids=["angle", "rotation vector", "quaternion", "matrix"],
)
def test_poses_take_rotations_of_every_description(turn, expected):
    system, q = mbd.assemble(mbd.Mechanism({"ball": BALL}), {"ball": ((1.0, 2.0, 3.0), turn)})
    found = pose(system, q, "ball")
    np.testing.assert_allclose(found.origin, [1, 2, 3])
    np.testing.assert_allclose(found.rotation, mbd.rotation.exp(jnp.array(expected)), atol=1e-15)


def test_a_frame_or_a_position_alone_is_a_pose():
    mechanism = mbd.Mechanism({"ball": BALL, "flat": mbd.PlanarBody(1.0, 1.0)})
    frame = Frame(jnp.array([1.0, 2.0, 3.0]), mbd.rotation.exp(jnp.array([0.1, 0.2, 0.3])))
    system, q = mbd.assemble(mechanism, {"ball": frame, "flat": (4.0, 5.0)})
    np.testing.assert_array_equal(pose(system, q, "ball").rows, frame.rows)
    np.testing.assert_array_equal(pose(system, q, "flat").rows, [[4, 5, 0], *np.eye(3)])


@pytest.mark.parametrize("reverse", [False, True], ids=["outwards", "inwards"])
def test_joint_coordinates_place_bodies_by_forward_kinematics(reverse):
    """Two links of unit length that hang from each other, their hinges about x. Hinges told inwards turn the other way."""
    ends = [("ground", "upper"), ("upper", "lower")]
    at = [(0.0, 0.0, 0.0), (0.0, 0.0, -1.0)]
    joints = {
        f"hinge {i}": mbd.Joint(mbd.Revolute((1.0, 0.0, 0.0)), *(pair[::-1] if reverse else pair), at=point)
        for i, (pair, point) in enumerate(zip(ends, at, strict=True))
    }
    mechanism = mbd.Mechanism({"upper": BALL, "lower": BALL}, joints)
    placement = {"upper": (0.0, 0.0, -0.5), "lower": (0.0, 0.0, -1.5), "hinge 0": 0.3, "hinge 1": -0.8}
    system, q = mbd.assemble(mechanism, placement)
    sign = -1 if reverse else 1
    along = [np.array([0, np.sin(angle), -np.cos(angle)]) for angle in (sign * 0.3, sign * -0.5)]
    np.testing.assert_allclose(pose(system, q, "upper").origin, 0.5 * along[0], atol=1e-14)
    np.testing.assert_allclose(pose(system, q, "lower").origin, along[0] + 0.5 * along[1], atol=1e-14)
    np.testing.assert_allclose(pose(system, q, "lower").rotation, mbd.rotation.exp(jnp.array([sign * -0.5, 0, 0])), atol=1e-14)
    assert np.max(np.abs(system.constraints(0.0, q))) < 1e-14


def test_a_joint_is_set_from_where_it_was_and_others_keep_their_angles():
    """A chain of two hinges, placed with the angles 0.3 and 0.4; the first is then set to 0.5."""
    joints = {"a": mbd.Joint(mbd.Revolute(), "ground", "one"), "b": mbd.Joint(mbd.Revolute(), "one", "two", on_a=(1.0, 0.0, 0.0))}
    bodies = {name: mbd.RigidBody.sphere(1.0, 0.1) for name in ("one", "two")}
    placement = {"one": ((0.0, 0.0, 0.0), 0.3), "two": ((np.cos(0.3), np.sin(0.3), 0.0), 0.7), "a": 0.5}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints), placement)
    frames = system.params.frames(q0)
    angles = {n: float(c[0]) for group in system.params.joints for n, c in zip(group.names, group.coordinates(frames), strict=True)}
    assert angles == pytest.approx({"a": 0.5, "b": 0.4}, abs=1e-14)


def test_joints_told_on_points_of_bodies_place_the_bodies():
    joints = {
        "first": mbd.Joint(mbd.Revolute(), "ground", "a", on_a=(1.0, 0.0, 0.0), on_b=(0.0, -1.0, 0.0)),
        "second": mbd.Joint(mbd.Distance(0.5), "a", "b", on_a=(0.0, 1.0, 0.0)),
    }
    system, q = mbd.assemble(mbd.Mechanism({"b": mbd.Particle(1.0), "a": BALL}, joints), {"first": np.pi / 2})
    np.testing.assert_allclose(pose(system, q, "a").origin, [0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(pose(system, q, "b").origin, [-1, 0, 0.5], atol=1e-15)


@pytest.mark.parametrize("kind", [mbd.Revolute, mbd.Prismatic, mbd.Cylindrical, mbd.Planar, mbd.PointOnLine])
def test_axes_are_brought_to_unit_length(kind):
    """The same increments move the body in the same way, and by radians and metres."""
    charts = []
    for length in (1.0, 5.0):
        joint = mbd.Joint(kind(length * np.array([2.0, -3.0, 6.0]) / 7), "ground", "ball", at=(0.3, 0.1, 0.2))
        system, q = mbd.assemble(mbd.Mechanism({"ball": BALL}, {"joint": joint}))
        charts.append(system.chart(0.4 * jnp.ones(system.params.increments), q, 0.0, 0.0))
    assert np.max(np.abs(charts[0] - q)) > 0.1
    np.testing.assert_allclose(charts[1], charts[0], rtol=0, atol=1e-14)


def test_a_plain_function_of_two_frames_is_a_joint():
    """A point in a plane: one constraint on a free body."""
    joint = mbd.Joint(lambda a, b, params: (b.origin - a.origin)[2:], "ground", "ball")
    system, _ = mbd.assemble(mbd.Mechanism({"ball": BALL}, {"table": joint}))
    assert system.rank == 7 and system.params.closures == 1


# Closing loops

BARS = {"crank": 1.0, "coupler": 2.5, "rocker": 2.0}


def loose_four_bar(lengths=BARS, base=2.2):
    """A four-bar linkage of planar bodies, its hinges told on points of the bodies, so that poses are a guess."""
    half = {name: (0.5 * length, 0.0, 0.0) for name, length in lengths.items()}
    start = {name: (-0.5 * length, 0.0, 0.0) for name, length in lengths.items()}
    joints = {
        "hinge 1": mbd.Joint(mbd.Revolute(), "ground", "crank", on_b=start["crank"]),
        "hinge 2": mbd.Joint(mbd.Revolute(), "crank", "coupler", on_a=half["crank"], on_b=start["coupler"]),
        "hinge 3": mbd.Joint(mbd.Revolute(), "coupler", "rocker", on_a=half["coupler"], on_b=start["rocker"]),
        "hinge 4": mbd.Joint(mbd.Revolute(), "rocker", "ground", on_a=half["rocker"], on_b=(base, 0.0, 0.0)),
    }
    return mbd.Mechanism({name: mbd.PlanarBody.rod(length, length) for name, length in lengths.items()}, joints)


def guess(side):
    """Rough poses with the knee above or below the base."""
    return {"crank": ((0.4, 0.1), 0.2), "coupler": ((1.5, side * 1.1), side * 1.1), "rocker": ((2.3, side * 1.0), -side * 1.4)}


def knee_height(side, crank_angle):
    """The hinge between coupler and rocker by the intersection of two circles."""
    tip, end = BARS["crank"] * np.exp(1j * crank_angle), 2.2
    apart = abs(end - tip)
    x = (BARS["coupler"] ** 2 - BARS["rocker"] ** 2 + apart**2) / (2 * apart)
    return (tip + (end - tip) / apart * (x + side * 1j * np.sqrt(BARS["coupler"] ** 2 - x**2))).imag


@pytest.mark.parametrize("side", [1, -1], ids=["above", "below"])
def test_either_branch_of_a_four_bar_is_found_from_a_guess_near_it(side):
    system, q = mbd.assemble(loose_four_bar(), guess(side), solve=True)
    assert np.max(np.abs(system.constraints(0.0, q))) < 1e-14
    crank, rocker = pose(system, q, "crank"), pose(system, q, "rocker")
    np.testing.assert_allclose(rocker.point(jnp.array([-1.0, 0, 0]))[1], knee_height(side, np.arctan2(*crank.x[1::-1])), rtol=1e-12)


@pytest.mark.parametrize("side", [1, -1], ids=["above", "below"])
def test_a_wanted_crank_angle_is_met_where_the_loop_closes(side):
    system, q = mbd.assemble(loose_four_bar(), guess(side) | {"hinge 1": 0.7})
    assert np.max(np.abs(system.constraints(0.0, q))) < 1e-14
    np.testing.assert_allclose(pose(system, q, "crank").x, [np.cos(0.7), np.sin(0.7), 0], atol=1e-14)
    np.testing.assert_allclose(pose(system, q, "rocker").point(jnp.array([-1.0, 0, 0]))[1], knee_height(side, 0.7), rtol=1e-12)


def test_poses_that_do_not_meet_are_refused_unless_solved_for():
    with pytest.raises(mbd.ModelError, match=r"'hinge [1234]' does not meet"):
        mbd.assemble(loose_four_bar(), guess(1))


def test_lengths_that_cannot_close_are_refused_with_a_joint():
    with pytest.raises(mbd.ModelError, match=r"'hinge [1234]' stays off"):
        mbd.assemble(loose_four_bar(base=6.0), guess(1), solve=True)


def test_a_coordinate_that_the_loop_cannot_reach_is_refused_with_a_joint():
    """With a base of 4 the crank cannot point away from the other fixed hinge."""
    with pytest.raises(mbd.ModelError, match=r"'hinge [1234]' stays off"):
        mbd.assemble(loose_four_bar(base=4.0), guess(1) | {"hinge 1": np.pi})


# Mistakes


def hinged(**parts):
    """A ball on a hinge, with some parts replaced."""
    joints = {"hinge": mbd.Joint(mbd.Revolute(), "ground", "ball", at=(0.0, 0.0, 0.0))}
    return mbd.Mechanism(**({"bodies": {"ball": BALL, "point": mbd.Particle(1.0)}, "joints": joints} | parts))


def joined(kind, a, b, **where):
    return hinged(joints={"culprit": mbd.Joint(kind, a, b, **where)})


SHEARED = np.eye(3) + 0.1 * np.eye(3, k=1)
MISTAKES = {
    "unknown body": (lambda: joined(mbd.Revolute(), "ground", "nobody"), "'culprit' connects 'nobody'"),
    "from a body to itself": (lambda: joined(mbd.Revolute(), "ball", "ball"), "'culprit' connects 'ball' with 'ball'"),
    "between grounds": (
        lambda: mbd.Mechanism({"wall": mbd.bodies.Ground()}, {"culprit": mbd.Joint(mbd.Fixed(), "wall", "ground")}),
        "'culprit' connects 'wall' with 'ground'",
    ),
    "a mass point oriented": (lambda: joined(mbd.Revolute(), "ground", "point"), "'culprit' orients 'point'"),
    "a mass point as a line": (lambda: joined(mbd.PointOnLine(), "point", "ball"), "'culprit' orients 'point'"),
    "not a joint": (lambda: hinged(joints={"culprit": mbd.Revolute()}), "'culprit' is a Revolute"),
    "not a body": (lambda: hinged(bodies={"culprit": 1.0}), "'culprit' is a float"),
    "not a load": (lambda: hinged(loads=[9.81]), "9.81"),
    "a second place": (lambda: joined(mbd.Revolute(), "ground", "ball", at=(0, 0, 0), on_a=(0, 0, 0)), "'ground' and 'ball'"),
    "a body twice": (lambda: mbd.Mechanism([("ball", BALL), ("ball", BALL)]), "two parts are called 'ball'"),
    "a joint twice": (lambda: hinged(joints=[("hinge", mbd.Joint(mbd.Fixed(), "ground", "ball"))] * 2), "two parts are called 'hinge'"),
    "one name for two": (lambda: hinged(joints={"ball": mbd.Joint(mbd.Fixed(), "ground", "ball")}), "both called 'ball'"),
    "a body called ground": (lambda: mbd.Mechanism({"ground": BALL}), "'ground'"),
    "a name that is none": (lambda: mbd.Mechanism({"": BALL}), "''"),
    "zero mass": (lambda: mbd.Mechanism({"ball": BALL, "culprit": mbd.Particle(0.0)}), "'culprit' has mass"),
    "negative mass": (lambda: mbd.Mechanism({"culprit": mbd.RigidBody.sphere(-1.0, 1.0)}), "'culprit' has mass"),
    "a spring on no joint": (lambda: hinged(loads=[mbd.JointSpring("nowhere", 1.0)]), "'nowhere'"),
    "a spring on a body": (lambda: hinged(loads=[mbd.JointSpring("ball", 1.0)]), "'ball'"),
    "a spring on no coordinate": (lambda: hinged(loads=[mbd.JointSpring("hinge", 1.0, index=1)]), "coordinate 1 of joint 'hinge'"),
    "a force on no body": (lambda: hinged(loads=[mbd.Force("nobody", (1.0, 0.0, 0.0))]), "'nobody'"),
    "a spring to no body": (lambda: hinged(loads=[mbd.Spring("ball", "nobody", 1.0)]), "'nobody'"),
    "a gear on no joint": (lambda: hinged(joints={"culprit": mbd.Gear("hinge", "nowhere", 1.0)}), "gear 'culprit'.*'hinge'"),
    "a placed stranger": (lambda: mbd.assemble(hinged(), {"stranger": (0.0, 0.0, 0.0)}), "'stranger'"),
    "the ground placed": (lambda: mbd.assemble(hinged(), {"ground": (0.0, 0.0, 0.0)}), "ground"),
    "a position too long": (lambda: mbd.assemble(hinged(), {"ball": (0.0, 0.0, 0.0, 0.0)}), "'ball'.*shape"),
    "a rotation too short": (lambda: mbd.assemble(hinged(), {"ball": ((0.0, 0.0, 0.0), (1.0, 2.0))}), "'ball'.*shape"),
    "coordinates too many": (lambda: mbd.assemble(hinged(), {"hinge": (1.0, 2.0)}), "'hinge'.*shape"),
    "points that do not meet": (
        lambda: mbd.assemble(joined(mbd.Spherical(), "ground", "ball", on_a=(1, 0, 0), on_b=(0, 0, 0)), {"ball": (0.0, 0.0, 0.0)}),
        "'culprit' does not meet.*off by 1",
    ),
    "axes that do not meet": (
        lambda: mbd.assemble(joined(mbd.Revolute(), "ground", "ball", on_a=(0, 0, 0)), {"ball": ((0.0, 0.0, 0.0), (0.3, 0.0, 0.0))}),
        "'culprit' does not meet",
    ),
    "a distance without length": (lambda: mbd.assemble(joined(mbd.Distance(), "ground", "ball")), "Distance"),
    "a class for a body": (lambda: hinged(bodies={"culprit": mbd.Particle}), "'culprit' is the class Particle in place of an instance"),
    "a class for a joint": (lambda: hinged(joints={"culprit": mbd.Joint}), "'culprit' is the class Joint"),
    "a class for a load": (lambda: hinged(loads={"culprit": mbd.Gravity}), "load 'culprit'.*an instance"),
    "bodies that are none": (lambda: mbd.Mechanism(3.0), "each body comes with its name.*3.0"),
    "bodies without names": (lambda: mbd.Mechanism([BALL]), "each body comes with its name.*RigidBody"),
    "loads that are text": (lambda: hinged(loads="gravity"), "each load comes with its name.*'gravity'"),
    "a name misspelt": (lambda: joined(mbd.Revolute(), "ground", "bal"), r"'culprit' connects 'bal'.*did you mean 'ball'\?"),
    "a joint misspelt": (lambda: hinged(loads=[mbd.JointSpring("hing", 1.0)]), r"the joint 'hing'.*did you mean 'hinge'\?"),
    "a loaded body misspelt": (lambda: hinged(loads=[mbd.Force("pointt", (1, 0, 0))]), r"'pointt'.*did you mean 'point'\?"),
    "a placed body misspelt": (lambda: mbd.assemble(hinged(), {"bal": (0, 0, 0)}), r"'bal'.*did you mean 'ball'\?"),
    "a force on the ground": (lambda: hinged(loads={"culprit": mbd.Force("ground", (1, 0, 0))}), "load 'culprit' acts on 'ground'"),
    "a gear of a coordinate with itself": (lambda: mbd.Gear("hinge", "hinge", 2.0), "coordinate 0 of joint 'hinge' to itself"),
    "no mechanism": (lambda: mbd.assemble({"ball": BALL}), "mechanism must be a Mechanism"),
    "the class": (lambda: mbd.assemble(mbd.Mechanism), "mechanism must be a Mechanism"),
    "a placement in a row": (lambda: mbd.assemble(hinged(), [(0, 0, 0)]), "placement must be a dictionary"),
    "solve as text": (lambda: mbd.assemble(hinged(), solve="yes"), "solve must be True or False"),
    "an angle as text": (lambda: mbd.assemble(hinged(), {"hinge": "0.5"}), "placement of joint 'hinge'"),
    "a pose as text": (lambda: mbd.assemble(hinged(), {"ball": "there"}), "placement of 'ball' is 'there'"),
    "a pose that is not finite": (lambda: mbd.assemble(hinged(), {"ball": (0.0, np.nan, 0.0)}), "placement of 'ball'.*finite"),
    "a sheared pose": (lambda: mbd.assemble(hinged(), {"ball": ((0, 0, 0), SHEARED)}), "placement of 'ball'.*not orthonormal.*off by 0.1"),
    "a mirrored pose": (lambda: mbd.assemble(hinged(), {"ball": mbd.Frame((0, 0, 0), -np.eye(3))}), "placement of 'ball'.*left-handed"),
    "a mirrored frame": (lambda: joined(mbd.Fixed(), "ground", "ball", on_b=mbd.Frame((0, 0, 0), -np.eye(3))), "on_b .*left-handed"),
    "a sheared frame": (lambda: joined(mbd.Fixed(), "ground", "ball", on_a=mbd.Frame((0, 0, 0), SHEARED)), "on_a .*not orthonormal"),
    **{
        f"a locked body in the plane: {name}": (
            lambda kind=kind, ends=ends: mbd.assemble(
                mbd.Mechanism({"bar": mbd.PlanarBody.rod(1.0, 1.0)}, {"culprit": mbd.Joint(kind, *ends)})
            ),
            "joint 'culprit', a .*, would move a PlanarBody as such a body cannot move",
        )
        for name, kind, ends in (
            ("hinge", mbd.Revolute((1, 0, 0)), ("ground", "bar")),
            ("the other way round", mbd.Revolute((1, 0, 0)), ("bar", "ground")),
            ("tilted", mbd.Revolute((0, 1, 1)), ("ground", "bar")),
            ("slider", mbd.Prismatic((0, 0, 1)), ("ground", "bar")),
        )
    },
    "a point off the end of its rod": (
        lambda: mbd.assemble(joined(mbd.Spherical(), "ground", "point", at=(0, 0, 0)), {"point": (1.0, 0.0, 0.0)}),
        "'culprit'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake):
    make, message = MISTAKES[mistake]
    with pytest.raises(mbd.ModelError, match=message):
        make()


# Degrees of freedom


def test_a_free_body_is_legal_and_has_six_degrees_of_freedom():
    assert "degrees of freedom: 6" in mbd.Mechanism({"ball": BALL}).summary()


@pytest.mark.parametrize(("a", "b"), [("ground", "bob"), ("bob", "ground")], ids=["outwards", "inwards"])
def test_a_mass_point_on_a_rod_has_two_degrees_of_freedom_whichever_end_is_named_first(a, b):
    mechanism = mbd.Mechanism({"bob": mbd.Particle(1.0)}, {"rod": mbd.Joint(mbd.Distance(), a, b)})
    system, _ = mbd.assemble(mechanism, {"bob": (0.0, 0.6, -0.8)})
    assert system.rank == 1 and system.params.increments == 2


def test_planar_bodies_make_a_four_bar_without_redundant_constraints():
    mechanism, placement = mbd.gallery.four_bar(planar=True)
    text = mechanism.summary(placement)
    assert "degrees of freedom: 1\n" in text and "0 redundant" in text and "redundant constraints involve" not in text
    system, _ = mbd.assemble(mechanism, placement)
    assert {len(group.kept) for group in system.params.joints} == {2}


def test_a_spatial_four_bar_names_its_three_redundant_constraints():
    turn = np.asarray(mbd.rotation.exp(jnp.array([0.4, -0.7, 1.1])))
    mechanism, placement = mbd.gallery.four_bar(turn=turn)
    text = mechanism.summary(placement)
    assert "degrees of freedom: 1\n" in text and "3 redundant" in text and "(5 constraints each" in text
    assert "redundant constraints involve: hinge 1, hinge 2, hinge 3, hinge 4" in text


# Rates


@pytest.mark.parametrize("hinge", ["hinge 1", "hinge 2", "hinge 4"], ids=["crank", "coupler", "joint that closes the loop"])
def test_rates_of_a_four_bar_are_admissible_and_as_asked_for(hinge):
    mechanism, placement = mbd.gallery.four_bar()
    system, q = mbd.assemble(mechanism, placement)
    v = mbd.joint_velocities(system, q, {hinge: 2.0})
    rates = jax.jvp(lambda q: system.constraints(0.0, q), (q,), (v,))[1]
    assert np.max(np.abs(rates)) < 1e-13
    read = {}
    for group in system.params.joints:
        values = jax.jvp(lambda q, group=group: group.coordinates(system.params.frames(q)), (q,), (v,))[1]
        read |= dict(zip(group.names, values[:, 0], strict=True))
    np.testing.assert_allclose(read[hinge], 2.0, rtol=1e-13)
    np.testing.assert_allclose(sum(read.values()), 0.0, atol=1e-13)


def test_rates_that_the_loop_does_not_admit_are_refused():
    mechanism, placement = mbd.gallery.four_bar()
    system, q = mbd.assemble(mechanism, placement)
    with pytest.raises(mbd.ModelError, match="hinge 1, hinge 4"):
        mbd.joint_velocities(system, q, {"hinge 1": 1.0, "hinge 4": 100.0})
    with pytest.raises(mbd.ModelError, match="'nowhere'"):
        mbd.joint_velocities(system, q, {"nowhere": 1.0})
    with pytest.raises(mbd.ModelError, match="'hinge 1' takes 1"):
        mbd.joint_velocities(system, q, {"hinge 1": (1.0, 2.0)})
