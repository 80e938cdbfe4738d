"""Units do not matter: reactions, ranks and checks in millimetres and milligrams as in kilometres and tonnes."""

import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints.manifold import manifold_at

UNITS = [(1.0, 1.0), (1e-4, 1e-9), (1e-4, 1e9), (1e-2, 1e3), (1e3, 1e-6), (1e5, 1.0), (1e8, 1e-9), (1e8, 1e9)]
"""Lengths and masses; the first is what others are compared with. Times stay, so that forces go with mass times length."""

SCHEMES = [
    (mbd.Midpoint(), mbd.Multipliers()),
    (mbd.Midpoint(), mbd.NullSpace()),
    (mbd.Midpoint(), mbd.NullSpace("qr")),
    (mbd.Midpoint(), mbd.Reparametrised()),
    (mbd.Midpoint(), mbd.Reparametrised(chart="implicit", source="qr")),
    (mbd.Galerkin(4), mbd.Multipliers()),
    (mbd.EnergyMomentum(), mbd.Multipliers()),
    (mbd.EnergyMomentum(), mbd.NullSpace()),
    (mbd.schemes.GeneralizedAlpha(), mbd.Multipliers()),
    (mbd.schemes.ConservativeDirector(), mbd.formulations.JointMultipliers()),
    (mbd.schemes.Newmark(), mbd.Multipliers()),
]
QUICK = {0, 3, 6, 8, 9}


def chain(length, mass, place=0.0):
    """Two links on hinges, which hang from a place in space, with a torsional spring on the second."""
    body = mbd.RigidBody.box(mass=mass, size=(0.1 * length, 0.2 * length, length))
    at = lambda height: (place, 0.0, height * length)
    joints = {
        "upper": mbd.Joint(mbd.Revolute((1.0, 0.0, 0.0)), "ground", "a", at=at(0.0)),
        "lower": mbd.Joint(mbd.Revolute((0.3, 1.0, 0.0)), "a", "b", at=at(-1.0)),
    }
    loads = (mbd.Gravity((3 * length, 7 * length, -9.81 * length)), mbd.JointSpring("lower", 2.0 * mass * length**2))
    mechanism = mbd.Mechanism(bodies={"a": body, "b": body}, joints=joints, loads=loads)
    system, q0 = mbd.assemble(mechanism, {"a": at(-0.5), "b": at(-1.5)})
    return system, q0, mbd.joint_velocities(system, q0, {"upper": 1.0, "lower": -2.0})


@pytest.mark.parametrize("length", [1e-8, 1e8])
def test_a_driven_screw_in_other_units(length):
    """Its coordinate is an angle though it is read from a displacement: sizes of lengths must not meet it."""

    def angle(unit):
        nut = mbd.RigidBody.box(mass=1.0, size=(unit, 2 * unit, 3 * unit))
        thread, motor = mbd.Joint(mbd.Screw(0.7 * unit), "ground", "nut"), mbd.JointForce("thread", 0.5 * unit**2)
        system, q0 = mbd.assemble(mbd.Mechanism(bodies={"nut": nut}, joints={"thread": thread}, loads=[motor]))
        return post.joint_coordinates(system, mbd.simulate(system, q0, dt=0.1, steps=5))["thread"]

    np.testing.assert_allclose(angle(length), angle(1.0), rtol=1e-10)


@pytest.fixture(scope="module")
def chains():
    """They differ in numbers alone, so that one program serves all."""
    return {units: chain(*units) for units in UNITS}


def reactions(system, trajectory, length, mass):
    """Forces and torques at all joints, without a unit."""
    wrenches = post.reactions(system, trajectory).values()
    return np.concatenate([np.hstack([w.force / (mass * length), w.torque / (mass * length**2)]) for w in wrenches], axis=1)


def directors(trajectory):
    return np.asarray(trajectory.q)[:, :24].reshape(-1, 2, 4, 3)[:, :, 1:]


@pytest.mark.parametrize(
    "scheme, formulation",
    [pytest.param(*pair, marks=() if i in QUICK else pytest.mark.slow) for i, pair in enumerate(SCHEMES)],
    ids=lambda choice: type(choice).__name__,
)
def test_reactions_do_not_depend_on_units(chains, scheme, formulation):
    found = {}
    for units, start in chains.items():
        trajectory = mbd.simulate(*start, dt=0.01, steps=5, scheme=scheme, formulation=formulation)
        found[units] = reactions(start[0], trajectory, *units), directors(trajectory), np.asarray(trajectory.newton_steps)
    expected, turned, iterations = found[UNITS[0]]
    blocks = np.abs(expected).reshape(-1, 2, 2, 3)
    size = np.broadcast_to(blocks.max(axis=(0, 1, 3))[:, None], (2, 2, 3)).ravel()  # that of all forces, that of all torques
    for units, (values, directions, steps) in found.items():
        assert np.max(np.abs(values - expected) / size) < 1e-10, units
        np.testing.assert_allclose(directions, turned, rtol=0, atol=1e-12, err_msg=str(units))
        np.testing.assert_array_less(np.abs(steps - iterations), 2)


