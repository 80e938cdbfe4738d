"""Equilibrium and vibration: beams against closed forms and published figures, rigid bodies and functions against statics by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.linalg import expm
from scipy.optimize import brentq

import jaxmbd as mbd
from jaxmbd.gallery import ALUMINIUM_SECTION

CLAMP = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}


def cantilever(length, section, elements, order, loads):
    beam = mbd.Beam.line((0, 0, 0), (0, 0, length), section, elements, order, normal=(1, 0, 0))
    return mbd.assemble(mbd.Mechanism({"beam": beam}, CLAMP, loads))


def tip(q):
    return q.reshape(-1, 4, 3)[-1, 0]


def rolled_up(slenderness):
    section = mbd.Section.rectangle(1 / slenderness, 1 / slenderness, 1e9, 1e3)
    moment = 2 * np.pi * float(section.stiffness[3, 3])
    system, q = cantilever(1.0, section, 8, 2, [mbd.Torque("beam[-1]", (moment, 0, 0))])
    return mbd.equilibrium(system, q, steps=20)


@pytest.mark.slow
def test_a_moment_rolls_a_beam_up_into_a_circle_however_slender():
    """No locking: a beam of slenderness 100,000 ends where one of slenderness 10 does, both near the start of the circle."""
    stout, slender = rolled_up(10.0), rolled_up(1e5)
    assert jnp.linalg.norm(tip(stout.q)) < 5e-3
    np.testing.assert_allclose(tip(slender.q), tip(stout.q), rtol=0, atol=1e-6)
    half = tip(stout.path[10])
    np.testing.assert_allclose(half, [0, -2 / np.pi, 0], atol=5e-4)
    assert stout.successful and slender.path.shape == (21, stout.q.size)


@pytest.fixture(scope="module")
def bent():
    """The large deflection of a cantilever (Gerstmayr and others), and its slope by the modulus of elasticity."""

    def deflection(modulus):
        section = mbd.Section.rectangle(0.1, 0.5, modulus, 7800.0, nu=0.3)
        system, q = cantilever(2.0, section, 8, 2, [mbd.Force("beam[-1]", (0, 6.25e7, 0))])
        found = mbd.equilibrium(system, q, steps=4, throw=False)
        return tip(found.q)[1], found

    return jax.jit(jax.value_and_grad(deflection, has_aux=True))


@pytest.mark.slow
def test_large_deflection_of_a_cantilever(bent):
    (deflection, found), slope = bent(2.07e11)
    assert found.successful
    np.testing.assert_allclose(2.0 - tip(found.q)[2], 0.150971, atol=4e-6)
    np.testing.assert_allclose(deflection, 0.710568, atol=2e-5)
    difference = (bent(2.07e11 * (1 + 1e-5))[0][0] - bent(2.07e11 * (1 - 1e-5))[0][0]) / (2e-5 * 2.07e11)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)
    clamp = np.asarray(found.multipliers)[-6:-3]  # the clamp's three displacements come first of its rows
    np.testing.assert_allclose(np.abs(clamp).max(), 6.25e7, rtol=1e-9)


@pytest.mark.slow
def test_frequencies_of_the_swing_beam_of_s2():
    """A pinned beam with a mass in its middle: 0.443, 18.17, 28.46 and 319.5 Hz among all that move in its plane, to 0.1 %; to 1 % by
    fewer elements, and to all digits by those of finite volumes, in the quick suite.
    """
    ends = {
        "start": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "beam[0]", at=(0, 0, 0)),
        "end": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "beam[-1]", at=(0, 0.72, 0)),
    }
    beam = mbd.Beam.line((0, 0, 0), (0, 0.72, 0), ALUMINIUM_SECTION, 20, 2, normal=(1, 0, 0), masses={20: 0.5})
    found = mbd.modes(*mbd.assemble(mbd.Mechanism({"beam": beam}, ends)), count=30)
    largest = np.abs(np.asarray(found.shapes).reshape(30, -1, 4, 3)[:, :, 0]).max(axis=1)
    bending = np.asarray(found.frequencies)[largest.argmax(axis=1) == 2]
    axial = np.asarray(found.frequencies)[largest.argmax(axis=1) == 1]
    np.testing.assert_allclose(bending[:3], [0.443, 18.17, 28.46], rtol=2e-3)
    np.testing.assert_allclose(axial[0], 319.5, rtol=1e-3)


def test_frequencies_of_free_and_clamped_beams():
    """Slender beams against Euler and Bernoulli; a free one has six motions without stiffness."""
    section = mbd.Section.rectangle(0.02, 0.01, 2e11, 7800.0)
    speed = np.sqrt(section.stiffness[3, 3] / section.mass)
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 2.0), section, 12, 3, normal=(1, 0, 0))
    free = mbd.modes(*mbd.assemble(mbd.Mechanism({"beam": beam})), count=12).squares
    assert np.abs(free[:6]).max() < 1e-4 * free[6]
    about_first = np.sqrt(np.asarray(free)[[6, 7]])
    np.testing.assert_allclose(about_first[0], (4.730041 / 2.0) ** 2 * speed, rtol=1e-3)
    clamped = mbd.modes(*cantilever(2.0, section, 12, 3, []), count=2).squares
    np.testing.assert_allclose(np.sqrt(clamped), (1.875104 / 2.0) ** 2 * speed * np.array([1.0, 2.0]), rtol=1e-3)


def timoshenko(section, length, free, between):
    """The circular frequency of bending about the first director of a beam that is clamped or free at its start, and free at its end."""
    EI, GA, mass, rotary = section.stiffness[3, 3], section.stiffness[1, 1], section.mass, section.second[1, 1]

    def left_at_the_end(omega):
        rates = np.array([[0, 1, 0, 1 / GA], [0, 0, 1 / EI, 0], [0, -rotary * omega**2, 0, -1], [-mass * omega**2, 0, 0, 0]])
        scale = np.array([length, 1.0, EI / length, EI / length**2])  # of deflection, rotation, moment, shear force
        transfer = expm(length * rates * scale / scale[:, None])
        return np.linalg.det(transfer[2:, :2] if free else transfer[2:, 2:])

    return brentq(left_at_the_end, *between, xtol=1e-9)


def test_frequencies_of_stout_beams_are_those_of_timoshenko():
    """Shear and the inertia of rotation lower the frequencies of a beam five times as long as high by a tenth and more."""
    section = mbd.Section.rectangle(0.3, 0.2, 2e11, 7800.0)
    slender = np.sqrt(section.stiffness[3, 3] / section.mass)  # for a length of one
    clamped = np.sqrt(np.asarray(mbd.modes(*cantilever(1.0, section, 10, 3, []), count=8).squares))
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 1.0), section, 10, 3, normal=(1, 0, 0))
    free = np.sqrt(np.asarray(mbd.modes(*mbd.assemble(mbd.Mechanism({"beam": beam})), count=12).squares)[6:])
    for found, loose, bending in ((clamped, False, 1.875104), (clamped, False, 4.694091), (free, True, 4.730041)):
        by_bending = bending**2 * slender
        exact = timoshenko(section, 1.0, loose, (0.6 * by_bending, 0.999 * by_bending))
        assert exact < (0.99 if bending < 2 else 0.9) * by_bending
        assert np.abs(found / exact - 1).min() < 2e-5


def test_equilibrium_and_frequency_of_a_pendulum_of_functions():
    """Started aside, it ends where it hangs; its frequency is that of the thread."""
    system = mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[1],
        constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - p["l"] ** 2)]),
        params={"l": 2.0},
    )
    found = mbd.equilibrium(system, jnp.array([1.2, -1.6]), steps=4)
    np.testing.assert_allclose(found.q, [0.0, -2.0], atol=1e-12)
    np.testing.assert_allclose(mbd.modes(system, found.q).squares, [9.81 / 2.0], rtol=1e-12)
    inverted = mbd.modes(system, jnp.array([0.0, 2.0]))
    np.testing.assert_allclose(inverted.frequencies, [-np.sqrt(9.81 / 2.0) / (2 * np.pi)], rtol=1e-12)
    with pytest.raises(mbd.ModelError, match="out of balance"):
        mbd.modes(system, jnp.array([1.2, -1.6]))


@pytest.mark.slow
def test_equilibrium_of_a_linkage_with_a_loop():
    """A spring holds the coupler of a four-bar whose redundant hinges share the load: what is left is one equation of virtual work."""
    mechanism, placement = mbd.gallery.four_bar()
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    spring = mbd.Spring("ground", "coupler", 400.0, at_a=placement["coupler"][0])
    loaded = mbd.Mechanism(bodies, mechanism.joints, mechanism.loads | {"spring": spring})
    system, q0 = mbd.assemble(loaded, placement)
    found = mbd.equilibrium(system, q0, steps=5)
    assert jnp.max(jnp.abs(system.constraints(0.0, found.q))) < 1e-12
    at_rest = mbd.simulate(system, found.q, dt=0.01, steps=20, formulation=mbd.NullSpace())
    np.testing.assert_allclose(at_rest.q[-1], found.q, atol=1e-9)
    assert jnp.max(jnp.abs(found.q - q0)) > 1e-3


def test_a_truss_snaps_through():
    """Two springs that meet in a flat angle: the load that holds them rises, falls, and turns its sign, as their lengths tell."""
    stretch = lambda w, xp: xp.sqrt(1 + w**2) - np.sqrt(1.25)
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v, potential=lambda t, q, p: 50.0 * stretch(q[0], jnp) ** 2 + 2.0 * q[0]
    )
    path = mbd.statics.equilibrium_path(system, jnp.array([0.5]), steps=30, first=0.25)
    w = np.asarray(path.q)[:, 0]
    np.testing.assert_allclose(2.0 * path.factors, -100 * stretch(w, np) * w / np.sqrt(1 + w**2), rtol=0, atol=1e-12)
    assert path.factors.max() > 1.05 and path.factors.min() < -1.05 and np.ptp(np.diff(w)) < 1e-12


@pytest.mark.slow
def test_an_arch_snaps_through():
    """Hinged at both ends and loaded in its middle: it passes a limit point symmetrically, and the load does the work that it stores."""
    radius, half = 10.0, 0.3

    def arc(x):
        a = half * (2 * x - 1)
        sine, cosine, zero = jnp.sin(a), jnp.cos(a), jnp.zeros(())
        rotation = jnp.array([[zero, sine, cosine], [1.0, zero, zero], [zero, cosine, -sine]])
        return radius * jnp.array([sine, zero, cosine - np.cos(half)]), rotation

    beam = mbd.Beam.curve(arc, mbd.Section.rectangle(0.1, 0.1, 1e9, 1e3), 4, 2)
    pins = {end: mbd.Joint(mbd.Revolute((0, 1, 0)), "ground", f"arch[{end}]", at=beam.nodes[int(end), 0]) for end in ("0", "-1")}
    system, q0 = mbd.assemble(mbd.Mechanism({"arch": beam}, pins, [mbd.Force("arch[4]", (0, 0, -4000.0))]))
    path = mbd.statics.equilibrium_path(system, q0, steps=24, first=0.3)
    middle, factors = np.asarray(path.q).reshape(25, -1, 4, 3)[:, 4, 0], np.asarray(path.factors)
    assert 5 < factors.argmax() < 20 and factors[-1] < 0.8 * factors.max()
    assert np.abs(middle[:, :2]).max() < 1e-12 and np.all(np.diff(middle[:, 2]) < 0)
    stored = -system.lagrangian(0.0, path.q[-1], jnp.zeros_like(q0))
    np.testing.assert_allclose(simpson(4000.0 * factors, x=-middle[:, 2]), stored, rtol=1e-4)


def test_what_cannot_rest_is_told():
    system, q = mbd.assemble(mbd.Mechanism({"ball": mbd.Particle(1.0)}, loads=[mbd.Gravity()]))
    with pytest.raises(mbd.ModelError, match="load step 1 of 1 was not solved"):
        mbd.equilibrium(system, q)
    with pytest.raises(mbd.ModelError, match="positive whole number"):
        mbd.equilibrium(system, q, steps=0)
    with pytest.raises(mbd.ModelError, match="must not be zero"):
        mbd.statics.equilibrium_path(system, q, steps=2, first=0.0)
    with pytest.raises(mbd.ModelError, match="step along the path 1 of 2"):
        mbd.statics.equilibrium_path(system, q, steps=2)


def test_a_position_of_rest_off_the_constraints_is_told():
    """Twice the same plane, until the second one starts to bend on the way to where a spring rests."""
    planes = lambda t, q, p: jnp.array([q[1], q[1] + jnp.maximum(q[0] - 0.35, 0) ** 2])
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v - 0.5 * (q[0] - 1) ** 2, constraints=planes)
    assert mbd.equilibrium(system, jnp.zeros(2), throw=False).results.tolist() == [mbd.Result.RANK_CHANGED]
