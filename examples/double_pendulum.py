"""Double pendulum in space: two boxes on perpendicular hinges, built from parts.

The motion is chaotic, but its energy is not: the midpoint rule lets it oscillate without drift, a Galerkin scheme of order four lets it
oscillate by far less.
"""

# %% Setup: bodies, joints and loads by name; the hinges turn about x and y
import jax
import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mechanism = mbd.Mechanism(
    bodies={"upper": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0)), "lower": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0))},
    joints={
        "shoulder": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "upper", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 1, 0)), "upper", "lower", at=(0, 0, -1)),
    },
    loads=[mbd.Gravity((0, 0, -9.81))],
)
# Bodies are placed as they hang straight down, and then the joints are turned.
placement = {"upper": (0, 0, -0.5), "lower": (0, 0, -1.5), "shoulder": 2.0, "elbow": 1.2}
system, q0 = mbd.assemble(mechanism, placement)
v0 = mbd.joint_velocities(system, q0, {"shoulder": 0.0, "elbow": 3.0})
print(mbd.describe(system, q0))

# %% Motions: the same start with two schemes
dt, steps = 0.01, 600 if options().reduced else 1200
runs = {
    "Midpoint": mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised()),
    "Galerkin(4)": mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised(), scheme=mbd.Galerkin(4)),
}
energies = {name: np.asarray(post.energy(system, motion)) for name, motion in runs.items()}
motion = runs["Galerkin(4)"]
t = np.asarray(motion.t)
poses = jax.tree.map(np.asarray, post.poses(system, motion))
elbow, tip = (frame.origin - 0.5 * frame.rotation[:, :, 2] for frame in (poses["upper"], poses["lower"]))
angles = {name: np.asarray(values[:, 0]) for name, values in post.joint_coordinates(system, motion).items()}
force = np.asarray(post.reactions(system, motion)["shoulder"].force)[1:-1]  # multipliers are one-sided at both ends
conserved = {
    "energy at the start": energies["Midpoint"][0],
    **{f"{name}: largest change of energy": np.abs(values - values[0]).max() for name, values in energies.items()},
    **{f"{name}: constraints, at most": np.abs(post.constraint_residuals(system, one)).max() for name, one in runs.items()},
    "Galerkin(4): hidden constraints, at most": np.abs(post.constraint_rates(system, motion)).max(),
    "largest force in the shoulder, in weights": np.linalg.norm(force, axis=1).max() / (2 * 9.81),
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
ABOVE = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 9), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.05))
panels = [left, *right.subfigures(3, 1)]
headings = ("1  Path of the tip", "2  Angles of the joints", "3  Force in the shoulder", "4  Change of energy")
for panel, heading in zip(panels, headings, strict=True):
    panel.suptitle(heading, x=0.02, ha="left", weight="bold", fontsize=14, color=INK)

axes = left.add_subplot(projection="3d")
axes.add_collection3d(Line3DCollection(np.stack([tip[:-1], tip[1:]], axis=1), array=t[1:], cmap="plasma", clim=(0, 1.1 * t[-1]), lw=1.4))
rows = np.linspace(0, 36, 7).astype(int)
for row, shade in zip(rows, np.linspace(0.25, 1, len(rows)), strict=True):
    for ends, color in (((np.zeros(3), elbow[row]), INK), ((elbow[row], tip[row]), BLUE)):
        axes.plot(*np.transpose(ends), color=color, lw=4.5, alpha=0.75 * shade, solid_capstyle="round")
axes.plot(*np.zeros((3, 1)), "o", color=INK, ms=8)
axes.set(
    xlim=(-1.5, 1.5),
    ylim=(-1.5, 1.5),
    zlim=(-2, 1),
    xlabel="x",
    ylabel="y",
    zlabel="z",
    xticks=(-1, 0, 1),
    yticks=(-1, 0, 1),
    zticks=(-2, -1, 0, 1),
)
axes.set_box_aspect((1, 1, 1), zoom=1.0)
for side in (axes.xaxis, axes.yaxis, axes.zaxis):
    side.set_pane_color("#f7f9fb")
axes.view_init(18, -55)
left.supxlabel("Coloured from early (dark) to late (bright); the boxes during the first third of a second.", fontsize=12, color=GREY)

axes = panels[1].subplots()
for name, color in (("shoulder", INK), ("elbow", BLUE)):
    axes.plot(t, angles[name], color=color, lw=1.5, label=name)
axes.set(ylabel="angle", xlim=(0, t[-1]))
axes.legend(ncols=2, **ABOVE | {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)})

axes = panels[2].subplots()
for component, color, label in zip(force.T, (GREEN, PURPLE, ORANGE), ("x", "y", "z"), strict=True):
    axes.plot(t[1:-1], component, color=color, lw=1.4, label=label)
axes.axhline(2 * 9.81, color=PALE, lw=1.2, zorder=0)
axes.annotate("weight", (t[-1], 2 * 9.81), xytext=(4, 0), textcoords="offset points", va="center", color=GREY, annotation_clip=False)
axes.set(ylabel="force", xlim=(0, t[-1]))
axes.legend(ncols=3, **ABOVE | {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)})

axes = panels[3].subplots()
for (name, values), color in zip(energies.items(), (BLUE, ORANGE), strict=True):
    axes.semilogy(t, np.maximum(np.abs(values - values[0]), 1e-14), color=color, lw=1.1, label=name)
axes.set(xlabel="time", ylabel="$|H_d - H_d(0)|$", xlim=(0, t[-1]), ylim=(1e-10, 1))
axes.legend(ncols=2, **ABOVE | {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)})

# %% Table and picture
present("double_pendulum", conserved, figure)
