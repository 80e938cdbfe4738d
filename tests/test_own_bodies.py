"""A kind of body that a user writes costs its class alone: trial bodies beside rigid ones that joints hold as these are by themselves."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.bodies import AbstractBody
from jaxmbd.bodies.base import moments

PIN, X = mbd.Revolute((0, 1, 0)), np.array([1.0, 0.0, 0.0])


class Gondola(AbstractBody):
    """A body that translates in space and never turns."""

    mass: Any

    size: ClassVar[int] = 3
    internal: ClassVar[int] = 0
    twists: ClassVar[tuple[int, ...]] = (0, 1, 2)

    @staticmethod
    def lift(q):
        return jnp.concatenate([q[None], jnp.eye(3, dtype=q.dtype)])

    @staticmethod
    def lower(rows):
        return rows[0]

    @staticmethod
    def constraint(q):
        return q[:0]

    @property
    def inertia_matrix(self):
        return moments(self.mass, np.zeros(3), np.zeros((3, 3)))


class Slide(AbstractBody):
    """A body that slides along the first axis."""

    mass: Any

    size: ClassVar[int] = 1
    internal: ClassVar[int] = 0
    twists: ClassVar[tuple[int, ...]] = (0,)

    @staticmethod
    def lift(q):
        return jnp.concatenate([(q * X)[None], jnp.eye(3, dtype=q.dtype)])

    @staticmethod
    def lower(rows):
        return rows[0, :1]

    @staticmethod
    def constraint(q):
        return q[:0]

    @property
    def inertia_matrix(self):
        return moments(self.mass, np.zeros(3), np.zeros((3, 3)))


def level(a, b, params):
    return jnp.array([a.x @ b.y, a.y @ b.z, a.z @ b.x])


def wheel(own):
    """A slide on a rail with a spring, a crank on it, and a gondola that hangs below the end of the crank."""
    rigid = lambda mass: mbd.RigidBody.sphere(mass, 0.1)
    bodies = {
        "slide": Slide(2.0) if own else rigid(2.0),
        "crank": mbd.RigidBody.box(1.0, (1.0, 0.1, 0.1)),
        "gondola": Gondola(0.5) if own else rigid(0.5),
    }
    joints = {
        "rail": mbd.Joint(mbd.Prismatic(X), "ground", "slide", at=(0, 0, 0)),
        "hub": mbd.Joint(PIN, "slide", "crank", at=(0, 0, 0)),
        "pivot": mbd.Joint(mbd.Spherical(), "crank", "gondola", at=(1, 0, 0)),
    }
    held = {} if own else {"level": mbd.Joint(level, "ground", "gondola")}
    loads = [mbd.Gravity(), mbd.Spring("ground", "slide", 30.0, rest=1.0, at_a=(-1.0, 0.5, 0))]
    placement = {"slide": (0.0, 0, 0), "crank": (0.5, 0, 0), "gondola": (1.0, 0, -0.3)}
    return mbd.assemble(mbd.Mechanism(bodies, {**joints, **held}, loads), placement)


@pytest.mark.parametrize(
    ("scheme", "formulation"),
    [
        pytest.param(mbd.Midpoint(), mbd.Reparametrised(), id="midpoint"),
        pytest.param(mbd.schemes.ConservativeDirector(), mbd.formulations.JointMultipliers(), id="directors", marks=pytest.mark.slow),
    ],
)
def test_bodies_of_the_users_own_move_as_rigid_bodies_that_joints_hold(scheme, formulation):
    poses = []
    for own in (True, False):
        system, q0 = wheel(own)
        assert q0.size - system.rank == 2
        motion = mbd.simulate(system, q0, dt=0.02, steps=25, scheme=scheme, formulation=formulation)
        poses.append(post.poses(system, motion))
    assert jnp.ptp(poses[0]["slide"].origin[:, 0]) > 0.1 and jnp.ptp(poses[0]["gondola"].origin[:, 2]) > 0.5
    for name in ("slide", "crank", "gondola"):
        np.testing.assert_allclose(poses[0][name].origin, poses[1][name].origin, rtol=0, atol=1e-11)


def test_joints_on_bodies_of_the_users_own_count_as_much_as_those_have():
    """A rail takes nothing more from a slide; what turns and what does not hang on each other in no tree."""
    system, _ = wheel(True)
    kept = {name: (len(group.kept), len(group.columns)) for group in system.params.joints for name in group.names}
    assert kept["rail"] == (0, 1) and kept["hub"][0] == 5 and kept["pivot"][0] == 3
    assert {name for group in system.params.closing for name in group.names} == {"hub", "pivot"}
    assert system.params.bodies[-1] == "ground" and "1 Slide" in mbd.assembly.describe(*wheel(True))


def test_poses_that_a_body_of_the_users_own_cannot_take_are_refused():
    with pytest.raises(mbd.ModelError, match="'slide' cannot take the pose that was given: a Slide moves along x alone"):
        mbd.assemble(mbd.Mechanism({"slide": Slide(1.0)}), {"slide": (0.0, 1.0, 0.0)})


def test_coordinates_asked_of_joints_that_close_loops_are_reached():
    """A crank does not hang on a slide that cannot turn, so that its hub closes a loop: the angle is solved for all the same."""
    bodies = {"slide": Slide(2.0), "crank": mbd.RigidBody.box(1.0, (1.0, 0.1, 0.1))}
    mechanism = mbd.Mechanism(bodies, {"hub": mbd.Joint(PIN, "slide", "crank", on_b=(-0.5, 0, 0))})
    system, q0 = mbd.assemble(mechanism, {"hub": 0.7})
    motion = mbd.simulate(system, q0, dt=0.01, steps=1)
    np.testing.assert_allclose(post.joint_coordinates(system, motion)["hub"][0], 0.7, atol=1e-12)
    crank = post.poses(system, motion)["crank"]
    np.testing.assert_allclose(crank.x, crank.rotation[:, :, 0])
