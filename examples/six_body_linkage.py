"""Six-body linkage: a ring of tetrahedra that turns itself inside out, with one constraint too many.

After S. Leyendecker, J. E. Marsden, M. Ortiz, Variational integrators for constrained dynamical systems, ZAMM 88 (2008), section
5.5: the panels follow its figures 12, 13, 14, 16 and 17, the table its table 1, and numbers in brackets are its equations. All
formulations give the same motion, be it with 143 unknowns a step or with one.
"""

# %% Setup: the ring starts as a cube, its first hinge turning at 30 rad/s
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mechanism, placement = mbd.gallery.six_body_linkage()
system, q0 = mbd.assemble(mechanism, placement)
v0 = mbd.joint_velocities(system, q0, {"hinge 1": 30.0})
print(mbd.describe(system, q0))


# %% Motions: one second is a little more than two and a half turns of the ring
steps = 100
reduced = options().reduced
ways = {
    "Multipliers": (system, mbd.Multipliers(), 72 + 71),
    "NullSpace": (system, mbd.NullSpace(), 72),
    "Reparametrised": (system, mbd.Reparametrised(), 5),  # increments of the five hinges, closed by equations
    "implicit chart": (system, mbd.Reparametrised("implicit"), 1),
    "chart (109)": (system.with_chart(mbd.gallery.six_body_chart), mbd.Reparametrised(), 1),
}
ways = {name: way for name, way in ways.items() if not reduced or name in ("Reparametrised", "chart (109)")}


def run(name, dt=0.01, t0=0.0, q=q0, v=v0):
    model, formulation, _ = ways[name]
    return jax.block_until_ready(mbd.simulate(model, q, v, dt=dt, steps=steps, t0=t0, formulation=formulation))


def duration(name):
    """Seconds of a run without compilation, the best of three."""
    begin = time.perf_counter()
    run(name)
    return time.perf_counter() - begin


runs = {name: run(name) for name in ways}
seconds = {name: min(duration(name) for _ in range(3)) for name in ways}
motion = runs["Reparametrised"]
fine = [run("Reparametrised", dt=1e-3)]
while len(fine) < (3 if reduced else 10):  # every run goes on where the last one ended
    fine.append(run("Reparametrised", 1e-3, fine[-1].t[-1], fine[-1].q[-1], fine[-1].v[-1]))

# %% What the motion kept
angle = {name: np.asarray(values[:, 0]) for name, values in post.joint_coordinates(system, motion).items()}
theta1, theta2 = angle["hinge 1"], angle["hinge 2"]
corners = np.array([mechanism.joints[f"hinge {i or 6}"].at for i in range(6)])
axes_of_hinges = np.array([mechanism.joints[f"hinge {i or 6}"].kind.axis for i in range(6)])
tips = corners + 0.1 * np.tan(0.16 * np.pi) * axes_of_hinges


def vertices(body, points):
    """Points of a body, given in space at the start, along the motion: rows, points, 3."""
    frame = jax.tree.map(np.asarray, poses[f"body {body}"])
    return frame.origin[:, None] + (points - frame.origin[0]) @ frame.rotation[0] @ np.swapaxes(frame.rotation, 1, 2)


poses = post.poses(system, motion)
tetrahedra = [vertices(i, np.array([corners[i], tips[i], corners[i - 5], tips[i - 5]])) for i in range(6)]
distances = np.array([np.linalg.norm(tetrahedra[i][:, 0] - tetrahedra[i + 3][:, 0], axis=1) for i in range(3)])
kept = {}
for label, dt, parts in (("h = 0.01", 0.01, [motion]), ("h = 0.001", 0.001, fine)):
    E = np.concatenate([post.discrete_energy(system, part) for part in parts])
    H = np.concatenate([post.energy(system, part)[:-1] for part in parts])
    kept[label] = (dt * np.arange(len(E)), E, H)
relation = np.sin(theta1) * (1 + np.sin(theta2)) - np.sin(theta2)
symmetry = max(np.abs(angle[f"hinge {i + 2}"] - angle[f"hinge {i}"]).max() for i in range(1, 5))
conserved = {
    "distances sigma_1..3 of opposite corners, deviation from 0.1 sqrt(3)": np.abs(distances - 0.1 * np.sqrt(3)).max(),
    "angles: deviation from (106)": symmetry,
    "angles: deviation from (107)": np.abs(relation).max(),
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "formulations: difference of positions, at most": max(float(jnp.abs(other.q - motion.q).max()) for other in runs.values()),
}
for label, (_, E, H) in kept.items():
    conserved[f"{label}: amplitude of E_d, of H_d"] = f"{np.ptp(E):.3g}, {np.ptp(H):.3g}"

# %% Table 1: unknowns, conditioning, time. The paper has Lagrange multipliers and a chart like (109)
published = {"Multipliers": ("143", "5e+04", "3e+07", "3e+10", "1"), "chart (109)": ("1", "1", "1", "1", "1")}
sizes = (1e-2, 1e-3, 1e-4)


def conditions(name):
    """Of the first step, so that all steps are compared in the same position."""
    model, formulation, _ = ways[name]
    return [float(post.condition_number(model, run("Reparametrised", dt), formulation)[0]) for dt in sizes]


