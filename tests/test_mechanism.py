"""Mechanisms: assembling and closing, mistakes and their messages, reactions, gears, springs, forces, and rates of joints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.frame import Frame, twist

Z = (0.0, 0.0, 1.0)
BALL = mbd.RigidBody.sphere(2.0, 0.5)
DISC = mbd.RigidBody(1.0, (0.2, 0.2, 0.3))


def pose(system, q, name):
    """The frame of a body."""
    return Frame.from_rows(system.params.frames(q)[system.params.bodies.index(name)])


def moving(system, trajectory, name):
    """Velocity of the origin and angular velocity of a body at all saved times."""
    index = system.params.bodies.index(name)

    def at(q, v):
        frames, rates = jax.jvp(system.params.frames, (q,), (v,))
        return twist(Frame.from_rows(frames[index]), Frame.from_rows(rates[index]))

    return jax.vmap(at)(trajectory.q, trajectory.v)


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


MISTAKES = {
    "unknown body": (lambda: joined(mbd.Revolute(), "ground", "nobody"), "'culprit' connects 'nobody'"),
    "from a body to itself": (lambda: joined(mbd.Revolute(), "ball", "ball"), "'culprit' connects 'ball' with 'ball'"),
    "between grounds": (
        lambda: mbd.Mechanism({"wall": mbd.Ground()}, {"culprit": mbd.Joint(mbd.Fixed(), "wall", "ground")}),
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
    assert {len(group.rows) for group in system.params.joints} == {2}


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


# Reactions: a body that hangs at rest, one held by a rigid connection, a pendulum in space, and one that falls

G = np.array([0.0, 0.0, -9.81])
ARM = np.array([0.4, 0.3, -0.1])


@pytest.fixture(scope="module")
def hanging():
    bodies = {
        "weight": mbd.RigidBody(2.0, (1.0, 1.0, 0.5), com=(0.0, 0.0, -0.7)),
        "shelf": mbd.RigidBody(3.0, (0.5, 0.6, 0.7), com=ARM),
        "pendulum": mbd.RigidBody(1.5, (0.3, 0.2, 0.1), com=(0.1, 0.0, -0.6)),
        "stone": BALL,
    }
    joints = {
        "hook": mbd.Joint(mbd.Spherical(), "ground", "weight", at=(0.0, 0.0, 0.0)),
        "bracket": mbd.Joint(mbd.Fixed(), "ground", "shelf", at=(0.0, 0.0, 0.0)),
        "pivot": mbd.Joint(mbd.Spherical(), "ground", "pendulum", at=(0.0, 0.0, 0.0)),
    }
    system, q = mbd.assemble(mbd.Mechanism(bodies, joints, [mbd.Gravity()]), {"pivot": (0.9, 0.3, -0.2), "stone": (5.0, 0.0, 0.0)})
    v = mbd.joint_velocities(system, q, {"pivot": (1.0, -2.0, 0.5), "stone": (3.0, 0.0, 4.0, 0.0, 0.0, 1.0)})
    return system, mbd.simulate(system, q, v, dt=0.01, steps=40)


def test_a_body_that_hangs_at_rest_is_held_by_its_weight(hanging):
    hook = post.reactions(*hanging)["hook"]
    np.testing.assert_allclose(hook.force, np.broadcast_to(-2.0 * G, hook.force.shape), rtol=0, atol=1e-8)
    np.testing.assert_allclose(hook.torque, np.zeros(hook.torque.shape), rtol=0, atol=1e-8)


def test_a_rigid_connection_carries_weight_and_moment(hanging):
    bracket = post.reactions(*hanging)["bracket"]
    np.testing.assert_allclose(bracket.force, np.broadcast_to(-3.0 * G, bracket.force.shape), rtol=0, atol=1e-8)
    np.testing.assert_allclose(bracket.torque, np.broadcast_to(-np.cross(ARM, 3.0 * G), bracket.force.shape), rtol=0, atol=1e-8)


def test_a_pivot_carries_what_accelerates_the_centre_of_mass(hanging):
    """$m(a - g)$ with second differences of the positions, to rounding: these are the equations of the midpoint rule."""
    system, trajectory = hanging
    frames, pivot = post.poses(system, trajectory)["pendulum"], post.reactions(system, trajectory)["pivot"]
    centre = frames.origin + frames.rotation @ np.array([0.1, 0.0, -0.6])
    acceleration = (centre[2:] - 2 * centre[1:-1] + centre[:-2]) / 0.01**2
    assert np.ptp(pivot.force[:, 0]) > 1
    np.testing.assert_allclose(pivot.force[1:-1], 1.5 * (acceleration - G), rtol=0, atol=1e-7)
    np.testing.assert_allclose(pivot.torque, np.zeros(pivot.torque.shape), rtol=0, atol=1e-8)


def test_reactions_along_the_directors_of_the_joint_have_the_same_size(hanging):
    space, joint = (post.reactions(*hanging, axes=axes) for axes in ("space", "joint"))
    np.testing.assert_allclose(joint["hook"].force, space["hook"].force, rtol=0, atol=1e-8)
    np.testing.assert_allclose(*(np.linalg.norm(w["pivot"].force, axis=1) for w in (space, joint)), rtol=1e-12)


def test_a_body_that_nothing_holds_falls(hanging):
    system, trajectory = hanging
    t = np.asarray(trajectory.t)[:, None]
    expected = np.array([5.0, 0, 0]) + t * np.array([3.0, 0, 4]) + 0.5 * t**2 * G
    np.testing.assert_allclose(post.poses(system, trajectory)["stone"].origin, expected, rtol=0, atol=1e-11)
    assert "stone" not in post.reactions(system, trajectory)


# Gears, screws and springs on joints, each on bodies of its own

PITCH, WOUND = 0.3, 15.0


@pytest.fixture(scope="module")
def workshop():
    revolute = lambda name, x: mbd.Joint(mbd.Revolute(), "ground", name, at=(x, 0.0, 0.0))
    joints = {
        "first axle": revolute("first wheel", 1.0),
        "second axle": revolute("second wheel", 2.0),
        "teeth": mbd.Gear("first axle", "second axle", -2.0),
        "thread": mbd.Joint(mbd.Screw(PITCH), "ground", "nut", at=(3.0, 0.0, 0.0)),
        "spindle": revolute("balance", 4.0),
        "motor": mbd.Joint(mbd.Revolute(), "rotor", "ground", at=(5.0, 0.0, 0.0)),
        "rail": mbd.Joint(mbd.Prismatic((1.0, 0.0, 0.0)), "ground", "cart", at=(6.0, 0.0, 0.0)),
    }
    names = ["first wheel", "second wheel", "nut", "balance", "rotor", "cart"]
    loads = [
        mbd.JointSpring("spindle", 0.3 * 4.0),
        mbd.JointForce("motor", lambda t: 0.6 * t),
        mbd.Spring("ground", "cart", stiffness=64.0, rest=1.0, at_a=(5.0, 0.0, 0.0)),
    ]
    placement = {name: (1.0 + i, 0.0, 0.0) for i, name in enumerate(names)} | {"spindle": WOUND, "rail": 0.5}
    system, q = mbd.assemble(mbd.Mechanism({name: DISC for name in names}, joints, loads), placement)
    v = mbd.joint_velocities(system, q, {"first axle": 20.0, "thread": 15.0})
    return system, mbd.simulate(system, q, v, dt=0.01, steps=100, formulation=mbd.NullSpace())


def test_gears_keep_angles_in_ratio_over_several_turns(workshop):
    angles = post.joint_coordinates(*workshop)
    first, second = angles["first axle"][:, 0], angles["second axle"][:, 0]
    assert first[-1] > 3 * 2 * np.pi
    np.testing.assert_allclose(second, -2 * first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(first, 20 * workshop[1].t, rtol=3e-2)
    rates = post.joint_rates(*workshop)
    np.testing.assert_allclose(rates["second axle"], -2 * rates["first axle"], rtol=0, atol=1e-10)


def test_turns_of_gears_are_those_of_the_bodies(workshop):
    x = post.poses(*workshop)["second wheel"].rotation[:, :, 0]
    turned = np.unwrap(np.arctan2(x[:, 1], x[:, 0]))
    np.testing.assert_allclose(post.joint_coordinates(*workshop)["second axle"][:, 0], turned, rtol=0, atol=1e-11)


def test_a_screw_advances_by_its_pitch_in_each_turn(workshop):
    nut = post.poses(*workshop)["nut"]
    turned = np.unwrap(np.arctan2(nut.rotation[:, 1, 0], nut.rotation[:, 0, 0]))
    assert turned[-1] > 2 * 2 * np.pi
    np.testing.assert_allclose(nut.origin[:, 2], PITCH * turned / (2 * np.pi), rtol=0, atol=1e-13)
    np.testing.assert_allclose(post.joint_coordinates(*workshop)["thread"][:, 0], turned, rtol=0, atol=1e-11)


def test_a_linear_spring_has_the_period_of_an_oscillator(workshop):
    """$2\\pi\\sqrt{m/k}$; each step of the midpoint rule has the phase $2\\arctan\\frac12 h\\omega$ instead of $h\\omega$, to rounding."""
    along = post.joint_coordinates(*workshop)["rail"][:, 0]
    phase = 2 * np.arctan(0.5 * 0.01 * 8.0)
    np.testing.assert_allclose(phase, 0.01 * 8.0, rtol=1e-3)
    np.testing.assert_allclose(along, 0.5 * np.cos(phase * np.arange(101)), rtol=0, atol=1e-9)


def test_a_torsional_spring_remembers_all_turns_of_its_winding(workshop):
    angle = post.joint_coordinates(*workshop)["spindle"][:, 0]
    assert angle[0] == WOUND
    np.testing.assert_allclose(angle, WOUND * np.cos(2.0 * workshop[1].t), rtol=0, atol=0.02 * WOUND)
    rate = post.joint_rates(*workshop)["spindle"][:, 0]
    energy = 0.5 * 0.3 * rate**2 + 0.5 * 1.2 * angle**2
    np.testing.assert_allclose(energy, energy[0], rtol=2e-2)


def test_a_joint_force_turns_the_second_body_against_the_first(workshop):
    """A torque $\\frac35 t$ on an inertia of 0.3: the angle is $\\frac13 t^3$ in the sense of the joint, although its first body moves."""
    system, trajectory = workshop
    angle = post.joint_coordinates(system, trajectory)["motor"][:, 0]
    np.testing.assert_allclose(angle, trajectory.t**3 / 3, rtol=0, atol=1e-4)
    np.testing.assert_allclose(moving(system, trajectory, "rotor")[1][:, 2], -(trajectory.t**2), rtol=0, atol=1e-3)


# Dampers


@pytest.fixture(scope="module")
def damped():
    joints = {"hinge": mbd.Joint(mbd.Revolute(), "ground", "disc", at=(0.0, 0.0, 0.0))}
    loads = [mbd.JointSpring("hinge", 2.0, rest=0.5, damping=0.2), mbd.Spring("ground", "bob", 30.0, rest=1.0, damping=0.8)]
    mechanism = mbd.Mechanism({"disc": DISC, "bob": mbd.Particle(1.0)}, joints, loads)
    system, q = mbd.assemble(mechanism, {"bob": (1.0, 0.8, 0.0)})
    v = mbd.joint_velocities(system, q, {"hinge": 4.0, "bob": (-1.0, 1.0, 0.5)})
    return system, mbd.simulate(system, q, v, dt=0.01, steps=100)


def test_dampers_only_take_energy(damped):
    energy = post.energy(*damped)
    assert np.all(np.diff(energy) < 0) and energy[-1] < 0.8 * energy[0]


def test_a_damper_along_a_line_does_not_brake_the_rotation_about_it(damped):
    """A central force keeps the angular momentum of the bob."""
    system, trajectory = damped
    x, v = post.poses(system, trajectory)["bob"].origin, moving(system, trajectory, "bob")[0]
    momentum = np.cross(x, v)
    np.testing.assert_allclose(momentum, np.broadcast_to(momentum[0], momentum.shape), rtol=0, atol=1e-11)


def test_a_damped_hinge_follows_the_linear_oscillator(damped):
    """$0.3\\ddot c + 0.2\\dot c + 2(c - 0.5) = 0$."""
    t = np.asarray(damped[1].t)
    decay = 0.2 / 0.6
    omega = np.sqrt(2.0 / 0.3 - decay**2)
    exact = 0.5 + np.exp(-decay * t) * (-0.5 * np.cos(omega * t) + (4.0 - 0.5 * decay) / omega * np.sin(omega * t))
    np.testing.assert_allclose(post.joint_coordinates(*damped)["hinge"][:, 0], exact, rtol=0, atol=2e-3)


# Forces and torques on free bodies

RATE = 3.0


def well(t, a, b, params):
    """A trough along the first axis that is given by its stiffness."""
    x = a.origin - b.origin
    return 0.5 * params * (x[1] ** 2 + x[2] ** 2)


def drag(t, frame, velocity, spin, params):
    return -params["linear"] * velocity, -params["angular"] * spin


@pytest.fixture(scope="module")
def thrown():
    names = ["pushed", "rocket", "twisted", "wound", "offset", "rolling", "dragged"]
    loads = [
        mbd.Force("pushed", lambda t: jnp.array([1.0, 0.0, -2.0]) + t * jnp.array([0.0, 3.0, 0.0])),
        mbd.Force("rocket", (2.0, 0.0, 0.0), follower=True),
        mbd.Torque("twisted", lambda t: jnp.array([0.0, 0.0, 0.6]) * t),
        mbd.Torque("wound", (0.3, 0.0, 0.0), follower=True),
        mbd.Force("offset", (0.0, 0.0, 0.5), at=(0.4, 0.2, 0.0)),
        mbd.Potential(well, "rolling", params=16.0),
        mbd.UserForce(drag, "dragged", params={"linear": 0.8, "angular": 0.5}),
    ]
    # One turned by a right angle about z, so that body axes and axes of space differ.
    placement = {name: (2.0 * i, 0.0, 0.0) for i, name in enumerate(names)} | {"wound": ((6.0, 0.0, 0.0), np.pi / 2)}
    placement["rolling"] = (10.0, 0.5, 0.0)
    system, q = mbd.assemble(mbd.Mechanism({name: DISC for name in names}, (), loads), placement)
    rates = {"rocket": (0.0, 0.0, 0.0, 0.0, 0.0, RATE), "rolling": (1.0, 0, 0, 0, 0, 0), "dragged": (1.0, 2.0, 0, 0, 0, 4.0)}
    v = mbd.joint_velocities(system, q, rates)
    return system, mbd.simulate(system, q, v, dt=0.01, steps=80)


def test_the_impulse_of_a_force_is_the_change_of_momentum(thrown):
    system, trajectory = thrown
    t = np.asarray(trajectory.t)[:, None]
    velocity, spin = moving(system, trajectory, "pushed")
    np.testing.assert_allclose(velocity, t * np.array([1.0, 0, -2]) + t**2 / 2 * np.array([0.0, 3, 0]), rtol=0, atol=1e-10)
    np.testing.assert_allclose(spin, np.zeros(spin.shape), rtol=0, atol=1e-11)


def test_a_follower_force_turns_with_its_body(thrown):
    system, trajectory = thrown
    t = np.asarray(trajectory.t)
    velocity, spin = moving(system, trajectory, "rocket")
    expected = 2.0 / RATE * np.stack([np.sin(RATE * t), 1 - np.cos(RATE * t), 0 * t], axis=1)
    np.testing.assert_allclose(velocity, expected, rtol=0, atol=1e-3)
    np.testing.assert_allclose(spin, np.broadcast_to([0, 0, RATE], spin.shape), rtol=0, atol=1e-3)


def test_a_torque_about_a_principal_axis_gives_an_angular_acceleration(thrown):
    system, trajectory = thrown
    t = np.asarray(trajectory.t)
    velocity, spin = moving(system, trajectory, "twisted")
    np.testing.assert_allclose(spin, np.stack([0 * t, 0 * t, t**2], axis=1), rtol=0, atol=1e-4)
    np.testing.assert_allclose(velocity, np.zeros(velocity.shape), rtol=0, atol=1e-11)


def test_a_follower_torque_is_given_in_body_axes(thrown):
    """The first body axis points along y; the moment of inertia about it is 0.2."""
    system, trajectory = thrown
    t = np.asarray(trajectory.t)
    _, spin = moving(system, trajectory, "wound")
    np.testing.assert_allclose(spin, np.stack([0 * t, 1.5 * t, 0 * t], axis=1), rtol=0, atol=1e-3)


def test_a_force_off_the_centre_turns_the_body_by_its_moment(thrown):
    """The moment of the moving point, summed by the trapezoidal rule, is the change of angular momentum about the centre."""
    system, trajectory = thrown
    frames, (velocity, spin) = post.poses(system, trajectory)["offset"], moving(system, trajectory, "offset")
    moment = np.cross(frames.rotation @ np.array([0.4, 0.2, 0.0]), np.array([0.0, 0.0, 0.5]))
    J = np.asarray(frames.rotation) @ np.asarray(DISC.inertia) @ np.swapaxes(frames.rotation, 1, 2)
    momentum = np.einsum("nij,nj->ni", J, spin)
    summed = np.concatenate([np.zeros((1, 3)), np.cumsum(0.01 * (moment[1:] + moment[:-1]) / 2, axis=0)])
    assert np.max(np.abs(momentum)) > 0.05
    np.testing.assert_allclose(momentum, summed, rtol=0, atol=1e-4)
    np.testing.assert_allclose(velocity[:, 2], 0.5 * trajectory.t, rtol=0, atol=1e-10)


def test_a_potential_of_the_user_is_that_of_its_oscillator(thrown):
    system, trajectory = thrown
    origin, phase = post.poses(system, trajectory)["rolling"].origin, 2 * np.arctan(0.5 * 0.01 * 4.0) * np.arange(81)
    expected = np.stack([10 + np.asarray(trajectory.t), 0.5 * np.cos(phase), 0 * phase], axis=1)
    np.testing.assert_allclose(origin, expected, rtol=0, atol=1e-9)


def test_a_force_of_the_user_sees_velocities(thrown):
    system, trajectory = thrown
    t = np.asarray(trajectory.t)[:, None]
    velocity, spin = moving(system, trajectory, "dragged")
    np.testing.assert_allclose(velocity, np.exp(-0.8 * t) * np.array([1.0, 2.0, 0.0]), rtol=0, atol=1e-4)
    np.testing.assert_allclose(spin, np.exp(-0.5 / 0.3 * t) * np.array([0.0, 0.0, 4.0]), rtol=0, atol=5e-3)


def test_a_spring_of_no_length_is_as_stiff_where_its_ends_meet():
    """$\\frac12 k |x|^2$ is smooth there, so that motions about this equilibrium have the right derivatives."""
    mechanism = mbd.Mechanism({"bob": mbd.Particle(1.0)}, (), [mbd.Spring("ground", "bob", 5.0)])
    system, q = mbd.assemble(mechanism)
    energy = lambda q: -system.lagrangian(0.0, q, jnp.zeros(3), 1.0)
    np.testing.assert_array_equal(jax.grad(energy)(q), np.zeros(3))
    np.testing.assert_allclose(jax.hessian(energy)(q), 5.0 * np.eye(3), atol=1e-15)
