"""Motions with friction: balance of energy, sticking that does not creep, closed forms, other engines, derivatives, memory of a motion."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints.manifold import manifold_at
from jaxmbd.friction import AbstractFriction, LuGre, Plasticity, Slip, Stribeck, Viscous
from jaxmbd.post.along import friction_at

from .frictions import LAWS

PUBLISHED = np.array([0.314961, 0.385537, 0.242819, 0.108783, 0.185719, 0.357513, 0.364890, 0.196716, 0.106803, 0.230850])
"""Where the friction element oscillator is at t = 0.1, 0.2, ..., 1: m = 2, v = 4, E = 350, F = 50; return mapping by hand to 1e-5."""


def mass(law, potential=lambda t, q, p: 0.0, m=2.0):
    """A mass on a line, held by friction."""
    return mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * p["m"] * v @ v,
        potential=potential,
        friction={"pad": (0, law)},
        params={"m": m},
    )


SLOW = pytest.mark.slow
OSCILLATOR = mass(Plasticity(350.0, 50.0))


def swinging(law):
    """A mass between a spring and friction, shaken by the start alone."""
    return mass(law, lambda t, q, p: 0.5 * 400.0 * q[0] ** 2)


SWINGING = {name: swinging(law) for name, law in LAWS.items()}


def tenths(steps, scheme=mbd.EnergyMomentum()):
    """The friction element oscillator at t = 0.1, 0.2, ..., 1."""
    return mbd.simulate(OSCILLATOR, [0.0], [4.0], dt=1 / steps, steps=steps, scheme=scheme, save=steps // 10).q[1:, 0]


def test_friction_element_oscillator():
    for scheme in (mbd.EnergyMomentum(), mbd.Midpoint()):
        assert np.abs(tenths(1000, scheme) - PUBLISHED).max() < 3e-5
    assert np.abs(tenths(4000) - PUBLISHED).max() < 2e-6


def test_friction_element_oscillator_beside_mujoco():
    """Its steps of 1e-4 are good to 1.5e-7; the distance falls with the square of ours."""
    mujoco = pytest.importorskip("mujoco", minversion="4.0")
    joint = '<joint type="slide" axis="1 0 0" stiffness="350" springyield="0.142857142857142857"/>'
    body = f'<body>{joint}<geom type="sphere" size=".1" mass="2"/></body>'
    model = mujoco.MjModel.from_xml_string(f'<mujoco><option timestep="1e-4" gravity="0 0 0"/><worldbody>{body}</worldbody></mujoco>')
    data, rows = mujoco.MjData(model), []
    data.qvel[0] = 4.0
    for _ in range(10):
        mujoco.mj_step(model, data, 1000)
        rows.append(data.qpos[0])
    apart = [np.abs(tenths(steps) - np.array(rows)).max() for steps in (1000, 4000)]
    assert apart[1] < 2e-6 and apart[0] > 12 * apart[1]


@pytest.mark.parametrize("name", LAWS)
def test_energy_balances_in_each_step(name):
    motion = mbd.simulate(SWINGING[name], [0.3], [4.0], dt=0.01, steps=200, scheme=mbd.EnergyMomentum())
    H, D = post.energy(SWINGING[name], motion), post.dissipated(SWINGING[name], motion)
    assert np.abs(np.diff(H + D)).max() < 2e-15 * H[0]
    assert np.diff(D).min() >= 0
    assert D[-1] > 0.5 * H[0]


def test_what_sticks_does_not_creep():
    """On a slope below the angle of friction, shaken: the slip is the same to the bit after 100,000 steps."""
    block = mass(Plasticity(1e4, 6.0), lambda t, q, p: -(5.0 + 0.9 * jnp.sin(7 * t)) * q[0])
    (held,) = block.memory(jnp.zeros(1))
    held = dataclasses.replace(held, state=held.state._replace(slip=jnp.full(1, -5e-4)))
    motion = mbd.simulate(block, [0.0], dt=1e-3, steps=100_000, scheme=mbd.EnergyMomentum(), memory=(held,), save=1000)
    friction = post.friction(block, motion)["pad"]
    assert np.all(friction.slip == -5e-4) and np.all(friction.dissipated == 0)
    assert np.ptp(friction.force[1:]) > 1.5 and np.abs(motion.q).max() < 1.1e-4


def test_lugre_breaks_away_as_in_the_literature():
    """A mass drawn through a spring rests until 7.5 s, then jumps by about twice the fall of the limit over K, and rests again.

    Beside it the differential equations, integrated by an implicit Runge-Kutta method of another library.
    """
    bristles, damping, drag = 1e5, np.sqrt(1e5), 0.4
    law = LuGre(bristles, damping=damping, static=1.5, coulomb=1.0, velocity=1e-3, viscous=drag)
    drawn = mass(law, lambda t, q, p: 0.5 * 2.0 * (q[0] - 0.1 * t) ** 2, m=1.0)
    motion = mbd.simulate(drawn, [0.0], [0.0], dt=1e-3, steps=12_000, scheme=mbd.EnergyMomentum(), save=100)
    t, x = np.asarray(motion.t), np.asarray(motion.q[:, 0])

    def rates(t, state):
        x, v, z = state
        bending = v - bristles * abs(v) * z / (1.0 + 0.5 * np.exp(-((v / 1e-3) ** 2)))
        return [v, 2.0 * (0.1 * t - x) - bristles * z - damping * bending - drag * v, bending]

    exact = solve_ivp(rates, (0.0, 12.0), [0.0, 0.0, 0.0], "Radau", t_eval=t, rtol=1e-8, atol=1e-12, max_step=0.02).y[0]
    assert np.abs(x - exact).max() < 2e-3
    assert 7.5 <= t[np.argmax(x > 0.01)] <= 7.8
    assert 0.5 < x[-1] < 0.7 and np.ptp(x[-5:]) < 1e-5


@pytest.mark.slow
def test_viscous_friction_is_a_damper():
    wheel = {"wheel": mbd.RigidBody.cylinder(2.0, 0.3, 0.1)}
    hinge = {"hinge": mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0, 0, 0))}
    damper, friction = mbd.JointSpring("hinge", 3.0, damping=0.2), mbd.Friction("hinge", Viscous(0.2))
    loads = {"damper": [damper], "friction": [mbd.JointSpring("hinge", 3.0), friction]}
    ends = {}
    for name, some in loads.items():
        system, q0 = mbd.assemble(mbd.Mechanism(wheel, hinge, some))
        v0 = mbd.joint_velocities(system, q0, {"hinge": 12.0})
        ends[name] = mbd.simulate(system, q0, v0, dt=0.01, steps=100, scheme=mbd.EnergyMomentum()).q
    assert np.abs(ends["damper"] - ends["friction"]).max() < 1e-12


@pytest.fixture(scope="module")
def braked_wheel():
    wheel = {"wheel": mbd.RigidBody.cylinder(2.0, 0.3, 0.1)}
    hinge = {"hinge": mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0, 0, 0))}
    system, q0 = mbd.assemble(mbd.Mechanism(wheel, hinge, {"brake": mbd.Friction("hinge", Plasticity(200.0, 0.5))}))
    return system, q0, mbd.joint_velocities(system, q0, {"hinge": 20.0})


@pytest.mark.parametrize("scheme", [mbd.EnergyMomentum(), pytest.param(mbd.schemes.ConservativeDirector(), marks=SLOW)])
def test_a_wheel_is_braked_through_many_turns(braked_wheel, scheme):
    """The angle at which it stops follows from its energy, through 5.7 turns; then it swings about where it stuck."""
    system, q0, v0 = braked_wheel
    motion = mbd.simulate(system, q0, v0, dt=0.01, steps=500, scheme=scheme)
    slip = post.friction(system, motion)["brake"]
    H, D = post.energy(system, motion), post.dissipated(system, motion)
    assert float(slip.slip[-1]) == pytest.approx(float(H[0] - 0.5 * 0.5**2 / 200) / 0.5, rel=1e-3)
    assert slip.slip[-1] > 5 * 2 * np.pi
    assert np.ptp(slip.slip[-50:]) < 1e-6  # it swings on, just within the limit
    assert np.abs(slip.force).max() <= 0.5 * (1 + 1e-12)
    assert np.abs(np.diff(H + D)).max() < 1e-14 * H[0]


@pytest.mark.slow
def test_a_loop_with_friction_keeps_its_balance_whatever_the_formulation():
    mechanism, placement = mbd.gallery.four_bar(planar=True)
    laws = {"dry": ("hinge 2", Plasticity(100.0, 0.4)), "wet": ("hinge 4", Viscous(0.05))}
    laws["falling"] = ("hinge 3", Stribeck(100.0, 0.6, 0.3, 0.5))
    loads = {**mechanism.loads, **{name: mbd.Friction(*pair) for name, pair in laws.items()}}
    system, q0 = mbd.assemble(_with(mechanism, loads), placement)
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 4.0})
    ends = []
    for formulation in (mbd.Multipliers(), mbd.Reparametrised()):
        motion = mbd.simulate(system, q0, v0, dt=0.005, steps=100, scheme=mbd.EnergyMomentum(), formulation=formulation)
        H, D = post.energy(system, motion), post.dissipated(system, motion)
        assert np.abs(np.diff(H + D)).max() < 1e-13 * np.abs(H).max()
        assert np.diff(D).min() >= 0
        ends.append(motion.q[-1])
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


def _with(mechanism, loads):
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    return mbd.Mechanism(bodies, mechanism.joints, loads)


def test_friction_on_a_function_of_coordinates():
    """A bead on the plane, rubbed along its distance from a centre: angular momentum stays, energy balances."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        potential=lambda t, q, p: 20.0 * q @ q,
        friction={"rod": (lambda q, p: jnp.sqrt(q @ q) * p["scale"], Plasticity(500.0, 4.0))},
        params={"scale": 1.5},
    )
    motion = mbd.simulate(system, [1.0, 0.0], [0.0, 3.0], dt=0.01, steps=200, scheme=mbd.EnergyMomentum())
    H, D = post.energy(system, motion), post.dissipated(system, motion)
    L = motion.q[:, 0] * motion.p[:, 1] - motion.q[:, 1] * motion.p[:, 0]
    assert np.abs(np.diff(H + D)).max() < 1e-14 * H[0] and D[-1] > 1.0
    assert np.ptp(L) < 1e-13
    with pytest.raises(mbd.ModelError, match="scale"):
        mbd.simulate(system.with_params({}), [1.0, 0.0], dt=0.01, steps=2)


