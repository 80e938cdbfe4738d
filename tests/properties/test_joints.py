"""All kinds of joints in random positions: what must hold between their constraint, their relative motion and their coordinates."""

import functools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbd as mbd
from jaxmbd import rotation
from jaxmbd.geometry.frame import Frame, Motion, identity
from jaxmbd.post.mechanisms import _wrench


def in_plane(a, b, weight):
    """A point that stays in a plane, for a joint of the user's."""
    return weight * (a.z @ (b.origin - a.origin))[None]


def gliding(u, a, b, weight):
    return Motion.move(u[0] * a.x + u[1] * a.y) @ Motion.turn(a.rotation @ u[2:], b.origin)


JOINTS = {
    "revolute": (mbd.Revolute(), 5),
    "prismatic": (mbd.Prismatic(), 5),
    "cylindrical": (mbd.Cylindrical(), 4),
    "spherical": (mbd.Spherical(), 3),
    "planar": (mbd.Planar(), 3),
    "fixed": (mbd.Fixed(), 6),
    "universal": (mbd.Universal(), 4),
    "screw": (mbd.Screw(0.3), 5),
    "distance": (mbd.Distance(0.7), 1),
    "point on line": (mbd.PointOnLine(), 2),
    "user": (mbd.UserJoint(in_plane, jnp.array(1.5), gliding, 5), 1),
}
WITH_COORDINATES = [name for name, (kind, _) in JOINTS.items() if kind.coordinates]
# The others give some rotations about axes of space, or about axes across the rod, which a turned observer chooses differently.
EQUIVARIANT = [name for name in JOINTS if name not in ("distance", "point on line")]

for_seeds = settings(max_examples=20, deadline=None, derandomize=True)
seeds = given(seed=st.integers(0, 2**31 - 1))


def random_frame(key):
    place, turn = jax.random.split(key)
    return Frame(jax.random.normal(place, (3,)), rotation.exp(2 * jax.random.normal(turn, (3,))))


def rigid(xi, centre):
    """The motion of a body by six increments, its rotation about a point."""
    return Motion.move(xi[:3]) @ Motion.turn(xi[3:], centre)


def entries(motion):
    return jnp.concatenate([motion.rotation.ravel(), motion.shift])


def difference(f, x, h=1e-5):
    """A central difference quotient by every component of x."""
    steps = h * jnp.eye(x.size)
    return jax.vmap(lambda step: (f(x + step) - f(x - step)) / (2 * h), out_axes=-1)(steps)


def twists(kind, a, b):
    """Velocity of the second origin and angular velocity for each increment, as columns."""
    slopes = jax.jacfwd(lambda u: kind.motion(u, a, b))(jnp.zeros(kind.freedom))
    moving = jnp.einsum("iju,j->iu", slopes.rotation, b.origin) + slopes.shift
    return jnp.concatenate([moving, jax.vmap(rotation.axial, -1, -1)(slopes.rotation)])


