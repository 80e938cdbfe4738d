"""Inputs over a horizon: exact ones of flat systems, optima where motions are only approached, derivatives, messages."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.inverse import follow
from jaxmbd.numerics.least_squares import least_squares

STEPS = 160
RAMP = np.zeros(14)
RAMP[7:] = 1716, -9009, 20020, -24024, 16380, -6006, 924
RAMP = np.polynomial.Polynomial(RAMP)


def ramp(s, derivative=0):
    """From 0 to 1, with six derivatives that vanish at both ends."""
    polynomial = RAMP.deriv(derivative) if derivative else RAMP
    return jnp.polyval(jnp.asarray(polynomial.coef[::-1]), jnp.clip(s, 0, 1))


class Reach(eqx.Module):
    """The first coordinate goes a way of `length` within two seconds."""

    length: float

    def residual(self, system, t, q):
        return q[0] - 0.5 - self.length * ramp(t / 2)


@pytest.fixture(scope="module")
def chain():
    """Two masses, a spring of rest length 0.5 between them, and a force on the last one."""
    return mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * (v[0] ** 2 + 2 * v[1] ** 2),
        potential=lambda t, q, p: 0.5 * p["k"] * (q[1] - q[0] - 0.5) ** 2,
        forces=lambda t, q, v, p, control: jnp.array([0.0, 1.0]) * control,
        params={"k": 1.0},
    )


def pull(chain, steps_to_two, length=2.0, k=1.0, effort=0.0, **more):
    """The chain pulled along; the horizon is longer with longer steps, so that one program serves all."""
    chain = chain.replace({"k": k})
    dt = 2.0 / steps_to_two
    return follow(chain, [0.5, 1.0], targets={"first": Reach(length)}, inputs=0.0, dt=dt, steps=STEPS, effort=effort, **more)


@pytest.fixture(scope="module")
def pulled(chain):
    """With two time steps, down to the end of the ramp."""
    return [pull(chain, count) for count in (80, 160)]


def chain_in_closed_form(t):
    """Force, and position of the driven mass."""
    way = [2 * ramp(t / 2, order) / 2**order for order in range(5)]
    return 2 * way[4] + 3 * way[2], 1.0 + way[0] + way[2]


def test_force_through_a_spring_is_of_order_two(pulled):
    errors = []
    for found, count in zip(pulled, (80, 160), strict=True):
        t = found.trajectory.t[: count + 1]
        force, driven = chain_in_closed_form(t[:-1] + t[1] / 2)[0], chain_in_closed_form(t)[1]
        errors.append([np.max(np.abs(found.inputs[:count] - force)), np.max(np.abs(found.trajectory.q[: count + 1, 1] - driven))])
    assert np.all(np.abs(np.log2(np.divide(*errors)) - 2) < 0.15), errors
    assert errors[1][0] < 2.5e-3 * 316  # of the largest force


def test_targets_are_met_and_inputs_do_not_oscillate(pulled):
    """The mid-point rule does not see inputs that change their sign from step to step, nor does a spring that is read in mid-step."""
    for found in pulled:
        assert found.successful
        assert np.max(np.abs(found.missed["first"])) < 1e-8
        force = np.asarray(found.inputs)
        bend = np.abs(np.diff(force, 4))
        assert np.max(bend) < 0.05 * np.max(np.abs(force))  # alternating inputs of size a have fourth differences 16 a


def test_inputs_played_back_return_the_motion(chain, pulled):
    found = pulled[1]
    again = mbd.simulate(chain, [0.5, 1.0], dt=2 / 160, steps=STEPS, controls=found.inputs, save=mbd.Save(fields=("q",)))
    np.testing.assert_allclose(again.q, found.trajectory.q, atol=1e-10)
    other = mbd.simulate(chain, [0.5, 1.0], dt=2 / 160, steps=STEPS, controls=found.inputs, scheme=mbd.EnergyMomentum())
    np.testing.assert_allclose(other.q, found.trajectory.q, atol=1e-8)  # for springs with linear forces the same motion


def spent(found):
    return found.trajectory.dt * jnp.sum(found.inputs**2)


def test_a_motion_that_is_only_approached_is_an_optimum(chain, pulled):
    """Other inputs of the same kind cost more on both sides, alike; with more weight of effort less is spent and more missed."""
    found = [pull(chain, 80, effort=effort) for effort in (1e-6, 1e-3, 1.0)]
    assert np.all(np.diff([spent(one) for one in (pulled[0], *found)]) < 0)
    missed = [jnp.linalg.norm(one.missed["first"]) for one in (pulled[0], *found)]
    assert np.all(np.diff(missed) > 0)
    best, dt = found[1], 2 / 80
    t = best.trajectory.t

    def cost(inputs):
        motion = mbd.simulate(chain, [0.5, 1.0], dt=dt, steps=STEPS, controls=inputs, save=mbd.Save(fields=("q",)))
        wanted = jax.vmap(lambda t, q: Reach(2.0).residual(None, t, q))(t, motion.q)[1:]
        return 0.5 * dt * (jnp.sum(wanted**2) + 1e-3 * jnp.sum(inputs**2))

    np.testing.assert_allclose(cost(best.inputs), best.cost, rtol=1e-10)
    middle = (t[1:] + t[:-1]) / 2
    for shape in (jnp.ones_like(middle), middle / 4, (middle / 4) ** 3):  # cubic polynomials are among the splines
        ahead, back = (cost(best.inputs + step * shape) for step in (1e-2, -1e-2))
        slope, bend = (ahead - back) / 2e-2, (ahead - 2 * best.cost + back) / 1e-4
        assert bend > 0 and abs(slope) < 1e-7 * bend * np.max(np.abs(best.inputs))


@pytest.mark.slow
def test_derivatives_by_stiffness_and_target(chain):
    """Where the motion is followed (no effort weighs) and where it is only approached."""

    @jax.jit
    @jax.value_and_grad
    def effort_of(given):
        return spent(pull(chain, 80, length=given["length"], k=given["k"], effort=given["effort"], throw=False))

    given = {"k": 3.0, "length": 2.0, "effort": 0.0}
    for effort, size in ((0.0, 1e-3), (1e-2, 1e-3)):
        at = given | {"effort": effort}
        slopes = effort_of(at)[1]
        for name in ("k", "length") if effort == 0 else ("k", "length", "effort"):
            h = size * at[name]
            ahead, back = (effort_of(at | {name: at[name] + sign * h})[0] for sign in (1, -1))
            np.testing.assert_allclose(slopes[name], (ahead - back) / (2 * h), rtol=2e-5)


class Ways(eqx.Module):
    """The load of a crane goes across and up, from 0.5 s to 3.5 s."""

    across: float = 4.0
    up: float = 2.0

    def load(self, t):
        share = ramp((t - 0.5) / 3)
        return jnp.array([self.across * share, -4.0 + self.up * share])

    def residual(self, system, t, q):
        return q[2:] - self.load(t)


CRANE = {"trolley": 10.0, "winch": 0.5, "load": 5.0}


@pytest.fixture(scope="module")
def crane():
    """A trolley, a rope that is wound up, and a load: `q` is (trolley, length of the rope, load)."""
    return mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * (p["trolley"] * v[0] ** 2 + p["winch"] * v[1] ** 2 + p["load"] * v[2:] @ v[2:]) - 9.81 * p["load"] * q[3],
        constraints=lambda t, q, p: jnp.array([0.5 * ((q[2] - q[0]) ** 2 + q[3] ** 2 - q[1] ** 2)]),
        forces=lambda t, q, v, p, control: jnp.array([control["trolley"], control["winch"], 0.0, 0.0]),
        params=CRANE,
    )


def crane_in_closed_form(t):
    """Coordinates and inputs from the way of the load alone: the rope has the direction of its acceleration less that of gravity."""
    load, rate = Ways().load, jax.jacfwd

    def trolley_and_rope(t):
        (x, z), (ax, az) = load(t), rate(rate(load))(t)
        trolley = x - z * ax / (az + 9.81)
        return jnp.array([trolley, jnp.sqrt((x - trolley) ** 2 + z**2)])

    (s, length), (x, z) = trolley_and_rope(t), load(t)
    by_time = rate(rate(trolley_and_rope))(t)
    pull = CRANE["load"] * (rate(rate(load))(t)[1] + 9.81) * length / -z
    forces = jnp.array([CRANE["trolley"] * by_time[0] - pull * (x - s) / length, CRANE["winch"] * by_time[1] - pull])
    return jnp.array([s, length, x, z]), forces


@pytest.mark.slow
def test_overhead_crane_from_rest_to_rest(crane):
    errors = []
    for count in (80, 160):
        dt = 4.0 / count
        found = follow(crane, [0.0, 4.0, 0.0, -4.0], targets=[Ways()], inputs=["trolley", "winch"], dt=dt, steps=STEPS)
        t = found.trajectory.t[: count + 1]
        q, forces = jax.vmap(crane_in_closed_form)(t)[0], jax.vmap(crane_in_closed_form)(t[:-1] + dt / 2)[1]
        inputs = jnp.stack([found.inputs["trolley"], found.inputs["winch"]], axis=1)[:count]
        errors.append([np.max(np.abs(inputs - forces), axis=0), np.max(np.abs(found.trajectory.q[: count + 1, :2] - q[:, :2]), axis=0)])
        found.require(1e-5)
    rates = np.log2(np.divide(*errors))
    assert np.all(rates > 1.85), (errors, rates)
    assert np.all(np.abs(rates[1] - 2) < 0.1), (errors, rates)
    assert np.all(errors[1][0] < 2e-3 * np.array([215, 75])), errors


@pytest.mark.slow
def test_mechanism_with_motors_and_redundant_constraints():
    """A pendulum hangs on a trolley, with a guide that keeps it in its plane, where the ball joint keeps it in part already."""
    bodies = {"trolley": mbd.RigidBody.box(2.0, (0.3, 0.2, 0.2)), "arm": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0))}
    joints = {
        "rail": mbd.Joint(mbd.Prismatic((1, 0, 0)), "ground", "trolley", at=(0, 0, 0)),
        "ball": mbd.Joint(mbd.Spherical(), "trolley", "arm", at=(0, 0, 0)),
        "guide": mbd.Joint(mbd.Planar((0, 1, 0)), "ground", "arm", at=(0, 0, -0.5)),
    }
    loads = {"gravity": mbd.Gravity((0, 0, -9.81)), "drive": mbd.Motor("rail")}
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints, loads), {"arm": (0, 0, -0.5)})
    centre = lambda system, t, q: system.params.frames(q)[system.params.bodies.index("arm"), 0, :1] - 0.5 * ramp(t / 1.5)
    dt, steps = 0.04, 40
    found = follow(system, q0, targets={"centre": centre}, dt=dt, steps=steps, every=4, effort=1e-8)
    assert found.trajectory.redundant > 0
    found.require(5e-3)
    again = mbd.simulate(system, q0, dt=dt, steps=steps, controls=found.inputs, formulation=mbd.NullSpace())
    np.testing.assert_allclose(again.q, found.trajectory.q, atol=1e-10)


def test_some_of_the_inputs_beside_others_that_are_given():
    """A mass behind a spring, and a push that is known beside the force that is looked for: only their sum matters."""
    push = lambda t, q, v, p, u: jnp.array([0.0, u["force"] + u["push"]])
    pair = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * (q[1] - q[0]) ** 2, forces=push)
    target = lambda system, t, q: q[0] - ramp(t / 2)
    find = lambda controls: follow(pair, [0.0, 0.0], targets=target, inputs="force", controls=controls, dt=0.1, steps=20)
    times = 0.1 * (np.arange(20) + 0.5)
    plain, rows, by_time = find({"push": jnp.zeros(20)}), find({"push": times}), find(lambda t: {"push": t})
    np.testing.assert_allclose(rows.inputs["force"] + times, plain.inputs["force"], atol=1e-6)
    np.testing.assert_allclose(by_time.inputs["force"], rows.inputs["force"], atol=1e-9)
    again = mbd.simulate(pair, [0.0, 0.0], dt=0.1, steps=20, controls=rows.inputs | {"push": times})
    np.testing.assert_allclose(again.q, rows.trajectory.q, atol=1e-12)


def test_failures_tell_what_to_do(chain, pulled):
    with pytest.raises(mbd.ModelError, match="forces of this system take none"):
        free = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v)
        follow(free, [0.0], targets=[Reach(1.0)], inputs=0.0, dt=0.1, steps=10)
    common = {"dt": 2 / 80, "steps": STEPS}
    with pytest.raises(mbd.ModelError, match="target 'height' must have a method residual"):
        follow(chain, [0.5, 1.0], targets={"height": 3.0}, inputs=0.0, **common)
    with pytest.raises(mbd.ModelError, match="inputs must be names"):
        follow(chain, [0.5, 1.0], targets=[Reach(2.0)], inputs=None, **common)
    with pytest.raises(mbd.ModelError, match="'frist', which is no target; did you mean 'first'"):
        pull(chain, 80, weights={"frist": 2.0})
    with pytest.raises(mbd.ModelError, match="effort must be"):
        pull(chain, 80, effort=-1.0)
    with pytest.raises(mbd.ModelError, match="guess needs one row for each of 160 steps"):
        pull(chain, 80, guess=jnp.zeros(3))
    with pytest.raises(mbd.SimulationError, match=r"target 'first' is missed by .* the start does not fit"):
        pulled[0].require(1e-30)
    far = eqx.tree_at(lambda f: f.missed, pulled[0], {"first": jnp.zeros((161, 1)).at[100].set(0.5)})
    with pytest.raises(mbd.SimulationError, match=r"missed by 5.00e-01 at t = 2.5, .* out of reach") as error:
        far.require({"first": 0.1})
    assert error.value.trajectory is far.trajectory
    with pytest.raises(mbd.ModelError, match="there is no target 'frist'; did you mean 'first'"):
        far.require({"frist": 0.1})
    lost = eqx.tree_at(lambda f: f.missed, far, {"first": far.missed["first"].at[100].set(jnp.nan)})
    with pytest.raises(mbd.SimulationError, match=r"target 'first' is infinite or NaN at t = 2.5"):
        lost.require(1.0)
    with pytest.raises(mbd.ModelError, match="require reads the numbers"):
        jax.jit(lambda found: found.require(1.0))(far)
    with pytest.raises(mbd.SimulationError, match="no optimum after 2 iterations"):
        eqx.tree_at(lambda f: (f.result, f.iterations), pulled[0], (jnp.int32(mbd.Result.NOT_CONVERGED), 2)).check()
    blank = eqx.tree_at(lambda f: (f.result, f.missed), pulled[0], (jnp.int32(mbd.Result.NON_FINITE), {"first": far.missed["first"] / 0}))
    with pytest.raises(mbd.SimulationError, match=r"target 'first' is infinite or NaN at t = 0: look for"):
        blank.check()
    idle = eqx.tree_at(lambda f: f.effects, pulled[0], {"winch": jnp.zeros(()), "trolley": jnp.ones(())})
    with pytest.raises(mbd.ModelError, match="input 'winch' has no effect on the targets"):
        idle.check()


def test_least_squares():
    """A valley that bends, by two equations; a fit with residual, and its derivative; directions that nothing sees stay as they were."""
    valley = lambda x, a: (jnp.array([10 * (x[1] - x[0] ** 2), 1 - a * x[0]]), jnp.array(True))
    found = least_squares(valley, jnp.array([-1.2, 1.0]), 1.0)
    assert found.result == mbd.Result.SUCCESS
    np.testing.assert_allclose(found.value, [1.0, 1.0], atol=1e-12)
    t = jnp.linspace(0, 1, 9)
    decay = lambda x, a: (jnp.exp(-x[0] * t) + 0.3 * jnp.sin(a * t) - x[1], jnp.array(True))
    fit = jax.jit(lambda a: least_squares(decay, jnp.array([1.0, 0.0]), a).value)
    slope, h = jax.jit(jax.jacrev(lambda a: least_squares(decay, jnp.array([1.0, 0.0]), a).value))(2.0), 1e-4
    np.testing.assert_allclose(slope, (fit(2.0 + h) - fit(2.0 - h)) / (2 * h), rtol=1e-6)
    seen = least_squares(lambda x, a: (x[:1] + x[1:2] - a, jnp.array(True)), jnp.array([0.0, 0.0, 7.0]), 4.0)
    np.testing.assert_allclose(seen.value, [2.0, 2.0, 7.0])
    assert seen.rank == 1 and seen.effects[2] == 0
    bad = least_squares(lambda x, a: (jnp.log(x), jnp.array(True)), jnp.array([-1.0]), 0.0)
    assert bad.result == mbd.Result.NON_FINITE