@pytest.mark.parametrize(
    "scheme", [mbd.EnergyMomentum(), mbd.Midpoint(), mbd.Trapezoidal(), mbd.Galerkin(4)], ids=lambda s: type(s).__name__
)
def test_order_through_stick_and_slip(scheme):
    read = lambda dt, steps: mbd.simulate(OSCILLATOR, [0.0], [4.0], dt=dt, steps=steps, scheme=scheme, save="end").q[0, 0]
    errors = [abs(read(0.32 / n, n) - _by_hand(0.32)) for n in (40, 80, 160, 320)]
    assert np.log2(errors[0] / errors[-1]) / 3 > 1.7


def _by_hand(time):
    """Position after the first stick, the first slip and the swing that follows, in closed form."""
    m, v, E, F = 2.0, 4.0, 350.0, 50.0
    w, yielding = np.sqrt(E / m), F / E
    begin = np.arcsin(yielding * w / v) / w
    speed = v * np.cos(w * begin)
    end = speed * m / F
    top = yielding + speed * end - 0.5 * F / m * end**2
    after = time - begin - end
    assert 0 < after < np.pi / w
    return top - yielding + yielding * np.cos(w * after)


@pytest.mark.parametrize("time", [0.03, 0.11, 0.3, 1.0])
def test_derivatives_through_stick_slip_and_transitions(time):
    def end(values):
        system = OSCILLATOR.replace({"pad.stiffness": values[0], "pad.limit": values[1]})
        motion = mbd.simulate(system, [0.0], [4.0], dt=time / 64, steps=64, scheme=mbd.EnergyMomentum(), save="end")
        return motion.q[0, 0]

    at = jnp.array([350.0, 50.0])
    both = jax.jit(jax.value_and_grad(end))
    slope = both(at)[1]
    for i, size in enumerate((350e-6, 50e-6)):
        difference = (both(at.at[i].add(size))[0] - both(at.at[i].add(-size))[0]) / (2 * size)
        assert float(slope[i]) == pytest.approx(float(difference), rel=1e-5, abs=1e-12)
    assert slope[0] != 0 and (slope[1] != 0) == (time > 0.04)


