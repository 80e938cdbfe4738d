"""Spinning top: energy and momentum with large steps, after Rochinha and Sampaio.

A fast symmetric top nods and precesses; its axis starts at rest. With the Cayley map energy is exact for any step, with the exponential map
it oscillates within bounds. Then a top with three different moments tumbles: Newmark's method loses what the conserving scheme keeps.
"""

# %% Setup: tops on their tips, tilted by 0.3, with angular velocities given along their directors
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

FAST, TUMBLING = ((5.0, 5.0, 1.0), (0.0, 0.0, 50.0)), ((1.0, 2.2, 3.0), (8.0, 15.0, 4.0))  # moments and angular velocities
CAYLEY, EXPONENTIAL = mbd.DirectorEnergyMomentum(), mbd.DirectorEnergyMomentum(update="exponential")
cases = {
    "fast top, cayley, dt = 0.001": (*FAST, CAYLEY, 0.001),
    "fast top, cayley, dt = 0.04": (*FAST, CAYLEY, 0.04),
    "fast top, exponential, dt = 0.04": (*FAST, EXPONENTIAL, 0.04),
    "tumbling top, conserving, dt = 0.06": (*TUMBLING, CAYLEY, 0.06),
    "tumbling top, Newmark, dt = 0.06": (*TUMBLING, mbd.Newmark(), 0.06),
}

# %% Motions: all have the same number of steps, so that only three programs are compiled
steps = 2000 if options().reduced else 8000


def run(inertia, turning, scheme, dt):
    system, q0 = mbd.assemble(*mbd.gallery.spinning_top(inertia))
    directors = q0.reshape(4, 3)[1:]
    v0 = mbd.joint_velocities(system, q0, {"tip": np.array(turning) @ directors})
    motion = mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.JointMultipliers())
    axis = np.asarray(post.poses(system, motion)["top"].rotation[:, :, 2])
    momentum = np.asarray(post.angular_momentum(system, motion))
    spin = np.sum(momentum * axis, axis=1) / inertia[2]
    return {"t": np.asarray(motion.t), "energy": np.asarray(post.energy(system, motion)), "h": momentum, "axis": axis, "spin": spin}


tops = {name: run(*case) for name, case in cases.items()}


# %% Frequencies, measured from the start to the last cusp of the axis, where it is highest and stands still
def frequencies(t, axis):
    height, turn = axis[:, 2], np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    rows = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:])) + 1
    before, here, after = (height[rows[-1] + i] for i in (-1, 0, 1))
    last = t[rows[-1]] + 0.5 * (t[1] - t[0]) * (after - before) / (2 * here - before - after)  # top of the parabola through three rows
    return 2 * np.pi * len(rows) / last, (np.interp(last, t, turn) - turn[0]) / last


def exact_frequencies(inertia=5.0, spin=50.0, weight=20.0, tilt=0.3):
    """From the integrals of motion: the height u of the axis swings between two roots of (u0 - u) (b (1 - u^2) - a^2 (u0 - u))."""
    a, b, u0 = spin / inertia, 2 * weight / inertia, np.cos(tilt)
    lower, beyond = np.sort(np.roots([-b, a**2, b - a**2 * u0]))
    u = u0 - (u0 - lower) * np.sin((np.arange(40) + 0.5) * np.pi / 80) ** 2
    pace = 1 / np.sqrt(b * (beyond - u))  # the time of a cycle is 2 pi times its mean
    return 1 / pace.mean(), np.sum(pace * a * (u0 - u) / (1 - u**2)) / pace.sum()


conserved = {
    "fast top: nutation and precession, exact": "{:.4f}, {:.4f}".format(*exact_frequencies()),
    "fast top: nutation if it were small": f"{np.sqrt((50 / 5) ** 2 - 4 * 20 * np.cos(0.3) / 5):.4f}",
}
for name, top in tops.items():
    conserved[f"{name}: relative change of energy"] = np.abs(top["energy"] / top["energy"][0] - 1).max()
    conserved[f"{name}: relative change of h_3"] = np.abs(top["h"][:, 2] / top["h"][0, 2] - 1).max()
    if name.startswith("fast"):
        nutation, precession = frequencies(top["t"], top["axis"])
        conserved[f"{name}: nutation and precession, measured"] = f"{nutation:.4f}, {precession:.4f}"
        low, high = top["spin"].min(), top["spin"].max()
        conserved[f"{name}: spin w.d3, lowest and highest"] = f"{low:.4f}, {high:.4f}"
        # What holds for very fast tops: the paper's numbers satisfy these two relations, and their product is Mgl / I11.
        conserved[f"{name}: I33 w.d3 / I11 and Mgl / (I33 w.d3)"] = f"{low / 5:.4f}, {20 / low:.4f}"

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(18, 11), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
fine, coarse, exponential, keeping, newmark = tops.values()
upper, lower = figure.subfigures(2, 1, height_ratios=(1.2, 1))
panels = [*upper.subfigures(1, 3, width_ratios=(1, 1, 1)), *lower.subfigures(1, 3)]
heads = ("1  Fast top: paths of its axis", "2  The same from above", "3  Energy of the fast top, dt = 0.04")
heads += ("4  Tumbling top: path of $h$", "5  Tumbling top: energy, dt = 0.06", "6  Tumbling top: $h_3$, dt = 0.06")
for panel, head in zip(panels, heads, strict=True):
    panel.suptitle(head, x=0.03, ha="left", weight="bold", fontsize=14, color=INK)

