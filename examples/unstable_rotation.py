"""Unstable rotation: a body that is spun up about its middle axis and turns over again and again, after Rochinha and Sampaio.

A torque spins the body up about the axis of its intermediate moment of inertia, then a short push disturbs it. From there on no torque
acts: energy and all of the angular momentum stay, whatever the step. The size of the step is felt while the torque acts.
"""

# %% Setup: a free body at rest, and the history of the torque
import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

MOMENTS = np.array([5.0, 10.0, 1.0])


def torque(dt, t):
    """20 about axis 1 until one step before t = 2, then one push about axis 2.

    The ends are a quarter of a step late, so that schemes which look at the middle or at the end of a step agree on them.
    """
    first, second = jnp.array([20.0, 0.0, 0.0]), jnp.array([0.0, 0.2, 0.0]) / dt
    return jnp.where(t < 2 - 0.75 * dt, first, jnp.where(t < 2 + 0.25 * dt, second, 0.0))


def build(dt):
    load = mbd.Torque("body", jax.tree_util.Partial(torque, jnp.asarray(dt)))
    return mbd.assemble(mbd.Mechanism({"body": mbd.RigidBody(1.0, MOMENTS)}, {}, [load]), {"body": ((0.0, 0.0, 0.0), np.eye(3))})


# No distribution of mass has the moments of the paper: 5 + 1 < 10. Euler's equations do not mind, so the warning is put aside.
warnings.filterwarnings("ignore", message=".*triangle inequality.*")

# %% Motions: the same number of steps of both sizes, so that each scheme is compiled once
steps = 1000 if options().reduced else 2000


def run(scheme, dt):
    system, q0 = build(dt)
    motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.JointMultipliers(), throw=False)
    rows = slice(0, int(motion.reached) + 1)
    rotation, momentum = post.poses(system, motion)["body"].rotation, post.angular_momentum(system, motion)
    turning = jnp.einsum("tji,tj->ti", rotation, momentum) / MOMENTS  # in body axes: the convected angular velocity
    values = {"t": motion.t, "rotation": rotation, "h": momentum, "turning": turning, "energy": post.energy(system, motion)}
    return {name: np.asarray(value)[rows] for name, value in values.items()}


schemes = {"conserving": mbd.DirectorEnergyMomentum(), "Newmark": mbd.Newmark(), "energy-momentum": mbd.EnergyMomentum()}
motions = {(name, dt): run(scheme, dt) for name, scheme in schemes.items() for dt in (0.01, 0.1)}

# %% What the motions kept after the push
# The energy-momentum scheme gives a mass to every director, and one of them is negative here, (5 + 1 - 10) / 2: soon its steps are not
# solved. With moments that a body can have, such as (5, 6, 1), it runs on. Schemes that see angular velocities alone do not mind.
conserved = {}
for (name, dt), motion in motions.items():
    free = motion["t"] > 2 + 1.5 * dt
    energy, momentum = motion["energy"][free], motion["h"][free]
    motion["after"] = motion["t"][free]
    motion["energy change"] = np.abs(energy / energy[0] - 1)
    motion["h change"] = np.linalg.norm(momentum - momentum[0], axis=1) / np.linalg.norm(momentum[0])
    if len(free) <= steps:
        conserved[f"{name}, dt = {dt}: Newton's method stops at"] = f"t = {motion['t'][-1]:.4g}"
    if motion["t"][-1] < 9:
        continue
    turns = np.count_nonzero(np.diff(np.sign(motion["turning"][free & (motion["t"] <= 10), 0])))
    conserved |= {
        f"{name}, dt = {dt}: kinetic energy after the push": f"{energy[0]:.3f}",
        f"{name}, dt = {dt}: relative change of energy": motion["energy change"].max(),
        f"{name}, dt = {dt}: angular momentum after the push": ", ".join(f"{value:.4f}" for value in momentum[0]),
        f"{name}, dt = {dt}: relative change of angular momentum": motion["h change"].max(),
        f"{name}, dt = {dt}: how often the body turned over until t = 10": f"{turns}",
    }

