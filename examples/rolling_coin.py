"""Rolling coin: a thin disc that rolls on a table without slip, upright, along a circle, and wobbling.

A coin leans into its curve. There is one motion for each angle in which it leans on steadily, its contact running along a circle
(A. Le Saux, R. I. Leine, C. Glocker, Dynamics of a rolling disk in the presence of dry friction, J. Nonlinear Sci. 15, 2005); pushed, it
wobbles about it. What holds the coin is one constraint on its position and two on its velocity, which keep the point that touches at rest.
"""

# %% Setup: a coin, its contact with the table, and nothing else
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import joints, post
from jaxmbd.bodies import Cylinder
from jaxmbd.cli import options

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mass, radius, circle, gravity = 0.3048, 0.05, 0.5, 9.81
across = mbd.rotation.exp(np.array([np.pi / 2, 0, 0]))
coin = mbd.RigidBody(mass, mass * radius**2 * np.array([0.25, 0.5, 0.25]), shape=Cylinder(radius, 0.004, pose=mbd.Frame((0, 0, 0), across)))
contact = mbd.Joint(joints.RollingDisc(radius, axis=(0, 1, 0)), "ground", "coin")
mechanism = mbd.Mechanism({"coin": coin}, {"contact": contact}, [mbd.Gravity((0, 0, -gravity))])


# %% Steady rolling: the contact runs along a circle about the origin while the coin leans inwards
def steady(lean):
    """The pose of the coin, its spin about its axle, and the rate at which it goes round."""
    s, c, ratio = np.sin(lean), np.cos(lean), radius / circle
    spin = np.sqrt(4 * gravity / radius * s / ((6 - 5 * ratio * s) * ratio * c))
    ahead, axle, up = np.array([[0.0, 1, 0], [-c, 0, -s], [-s, 0, c]])
    return np.array([circle, 0, 0]) + radius * up, np.stack([ahead, axle, up], axis=1), spin, ratio * spin


def launched(lean, push=0.0):
    """The coin in steady motion, or with another angular velocity about the way ahead, in which it falls to its side."""
    centre, pose, spin, round_ = steady(lean)
    system, q0 = mbd.assemble(mechanism, {"coin": (centre, pose)})
    turning = round_ * np.array([0, 0, 1.0]) + spin * pose[:, 1] + push * pose[:, 0]
    velocity = np.cross(turning, radius * pose[:, 2])  # of the centre about the point that touches
    return system, q0, mbd.joint_velocities(system, q0, {"coin": (*velocity, *turning)}), 2 * np.pi / round_


def run(start, steps, periods=1.0, scheme=mbd.EnergyMomentum()):
    system, q0, v0, period = start
    return mbd.simulate(system, q0, v0, dt=periods * period / steps, steps=steps, scheme=scheme)


# %% Motions: one period of the steady circle in finer and finer steps, and a wobbling coin
counts = (250, 500) if options().reduced else (250, 500, 1000, 2000)
lean = np.radians(20.0)
start, pushed = launched(lean), launched(lean, push=3.0)
system, q0, _, period = start
rounds = [run(start, count) for count in counts]
wobble = run(pushed, 1000 if options().reduced else 2000, 1.0)
errors = [np.abs(np.asarray(one.q[-1] - q0)).max() for one in rounds]
force = np.asarray(post.reactions(system, rounds[-1])["contact"].force)
centre = np.asarray(post.point(system, rounds[-1], "coin").position)
friction = mass * (2 * np.pi / period) ** 2 * (circle - radius * np.sin(lean))
slips = {name: np.abs(np.asarray(post.constraint_rates(system, one))) for name, one in (("steady", rounds[-1]), ("wobbling", wobble))}
heights = {name: np.abs(np.asarray(post.constraint_residuals(system, one))) for name, one in (("steady", rounds[-1]), ("wobbling", wobble))}


def touching(motion):
    """The point of the table that the coin touches."""
    pose = post.poses(system, motion)["coin"]
    return np.asarray(jax.vmap(contact.kind.contact, (None, 0))(mbd.geometry.identity(), pose))


def leaning(motion):
    return np.degrees(np.arcsin(np.abs(np.asarray(post.poses(system, motion)["coin"].rotation[:, 2, 1]))))
