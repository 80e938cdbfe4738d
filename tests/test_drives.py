"""Motors, PD drives and controllers: closed forms, work and energy, gradients, forces by name, mistakes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import loads, post
from jaxmbd.loads.drives import saturated

INERTIA = 0.2
RUN = {"dt": 0.01, "steps": 50}
SCHEMES = {
    "midpoint": mbd.Midpoint(),
    "galerkin": mbd.Galerkin(4),
    "energy-momentum": mbd.EnergyMomentum(),
    "conservative": mbd.schemes.ConservativeDirector(),
    "generalized alpha": mbd.schemes.GeneralizedAlpha(),
}


def wheel(**drives):
    hinge = mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0.0, 0.0, 0.0))
    return mbd.assemble(mbd.Mechanism({"wheel": mbd.PlanarBody(1.0, INERTIA)}, {"h": hinge}, drives))


def arm(**drives):
    """Two links in the plane under gravity."""
    bodies = {name: mbd.PlanarBody.rod(1.0, 1.0) for name in ("upper", "lower")}
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute(), "ground", "upper", on_b=(-0.5, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute(), "upper", "lower", on_a=(0.5, 0, 0), on_b=(-0.5, 0, 0)),
    }
    return mbd.assemble(mbd.Mechanism(bodies, joints, {"weight": mbd.Gravity((0, -9.81, 0))} | drives))


def angles(system, trajectory, joint):
    return np.asarray(post.joint_coordinates(system, trajectory)[joint][:, 0])


@pytest.fixture(scope="module")
def driven():
    return wheel(motor=mbd.Motor("h"))


QUICK = ["galerkin"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SCHEMES])
def test_motor_turns_a_wheel(driven, name):
    """A torque sin t from rest, and motions that stop halfway and go on."""
    system, q0 = driven
    torque = lambda t: {"motor": jnp.sin(t)}
    trajectory = mbd.simulate(system, q0, scheme=SCHEMES[name], controls=torque, **RUN)
    t = np.asarray(trajectory.t)
    assert np.abs(angles(system, trajectory, "h") - (t - np.sin(t)) / INERTIA).max() < (1e-9 if name == "galerkin" else 1e-4)
    again = mbd.simulate(system, start=trajectory.final, steps=50, controls=torque).final
    wanted = (again.t - np.sin(again.t)) / INERTIA
    assert abs(float(again.q[-1] - wanted)) < (1e-8 if name == "galerkin" else 1e-4)


@pytest.mark.slow
def test_controls_are_batched_and_differentiated(driven):
    """The torque of every step turns the wheel freely from the middle of the step on."""
    system, q0 = driven

    def end(torque):
        return mbd.simulate(system, q0, controls={"motor": torque}, throw=False, save="end", **RUN).q[-1, -1]

    torque, step = jnp.asarray(np.random.default_rng(0).normal(size=50)), 1e-3
    places = np.array([0, 20, 49])
    changes = step * jax.nn.one_hot(places, 50, dtype=float)
    ends = jax.jit(jax.vmap(end))(torque + jnp.concatenate([changes, -changes]))
    slope = jax.jit(jax.grad(end))(torque)
    np.testing.assert_allclose(slope[places], (ends[:3] - ends[3:]) / (2 * step), rtol=1e-7)
    np.testing.assert_allclose(slope, 0.01**2 * (49.5 - np.arange(50)) / INERTIA, rtol=1e-3)


def test_saturation_is_smooth_and_bounded():
    u = jnp.array([0.0, 1e-3, 0.3, 1.0, 5.0, 300.0, 1e90, -5.0])
    force, slope = jax.vmap(jax.value_and_grad(lambda u: saturated(3 * u, 3.0) / 3))(u)
    assert np.abs(force).max() <= 1 and np.allclose(force[:3], u[:3], rtol=4e-3) and force[1] == pytest.approx(1e-3, rel=1e-12)
    assert np.all(np.isfinite(slope)) and np.all(slope[:6] > 0) and float(slope[5]) == pytest.approx(300.0**-5, rel=1e-6)
    np.testing.assert_allclose(force[-1], -force[4])
    np.testing.assert_allclose(slope[3], 2**-1.25)
    assert saturated(u, None) is u


def test_pd_drive_is_a_damped_oscillator():
    system, q0 = wheel(drive=loads.PDDrive("h", 2.0, 0.3, target=0.5))
    trajectory = mbd.simulate(system, q0, scheme=mbd.Galerkin(4), **RUN)
    t, decay = np.asarray(trajectory.t), 0.3 / (2 * INERTIA)
    rate = np.sqrt(2.0 / INERTIA - decay**2)
    wanted = 0.5 - 0.5 * np.exp(-decay * t) * (np.cos(rate * t) + decay / rate * np.sin(rate * t))
    assert np.abs(angles(system, trajectory, "h") - wanted).max() < 1e-7


def test_the_rate_of_a_target_may_be_given():
    """As a number or a function of time; it is the derivative otherwise."""
    t, c, speed, one = jnp.array([0.4, 0.1, 0.7, 1.0])
    for rate, wanted in ((None, np.cos(0.4)), (0.2, 0.2), (lambda t: 5 * t, 2.0)):
        force = loads.PDDrive("h", 2.0, 0.3, jnp.sin, rate=rate).power(t, c, speed, one)
        np.testing.assert_allclose(force, 2 * (np.sin(0.4) - 0.1) + 0.3 * (wanted - 0.7), rtol=1e-14)


@pytest.fixture(scope="module")
def controlled():
    """An arm with a limited motor, a limited drive, a spring and a controller that sees both joints."""
    system, q0 = arm(
        motor=mbd.Motor("shoulder", limit=4.0),
        drive=loads.PDDrive("elbow", 5.0, 0.4, target=lambda t: jnp.sin(3 * t), limit=2.0),
        spring=mbd.JointSpring("elbow", 0.7, 0.1, 0.2),
        helper=loads.Controller("elbow", coupled, measured=("shoulder", "elbow"), params={"k": 1.5}, limit=6.0),
    )
    torque = np.random.default_rng(1).normal(size=50) * 5
    return system, q0, torque, mbd.simulate(system, q0, scheme=mbd.EnergyMomentum(), controls={"motor": torque}, **RUN)


def coupled(t, measured, params):
    (first, turning), (second, _) = measured["shoulder"], measured["elbow"]
    return params["k"] * (first - second) - 0.1 * turning + t


def answers(t, first, second, first_rate, second_rate):
    """Torques of drive, spring without its potential, and controller."""
    drive = saturated(5.0 * (jnp.sin(3 * t) - second) + 0.4 * (3 * jnp.cos(3 * t) - second_rate), 2.0)
    helper = saturated(1.5 * (first - second) - 0.1 * first_rate + t, 6.0)
    return drive, -0.2 * second_rate, helper


def test_energy_changes_by_the_work_of_the_drives(controlled):
    system, _, torque, trajectory = controlled
    first, second = (angles(system, trajectory, name) for name in ("shoulder", "elbow"))
    middle = lambda values: 0.5 * (values[1:] + values[:-1])
    rates = [np.diff(first) / 0.01, np.diff(second) / 0.01]
    on_elbow = sum(answers(middle(trajectory.t), middle(first), middle(second), *rates))
    work = saturated(jnp.asarray(torque), 4.0) * np.diff(first) + on_elbow * np.diff(second)
    energy = np.asarray(post.energy(system, trajectory))
    assert np.abs(work).max() > 1e-3
    assert np.abs(np.diff(energy) - work).max() < 1e-12 * np.abs(energy).max()


def test_forces_by_name(controlled):
    system, _, torque, trajectory = controlled
    rows = np.append(torque, torque[-1])
    found = post.load_forces(system, trajectory, {"motor": rows})
    (first, second), (first_rate, second_rate) = trajectory.q[:, -2:].T, trajectory.v[:, -2:].T
    for name, rate in {"shoulder": first_rate, "elbow": second_rate}.items():
        np.testing.assert_allclose(rate, post.joint_rates(system, trajectory)[name][:, 0], atol=1e-2)  # the scheme's own, up to order 2
    drive, damper, helper = answers(trajectory.t, first, second, first_rate, second_rate)
    np.testing.assert_allclose(found["drive"].force, drive, atol=1e-8)
    np.testing.assert_allclose(found["helper"].force, helper, atol=1e-8)
    np.testing.assert_allclose(found["spring"].force, damper - 0.7 * (second - 0.1), atol=1e-8)
    np.testing.assert_allclose(found["motor"].force, saturated(jnp.asarray(rows), 4.0), rtol=1e-12)
    np.testing.assert_allclose(found["motor"].power, found["motor"].force * first_rate, rtol=1e-12)
    by_time = post.load_forces(system, trajectory, lambda t: {"motor": t})
    np.testing.assert_allclose(by_time["motor"].force, saturated(trajectory.t, 4.0), rtol=1e-12)
    steps = np.append(torque[0], torque)
    np.testing.assert_allclose(post.load_forces(system, trajectory, {"motor": torque})["motor"].force, saturated(jnp.asarray(steps), 4.0))
    for wrong in (None, {"motor": torque[1:]}, {"other": rows}):
        with pytest.raises(mbd.ModelError, match="motor"):
            post.load_forces(system, trajectory, wrong)


@pytest.mark.slow
def test_controller_that_does_what_a_drive_does():
    """Targets whose rate is derived or given, and a controller by the same law."""
    target = lambda t: 0.3 * jnp.sin(4 * t)
    law = lambda t, measured: 9.0 * (target(t) - measured["h"][0]) + 0.8 * (1.2 * jnp.cos(4 * t) - measured["h"][1])
    drives = {
        "a": loads.PDDrive("a", 9.0, 0.8, target),
        "b": loads.PDDrive("b", 9.0, 0.8, target, rate=lambda t: 1.2 * jnp.cos(4 * t)),
        "h": loads.Controller("h", law),
    }
    hinges = {name: mbd.Joint(mbd.Revolute(), "ground", f"wheel {name}", at=(0.0, 0.0, 0.0)) for name in drives}
    wheels = {f"wheel {name}": mbd.PlanarBody(1.0, INERTIA) for name in drives}
    system, q0 = mbd.assemble(mbd.Mechanism(wheels, hinges, {f"drive {name}": drive for name, drive in drives.items()}))
    trajectory = mbd.simulate(system, q0, **RUN)
    first, *others = (angles(system, trajectory, name) for name in drives)
    assert np.abs(first[-1]) > 0.1
    for other in others:
        np.testing.assert_allclose(other, first, atol=1e-13)


@pytest.mark.slow
def test_gains_limits_and_what_is_measured_are_parameters():
    """One drive holds a wheel by the height of a point on it."""
    bodies, hinge = {"wheel": mbd.PlanarBody(1.0, INERTIA)}, mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0.0, 0.0, 0.0))
    height = mbd.Joint(mbd.joints.Measure(lambda a, b, k: k * (b.x @ a.y), 1.2), "ground", "wheel")
    drives = {
        "motor": mbd.Motor("h", limit=1.0),
        "drive": loads.PDDrive("height", 5.0, 0.4, 0.8, limit=2.0),
        "helper": loads.Controller("h", lambda t, measured, p: p["k"] * (t - measured["height"][0]), "height", {"k": 1.5}, limit=0.5),
    }
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, {"h": hinge, "height": height}, drives))
    names = ["motor.limit", "drive.proportional", "drive.derivative", "drive.limit", "drive.target", "helper.limit", "helper.params.k"]
    names.append("height.params")
    values = jnp.array([float(system.parameters[name]) for name in names])
    assert values.tolist() == [1.0, 5.0, 0.4, 2.0, 0.8, 0.5, 1.5, 1.2]

    @jax.jit
    def end(values):
        changed = system.replace(dict(zip(names, values, strict=True)))
        return mbd.simulate(changed, q0, controls={"motor": jnp.ones(50)}, throw=False, save="end", **RUN).q[-1, -2]

    for i, slope in enumerate(jax.jit(jax.grad(end))(values)):
        change = jnp.zeros(8).at[i].set(1e-4)
        assert abs(slope) > 1e-4
        np.testing.assert_allclose(slope, (end(values + change) - end(values - change)) / 2e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("controls", "words"),
    [
        (None, ["pass controls", "'motor', 'push'"]),
        ({"motor": np.zeros(50)}, ["nothing for the motor 'push'"]),
        ({"motor": np.zeros(50), "pusj": np.zeros(50)}, ["'pusj'", "did you mean 'push'"]),
        (np.zeros(50), ["dictionary of motors by name"]),
        ({"motor": np.zeros(49), "push": np.zeros(50)}, ["['motor']", "(49,)"]),
        ({"motor": np.zeros((50, 1)), "push": np.zeros(50)}, ["'motor'", "one number a step", "(1,)"]),
        (lambda t: t, ["dictionary of motors by name"]),
    ],
)
def test_controls_that_do_not_fit(controls, words):
    system, q0 = wheel(motor=mbd.Motor("h"), push=mbd.Motor("h"))
    with pytest.raises(mbd.ModelError) as failure:
        mbd.simulate(system, q0, controls=controls, **RUN)
    assert all(word in str(failure.value) for word in words), failure.value


def test_mistakes_name_the_drive():
    cases = [
        (lambda: mbd.Motor("h", limit=0.0), "limit of a Motor"),
        (lambda: wheel(motor=mbd.Motor("hh")), "did you mean 'h'"),
        (lambda: wheel(motor=mbd.Motor("h", index=1)), "coordinate 1 of joint 'h'"),
        (lambda: loads.PDDrive("h", "stiff", 0.0, 0.0), "proportional"),
        (lambda: wheel(drive=loads.PDDrive("h", 1.0, 0.0, lambda t: jnp.ones(2))), "load 'drive' must return a scalar"),
        (lambda: wheel(drive=loads.Controller("h", lambda t, m: None)), "load 'drive' must return a scalar"),
        (lambda: wheel(drive=loads.Controller("h", lambda t, m: m["x"][0])), "load 'drive'"),
        (lambda: wheel(drive=loads.Controller("h", lambda t, m: 0.0, measured=("h", "g"))), "'g'"),
        (lambda: loads.Controller("h", lambda t, m: 0.0, measured=3), "measured of a Controller"),
        (lambda: mbd.simulate(*wheel(), controls={"motor": np.zeros(50)}, **RUN), "no load is a Motor"),
    ]
    for call, words in cases:
        with pytest.raises(mbd.ModelError) as failure:
            call()
        assert words in str(failure.value), failure.value