conserved["table 1: unknowns | condition for h = 1e-2, 1e-3, 1e-4 | time"] = "(published)"
for name, (_, _, unknowns) in ways.items():
    if reduced and unknowns > 1:
        continue
    row = (str(unknowns), *(f"{value:.0e}" for value in conditions(name)), f"{seconds[name] / min(seconds.values()):.1f}")
    beside = f"  ({' | '.join(published[name])})" if name in published else ""
    conserved[f"  {name}"] = " | ".join(row) + beside

# %% Drawing
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
COLORS = (BLUE, "#e8a33d", GREEN, "#c8385a", PURPLE, ORANGE)
ABOVE = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 11.5), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.1), wspace=0.03)
panels = [left, *right.subfigures(2, 2, wspace=0.03, hspace=0.03).ravel()]
captions = {
    "1  The ring at six times": "Bodies 0 (blue) to 5; body 0 rests, the others turn inside out and come back.",
    "2  Angles": "$h = 0.01$; one turn of the ring\ntakes about 0.4 seconds.",
    "3  Relation of the angles": "Nodes of the motion on the curve\n(107), which has vertical tangents.",
    "4  Distances of opposite corners": "Space diagonals of the cube at the\nstart: they never change.",
    "5  Energies": "Both oscillate without drift, $H_d$\nless than $E_d$; finer steps, less of it.",
}
for panel, (heading, text) in zip(panels, captions.items(), strict=True):
    panel.suptitle(heading, x=0.03, ha="left", weight="bold", fontsize=14, color=INK)
    panel.supxlabel(text, x=0.03, ha="left", fontsize=12, color=GREY)

light = np.array([0.35, -0.75, 0.55])
snapshots = left.subplots(3, 2, subplot_kw={"projection": "3d"}).ravel()
for axes, at in zip(snapshots, (0.02, 0.04, 0.08, 0.09, 0.13, 0.26), strict=True):
    row = round(at / 0.01)
    faces = np.concatenate([body[row][[[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]] for body in tetrahedra])
    normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    bright = 0.62 + 0.38 * np.abs(normals @ light) / np.linalg.norm(normals, axis=1)
    colors = bright[:, None] * np.repeat([to_rgb(color) for color in COLORS], 4, axis=0)
    axes.add_collection3d(Poly3DCollection(faces, facecolors=colors, edgecolors=INK, lw=0.6))
    centre = 0.5 * (faces.max(axis=(0, 1)) + faces.min(axis=(0, 1)))
    axes.set(**{f"{name}lim": (c - 0.1, c + 0.1) for name, c in zip("xyz", centre, strict=True)})
    axes.set_title(f"$t = {at}$", y=0.0, fontsize=12, color=INK)
    axes.set_box_aspect((1, 1, 1), zoom=1.2)
    axes.view_init(22, -50)
    axes.axis("off")

axes = panels[1].subplots()
for values, color, label in ((theta1, BLUE, "$\\theta^1$"), (theta2, ORANGE, "$\\theta^2$")):
    axes.plot(motion.t, values, color=color, lw=1.6, marker="o", ms=3, label=label)
axes.set(xlabel="time", ylabel="angle", xlim=(0, 1), yticks=np.pi * np.array([-1, -0.5, 0, 0.5, 1]))
axes.set_yticklabels(["$-\\pi$", "$-\\pi/2$", "0", "$\\pi/2$", "$\\pi$"])
axes.legend(ncols=2, **ABOVE)

axes = panels[2].subplots()
x, y = np.meshgrid(np.linspace(-3.9, 0.8, 300), np.linspace(-0.8, 3.9, 300))
axes.contour(x, y, np.sin(x) * (1 + np.sin(y)) - np.sin(y), [0], colors=PALE, linewidths=2.5)
axes.plot([], [], color=PALE, lw=2.5, label="(107)")
axes.plot(theta1, theta2, "o", color=BLUE, ms=3.5, mew=0, label="motion")
axes.set(aspect="equal", xlabel="$\\theta^1$", ylabel="$\\theta^2$", xlim=(-3.9, 0.8), ylim=(-0.8, 3.9))
axes.legend(ncols=2, **ABOVE)

for axes, change in zip(panels[3].subplots(2, 1, sharex=True), (False, True), strict=True):
    for i, (values, color, style) in enumerate(zip(distances, (BLUE, ORANGE, GREEN), ("-", "--", ":"), strict=True)):
        if change:
            axes.plot(motion.t, (values - 0.1 * np.sqrt(3)) / 1e-15, "o", color=color, ms=3, mew=0)
        else:
            axes.plot(motion.t, values, color=color, ls=style, lw=2.2, label=f"$\\sigma_{i + 1}$")
            axes.set(ylabel="distance", ylim=(0, 0.2), xlim=(0, 1))
            axes.legend(ncols=3, **ABOVE)
axes.set(xlabel="time", ylabel="change in $10^{-15}$")

for axes, (label, (t, E, H)) in zip(panels[4].subplots(2, 1, sharex=True, sharey=True), kept.items(), strict=True):
    dt = t[1]
    axes.plot(t + dt / 2, E, color=BLUE, lw=1.4, label="$E_d(q_n, q_{n+1})$")
    axes.plot(t, H, color=ORANGE, lw=1.4, label="$H_d(q_n, p_n)$")
    axes.set(ylabel=f"energy, ${label}$", xlim=(0, 1))
axes.set_xlabel("time")
panels[4].axes[0].legend(ncols=2, **ABOVE)

# %% Table and picture
present("six_body_linkage", conserved, figure)