def test_multipliers_of_the_continuous_motion_do_not_depend_on_units(chains):
    found, accelerated = [], eqx.filter_jit(lambda system, q, v: manifold_at(system, jnp.zeros(()), q).acceleration(v))
    for (length, mass), (system, q0, v0) in chains.items():
        multipliers = accelerated(system, q0, v0)[1]
        unit = np.full(multipliers.size, mass * length**2)
        unit[[12, 13, 14, 17, 18, 19]] = mass * length  # of the points of both joints
        found.append(multipliers / unit)
    np.testing.assert_allclose(found, np.broadcast_to(found[0], np.shape(found)), rtol=0, atol=1e-10 * np.max(np.abs(found[0])))


def four_bar(length, mass):
    """A loop of bars in space, three of whose constraints are redundant."""
    corners = length * np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.2, 1.5, 0.0], [1.5, 0.0, 0.0]])
    names = ["ground", "crank", "coupler", "rocker"]
    pairs = {name: (corners[i - 1], corners[i]) for i, name in enumerate(names) if i}
    bodies = {name: mbd.RigidBody(mass, [0.01 * mass * length**2] * 3) for name in pairs}
    placement = {name: 0.5 * (a + b) for name, (a, b) in pairs.items()}
    hinge = lambda i: mbd.Joint(mbd.Revolute(), names[i], names[(i + 1) % 4], at=corners[i])
    loads = (mbd.Gravity((1.0 * length, -9.81 * length, 2.0 * length)),)
    system, q0 = mbd.assemble(mbd.Mechanism(bodies=bodies, joints={f"hinge {i}": hinge(i) for i in range(4)}, loads=loads), placement)
    return system, q0


@pytest.mark.parametrize("formulation", [mbd.Multipliers(), mbd.NullSpace()], ids=lambda f: type(f).__name__)
def test_ranks_and_reactions_of_loops_do_not_depend_on_units(formulation):
    """Of many possible reactions, the same are the smallest in all units."""
    found = []
    for units in ((1.0, 1.0), (1e-4, 1e-9), (1e8, 1e9)):
        system, q0 = four_bar(*units)
        assert q0.size - system.rank == 1
        trajectory = mbd.simulate(system, q0, dt=0.01, steps=5, formulation=formulation)
        assert trajectory.redundant == 3
        found.append(reactions(system, trajectory, *units))
    np.testing.assert_allclose(found, np.broadcast_to(found[0], np.shape(found)), rtol=0, atol=1e-10 * np.max(np.abs(found[0])))


def test_a_position_off_its_constraints_is_refused_in_all_units(chains):
    """By a hundred thousandth of a length, or of a right angle; by rounding it is taken."""
    for (length, _), (system, q0, v0) in chains.items():
        for place, unit in ((0, length), (4, 1.0)):
            with pytest.raises(mbd.ModelError, match="does not fulfil"):
                mbd.simulate(system, q0.at[place].add(1e-5 * unit), v0, dt=0.01, steps=5)
            with pytest.raises(mbd.ModelError, match="not tangent"):
                mbd.simulate(system, q0, v0.at[place].add(1e-5 * unit), dt=0.01, steps=5)
            mbd.simulate(system, q0.at[place].add(1e-13 * unit), v0, dt=0.01, steps=5)


def test_a_light_body_with_a_load_on_its_joint_has_inertia():
    """A millimetre and ten milligrams: the counted angle has the unit one beside the root of an inertia of some 1e-12."""
    for mass in (1e-5, 1e-12):
        system, q0, v0 = chain(1e-3, mass)
        assert mbd.simulate(system, q0, v0, dt=0.01, steps=5).successful


def test_far_from_the_origin_rotations_keep_their_digits():
    """Positions of 1e7 end at 2e-9, and links that are to meet there turn by as much: rotations are off by no more than that leaves."""
    near, far = (mbd.simulate(*chain(1.0, 1.0, place), dt=0.01, steps=5) for place in (0.0, 1e7))
    np.testing.assert_allclose(directors(far), directors(near), rtol=0, atol=1e7 * 2 * np.finfo(float).eps * 20)
    orthonormal = np.einsum("tbij,tbkj->tbik", directors(far), directors(far)) - np.eye(3)
    assert np.max(np.abs(orthonormal)) < 1e-14  # as near to the origin: directors are not measured by positions


def test_few_digits_of_multipliers_are_told():
    """Reactions hardly change within a few short steps, unless they are rounding."""
    system, q0, v0 = chain(1.0, 1.0)
    run = lambda dt: mbd.simulate(system, q0, v0, dt=dt, steps=5)
    with warnings.catch_warnings(action="error"):
        good = reactions(system, run(1e-4), 1.0, 1.0)
    few = run(1e-8)
    with pytest.warns(UserWarning, match="rounding leaves about [01] digits"):
        noisy = reactions(system, few, 1.0, 1.0)
    assert post.summary(system, few)["digits of multipliers, about"] <= 1
    assert np.max(np.abs(noisy[2] - good[0])) > 1e-3 * np.max(np.abs(good))
    assert post.summary(system, run(1e-4))["digits of multipliers, about"] >= 5
