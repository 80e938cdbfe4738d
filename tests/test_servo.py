"""Servo constraints: targets that hold at the end of every step, and the inputs that see to it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmbd as mbd
from jaxmbd.inverse import AbstractTarget, Function, Path, Servo, consistent_start

STEPS, DT = 20, 0.05


def swing(t):
    """An angle that begins at rest, without acceleration and jerk."""
    return 0.8 * jnp.sin(t) ** 4


class Angle(AbstractTarget):
    """The angle of a pendulum, from its position in the plane."""

    history: object

    def value(self, system, t, q):
        return jnp.arctan2(q[0], -q[1])

    def wanted(self, t):
        return self.history(t)


@pytest.fixture(scope="module")
def pendulum():
    """A pendulum in the plane, with a torque and a push along the first axis for a control."""

    def forces(t, q, v, p, control):
        return control["torque"] * jnp.array([-q[1], q[0]]) / (q @ q) + jnp.array([control["push"], 0.0])

    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * p["m"] * v @ v - p["m"] * 9.81 * q[1],
        constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - p["l"] ** 2)]),
        forces=forces,
        params={"m": 2.0, "l": 1.0},
    )


@pytest.fixture(scope="module")
def arm():
    """A double pendulum of point masses in Cartesian coordinates, with torques in both joints."""

    def forces(t, q, v, p, u):
        first, second = q[:2], q[2:] - q[:2]
        across = lambda r: jnp.array([-r[1], r[0]]) / (r @ r)
        on_second = u[1] * across(second)
        return jnp.concatenate([(u[0] - u[1]) * across(first) - on_second, on_second])

    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * (v @ v) - 9.81 * (q[1] + q[3]),
        constraints=lambda t, q, p: 0.5 * jnp.array([q[:2] @ q[:2] - 1, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1]),
        forces=forces,
    )


def at_angles(first, second):
    """Positions of the masses at absolute angles from below."""
    elbow = jnp.array([jnp.sin(first), -jnp.cos(first)])
    return jnp.concatenate([elbow, elbow + jnp.array([jnp.sin(second), -jnp.cos(second)])])


BY_TORQUE = Servo({"swing": Angle(swing)}, "torque")
NO_PUSH = {"push": jnp.linspace(0.0, 3.0, STEPS)}
CASES = {
    "midpoint": (mbd.Midpoint(), mbd.Multipliers()),
    "energy-momentum": (mbd.EnergyMomentum(), mbd.NullSpace()),
    "galerkin": (mbd.Galerkin(4), mbd.Reparametrised()),
    "trapezoidal": (mbd.Trapezoidal(), mbd.NullSpace()),
}


@pytest.mark.parametrize("name", [*list(CASES)[:3], pytest.param("trapezoidal", marks=pytest.mark.slow)])
def test_the_path_is_met_and_inputs_return_it(pendulum, name):
    """The other entry of the control is given as always."""
    scheme, formulation = CASES[name]
    run = lambda **how: mbd.simulate(pendulum, [0.0, -1.0], dt=DT, steps=STEPS, scheme=scheme, formulation=formulation, **how)
    found = run(servo=BY_TORQUE, controls=NO_PUSH)
    np.testing.assert_allclose(jnp.arctan2(found.q[:, 0], -found.q[:, 1]), swing(found.t), atol=1e-12)
    assert found.inputs["torque"].shape == (STEPS,)
    back = run(controls=found.inputs | NO_PUSH)
    np.testing.assert_allclose(back.q, found.q, atol=1e-11)
    np.testing.assert_allclose(back.multipliers, found.multipliers, atol=1e-8)


def computed_torque(t):
    """Torques in the joints of the double pendulum, from its equations of motion in angles."""
    angles = lambda t: jnp.array([swing(t), 0.5 - swing(t)])
    (a, b), (da, db), (dda, ddb) = (np.asarray(f(t)) for f in (angles, jax.jacfwd(angles), jax.jacfwd(jax.jacfwd(angles))))
    cosine, sine = np.cos(a - b), np.sin(a - b)
    on_first = 2 * dda + cosine * ddb + sine * db**2 + 2 * 9.81 * np.sin(a)
    on_second = ddb + cosine * dda - sine * da**2 + 9.81 * np.sin(b)
    return np.array([on_first + on_second, on_second])


@pytest.mark.parametrize(
    "scheme", [mbd.Midpoint(), pytest.param(mbd.EnergyMomentum(), marks=pytest.mark.slow)], ids=["midpoint", "conserving"]
)
def test_inputs_are_of_order_two_in_the_middle_of_steps(arm, scheme):
    wanted = Function(lambda t, q, p: q[jnp.array([0, 2])], lambda t: at_angles(swing(t), 0.5 - swing(t))[jnp.array([0, 2])])
    servo = Servo({"masses": wanted}, jnp.zeros(2))

    @jax.jit
    def run(dt):
        found = mbd.simulate(arm, at_angles(0.0, 0.5), dt=dt, steps=40, scheme=scheme, servo=servo, throw=False)
        return found.inputs, found.results

    errors = []
    for count in (10, 20, 40):
        inputs, results = run(0.8 / count)
        assert not results[: count + 1].any()
        exact = np.array([computed_torque((i + 0.5) * 0.8 / count) for i in range(count)])
        errors.append(np.max(np.abs(inputs[:count] - exact)))
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 2, atol=0.25)


@pytest.fixture(scope="module")
def lever():
    """A mass on a line that two inputs push, the second one as far as its lever, the position, goes."""
    push = lambda t, q, v, p, u: u["push"] * jnp.ones(1) + u["lever"] * q
    return mbd.System.from_functions(lambda t, q, v, p: 0.5 * p * v @ v, forces=push, params=1.0)


def test_derivatives_through_least_inputs(lever):
    """By the mass, by the size of the motion and by a weight: Newton's tangents are not exact there, derivatives are."""

    @jax.jit
    @jax.value_and_grad
    def effort(x):
        target = Function(lambda t, q, p: q[0], Partial(lambda size, t: 1 + size * swing(t), x[1]))
        servo = Servo(target, ["push", "lever"], {"push": x[2], "lever": 1.0})
        found = mbd.simulate(lever.with_params(x[0]), jnp.ones(1), dt=DT, steps=STEPS, servo=servo, throw=False)
        return jnp.sum(found.inputs["push"] ** 2) + jnp.sum(jnp.sin(found.inputs["lever"]))

    x, step = jnp.array([1.2, 0.8, 1.5]), 1e-5
    _, gradient = effort(x)
    for i, move in enumerate(step * jnp.eye(3)):
        np.testing.assert_allclose(gradient[i], (effort(x + move)[0] - effort(x - move)[0]) / (2 * step), rtol=1e-7)


