"""Flexible pendulum: a soft rod swings from a hinge, bends far, and keeps its energy to rounding.

Released at rest from the horizontal, a rubber rod lags behind a rigid one of the same mass, whips, and exchanges energy between height,
motion and bending. The energy-momentum scheme keeps the sum exactly.
"""

# %% Setup: one metre of rubber, hinged about the first axis; the rigid rod beside it
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

LENGTH, G = 1.0, 9.81
section = mbd.Section.circle(radius=0.02, E=2e6, density=1100.0)
dt, steps = 0.005, 240 if options().reduced else 600
hinge = lambda body: {"hinge": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", body, at=(0, 0, 0))}
gravity = [mbd.Gravity((0, 0, -G))]
beam = mbd.Beam.line((0, 0, 0), (0, LENGTH, 0), section, elements=6, order=2, normal=(1, 0, 0))
system, q0 = mbd.assemble(mbd.Mechanism({"rod": beam}, hinge("rod[0]"), gravity))
motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())

rod = mbd.RigidBody.box(section.mass * LENGTH, (0.04, LENGTH, 0.04))
rigid, r0 = mbd.assemble(mbd.Mechanism({"rod": rod}, hinge("rod"), gravity), {"rod": (0, LENGTH / 2, 0)})
stiff = mbd.simulate(rigid, r0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())

# %% Energy and its parts, the tips, the moment along the rod
t = np.asarray(motion.t)
energy = np.asarray(post.energy(system, motion))
kinetic = 0.5 * np.einsum("ri,ri->r", motion.p, motion.v)
lengths = np.asarray(system.params.beams[0].measures(float)).ravel()
bending = np.asarray(post.strain_energy(system, motion)["rod"].values) @ lengths
moment = post.stress_resultants(system, motion)["rod"]
tip = np.asarray(post.poses(system, motion)["rod[12]"].origin)[:, 1:]
pose = post.poses(rigid, stiff)["rod"]
rigid_tip = np.asarray(pose.origin + LENGTH / 2 * pose.rotation[:, :, 1])[:, 1:]
angle, rigid_angle = (np.degrees(np.unwrap(np.arctan2(path[:, 0], -path[:, 1]))) for path in (tip, rigid_tip))
turn, rigid_turn = (t[np.argmax(np.diff(one) > 0)] for one in (angle, rigid_angle))
table = {
    "energy, by the work of gravity down to the lowest position: largest change": np.ptp(energy) / (section.mass * G * LENGTH**2 / 2),
    "the same of the rigid pendulum": np.ptp(np.asarray(post.energy(rigid, stiff))) / (section.mass * G * LENGTH**2 / 2),
    "largest part of bending in the energy": bending.max() / (section.mass * G * LENGTH**2 / 2),
    "largest bending moment": f"{np.abs(moment.values[..., 3]).max():.3g} N m",
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "out of the plane, at most": np.abs(motion.q.reshape(-1, 13, 4, 3)[:, :, 0, 0]).max(),
    "first return of the tip, rigid and flexible": f"{rigid_turn:.2f} s, {turn:.2f} s",
    "Newton iterations a step, at most": f"{int(motion.newton_steps.max())}",
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74"
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
figure = plt.figure(figsize=(17, 9), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
swing, field = left.subplots(2, 1, height_ratios=(2.2, 1))
swing.plot(*rigid_tip[: int(0.5 + rigid_turn / dt)].T, color=GREY, lw=1.2, ls="--", zorder=0, label="tip of the rigid rod")
swing.plot(*tip[: int(0.5 + turn / dt)].T, color=PALE, lw=1.5, zorder=1, label="tip of the soft one")
rows = np.arange(0, int(turn / dt) + 1, 14)
size = np.abs(moment.values[rows, :, 3]).max()
viz.snapshots(system, motion, rows, colour="bending moment 1", axes=swing, plane=(1, 2), limits=(-size, size), bar=False)
for row in rows[::2]:
    swing.annotate(f"{t[row]:.2f}", 1.07 * tip[row], ha="center", va="center", color=GREY, fontsize=9)
swing.set(xlim=(-1.15, 1.15), ylim=(-1.12, 0.25))
swing.legend(ncols=2, **ABOVE)
swing.axis("off")
colours = field.pcolormesh(t, moment.s, moment.values[..., 3].T, cmap="coolwarm", vmin=-size, vmax=size, shading="gouraud")
left.colorbar(colours, ax=[swing, field], label="bending moment, N m", shrink=0.6, extend="both")
field.set(xlabel="time", ylabel="along the rod", xlim=(0, t[-1]))

top, bottom = right.subplots(2, 1, sharex=True)
top.plot(t, rigid_angle, color=PALE, lw=4, label="rigid")
top.plot(t, angle, color=BLUE, lw=1.8, label="soft")
top.set(ylabel="degrees", yticks=(-90, 0, 90))
top.legend(ncols=2, **ABOVE)
parts = {"height": energy - kinetic - bending, "motion": kinetic, "bending": bending}
for (name, part), colour in zip(parts.items(), (BLUE, ORANGE, GREEN), strict=True):
    bottom.plot(t, part, color=colour, lw=1.8, label=name)
bottom.plot(t, energy, color=INK, lw=1.8, label="sum")
bottom.set(ylabel="J", xlabel="time", xlim=(0, t[-1]))
bottom.legend(ncols=4, **ABOVE)
headings = {swing: "1  The first swing", field: "3  Bending moment along the rod", top: "2  Angle of the tip", bottom: "4  Energy"}
for axes, heading in headings.items():
    axes.set_title(heading, loc="left", weight="bold", fontsize=14, color=INK)

# %% Table and picture
present("flexible_pendulum", table, figure)