@functools.cache
def examine(name):
    """A compiled function of a seed that returns the numbers which the tests look at."""
    kind, _ = JOINTS[name]

    def of_seed(seed):
        keys = jax.random.split(jax.random.key(seed), 8)
        zero, draw = jnp.zeros(kind.freedom), lambda key: jax.random.uniform(key, (kind.freedom,), minval=-1.5, maxval=1.5)
        a, other = random_frame(keys[0]), random_frame(keys[1])
        start = a @ kind.rest()
        b = kind.motion(draw(keys[2]), a, start)(start)
        u = draw(keys[3])
        later = kind.motion(u, a, b)(b)
        push = lambda xi: kind.constraint(a, rigid(xi, b.origin)(b))
        pull = lambda xi: kind.constraint(rigid(xi, b.origin)(a), b)
        G, P = jax.jacfwd(push)(jnp.zeros(6)), twists(kind, a, b)
        move = lambda u: entries(kind.motion(u, a, b))
        multipliers = jax.random.normal(keys[4], (G.shape[0],))
        wrench = _wrench(kind, a, b, multipliers)
        observer = Motion(random_frame(keys[5]).rotation, jax.random.normal(keys[6], (3,)))
        seen = observer @ kind.motion(u, a, b) @ observer.inverse()
        A = observer.rotation
        carried = jnp.concatenate([A @ P[:3], A @ P[3:]])
        set_to = zero.at[: len(kind.coordinates)].set(draw(keys[7])[: len(kind.coordinates)])
        rest = kind.rest()
        return {
            "constraint": jnp.array([kind.constraint(a, x) for x in (start, b, later)]),
            "G": G,
            "P": P,
            "GP": G @ P,
            "at zero": move(zero) - entries(Motion.move(jnp.zeros(3))),
            "size": jnp.linalg.norm(kind.constraint(a, other)),
            "size seen": jnp.linalg.norm(kind.constraint(observer(a), observer(other))),
            "constraint seen": kind.constraint(observer(a), observer(b)),
            "motion seen": entries(kind.motion(u, observer(a), observer(b))) - entries(seen),
            "P carried": carried,
            "P seen": twists(kind, observer(a), observer(b)),
            "wrench": wrench,
            "wrench on a": jax.grad(lambda xi: -multipliers @ pull(xi))(jnp.zeros(6)),
            "power": wrench @ P,
            "slopes": [(jax.jacfwd(f)(x), difference(f, x)) for f, x in ((push, jnp.zeros(6)), (move, zero))],
            "curvatures": [(jax.hessian(f)(x), difference(jax.jacfwd(f), x)) for f, x in ((push, jnp.zeros(6)), (move, zero))],
            "coordinates": jnp.array([kind.coordinate(a, x) for x in (start, b, later)]),
            "increments": u[: len(kind.coordinates)],
            "set": set_to[: len(kind.coordinates)],
            "read": kind.coordinate(a, a @ kind.motion(set_to, identity(), rest)(rest)),
        }

    return jax.jit(of_seed)


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_the_motion_of_a_joint_keeps_its_constraint(name, seed):
    assert np.max(np.abs(examine(name)(seed)["constraint"])) < 1e-13


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_constraints_are_independent_and_leave_the_freedom_of_the_motion(name, seed):
    kind, rows = JOINTS[name]
    G = examine(name)(seed)["G"]
    assert G.shape == (rows, 6) and kind.freedom == 6 - rows
    assert np.linalg.svd(G, compute_uv=False).min() > 1e-2


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_increments_are_all_that_the_constraint_admits(name, seed):
    """$G P = 0$, and the columns of $P$ are independent: together with the count they span the null space."""
    kind, _ = JOINTS[name]
    found = examine(name)(seed)
    assert np.max(np.abs(found["GP"]), initial=0) < 1e-12
    assert np.linalg.svd(found["P"], compute_uv=False).min(initial=1) > 1e-2 and found["P"].shape == (6, kind.freedom)


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_no_increment_is_no_motion(name, seed):
    np.testing.assert_allclose(examine(name)(seed)["at zero"], np.zeros(12), rtol=0, atol=2e-15)


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_a_moved_observer_sees_the_same_joint(name, seed):
    """Also the size of the constraint away from zero, the space of admissible motions, and the motion where axes are the joint's own."""
    found = examine(name)(seed)
    assert np.max(np.abs(found["constraint seen"])) < 1e-13
    assert found["size"] > 0
    np.testing.assert_allclose(found["size seen"], found["size"], rtol=1e-12, atol=1e-12)
    carried, seen = np.asarray(found["P carried"]), np.asarray(found["P seen"])
    np.testing.assert_allclose(seen @ np.linalg.pinv(seen), carried @ np.linalg.pinv(carried), rtol=0, atol=1e-11)
    if name in EQUIVARIANT:
        np.testing.assert_allclose(found["motion seen"], np.zeros(12), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_a_reaction_does_no_work_and_is_opposite_on_the_first_body(name, seed):
    found = examine(name)(seed)
    assert np.linalg.norm(found["wrench"]) > 0
    assert np.max(np.abs(found["power"]), initial=0) < 1e-12
    np.testing.assert_allclose(found["wrench on a"], -found["wrench"], rtol=0, atol=1e-12 * (1 + np.max(np.abs(found["wrench"]))))


@pytest.mark.parametrize("name", JOINTS)
@for_seeds
@seeds
def test_derivatives_are_those_of_finite_differences_and_finite_up_to_the_second(name, seed):
    found = examine(name)(seed)
    for derivative, quotient in (*found["slopes"], *found["curvatures"]):
        assert np.isfinite(derivative).all()
        size = 1 + np.max(np.abs(derivative), initial=0)
        np.testing.assert_allclose(derivative, quotient, rtol=0, atol=1e-7 * size)


@pytest.mark.parametrize("name", WITH_COORDINATES)
@for_seeds
@seeds
def test_coordinates_read_what_was_set(name, seed):
    kind, _ = JOINTS[name]
    found = examine(name)(seed)
    assert len(kind.coordinates) == len(kind.angular) == found["read"].size
    np.testing.assert_allclose(found["read"], found["set"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["coordinates"][0], np.zeros(found["read"].size), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in WITH_COORDINATES if JOINTS[name][0].additive])
@for_seeds
@seeds
def test_increments_add_up_to_coordinates(name, seed):
    """Angles up to full turns."""
    kind, _ = JOINTS[name]
    found = examine(name)(seed)
    off = found["coordinates"][2] - found["coordinates"][1] - found["increments"]
    off = np.where(kind.angular, np.angle(np.exp(1j * np.asarray(off))), off)
    np.testing.assert_allclose(off, np.zeros(off.size), rtol=0, atol=1e-11)


@pytest.mark.parametrize("angle", [-50.0, 3.0, 7.0, 50.0])
def test_a_screw_counts_turns_by_its_advance(angle):
    kind, _ = JOINTS["screw"]
    b = kind.motion(jnp.array([angle]), identity(), identity())(identity())
    np.testing.assert_allclose(b.origin, [0, 0, 0.3 * angle / (2 * np.pi)], atol=1e-15)
    np.testing.assert_allclose(kind.coordinate(identity(), b), [angle], rtol=1e-13)
    assert np.max(np.abs(kind.constraint(identity(), b))) < 1e-13


def test_a_user_joint_without_motion_says_so():
    kind = mbd.UserJoint(in_plane, jnp.array(1.0))
    assert not kind.moves
    with pytest.raises(mbd.ModelError, match="UserJoint"):
        kind.motion(jnp.zeros(0), identity(), identity())
