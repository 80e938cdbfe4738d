"""Wheeled vehicle: two driven wheels and a caster that finds its own way.

Three wheels roll without slip: each holds the height of its axle and the velocity of the point that touches. Torques on the two driven wheels
are all that steers; the third wheel runs behind the pivot of its fork, and swings round when the vehicle sets off backwards. How far
wheels have turned tells the heading, and reactions tell which of them carries the load.
"""

# %% Setup: a chassis on two driven wheels, and a caster whose wheel trails behind its pivot
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import joints
from jaxmbd.bodies import Box, Cylinder

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

radius, small, track, trail = 0.15, 0.08, 0.5, 0.1
lying = mbd.rotation.exp(np.array([np.pi / 2, 0, 0]))


def wheel(mass, radius):
    """A disc whose axle is its second axis."""
    moments = mass * radius**2 * np.array([0.25, 0.5, 0.25])
    return mbd.RigidBody(mass, moments, shape=Cylinder(radius, 0.25 * radius, pose=mbd.Frame((0, 0, 0), lying)))


deck = [Box((0.62, 0.34, 0.05), pose=(0.17, 0, 0.05)), Box((0.2, 0.26, 0.1), pose=(0.06, 0, 0.125))]
bodies = {
    "chassis": mbd.RigidBody(8.0, (0.1, 0.3, 0.35), com=(0.15, 0, 0.05), shape=deck),
    "left": wheel(1.0, radius),
    "right": wheel(1.0, radius),
    "fork": mbd.RigidBody(0.2, (5e-4, 5e-4, 5e-4), shape=Box((trail, 0.05, 0.02), pose=(-0.5 * trail, 0, 0.1))),
    "caster": wheel(0.3, small),
}
pivot = np.array([0.4, 0, small])
placement = {"chassis": (0, 0, radius), "left": (0, 0.5 * track, radius), "right": (0, -0.5 * track, radius)}
placement |= {"fork": pivot, "caster": pivot - [trail, 0, 0]}
turn, steer = mbd.Revolute((0, 1, 0)), mbd.Revolute((0, 0, 1))
connections = {
    "left axle": mbd.Joint(turn, "chassis", "left", at=placement["left"]),
    "right axle": mbd.Joint(turn, "chassis", "right", at=placement["right"]),
    "pivot": mbd.Joint(steer, "chassis", "fork", at=pivot),
    "caster axle": mbd.Joint(turn, "fork", "caster", at=placement["caster"]),
}
grounded = {
    f"{name} tyre": mbd.Joint(joints.RollingDisc(size), "ground", name)
    for name, size in (("left", radius), ("right", radius), ("caster", small))
}
driven = {"left motor": mbd.Motor("left axle"), "right motor": mbd.Motor("right axle")}
mechanism = mbd.Mechanism(bodies, connections | grounded, {"gravity": mbd.Gravity()} | driven)
system, q0 = mbd.assemble(mechanism, placement)
