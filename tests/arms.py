"""An arm of two links, shared by the tests of parameters by name."""

import jax
import numpy as np

import jaxmbd as mbd

LINK = (0.1, 0.1, 1.0)


def arm(mass=1.0, com=(0.0, 0.0, 0.1), inertia=(0.1, 0.2, 0.15), elbow=(0, 0, -1), axis=(0, 1, 0), stiffness=30.0, gravity=(0, 0, -9.81)):
    """Two links, of which the second is drawn back by a spring, and a motor."""
    bodies = {"link1": mbd.RigidBody.box(1.0, LINK), "link2": mbd.RigidBody(mass, inertia, com)}
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "link1", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute(axis), "link1", "link2", at=elbow),
    }
    loads = [
        mbd.Gravity(gravity),
        mbd.Spring("ground", "link2", stiffness=stiffness, rest=0.5, at_a=(1, 0.5, -1)),
        mbd.JointSpring("elbow", stiffness=2.0, damping=0.1),
    ]
    return mbd.Mechanism(bodies, joints, loads)


PLACEMENT = {"link1": ((0, 0, -0.5), (0.0, 0.0, 0.3)), "link2": ((0, 0.2, -1.5), (0.2, 0.0, 0.0))}
SYSTEM, Q0 = mbd.assemble(arm(), PLACEMENT)
NOMINAL = SYSTEM.parameters


def largest_difference(first, second):
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0)) for a, b in leaves)