# %% The picture: spheres on the left, a column for each step
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(19, 11.5), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
left, right = figure.subfigures(1, 2, width_ratios=(1, 2.1))
spheres, columns = left.subfigures(2, 1), right.subfigures(1, 2)
polar, turn = np.meshgrid(np.linspace(0, np.pi, 13), np.linspace(0, 2 * np.pi, 25))


def globe(panel, head):
    """Axes with a unit sphere."""
    panel.suptitle(head, x=0.03, ha="left", weight="bold", fontsize=14, color=INK)
    axes = panel.add_subplot(projection="3d", computed_zorder=False)
    axes.plot_wireframe(np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar), color=PALE, lw=0.4, zorder=1)
    axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axes.set_box_aspect((1, 1, 1), zoom=1.3)
    axes.view_init(22, 40)
    axes.axis("off")
    return axes


fine, coarse = motions["conserving", 0.01], motions["conserving", 0.1]
axes = globe(spheres[0], "1  Body axis 1 in space turns over")
shown = (fine["t"] >= 2) & (fine["t"] <= 5)
axes.plot(*fine["rotation"][shown, :, 0].T, color=BLUE, lw=1.6, zorder=3)
axes.quiver(0, 0, 0, 1.35, 0, 0, color=INK, lw=2.5, arrow_length_ratio=0.1, zorder=4)
axes.text(1.5, 0, 0, "$h$", color=INK, fontsize=14, zorder=5)
axes = globe(spheres[1], "2  Angular momentum seen from the body")
for motion, style, dt in ((fine, "-", 0.01), (coarse, ".", 0.1)):
    seen = MOMENTS * motion["turning"][(motion["t"] >= 2) & (motion["t"] <= 10)]
    seen = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    axes.plot(*seen.T, style, color=BLUE if dt == 0.01 else ORANGE, zorder=3, label=f"dt = {dt}")
for end, name in zip(np.eye(3), "123", strict=True):
    axes.plot(*np.transpose([end, 1.12 * end]), color=INK, lw=2, zorder=4)
    axes.text(*1.28 * end, name, color=INK, fontsize=12, ha="center", va="center", zorder=5)
axes.legend(loc="lower right")

for panel, dt, number in zip(columns, (0.01, 0.1), (3, 4), strict=True):
    panel.suptitle(f"{number}  Step {dt}", x=0.03, ha="left", weight="bold", fontsize=14, color=INK)
    rows = panel.subplots(4, 1, sharex=True, height_ratios=(1, 1, 1.4, 1.3))
    motion, newmark, stopped = (motions[name, dt] for name in schemes)
    rows[0].plot(newmark["t"], newmark["energy"], color=ORANGE, lw=1.2, label="Newmark")
    rows[0].plot(motion["t"], motion["energy"], color=BLUE, lw=1.8, label="conserving")
    rows[0].plot(stopped["t"][-1:], stopped["energy"][-1:], "x", color=INK, ms=8, mew=2, label="energy-momentum stops")
    rows[1].plot(motion["t"], np.linalg.norm(motion["h"], axis=1), color=PALE, lw=5, label="size")
    for i, color in enumerate((BLUE, GREEN, PURPLE)):
        rows[1].plot(motion["t"], motion["h"][:, i], color=color, lw=1.6, label=f"$h_{i + 1}$")
        rows[2].plot(motion["t"], motion["turning"][:, i], color=color, lw=1.4, label=f"axis {i + 1}")
    for values, color, scheme in ((newmark, ORANGE, "Newmark"), (motion, BLUE, "conserving")):
        rows[3].semilogy(values["after"], np.maximum(values["energy change"], 1e-17), color=color, lw=1.4, label=f"{scheme}: energy")
        rows[3].semilogy(values["after"], np.maximum(values["h change"], 1e-17), color=color, lw=1.0, ls=":", label="$h$")
    names = ("kinetic energy", "angular momentum", "angular velocity\nin body axes", "relative change\nafter the push")
    for axes, name, limits in zip(rows, names, ((0, 180), (-4, 45), (-15, 10), (1e-17, 1e1)), strict=True):
        axes.set(ylabel=name, xlim=(0, 10), ylim=limits)
        axes.legend(ncols=4, **ABOVE)
    rows[3].set(xlabel="time")

# %% Table and picture
present("unstable_rotation", conserved, figure)
