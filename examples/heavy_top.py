"""Heavy top: a fast spin, and three ways in which its axis nods.

The axis is released with no, a little or the opposite precession. Energy, the angular momentum about the vertical and the spin about the
axis of the top are kept: the last two are symmetries, which the variational scheme keeps to rounding.
"""

# %% Setup: a symmetric top on its tip, tilted by 40 degrees
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

tilt, spin = np.radians(40.0), 15.0
mechanism, placement = mbd.gallery.heavy_top(mass=1.0, length=0.5, inertia=(0.2, 0.2, 0.3))
system, q0 = mbd.assemble(mechanism, placement | {"tip": (0.0, tilt, 0.0)})
axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
# Three precessions about the vertical at the start; slow regular precession would be m g l / (J spin).
regular = 9.81 * 0.5 / (0.3 * spin)
precessions = {"wavy": 0.45 * regular, "cusped": 0.0, "looping": -0.6 * regular}
starts = jnp.stack([mbd.joint_velocities(system, q0, {"tip": spin * axis + [0, 0, rate]}) for rate in precessions.values()])

# %% Motions: one batch over the velocities at the start
dt, steps = 0.005, 600 if options().reduced else 1200
batch = jax.jit(jax.vmap(lambda v0: mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised(), throw=False)))(
    starts
)
batch.check(system)  # without `throw`, a member that fails lets the others run on: look whether one did


# %% What the motions kept
@jax.jit
@jax.vmap
def measure(motion):
    frame, momentum = post.poses(system, motion)["top"], post.angular_momentum(system, motion)
    axis = frame.rotation[:, :, 2]
    about_axis = jnp.sum(momentum * axis, axis=1)
    return axis, {"energy": post.energy(system, motion), "vertical": momentum[:, 2], "spin": about_axis}


axes_of_tops, values = jax.tree.map(np.asarray, measure(batch))
labels = {"energy": "energy", "vertical": "angular momentum about the vertical", "spin": "angular momentum about the axis"}
changes = {name: np.abs(values[name] - values[name][:, :1]) / np.abs(values[name][:, :1]) for name in labels}
conserved = {
    f"{labels[key]}: relative change, {name}": rows[i].max() for key, rows in changes.items() for i, name in enumerate(precessions)
}
conserved["constraints, at most"] = max(
    np.abs(post.constraint_residuals(system, jax.tree.map(lambda leaf, i=i: leaf[i], batch))).max() for i in range(3)
)

# %% The picture: paths of the axis on the unit sphere, the tilt over time, and what was kept
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 9.6), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
upper, lower = figure.subfigures(2, 1, height_ratios=(1.45, 1))
t = np.asarray(batch.t[0])
shown = t <= 3.0
polar, turn = np.meshgrid(np.linspace(0, np.radians(70), 8), np.linspace(0, 2 * np.pi, 37))
sphere = np.array([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)])
captions = ("1  With the precession: waves", "2  From rest: cusps", "3  Against the precession: loops")
for panel, path, color, caption in zip(upper.subfigures(1, 3), axes_of_tops, (BLUE, ORANGE, GREEN), captions, strict=True):
    panel.suptitle(caption, x=0.04, ha="left", weight="bold", fontsize=14, color=INK)
    axes = panel.add_subplot(projection="3d", computed_zorder=False)
    axes.plot_wireframe(*sphere, color=PALE, lw=0.6, zorder=1)
    axes.plot(*path[shown].T, color=color, lw=2.0, zorder=3)
    axes.plot(*np.transpose([np.zeros(3), path[0]]), color=INK, lw=3.5, solid_capstyle="round", zorder=2)
    axes.plot(*path[:1].T, "o", color=INK, ms=7, zorder=4)
    axes.plot(0, 0, 0, "o", color=INK, ms=4, zorder=2)
    axes.set(xlim=(-0.9, 0.9), ylim=(-0.9, 0.9), zlim=(0, 1))
    axes.set_box_aspect((1.8, 1.8, 1), zoom=1.38)
    axes.view_init(38, 75)
    axes.axis("off")

left, right = lower.subfigures(1, 2)
left.suptitle("4  Tilt of the axis", x=0.03, ha="left", weight="bold", fontsize=14, color=INK)
right.suptitle("5  What the motions keep", x=0.03, ha="left", weight="bold", fontsize=14, color=INK)
axes = left.subplots()
for path, name, color in zip(axes_of_tops, precessions, (BLUE, ORANGE, GREEN), strict=True):
    axes.plot(t, np.degrees(np.arccos(path[:, 2])), color=color, lw=1.5, label=name)
axes.set(xlabel="time", ylabel="degrees", xlim=(0, 3))
axes.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
axes = right.subplots()
for (key, rows), color in zip(changes.items(), (PURPLE, INK, GREY), strict=True):
    axes.semilogy(t, np.maximum(rows.max(axis=0), 1e-17), color=color, lw=1.2, label=labels[key])
axes.set(xlabel="time", ylabel="relative change", xlim=(0, t[-1]), ylim=(1e-17, 1e-1))
axes.legend(loc="center right", bbox_to_anchor=(1, 0.45))

# %% Table and picture
present("heavy_top", conserved, figure)
