"""Loads on mechanisms: reactions, gears, springs, dampers, forces and torques, against what mechanics says of each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.geometry.frame import Frame, twist

DISC = mbd.RigidBody(1.0, (0.2, 0.2, 0.3))


def moving(system, trajectory, name):
    """Velocity of the origin and angular velocity of a body at all saved times."""
    frame = lambda q: Frame.from_rows(system.params.frames(q)[system.params.bodies.index(name)])
    return jax.vmap(lambda q, v: twist(*jax.jvp(frame, (q,), (v,))))(trajectory.q, trajectory.v)


# Reactions: a body that hangs at rest, one held by a rigid connection, a pendulum in space, and one that falls

G = np.array([0.0, 0.0, -9.81])
ARM = np.array([0.4, 0.3, -0.1])


@pytest.fixture(scope="module")
def hanging():
    bodies = {
        "weight": mbd.RigidBody(2.0, (1.0, 1.0, 0.5), com=(0.0, 0.0, -0.7)),
        "shelf": mbd.RigidBody(3.0, (0.5, 0.6, 0.7), com=ARM),
        "pendulum": mbd.RigidBody(1.5, (0.3, 0.2, 0.1), com=(0.1, 0.0, -0.6)),
        "stone": mbd.RigidBody.sphere(2.0, 0.5),
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


def test_reactions_along_the_directors_of_a_joint_are_those_of_its_first_frame(hanging):
    """The ground's, which are the axes of space, while the second body swings."""
    space, joint = (post.reactions(*hanging, axes=axes) for axes in ("space", "joint"))
    for name in ("hook", "pivot"):
        np.testing.assert_allclose(joint[name].force, space[name].force, rtol=0, atol=1e-8)


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
    energy = lambda q: -system.lagrangian(0.0, q, jnp.zeros(3))
    np.testing.assert_array_equal(jax.grad(energy)(q), np.zeros(3))
    np.testing.assert_allclose(jax.hessian(energy)(q), 5.0 * np.eye(3), atol=1e-15)