axes = panels[0].add_subplot(projection="3d", computed_zorder=False)
polar, turn = np.meshgrid(np.linspace(0, 0.48, 7), np.linspace(0, 2 * np.pi, 37))
axes.plot_wireframe(np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar), color=PALE, lw=0.5, zorder=1)
above = panels[1].subplots()
for top, label, color, mark in ((coarse, "dt = 0.04", ORANGE, "."), (fine, "dt = 0.001", BLUE, "")):
    axes.plot(*top["axis"][top["t"] <= 15.0].T, color=color, lw=1.6, zorder=3)
    above.plot(*top["axis"][top["t"] <= 2.5, :2].T, color=color, lw=1.6, marker=mark, label=label)
axes.plot(*np.transpose([np.zeros(3), fine["axis"][0]]), color=INK, lw=3.5, solid_capstyle="round", zorder=2)
axes.plot(*fine["axis"][:1].T, "o", color=INK, ms=6, zorder=4)
axes.set(xlim=(-0.45, 0.45), ylim=(-0.45, 0.45), zlim=(0, 1))
axes.set_box_aspect((0.9, 0.9, 1), zoom=1.3)
axes.view_init(38, -75)
axes.axis("off")
above.plot(*fine["axis"][0, :2], "o", color=INK, ms=7)
above.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
above.legend(ncols=2, **ABOVE)
caption = "With dt = 0.04 the top turns by about two radians in a step:\nit keeps its energy and $h_3$, but nods half as often."
panels[1].supxlabel(caption, x=0.03, ha="left", fontsize=12, color=GREY)
panels[3].supxlabel("The weight moves $h$ in a horizontal plane; Newmark's method leaves it.", x=0.03, ha="left", fontsize=12, color=GREY)

axes = panels[2].subplots()
for top, label, color in ((exponential, "exponential", ORANGE), (coarse, "cayley", BLUE)):
    axes.plot(top["t"], top["energy"] - top["energy"][0], color=color, lw=1.5, label=label)
axes.set(xlabel="time", ylabel="change of energy", xlim=(0, 10), ylim=(-0.18, 0.02))
axes.legend(ncols=2, **ABOVE)

axes, shown = panels[3].add_subplot(projection="3d"), keeping["t"] <= 60
level = np.meshgrid((-35, 35), (-35, 35))
axes.plot_surface(*level, np.full((2, 2), keeping["h"][0, 2]), color=GREEN, alpha=0.12)
axes.plot(*newmark["h"][shown].T, color=ORANGE, lw=0.7)
axes.plot(*keeping["h"][shown].T, color=GREEN, lw=1.4)
axes.set(xlabel="$h_1$", ylabel="$h_2$", zlabel="$h_3$", zlim=(16, 28), xticks=(-30, 0, 30), yticks=(-30, 0, 30), zticks=(18, 22, 26))
axes.set_box_aspect((1, 1, 0.7), zoom=1.15)
axes.view_init(16, -60)
for side in (axes.xaxis, axes.yaxis, axes.zaxis):
    side.set_pane_color("#f7f9fb")
for panel, name, read in ((panels[4], "energy", lambda top: top["energy"]), (panels[5], "$h_3$", lambda top: top["h"][:, 2])):
    axes = panel.subplots()
    for top, label, color, width in ((newmark, "Newmark", ORANGE, 0.9), (keeping, "conserving", GREEN, 2.0)):
        axes.plot(top["t"], read(top), color=color, lw=width, label=label)
    axes.set(xlabel="time", ylabel=name, xlim=(0, 60))
    axes.legend(ncols=2, **ABOVE)

# %% Table and picture
present("spinning_top", conserved, figure)
