"""Wheeled vehicle: two driven wheels, and a caster that finds its own way.

Three wheels roll without slip: each holds the height of its axle and the velocity of its point that touches. Torques on the two driven
wheels are all that steers, and the third wheel runs behind the pivot of its fork: here it points ahead at first, and swings round. How far
the wheels have turned tells the heading; reactions tell the load on each wheel, and how much friction it needs.
"""

# %% Setup: a chassis on two driven wheels, and a caster whose wheel trails behind its pivot
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import joints, post, viz
from jaxmbd.bodies import Box, Cylinder
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

radius, small, track, trail, ahead = 0.15, 0.08, 0.5, 0.08, 0.4
lying = mbd.rotation.exp(np.array([np.pi / 2, 0, 0]))


def wheel(mass, radius):
    """A disc whose axle is its second axis."""
    moments = mass * radius**2 * np.array([0.25, 0.5, 0.25])
    return mbd.RigidBody(mass, moments, shape=Cylinder(radius, 0.3 * radius, pose=mbd.Frame((0, 0, 0), lying)))


deck = [Box((0.62, 0.34, 0.05), pose=(0.17, 0, 0.05)), Box((0.2, 0.26, 0.1), pose=(0.06, 0, 0.125))]
bodies = {
    "chassis": mbd.RigidBody(8.0, (0.1, 0.3, 0.35), com=(0.15, 0, 0.1), shape=deck),
    "left": wheel(1.0, radius),
    "right": wheel(1.0, radius),
    "fork": mbd.RigidBody(0.2, (5e-4, 5e-4, 5e-4), shape=Box((0.03 + trail, 0.07, 0.02), pose=(-0.5 * trail, 0, 0.09))),
    "caster": wheel(0.3, small),
}
pivot = np.array([ahead, 0, small])
turned = mbd.rotation.exp(np.array([0, 0, 2.8]))
placement = {"chassis": (0, 0, radius), "left": (0, 0.5 * track, radius), "right": (0, -0.5 * track, radius)}
placement |= {"fork": (pivot, turned), "caster": (pivot + turned @ [-trail, 0, 0], turned)}
places = {name: np.asarray(pose) for name, pose in placement.items() if name in ("left", "right")}
turn, steer = mbd.Revolute((0, 1, 0)), mbd.Revolute((0, 0, 1))
connections = {
    "left axle": mbd.Joint(turn, "chassis", "left", at=places["left"]),
    "right axle": mbd.Joint(turn, "chassis", "right", at=places["right"]),
    "pivot": mbd.Joint(steer, "chassis", "fork", at=pivot),
    "caster axle": mbd.Joint(turn, "fork", "caster", on_a=(-trail, 0, 0)),
}
wheels = {"left": radius, "right": radius, "caster": small}
tyres = {f"{name} tyre": mbd.Joint(joints.RollingDisc(size), "ground", name) for name, size in wheels.items()}
loads = {"gravity": mbd.Gravity(), "left motor": mbd.Motor("left axle"), "right motor": mbd.Motor("right axle")}
mechanism = mbd.Mechanism(bodies, connections | tyres, loads)
system, q0 = mbd.assemble(mechanism, placement)


# %% The motion: torques that speed it up, steer it to and fro, and slow it down
def torques(t):
    both, apart = 0.55 * (t < 2.0) - 0.55 * (t > 4.0), 0.35 * jnp.sin(2 * jnp.pi * t / 3.0)
    return {"left motor": both - apart, "right motor": both + apart}


steps = 300 if options().reduced else 1200
dt = 6.0 / steps
motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum(), controls=torques)
t, q = np.asarray(motion.t), motion.q

# %% What it kept
angles = {name: np.asarray(values[:, 0]) for name, values in post.joint_coordinates(system, motion).items()}
poses = post.poses(system, motion)["chassis"]
heading = np.unwrap(np.arctan2(*np.asarray(poses.rotation)[:, [1, 0], 0].T))
by_wheels = radius * ((angles["right axle"] - angles["right axle"][0]) - (angles["left axle"] - angles["left axle"][0])) / track
drive = jax.vmap(torques)(t[:-1] + 0.5 * dt)
work = sum(np.asarray(drive[f"{side} motor"]) * np.diff(angles[f"{side} axle"]) for side in ("left", "right"))
energy = np.asarray(post.energy(system, motion))
middle = jax.vmap(lambda q0, q1: system.velocity_constraints(0.0, 0.5 * (q0 + q1), (q1 - q0) / dt))(q[:-1], q[1:])
reactions = post.reactions(system, motion)
force = {name: np.asarray(reactions[f"{name} tyre"].force)[1:-1] for name in wheels}
carried = {name: one[:, 2] for name, one in force.items()}
needed = {name: np.linalg.norm(one[:, :2], axis=1) / one[:, 2] for name, one in force.items()}
weight = 9.81 * sum(float(body.mass) for body in bodies.values())
conserved = {
    "constraints on positions, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "slip of the wheels in the middle of steps, at most": np.abs(middle).max(),
    "change of energy less work of the motors, relative, at most": np.abs(np.diff(energy) - work).max() / np.ptp(energy),
    "heading against the turns of the wheels, at most": np.abs(heading - by_wheels).max(),
    "load on the wheels against the weight, relative, at most": np.abs(sum(carried.values()) / weight - 1).max(),
    "redundant constraints": motion.redundant,
    "largest coefficient of friction that a driven wheel needs": max(needed["left"].max(), needed["right"].max()),
}

# %% Picture
headings = {"A": "Half a second after the start", "B": "Its way, from above", "C": "Heading", "D": "Caster, in degrees"}
headings |= {"E": "Load on the wheels", "F": "Friction over load"}
figure, axes = viz.sheet("AABB;CDEF", headings, space="A", size=(19, 11.5), heights=(1.7, 1))
colours = {"chassis": viz.BLUE, "left": viz.ORANGE, "right": viz.ORANGE, "fork": viz.GREY, "caster": viz.GREEN}
viz.snapshots(system, motion, [steps // 12], axes=axes["A"], bodies=colours, frame=False)
shades = {"left": viz.ORANGE, "right": viz.YELLOW, "caster": viz.GREEN}
viz.trails(system, motion, {name: (name, (0, 0, 0)) for name in wheels}, axes=axes["B"], plane=(0, 1), colours=shades)
viz.snapshots(system, motion, np.linspace(0, steps, 8).round().astype(int), axes=axes["B"], plane=(0, 1), bodies=colours)
by = {"of the chassis": heading, "by turns of wheels": by_wheels}
viz.curves(t, by, axes=axes["C"], style={"of the chassis": "band"})
viz.curves(t, np.degrees(angles["pivot"]), axes=axes["D"], colours=(viz.GREEN,))
viz.curves(t[1:-1], carried, axes=axes["E"], colours=shades)
viz.curves(t[1:-1], needed, axes=axes["F"], colours=shades)
axes["A"].view_init(24, -125)
axes["A"].set_box_aspect(np.ptp([axes["A"].get_xlim(), axes["A"].get_ylim(), axes["A"].get_zlim()], axis=1), zoom=1.15)
present("wheeled_vehicle", conserved, figure)