def test_memory_is_saved_resumed_and_batched():
    system = SWINGING["Stribeck"]
    run = lambda **more: mbd.simulate(system, dt=0.01, scheme=mbd.EnergyMomentum(), **more)
    whole = run(q0=[0.3], v0=[4.0], steps=80)
    half = run(q0=[0.3], v0=[4.0], steps=40)
    rest = mbd.simulate(system, start=half.final, steps=40)
    for after, there in zip(jax.tree.leaves(rest.memory), jax.tree.leaves(whole.memory), strict=True):
        assert np.array_equal(after, there[40:])
    row = jax.tree.map(lambda column: column[40], whole.memory)
    anew = run(q0=whole.q[40], v0=whole.v[40], memory=row, steps=40)
    assert np.abs(anew.q - whole.q[40:]).max() < 1e-12
    batch = jax.vmap(lambda v: mbd.simulate(system, jnp.array([0.3]), v[None], dt=0.01, steps=40, scheme=mbd.EnergyMomentum(), throw=False))
    several = batch(jnp.array([4.0, 0.0]))
    assert np.abs(several.q[0] - half.q).max() < 1e-12
    assert np.all(np.isfinite(several.q))


def test_accelerations_see_friction():
    motion = mbd.simulate(OSCILLATOR, [0.0], [4.0], dt=1e-3, steps=40, scheme=mbd.EnergyMomentum())
    row = jax.tree.map(lambda column: column[30], motion.memory)
    t, q, v = motion.t[30], motion.q[30], motion.v[30]
    force = friction_at(OSCILLATOR, row, q, v)
    acceleration = manifold_at(OSCILLATOR, t, q).acceleration(v, force=force)[0]
    assert float((motion.v[31, 0] - motion.v[29, 0]) / 2e-3) == pytest.approx(float(acceleration[0]), rel=1e-3)