def test_of_more_inputs_the_least_ones_are_taken(lever):
    """They are u = F W^-1 b / (b W^-1 b) for a force F and levers b."""
    system, target = lever, Function(lambda t, q, p: q[0], lambda t: 1 + swing(t))
    for weights, W in ((None, np.ones(2)), ({"push": 2.0, "lever": 0.5}, np.array([2.0, 0.5]))):
        servo = Servo(target, ["push", "lever"], weights)
        found = mbd.simulate(system, [1.0], dt=DT, steps=STEPS, servo=servo)
        np.testing.assert_allclose(found.q[:, 0], 1 + swing(found.t), atol=1e-12)
        lever = 0.5 * (found.q[1:, 0] + found.q[:-1, 0])
        np.testing.assert_allclose(found.inputs["lever"] * W[1], found.inputs["push"] * W[0] * lever, atol=1e-9)
        back = mbd.simulate(system, [1.0], dt=DT, steps=STEPS, controls=found.inputs)
        np.testing.assert_allclose(back.q, found.q, atol=1e-11)


@pytest.mark.parametrize(
    "formulation",
    [pytest.param(mbd.Multipliers(), marks=pytest.mark.slow), mbd.NullSpace()],
    ids=["own equations", "those with multipliers"],
)
def test_derivatives_by_parameters_and_by_the_path(pendulum, formulation):
    """Of the effort, with a start that follows the length, and through samples of the path."""
    times = np.linspace(0.0, 1.2, 7)

    @jax.jit
    @jax.value_and_grad
    def effort(x):
        length, sample = x
        system = pendulum.replace({"l": length})
        servo = Servo(Angle(Path(times, swing(times).at[3].add(sample), rest=True)), "torque")
        q0, v0 = consistent_start(system, servo, jnp.array([0.0, -1.0]))
        found = mbd.simulate(system, q0, v0, dt=DT, steps=STEPS, formulation=formulation, servo=servo, controls=NO_PUSH, throw=False)
        return jnp.sum(found.inputs["torque"] ** 2)

    x, step = jnp.array([1.1, 0.02]), 1e-5
    _, gradient = effort(x)
    for i in range(2):
        move = step * jnp.eye(2)[i]
        np.testing.assert_allclose(gradient[i], (effort(x + move)[0] - effort(x - move)[0]) / (2 * step), rtol=1e-7)


