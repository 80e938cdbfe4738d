"""Elastic slider-crank: the connecting rod bends under its own inertia.

A heavy flywheel turns the crank. Twice a turn the rod is thrown from side to side; a slender one vibrates about the deflection that its
inertia would cause if it had time to settle, and a stout one follows that. Nothing is redundant here: the rod bends where a rigid loop in
space would be overconstrained.
"""

# %% Setup: spatial bodies in the plane z = 0, a rod of steel, stretched out at the start
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

CRANK, ROD, RATE = 0.15, 0.30, 125.0
Z, NODES = (0, 0, 1), 9
dt, steps = 2e-4, 256 if options().reduced else 510


def mechanism(section):
    """Joints are told by points in space, where the parts lie in a row along the first axis."""
    beam = mbd.Beam.line((CRANK, 0, 0), (CRANK + ROD, 0, 0), section, elements=4, order=2, normal=Z)
    bodies = {"crank": mbd.RigidBody(1.0, (1.0, 1.0, 2.0)), "rod": beam, "slider": mbd.RigidBody.box(0.02, (0.04, 0.02, 0.02))}
    joints = {
        "bearing": mbd.Joint(mbd.Revolute(Z), "ground", "crank", at=(0, 0, 0)),
        "crank pin": mbd.Joint(mbd.Revolute(Z), "crank", "rod[0]", at=(CRANK, 0, 0)),
        "wrist pin": mbd.Joint(mbd.Revolute(Z), "rod[-1]", "slider", at=(CRANK + ROD, 0, 0)),
        "guide": mbd.Joint(mbd.Prismatic((1, 0, 0)), "ground", "slider", at=(CRANK + ROD, 0, 0)),
    }
    return mbd.assemble(mbd.Mechanism(bodies, joints), {"slider": (CRANK + ROD, 0, 0)})


def start(system, q0):
    """The velocity of a rigid rod: its nodes turn about the wrist pin."""
    turning = -RATE * CRANK / ROD
    rates = {f"rod[{i}]": (0, RATE * CRANK * (1 - i / 8), 0, 0, 0, turning) for i in range(1, NODES - 1)}
    pins = {"crank pin": turning - RATE, "wrist pin": -turning}
    return mbd.joint_velocities(system, q0, {"bearing": RATE, **pins, **rates})


# %% A slender and a stout rod
sections = {diameter: mbd.Section.circle(diameter / 2, 2.1e11, 7800.0) for diameter in (0.004, 0.012)}
runs = {}
for diameter, section in sections.items():
    system, q0 = mechanism(section)
    motion = mbd.simulate(system, q0, start(system, q0), dt=dt, steps=steps, scheme=mbd.EnergyMomentum())
    runs[diameter] = system, motion


# %% The middle of the rod beside a rod without time to vibrate, and the slider beside that of a rigid rod
def rigid_slider(angle):
    return CRANK * jnp.cos(angle) + jnp.sqrt(ROD**2 - (CRANK * jnp.sin(angle)) ** 2)


def read(diameter):
    """Turns and rate of the crank, deflection from the line between the pins, the same by theory, and how far the slider is off."""
    (system, motion), section = runs[diameter], sections[diameter]
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


SLENDER, STOUT = sections
found = {diameter: read(diameter) for diameter in sections}
system, motion = runs[SLENDER]
turns, rate, deflection, theory, slip = found[SLENDER]
energy = np.asarray(post.energy(system, motion))
reactions = {diameter: post.reactions(*run) for diameter, run in runs.items()}
off = lambda _, __, deflection, theory, ___: np.abs(deflection - theory).max() / np.abs(theory).max()
table = {
    "increments of the chart, redundant constraints": f"{system.params.increments}, {motion.redundant}",
    "turns of the crank": turns[-1],
    "rate of the crank: largest relative change": np.ptp(rate) / RATE,
    "energy: largest relative change": np.ptp(energy) / energy[0],
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "slender rod: largest deflection": f"{1000 * np.abs(deflection).max():.3f} mm",
    "slender rod: difference to quasi-static theory, by its largest value": off(*found[SLENDER]),
    "stout rod: the same": off(*found[STOUT]),
    "slender rod: slider off that of a rigid rod, at most": f"{1000 * np.abs(slip).max():.4f} mm",
    "out of the plane, at most": np.abs(np.asarray(post.poses(system, motion)["rod[4]"].origin)[:, 2]).max(),
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 10), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
upper, lower = left.subplots(2, 1, height_ratios=(1.35, 1))
top, middle, bottom = right.subplots(3, 1, sharex=True)
circle = np.linspace(0, 2 * np.pi, 200)
upper.plot(CRANK * np.cos(circle), CRANK * np.sin(circle), color=PALE, lw=1.2, zorder=0)
rows = np.searchsorted(turns, np.arange(12) / 12 + 0.05)
viz.snapshots(
    system, motion, rows, colour="bending moment 1", axes=upper, plane=(0, 1), bar={"label": "bending moment, N m", "shrink": 0.7}
)
upper.axis("off")
for axes, diameter, colour in ((lower, SLENDER, BLUE), (top, STOUT, ORANGE)):
    turns, _, deflection, theory, slip = found[diameter]
    label = f"{1000 * diameter:g} mm"
    axes.plot(turns, 1000 * theory, color=PALE, lw=5, label="quasi-static")
    axes.plot(turns, 1000 * deflection, color=colour, lw=1.6, label="simulation")
    axes.set(ylabel="mm in the middle")
    axes.legend(ncols=2, **ABOVE)
    middle.plot(turns, 1e6 * slip, color=colour, lw=1.4, label=label)
    bottom.plot(turns, reactions[diameter]["guide"].force[:, 1], color=colour, lw=1.4)
middle.set(ylabel="micrometres")
middle.legend(ncols=2, **ABOVE)
bottom.set(xlabel="turns of the crank", ylabel="N", xlim=(0, turns[-1]))
lower.set(xlabel="turns of the crank", xlim=(0, turns[-1]))
headings = {
    upper: "1  One turn, coloured by the bending moment",
    lower: "2  Deflection, rod of 4 mm",
    top: "3  Deflection, rod of 12 mm",
    middle: "4  Slider, off that of a rigid rod",
    bottom: "5  Force of the guide across it",
}
for axes, heading in headings.items():
    axes.set_title(heading, loc="left", weight="bold", fontsize=14, color=INK)

# %% Table and picture
present("elastic_slider_crank", table, figure)
