"""Joints that hold velocities, as functions of frames: what slips, where bodies touch, and what holds them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbd import joints, rotation
from jaxmbd.geometry.frame import Frame, identity
from jaxmbd.post.mechanisms import _wrench

KINDS = {
    "disc": joints.RollingDisc(0.7, (0.2, 1.0, 0.3), (0.1, -0.2, 1.0)),
    "ball": joints.RollingBall(0.7, (0.1, -0.2, 1.0)),
    "soft ball": joints.RollingBall(0.7, (0.1, -0.2, 1.0), pivoting=False),
    "knife": joints.KnifeEdge(),
}


def random_frame(key, scale=2.0):
    place, turn = jax.random.split(key)
    return Frame(jax.random.normal(place, (3,)), rotation.exp(scale * jax.random.normal(turn, (3,))))


def spoiled(frame, key):
    """Directors that are not orthonormal, as halfway through a step."""
    return Frame(frame.origin, frame.rotation + 0.2 * jax.random.normal(key, (3, 3)))


def carried(xi, frame):
    """The rate of a frame by a velocity of what is at the origin of space and an angular velocity."""
    turn = rotation.skew(xi[3:])
    return Frame(xi[:3] + turn @ frame.origin, turn @ frame.rotation)


def on_the_plane(kind, key):
    """Two frames at which the joint meets."""
    a, b = map(random_frame, jax.random.split(key))
    normal = a.rotation @ rotation.unit(getattr(kind, "normal", jnp.array([0.0, 0.0, 1.0])))
    lift = kind.constraint(a, b)
    return a, Frame(b.origin - (lift[0] * normal if lift.size else 0), b.rotation)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_bodies_that_move_as_one_do_not_slip(kind):
    """With any directors, so that schemes which look at means of positions keep momenta."""
    keys = jax.random.split(jax.random.key(1), 5)
    a, b = (spoiled(random_frame(k), other) for k, other in zip(keys[:2], keys[2:4], strict=True))
    xi = jax.random.normal(keys[4], (6,))
    np.testing.assert_allclose(jax.jit(lambda xi: kind.slip(a, b, carried(xi, a), carried(xi, b)))(xi), 0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_slip_is_linear_in_rates(kind):
    keys = jax.random.split(jax.random.key(2), 6)
    a, b, *rates = map(random_frame, keys)
    add = lambda x, y: jax.tree.map(lambda p, q: 2.0 * p - 3.0 * q, x, y)
    both = kind.slip(a, b, add(rates[0], rates[2]), add(rates[1], rates[3]))
    np.testing.assert_allclose(both, 2 * kind.slip(a, b, *rates[:2]) - 3 * kind.slip(a, b, *rates[2:]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["disc", "ball"])
def test_the_material_point_that_touches_stays_at_the_height_of_the_plane(name):
    """The rate of the height is the velocity of that point across the plane: together with the slip, all of its velocity is held."""
    kind, keys = KINDS[name], jax.random.split(jax.random.key(3), 3)
    a, b = on_the_plane(kind, keys[0])
    rates = [carried(jax.random.normal(key, (6,)), frame) for key, frame in zip(keys[1:], (a, b), strict=True)]
    point, normal = kind.contact(a, b), kind.plane(a)[:, 2]
    across = sum(
        sign * normal @ (rate.origin + rate.rotation @ frame.rotation.T @ (point - frame.origin))
        for sign, frame, rate in zip((-1, 1), (a, b), rates, strict=True)
    )
    rate = jax.jit(lambda *at: jax.jvp(lambda a, b: kind.constraint(a, b), at, tuple(rates))[1])(a, b)
    np.testing.assert_allclose(rate, [across], rtol=0, atol=1e-12)
    assert abs((point - a.origin) @ normal) < 1e-13


def test_a_disc_touches_with_the_lowest_point_of_its_rim():
    kind = KINDS["disc"]
    a, b = on_the_plane(kind, jax.random.key(4))
    across = rotation.basis(kind.axle(b))[:, :2]
    angles = jnp.linspace(0, 2 * np.pi, 2001)
    rim = b.origin[:, None] + 0.7 * across @ jnp.stack([jnp.cos(angles), jnp.sin(angles)])
    heights = kind.plane(a)[:, 2] @ (rim - a.origin[:, None])
    assert 0 <= heights.min() < 1e-5
    np.testing.assert_allclose(rim[:, heights.argmin()], kind.contact(a, b), atol=5e-3)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_reactions_do_no_work_on_motions_without_slip(kind):
    keys = jax.random.split(jax.random.key(5), 2)
    a, b = on_the_plane(kind, keys[0])
    rest = jax.tree.map(jnp.zeros_like, a)
    moved = lambda xi: carried(jnp.concatenate([xi[:3] - jnp.cross(xi[3:], b.origin), xi[3:]]), b)
    held = lambda xi: jnp.concatenate([jax.jvp(lambda b: kind.constraint(a, b), (b,), (moved(xi),))[1], kind.slip(a, b, rest, moved(xi))])
    rows = jax.jit(jax.jacfwd(held))(jnp.zeros(6))
    multipliers = jax.random.normal(keys[1], (rows.shape[0],))
    wrench = jax.jit(lambda multipliers: _wrench(kind, a, b, multipliers))(multipliers)
    np.testing.assert_allclose(wrench, -multipliers @ rows, rtol=0, atol=1e-12)
    assert np.linalg.svd(rows, compute_uv=False).min() > 1e-2


@pytest.mark.parametrize("name", ["disc", "ball"])
def test_frictionless_contact_points_give_forces_through_the_contact(name):
    """A force at the contact has the torque of its arm about the centre."""
    kind = KINDS[name]
    a, b = on_the_plane(kind, jax.random.key(6))
    wrench = _wrench(kind, a, b, jnp.array([0.3, -1.2, 0.7]))
    np.testing.assert_allclose(wrench[3:], jnp.cross(kind.contact(a, b) - b.origin, wrench[:3]), rtol=0, atol=1e-12)


def test_a_disc_rests_where_it_touches():
    for kind in (KINDS["disc"], KINDS["ball"]):
        np.testing.assert_allclose(kind.constraint(identity(), kind.rest()), [0.0], atol=1e-15)


# Mechanisms