def test_a_motion_goes_on_from_its_last_state(pendulum):
    whole = mbd.simulate(pendulum, [0.0, -1.0], dt=DT, steps=STEPS, servo=BY_TORQUE, controls=lambda t: {"push": t}, save=2)
    first = mbd.simulate(pendulum, [0.0, -1.0], dt=DT, steps=STEPS // 2, servo=BY_TORQUE, controls=lambda t: {"push": t})
    second = mbd.simulate(pendulum, start=first.final, steps=STEPS // 2, servo=BY_TORQUE, controls=lambda t: {"push": t})
    np.testing.assert_array_equal(second.q[::2], whole.q[STEPS // 4 :])
    np.testing.assert_array_equal(second.inputs["torque"][1::2], whole.inputs["torque"][STEPS // 4 :])


class Missed(AbstractTarget):
    """A target that says no more than by how much it is missed."""

    place: float

    def residual(self, system, t, q):
        return q[0] - self.place


def test_a_function_that_is_to_vanish_is_a_target(pendulum):
    """With numbers of its own, which are leaves."""
    plain, own = lambda system, t, q: q[0] - t, Partial(lambda shift, system, t, q: q - shift, jnp.array([1.0, 2.0]))
    servo = Servo([plain, own], "torque")
    q = jnp.array([0.5, -1.0])
    assert servo.rows(pendulum, q) == ("target 0", "target 1", "target 1")
    np.testing.assert_allclose(servo.residual(pendulum, jnp.array(0.2), q), [0.3, -0.5, -3.0])
    assert [leaf.tolist() for leaf in jax.tree.leaves(servo.targets)] == [[1.0, 2.0]]
    for target in (lambda system, t, q: q[0] - 0.3, Missed(0.3)):
        with pytest.raises(mbd.ModelError, match=r"target 'target 0' at t = 0: it is off by 0\.3"):
            mbd.simulate(pendulum, [0.0, -1.0], dt=DT, steps=STEPS, servo=Servo(target, "torque"), controls=NO_PUSH)


def test_starts_off_the_target_are_refused(pendulum):
    run = lambda q0, v0=None, **how: mbd.simulate(pendulum, q0, v0, dt=DT, steps=STEPS, servo=BY_TORQUE, controls=NO_PUSH, **how)
    with pytest.raises(mbd.ModelError, match=r"target 'swing' at t = 0: .* being 0.1 where 0.0 is wanted; .*consistent_start"):
        run([np.sin(0.1), -np.cos(0.1)])
    with pytest.raises(mbd.ModelError, match=r"v0 does not follow target 'swing' .* being 0.3 where 0.0 is wanted"):
        run([0.0, -1.0], [0.3, 0.0])
    inside = jax.jit(lambda v: run(jnp.array([0.0, -1.0]), v, throw=False))(jnp.array([0.3, 0.0]))
    assert inside.results[0] == mbd.Result.INCONSISTENT_VELOCITY
    with pytest.raises(mbd.SimulationError, match="Worst target: 'swing'"):
        inside.check(pendulum)


def chain(count):
    """Masses in a row on springs, pushed at the last one by `end`, and by `idle` nowhere."""
    springs = lambda q: 0.5 * jnp.sum(jnp.diff(q) ** 2)
    push = lambda t, q, v, p, u: jnp.zeros(count).at[-1].set(u["end"] + 0.0 * u["idle"])
    return mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - springs(q), forces=push)


@pytest.mark.parametrize(
    ("places", "inputs", "message"),
    [
        ((0,), ("end", "idle"), "at t = 0 the inputs 'end', 'idle' drive only 0 of the 1 .* 'mass 0'.*'idle'.*horizon"),
        ((0, 1), ("end",), "2 components, but there is only input 'end'"),
        ((0, 1), ("end", "idle"), "drive only 1 of the 2 components of the targets 'mass 0', 'mass 1'.* 'idle' moves none"),
    ],
    ids=["through a spring", "too few", "one that does not act"],
)
def test_inputs_that_cannot_drive_the_targets_are_named(places, inputs, message):
    targets = {f"mass {i}": Function(lambda t, q, p, i=i: q[i]) for i in places}
    other = {"idle": jnp.zeros(STEPS)} if "idle" not in inputs else None
    with pytest.raises(mbd.ModelError, match=message):
        mbd.simulate(chain(2), [0.0, 0.0], dt=DT, steps=STEPS, servo=Servo(targets, inputs), controls=other)


def test_a_motion_out_of_reach_ends_there_and_names_time_and_target(arm):
    """The tip of the arm goes to a side, in a batch of which one member stays within reach."""
    start = at_angles(0.4, 1.4)

    def run(far, **how):
        wanted = lambda t: start[2:] + far * t**4 * jnp.array([1.0, 0.0])
        servo = Servo({"tip": Function(lambda t, q, p: q[2:], wanted)}, jnp.zeros(2))
        return mbd.simulate(arm, start, dt=DT, steps=STEPS, servo=servo, **how)

    batch = jax.jit(jax.vmap(lambda far: run(far, throw=False)))(jnp.array([0.1, 2.0]))
    assert batch.successful.tolist() == [True, False]
    reached = int(batch.reached[1])
    assert batch.results[1, reached + 1] == mbd.Result.NOT_DRIVEN and 10 < reached < STEPS
    np.testing.assert_allclose(batch.q[1, : reached + 1, 2], start[2] + 2.0 * batch.t[1, : reached + 1] ** 4, atol=1e-12)
    assert np.isfinite(batch.inputs).all() and not batch.inputs[1, reached:].any()
    with pytest.raises(mbd.SimulationError, match=rf"t = {reached * DT:g} to .*NOT_DRIVEN.* Worst target: 'tip'"):
        batch.check(arm)


def test_a_target_that_is_no_number_is_named(pendulum):
    """From a time on a root has nothing to be taken of: the target is told, not a constraint that has nothing to do with it."""
    servo = Servo({"swing": Angle(lambda t: swing(t) + 0 * jnp.sqrt(0.48 - t))}, "torque")
    with pytest.raises(mbd.SimulationError, match=r"t = 0.45 to 0.5.*NON_FINITE.* Worst target: 'swing'") as error:
        mbd.simulate(pendulum, [0.0, -1.0], dt=DT, steps=STEPS, servo=servo, controls=NO_PUSH)
    np.testing.assert_allclose(error.value.trajectory.q[:10, 0], jnp.sin(swing(DT * np.arange(10))), atol=1e-12)


def test_a_motion_through_a_singular_position_ends_before_it(pendulum):
    """A push to the side has no hold of a pendulum that is level: whether a node falls on that position or a step passes it."""
    level = lambda rate: Servo({"swing": Angle(Partial(lambda rate, t: 1.2 + rate * t**4, rate))}, "push")
    start = jnp.array([jnp.sin(1.2), -jnp.cos(1.2)])
    begin = dict(q0=start, v0=jnp.zeros(2), dt=DT, steps=STEPS, controls={"torque": jnp.zeros(STEPS)}, throw=False)
    for node in (16.0, 16.4):
        rate = (jnp.pi / 2 - 1.2) / (node * DT) ** 4
        motion = mbd.simulate(pendulum, servo=level(rate), **begin)
        reached = int(motion.reached)
        assert reached == np.ceil(node) - 1
        assert motion.results[reached + 1] == mbd.Result.NOT_DRIVEN
        angles = 1.2 + rate * motion.t[: reached + 1] ** 4
        np.testing.assert_allclose(motion.q[: reached + 1, 0], jnp.sin(angles), atol=1e-12)
    with pytest.raises(mbd.SimulationError, match=rf"t = {16 * DT:g} to .*NOT_DRIVEN.* Worst target: 'swing'"):
        motion.check()
