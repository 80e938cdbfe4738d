"""Elastic slider-crank: the connecting rod bends under its own inertia.

A heavy flywheel turns the crank. Twice a turn the rod is thrown from side to side; a slender one vibrates about the deflection that its
inertia would cause if it had time to settle, and a stout one follows that. Nothing is redundant here: the rod bends where a rigid loop in
space would be overconstrained.
"""

# %% Setup: spatial bodies in the plane z = 0, a rod of steel, stretched out at the start
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

CRANK, ROD, RATE, Z = 0.15, 0.30, 125.0, (0, 0, 1)
dt, steps = 2e-4, 256 if options().reduced else 510


def run(section):
    """Joints are told by points in space, where the parts lie in a row along the first axis."""
    beam = mbd.Beam.line((CRANK, 0, 0), (CRANK + ROD, 0, 0), section, elements=4, order=2, normal=Z)
    bodies = {"crank": mbd.RigidBody(1.0, (1.0, 1.0, 2.0)), "rod": beam, "slider": mbd.RigidBody.box(0.02, (0.04, 0.02, 0.02))}
    joints = {
        "bearing": mbd.Joint(mbd.Revolute(Z), "ground", "crank", at=(0, 0, 0)),
        "crank pin": mbd.Joint(mbd.Revolute(Z), "crank", "rod[0]", at=(CRANK, 0, 0)),
        "wrist pin": mbd.Joint(mbd.Revolute(Z), "rod[-1]", "slider", at=(CRANK + ROD, 0, 0)),
        "guide": mbd.Joint(mbd.Prismatic((1, 0, 0)), "ground", "slider", at=(CRANK + ROD, 0, 0)),
    }
    system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints), {"slider": (CRANK + ROD, 0, 0)})
    v0 = mbd.joint_velocities(system, q0, {"bearing": RATE})  # the rod begins as a rigid one
    return system, mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())


# %% The middle of the rod beside a rod without time to vibrate, and the slider beside that of a rigid rod
def rigid_slider(angle):
    return CRANK * jnp.cos(angle) + jnp.sqrt(ROD**2 - (CRANK * jnp.sin(angle)) ** 2)


def read(section, system, motion):
    """Turns and rate of the crank, deflection from the line between the pins, the same by theory, and how far the slider is off."""
    angle, rate = (np.asarray(part(system, motion)["bearing"][:, 0]) for part in (post.joint_coordinates, post.joint_rates))
    poses = post.poses(system, motion)
    first, middle, last = (np.asarray(poses[f"rod[{i}]"].origin)[:, :2] for i in (0, 4, 8))
    across = (last - first)[:, ::-1] * [-1, 1] / np.linalg.norm(last - first, axis=1)[:, None]
    deflection = np.sum((middle - 0.5 * (first + last)) * across, axis=1)
    # Inertia loads the rod linearly from pin to pin: its middle bends as under the mean load.
    slider = rate**2 * np.asarray(jax.vmap(jax.grad(jax.grad(rigid_slider)))(angle))
    mean = 0.5 * (-(rate**2)[:, None] * first + slider[:, None] * [1, 0])
    theory = -5 / 384 * section.mass * ROD**4 / section.stiffness[3, 3] * np.sum(mean * across, axis=1)
    return angle / (2 * np.pi), rate, deflection, theory, last[:, 0] - np.asarray(rigid_slider(angle))


# %% A slender and a stout rod
sections = {f"{1000 * diameter:g} mm": mbd.Section.circle(diameter / 2, 2.1e11, 7800.0) for diameter in (0.004, 0.012)}
runs = {name: run(section) for name, section in sections.items()}
found = {name: read(section, *runs[name]) for name, section in sections.items()}
system, motion = runs["4 mm"]
turns, rate, deflection, _, slip = found["4 mm"]
energy = np.asarray(post.energy(system, motion))
off = lambda _, __, deflection, theory, ___: np.abs(deflection - theory).max() / np.abs(theory).max()
table = {
    "increments of the chart, redundant constraints": f"{system.params.increments}, {motion.redundant}",
    "turns of the crank": turns[-1],
    "rate of the crank: largest relative change": np.ptp(rate) / RATE,
    "energy: largest relative change": np.ptp(energy) / energy[0],
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "slender rod: largest deflection": f"{1000 * np.abs(deflection).max():.3f} mm",
    "slender rod: difference to quasi-static theory, by its largest value": off(*found["4 mm"]),
    "stout rod: the same": off(*found["12 mm"]),
    "slender rod: slider off that of a rigid rod, at most": f"{1000 * np.abs(slip).max():.4f} mm",
    "out of the plane, at most": np.abs(np.asarray(post.poses(system, motion)["rod[4]"].origin)[:, 2]).max(),
}

# %% Picture
headings = {"A": "One turn, by the bending moment", "B": "Deflection, rod of 4 mm", "C": "Deflection, rod of 12 mm"}
headings |= {"D": "Slider, off that of a rigid rod", "E": "Force of the guide across it"}
figure, axes = viz.sheet("AC;AD;BE", headings, size=(17, 10), widths=(1.25, 1))
rows = np.searchsorted(turns, np.arange(12) / 12 + 0.05)
bar = {"label": "N m", "shrink": 0.7}
viz.snapshots(system, motion, rows, colour="bending moment 1", axes=axes["A"], plane=(0, 1), frame=False, bar=bar)
for letter, name in (("B", "4 mm"), ("C", "12 mm")):
    turns, _, deflection, theory, _ = found[name]
    pair = {"quasi-static": 1000 * theory, "simulation": 1000 * deflection}
    viz.curves(turns, pair, axes=axes[letter], style={"quasi-static": "band"}, xlabel="turns of the crank", ylabel="mm in the middle")
slips = {name: 1e6 * one[4] for name, one in found.items()}
viz.curves(turns, slips, axes=axes["D"], xlabel="turns of the crank", ylabel="micrometres")
forces = {name: post.reactions(*one)["guide"].force[:, 1] for name, one in runs.items()}
viz.curves(turns, forces, axes=axes["E"], xlabel="turns of the crank", ylabel="N")
present("elastic_slider_crank", table, figure)
