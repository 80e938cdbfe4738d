"""Inverse dynamics of mechanisms: open chains, closed loops with more motors than needed, floating ones."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.inverse import Coordinate, Function, Orientation, Path, Point, Servo, consistent_start, inverse_dynamics

STEPS = 20
INERTIA = np.diag([1 / 600, 101 / 1200, 101 / 1200])
"""Of a box of mass one and size (1, 0.1, 0.1)."""


def bump(t):
    """From zero to one and back, with three derivatives that vanish at zero."""
    return jnp.sin(t) ** 4


@pytest.fixture(scope="module")
def arm():
    """Two links in space: the first turns about the vertical, the second about an axis across."""
    box = mbd.RigidBody.box(1.0, (1.0, 0.1, 0.1))
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((0, 0, 1)), "ground", "upper", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 1, 0)), "upper", "lower", at=(1, 0, 0)),
    }
    loads = {"gravity": mbd.Gravity(), "turn": mbd.Motor("shoulder"), "lift": mbd.Motor("elbow")}
    return mbd.assemble(mbd.Mechanism({"upper": box, "lower": box}, joints, loads), {"upper": (0.5, 0, 0), "lower": (1.5, 0, 0)})


def wanted(t):
    """Angles of the arm."""
    return jnp.array([1.5 * bump(t), 0.3 - 1.2 * bump(t)])


TARGETS = {"turn": Coordinate("shoulder", lambda t: wanted(t)[0]), "lift": Coordinate("elbow", lambda t: wanted(t)[1])}


@pytest.fixture(scope="module")
def efforts(arm):
    """Torques of the arm, with their times, for a length of the upper link and a time step; one program."""
    system, q0 = arm

    @jax.jit
    def run(length, dt):
        changed = system.replace({"elbow.on_a": jnp.array([length - 0.5, 0.0, 0.0])})
        found = inverse_dynamics(changed, q0, motion=TARGETS, dt=dt, steps=STEPS, formulation=mbd.Reparametrised(), throw=False)
        return jnp.stack([found.inputs["turn"], found.inputs["lift"]], axis=1), found.times, found.trajectory.q

    return run


def test_torques_of_an_open_chain_are_those_of_a_recursive_algorithm(efforts):
    """By another engine, at the middle of the steps: order 2, and the target is met."""
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    moved = lambda x: pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))
    upper = model.addJoint(0, pin.JointModelRZ(), moved(0.0), "shoulder")
    lower = model.addJoint(upper, pin.JointModelRY(), moved(1.0), "elbow")
    for joint in (upper, lower):
        model.appendBodyToJoint(joint, pin.Inertia(1.0, np.array([0.5, 0.0, 0.0]), INERTIA), pin.SE3.Identity())
    data, rate = model.createData(), jax.jacfwd(wanted)
    errors = []
    for dt in (0.04, 0.02):
        torques, times, q = efforts(1.0, dt)
        np.testing.assert_allclose(q[:, -2:], jax.vmap(wanted)(dt * jnp.arange(STEPS + 1.0)), atol=1e-12)
        known = np.array([pin.rnea(model, data, *(np.asarray(f(t)) for f in (wanted, rate, jax.jacfwd(rate)))) for t in times])
        errors.append(np.max(np.abs(torques - known)[: round(0.4 / dt)]))
    assert errors[1] < 0.01 and abs(np.log2(errors[0] / errors[1]) - 2) < 0.3


@pytest.mark.slow
def test_derivative_of_the_effort_by_the_length_of_a_link(efforts):
    effort = jax.jit(jax.value_and_grad(lambda length: jnp.sum(efforts(length, 0.04)[0] ** 2)))
    step = 1e-5
    difference = (effort(1.1 + step)[0] - effort(1.1 - step)[0]) / (2 * step)
    np.testing.assert_allclose(effort(1.1)[1], difference, rtol=1e-7)


@pytest.fixture(scope="module", params=[True, pytest.param(False, marks=pytest.mark.slow)], ids=["planar", "spatial"])
def linkage(request):
    """A four-bar linkage with motors on crank and rocker; of spatial bodies it has three redundant constraints."""
    mechanism, placement = mbd.gallery.four_bar(planar=request.param)
    loads = mechanism.loads | {"on crank": mbd.Motor("hinge 1"), "on rocker": mbd.Motor("hinge 4")}
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    return mbd.assemble(mbd.Mechanism(bodies, mechanism.joints, loads), placement)


@pytest.mark.slow
def test_a_closed_loop_with_more_motors_than_needed(linkage):
    """Work is the change of energy; of all torques that do it, least ones go as the rates of their hinges; playback returns the motion."""
    system, q0 = linkage
    start = float(q0[-2])
    run = dict(dt=0.02, steps=STEPS, scheme=mbd.EnergyMomentum())
    crank = Coordinate("hinge 1", lambda t: start + 2 * bump(2 * t))
    found = inverse_dynamics(system, q0, jnp.zeros_like(q0), motion={"crank": crank}, **run)
    motion, u = found.trajectory, found.inputs
    assert motion.redundant in (0, 3)
    angles = post.joint_coordinates(system, motion)
    np.testing.assert_allclose(angles["hinge 1"][:, 0], start + 2 * bump(2 * motion.t), atol=1e-11)
    crank, rocker = (jnp.diff(angles[name][:, 0]) for name in ("hinge 1", "hinge 4"))
    np.testing.assert_allclose(u["on crank"] * crank + u["on rocker"] * rocker, jnp.diff(post.energy(system, motion)), atol=1e-9)
    ratio = rocker[5:] / crank[5:]
    np.testing.assert_allclose(u["on rocker"][5:] / u["on crank"][5:], ratio, atol=2e-3)
    assert jnp.ptp(ratio) > 0.1
    back = mbd.simulate(system, q0, controls=found.controls, **run)
    np.testing.assert_allclose(back.q, motion.q, atol=1e-10)


@pytest.fixture(scope="module")
def floating():
    """A plate that floats in the plane, with an arm of two links; two motors, no gravity."""
    rod = mbd.PlanarBody.rod(0.5, 1.0)
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((0, 0, 1)), "base", "upper", at=(0.5, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 0, 1)), "upper", "lower", at=(1.5, 0, 0)),
    }
    bodies = {"base": mbd.PlanarBody.plate(2.0, (1.0, 1.0)), "upper": rod, "lower": rod}
    motors = {"first": mbd.Motor("shoulder"), "second": mbd.Motor("elbow")}
    places = {"base": (0, 0, 0), "upper": (1, 0, 0), "lower": (2, 0, 0), "shoulder": 0.7, "elbow": -1.2}
    return mbd.assemble(mbd.Mechanism(bodies, joints, motors), places)


@pytest.mark.slow
def test_many_paths_of_a_floating_arm_at_once(floating):
    """The hand of an under-actuated mechanism follows 256 paths; momenta stay zero, and played back forces return the motion."""
    system, q0 = floating
    hand = post.poses(system, mbd.simulate(system, q0, dt=0.1, steps=1, controls={name: jnp.zeros(1) for name in ("first", "second")}))
    tip = hand["lower"].origin[0] + 0.5 * hand["lower"].x[0]

    def targets(size):
        return {"hand": Point("lower", lambda t: tip[:2] + size * bump(t) * jnp.array([-1.0, 0.5]), at=(0.5, 0, 0), along="xy")}

    run = dict(dt=0.02, steps=STEPS, formulation=mbd.NullSpace())
    many = jax.jit(jax.vmap(lambda size: inverse_dynamics(system, q0, 0 * q0, motion=targets(size), throw=False, **run)))
    found = many(jnp.linspace(0.0, 0.8, 256))
    assert found.trajectory.successful.all()
    one = jax.tree.map(lambda leaf: leaf[-1], found)
    poses = post.poses(system, one.trajectory)["lower"]
    path = tip[:2] + 0.8 * bump(one.trajectory.t)[:, None] * jnp.array([-1.0, 0.5])
    np.testing.assert_allclose((poses.origin + 0.5 * poses.x)[:, :2], path, atol=1e-11)
    for momentum in (post.linear_momentum, post.angular_momentum):
        np.testing.assert_allclose(momentum(system, one.trajectory), 0, atol=1e-11)
    assert jnp.max(jnp.abs(one.inputs["first"])) > 0.1
    back = mbd.simulate(system, q0, controls=one.controls, **run)
    np.testing.assert_allclose(back.q, one.trajectory.q, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", [mbd.schemes.GeneralizedAlpha(), mbd.schemes.Newmark(), mbd.schemes.ConservativeDirector()])
def test_schemes_of_other_kinds(arm, scheme):
    """Those that balance forces at the end of a step play back a function of time."""
    system, q0 = arm
    found = inverse_dynamics(system, q0, motion=TARGETS, dt=0.02, steps=STEPS, scheme=scheme)
    start = found.trajectory.q[0], found.trajectory.v[0]
    back = mbd.simulate(system, *start, dt=0.02, steps=STEPS, scheme=scheme, controls=found.controls)
    np.testing.assert_allclose(found.trajectory.q[:, -2:], jax.vmap(wanted)(found.trajectory.t), atol=1e-11)
    np.testing.assert_allclose(back.q, found.trajectory.q, atol=1e-10)
    np.testing.assert_allclose(back.multipliers, found.trajectory.multipliers, atol=1e-7)


@pytest.mark.parametrize("scheme", [mbd.Midpoint(), mbd.schemes.GeneralizedAlpha()], ids=["midpoint", "generalized alpha"])
def test_inputs_of_a_constant_acceleration_are_exact_at_their_times(scheme):
    """From the first step on, against a load that grows in time; its value is that of the middle of a step, or of its end."""
    forces = lambda t, q, v, p, u: jnp.reshape(u, 1) - 6 * t
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, forces=forces)
    wanted = lambda system, t, q: q - 1.5 * t**2
    found = inverse_dynamics(system, [0.0], [0.0], motion=wanted, inputs=0.0, dt=0.1, steps=5, scheme=scheme)
    np.testing.assert_allclose(found.inputs, 3 + 6 * found.times, rtol=0, atol=1e-10)


def test_orientations_vanish_at_the_wanted_one_alone(arm):
    """Their rows are those of a small rotation near it, and large half a turn away."""
    system, q0 = arm
    rest = jnp.eye(3)
    turned = lambda vector: Orientation("upper", mbd.rotation.exp(jnp.asarray(vector)) @ rest)
    missed = lambda vector: turned(vector).residual(system, jnp.zeros(()), q0)
    np.testing.assert_allclose(missed([0.0, 0.0, 0.0]), 0, atol=1e-15)
    small = np.array([1e-4, -2e-4, 3e-4])
    np.testing.assert_allclose(missed(small), -small, atol=1e-10)
    assert jnp.max(jnp.abs(missed([0.0, 0.0, 3.1]))) > 10
    about = Orientation("upper", mbd.rotation.exp(jnp.array([0.0, 0.0, 0.1])), about="z")
    np.testing.assert_allclose(about.residual(system, jnp.zeros(()), q0), [-2 * np.tan(0.05)], rtol=1e-12)


def test_coordinates_without_a_gauge_are_read_from_frames():
    """An angle near half a turn does not jump, and a displacement is one."""
    mechanism, placement = mbd.gallery.slider_crank()
    system, q0 = mbd.assemble(mechanism, placement)
    name = next(name for name, joint in mechanism.joints.items() if isinstance(joint.kind, mbd.Prismatic))
    slide = Coordinate(name, 0.25)
    np.testing.assert_allclose(slide.residual(system, jnp.zeros(()), q0), slide.value(system, jnp.zeros(()), q0) - 0.25)
    hinge = next(name for name, joint in mechanism.joints.items() if isinstance(joint.kind, mbd.Revolute))
    angle = float(Coordinate(hinge, 0.0).value(system, jnp.zeros(()), q0))
    beyond = Coordinate(hinge, angle + 2 * np.pi - 0.1).residual(system, jnp.zeros(()), q0)
    np.testing.assert_allclose(beyond, 0.1, atol=1e-12)


def test_paths_go_through_their_samples():
    times = np.array([0.0, 0.3, 0.5, 0.9, 1.2, 1.5, 2.0])
    values = np.sin(times)[:, None] * np.array([1.0, 2.0])
    for degree in (3, 5):
        path = Path(times, values, degree)
        np.testing.assert_allclose(jax.vmap(path)(times), values, atol=1e-14)
        np.testing.assert_allclose(path(0.7), np.sin(0.7) * np.array([1.0, 2.0]), atol=3e-3 if degree == 3 else 1e-4)
        derivatives = jax.jacrev(lambda values, path=path, degree=degree: Path(times, values, degree)(0.7))(values)
        np.testing.assert_allclose(jnp.einsum("ijk,jk->i", derivatives, values), path(0.7), atol=1e-13)
    smooth = Path([0.0, 1.0], [0.0, 1.0], rest=True)
    s = np.linspace(0, 1, 5)
    np.testing.assert_allclose(jax.vmap(smooth)(s), 35 * s**4 - 84 * s**5 + 70 * s**6 - 20 * s**7, atol=1e-13)
    shorter = Path([0.0, 1.0], [0.0, 1.0], degree=5, rest=True)
    np.testing.assert_allclose(jax.vmap(shorter)(s), 10 * s**3 - 15 * s**4 + 6 * s**5, atol=1e-14)


def test_inputs_of_paths_that_begin_at_rest_are_of_order_two():
    """They begin without jerk, which would alternate in the inputs all along the motion."""
    path = Path([0.0, 0.3, 1.0], [0.0, 0.4, 1.0], rest=True)
    mass = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, forces=lambda t, q, v, p, u: u[None])
    find = lambda steps: inverse_dynamics(mass, [0.0], motion=Function(lambda t, q, p: q[0], path), inputs=0.0, dt=1 / steps, steps=steps)
    exact = jax.vmap(jax.jacfwd(jax.jacfwd(path)))
    errors = [np.max(np.abs(found.inputs - exact(found.times))) for found in map(find, (40, 80))]
    assert 1.9 < np.log2(errors[0] / errors[1]) < 2.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Path([0.0, 0.0], [1.0, 2.0], rest=True), "times of a Path must increase"),
        (lambda: Path([0.0, 1.0], [1.0, 2.0]), "more than 5"),
        (lambda: Point("hand", (1.0, 2.0)), r"history of a Point must be numbers of shape \(3,\)"),
        (lambda: Point("hand", (1.0, 2.0), along="xw"), "letters of 'xyz'"),
        (lambda: Servo({}, "u"), "needs a target"),
        (lambda: Servo({"a": 1.0}, "u"), "target 'a' must have a method residual.*, or be such a function; not 1.0"),
        (lambda: Servo(Coordinate("a", 1.0), []), "needs inputs"),
        (lambda: Servo(Coordinate("a", 1.0), "u", weights={"v": 1.0}), "weights of a Servo must be given like its inputs"),
        (lambda: Servo(Coordinate("a", 1.0), "u", weights={"u": -1.0}), "weights of a Servo must be"),
        (lambda: Servo(Coordinate("a", 1.0), "u", weights={"u": "x"}), "weights of a Servo must be"),
        (lambda: Path([0.0, 1.0], [0.0, 1.0], degree=4, rest=True), "degree of a Path must be 3, 5 or 7"),
    ],
)
def test_mistakes_are_told_where_they_are_made(make, message):
    with pytest.raises(mbd.ModelError, match=message):
        make()


def test_names_that_nothing_has_are_told(arm):
    system, q0 = arm
    with pytest.raises(mbd.ModelError, match=r"there is no joint with a coordinate.*'sholder'.*shoulder"):
        inverse_dynamics(system, q0, motion=Coordinate("sholder", 0.0), inputs="turn", dt=0.1, steps=1)
    with pytest.raises(mbd.ModelError, match="no motor"):
        inverse_dynamics(system, q0, 0 * q0, motion=TARGETS, inputs=["turn", "lft"], dt=0.1, steps=1)
    with pytest.raises(mbd.ModelError, match="needs inputs"):
        free = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v, forces=lambda t, q, v, p, u: u[None])
        inverse_dynamics(free, [0.0], motion=Function(lambda t, q, p: q[0]), dt=0.1, steps=1)
    far = Point("lower", 5.0, at=(0.5, 0, 0), along="x")
    with pytest.raises(mbd.ModelError, match="was not reached"):
        consistent_start(system, Servo(far, "turn"), q0)
    with pytest.raises(mbd.ModelError, match="dt must be a positive number"):  # told before a start is looked for
        inverse_dynamics(system, q0, motion=far, inputs="turn", dt=-0.1, steps=1)
