"""Hanging chains: four heavy boxes on hinges or on ball joints, after Nielsen and Krenk (2013).

The chains are bent by a right angle and released from rest. Directors stay orthonormal by themselves, so only the multipliers of joints are
unknown beside the positions. Energy and the angular momentum about the vertical are kept to rounding, even with large steps.
"""

# %% Setup: a chain that moves in a plane, and the same on ball joints, turned out of that plane
import jax
import matplotlib.pyplot as plt
import numpy as np
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

chains = {"hinges": (False, 0.01, 500 if options().reduced else 1000), "ball joints": (True, 0.1, 80 if options().reduced else 150)}
INTERNAL = 24  # six constraints of each box come first: lengths and angles of its directors


# %% Motions, and what they kept
def run(spherical, dt, steps):
    system, q0 = mbd.assemble(*mbd.gallery.hanging_chain(spherical))
    motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.ConservativeDirector(), formulation=mbd.JointMultipliers())
    kinetic = 0.5 * np.sum(motion.p * motion.v, axis=1)
    total = np.asarray(post.energy(system, motion))
    residuals, rates = np.abs(post.constraint_residuals(system, motion)), np.abs(post.constraint_rates(system, motion))
    poses = post.poses(system, motion)
    return {
        "t": np.asarray(motion.t),
        "unknowns": q0.size + motion.multipliers.shape[1] - INTERNAL,
        "iterations": int(motion.newton_steps.max()),
        "energies": {"total": total, "kinetic": kinetic, "potential": total - kinetic},
        "momentum": np.asarray(post.angular_momentum(system, motion)),
        "constraints": {
            "e(q): directors": residuals[:, :INTERNAL].max(axis=1),
            "rate of e(q)": rates[:, :INTERNAL].max(axis=1),  # in place of C(q) p of the paper, zero for the same reason
            "joints": residuals[:, INTERNAL:].max(axis=1),
        },
        "joint rates": rates[:, INTERNAL:].max(),
        "boxes": [(np.asarray(frame.origin), np.asarray(frame.rotation)) for name, frame in poses.items() if name != "ground"],
    }


results = {name: run(*chain) for name, chain in chains.items()}
conserved = {}
for name, kept in results.items():
    energy, momentum = kept["energies"]["total"], kept["momentum"]
    conserved |= {
        f"{name}: time step, and number of steps": f"{chains[name][1]:g}, {chains[name][2]}",
        f"{name}: unknowns, 12 n + m": f"{kept['unknowns']}",
        f"{name}: Newton iterations, at most": f"{kept['iterations']}",
        f"{name}: largest relative change of energy": np.abs(energy / energy[0] - 1).max(),
        f"{name}: largest angular momentum about axis 1": np.abs(momentum[:, 0]).max(),
        f"{name}: largest angular momentum about axis 2": np.abs(momentum[:, 1]).max(),
        f"{name}: largest angular momentum about the vertical": np.abs(momentum[:, 2]).max(),
        **{f"{name}: {label}, at most": values.max() for label, values in kept["constraints"].items()},
        f"{name}: rates of joints, not enforced, at most": kept["joint rates"],
    }

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(19, 14), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
CORNERS = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])  # of a face of a box, in units of its half sides
FACES = [np.insert(CORNERS, axis, side, axis=1) for axis in range(3) for side in (-1, 1)]


def corners(box, row, face):
    """A face of a box at a row of the motion."""
    origin, rotation = box
    return origin[row] + face * [0.5, 0.25, 1.5] @ rotation[row].T


def draw_flat(axes, boxes, row):
    for box, color in zip(boxes, (BLUE, ORANGE, GREEN, PURPLE), strict=True):
        axes.fill(*corners(box, row, FACES[1]).T[1:], fc=color, ec="white", lw=0.8, alpha=0.9, zorder=2)
    axes.plot(*tip(boxes)[: row + 1, 1:].T, color=GREY, lw=1.0, zorder=1)
    axes.set(aspect="equal", xlim=(-11, 10), ylim=(-12.6, 1.4))
    axes.plot(0, 0, "o", color=INK, ms=6, zorder=3)
    axes.axis("off")


def draw_solid(axes, boxes, row):
    for box, color in zip(boxes, (BLUE, ORANGE, GREEN, PURPLE), strict=True):
        axes.add_collection3d(Poly3DCollection([corners(box, row, face) for face in FACES], fc=color, ec="white", lw=0.6, alpha=0.9))
    path, floor = tip(boxes)[: row + 1], -12.5
    axes.plot(*path.T, color=GREY, lw=1.0)
    axes.plot(0, 0, 0, "o", color=INK, ms=6)
    axes.plot(path[:, 0], path[:, 1], floor, color=PALE, lw=1.5)
    shadow = np.array([np.zeros(3), *(origin[row] - 1.5 * rotation[row, :, 2] for origin, rotation in boxes)])
    axes.plot(shadow[:, 0], shadow[:, 1], floor, color=PALE, lw=4, solid_capstyle="round")
    axes.set(xlim=(-6, 6), ylim=(-9, 9), zlim=(floor, 1))
    axes.set_box_aspect((12, 18, 13.5), zoom=1.2)
    axes.tick_params(labelbottom=False, labelleft=False, labelright=False)
    for side in (axes.xaxis, axes.yaxis, axes.zaxis):
        side.set_pane_color("#f7f9fb")
    axes.view_init(16, -25)


def tip(boxes):
    """The path of the free end."""
    origin, rotation = boxes[-1]
    return origin - 1.5 * rotation[:, :, 2]


heads = ("1  Hinges: the chain stays in the plane of $x_2$ and $x_3$, step 0.01", "2  Ball joints: it leaves the plane, step 0.1")
for panel, kept, head, spherical in zip(figure.subfigures(1, 2), results.values(), heads, (False, True), strict=True):
    panel.suptitle(head, x=0.03, ha="left", weight="bold", fontsize=15, color=INK)
    upper, lower = panel.subfigures(2, 1, height_ratios=(1.2, 1))
    places = upper.subplots(2, 2, subplot_kw={"projection": "3d"} if spherical else {})
    for axes, time in zip(places.flat, (0.0, 1.2, 2.4, 3.6), strict=True):
        row = int(np.argmin(np.abs(kept["t"] - time)))
        (draw_solid if spherical else draw_flat)(axes, kept["boxes"], row)
        axes.set_title(f"t = {kept['t'][row]:g}", fontsize=11, color=GREY)
    first, second, third = lower.subplots(3, 1, sharex=True)
    for (label, values), color in zip(kept["energies"].items(), (INK, ORANGE, BLUE), strict=True):
        first.plot(kept["t"], values, color=color, lw=1.5, label=label)
    for values, label, color in zip(kept["momentum"].T, ("axis 1", "axis 2", "vertical"), (BLUE, GREEN, PURPLE), strict=True):
        second.plot(kept["t"], values, color=color, lw=1.5, label=label)
    for (label, values), color in zip(kept["constraints"].items(), (BLUE, PALE, ORANGE), strict=True):
        third.semilogy(kept["t"], np.maximum(values, 1e-17), ".", color=color, ms=3, label=label)
    first.set(ylabel="energy")
    second.set(ylabel="ang. momentum")
    third.set(ylabel="residual", xlabel="time", ylim=(1e-17, 1e-13), xlim=(0, kept["t"][-1]))
    for axes in (first, second, third):
        axes.legend(ncols=3, markerscale=3, **ABOVE)

# %% Table and picture
present("hanging_chains", conserved, figure)