class Fluid(AbstractFriction):
    """A law of one's own: resistance that grows with the square of the speed."""

    factor: float

    def slide(self, state, c0, c1, dt):
        rate = (c1 - c0) / dt
        force = self.force(state, c0, rate)
        return Slip(force, state, force * (c1 - c0))

    def force(self, state, c, rate):
        return self.factor * jnp.abs(rate) * rate


def test_a_law_of_ones_own():
    """v' = -k v^2 / m has v = v0 / (1 + k v0 t / m)."""
    system = mass(Fluid(0.8))
    motion = mbd.simulate(system, [0.0], [4.0], dt=0.01, steps=100, scheme=mbd.EnergyMomentum())
    assert float(motion.v[-1, 0]) == pytest.approx(4 / (1 + 0.8 * 4 / 2), rel=1e-4)


def test_float32_stays_float32():
    motion = mbd.simulate(
        OSCILLATOR, jnp.zeros(1, jnp.float32), jnp.full(1, 4, jnp.float32), dt=1e-2, steps=20, scheme=mbd.EnergyMomentum()
    )
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(motion.memory))


def test_mistakes_are_told():
    with pytest.raises(mbd.ModelError, match="limit of a Plasticity must be"):
        Plasticity(350.0, -1.0)
    with pytest.raises(mbd.ModelError, match="law of the Friction on 'hinge'"):
        mbd.Friction("hinge", 50.0)
    for pair in (Viscous(1.0), (True, Viscous(1.0))):
        with pytest.raises(mbd.ModelError, match="friction 'pad' must be a pair"):
            mbd.System.from_functions(lambda t, q, v, p: v @ v, friction={"pad": pair})
    with pytest.raises(mbd.ModelError, match="GeneralizedAlpha balances forces at the end"):
        mbd.simulate(OSCILLATOR, [0.0], [4.0], dt=0.01, steps=2, scheme=mbd.schemes.GeneralizedAlpha())
    with pytest.raises(mbd.ModelError, match="no friction"):
        post.friction(free := mbd.System.from_functions(lambda t, q, v, p: v @ v, friction={}), mbd.simulate(free, [0.0], dt=0.1, steps=2))
    with pytest.raises(mbd.ModelError, match="memory must be one row"):
        mbd.simulate(OSCILLATOR, [0.0], dt=0.01, steps=2, memory=SWINGING["LuGre"].memory(jnp.zeros(1)))
    with pytest.raises(mbd.ModelError, match="there is no such joint"):
        mbd.Mechanism({"a": mbd.Particle(1.0)}, {}, {"pad": mbd.Friction("hinge", Viscous(1.0))})
