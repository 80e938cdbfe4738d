"""Four-bar linkage: a planar mechanism tilted in space, with three constraints too many.

Four revolute joints of spatial bodies say the same thing more than once. The rank is found, reactions are the smallest ones that fit, and
the motion is that of the same linkage built of planar bodies.
"""

# %% Setup: the linkage in an arbitrary orientation, and the same in the plane
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

turn = np.asarray(mbd.rotation.exp(jnp.array([0.7, -0.4, 0.5])))
tilted = mbd.gallery.four_bar(turn=turn)
planar = mbd.gallery.four_bar(planar=True)

# %% Motions: the crank starts fast enough to go round again and again
dt, steps = 0.005, 500 if options().reduced else 2000


def run(mechanism, placement):
    system, q0 = mbd.assemble(mechanism, placement)
    print(mbd.describe(system, q0))  # the same as mechanism.summary(placement)
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 8.0})
    return system, mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised())


(system, motion), (flat_system, flat) = run(*tilted), run(*planar)

# %% What the motions kept
both = {"tilted": (system, motion), "planar": (flat_system, flat)}
residuals = {name: np.abs(post.constraint_residuals(*one)).max(axis=1) for name, one in both.items()}
crank, flat_crank = (np.asarray(post.joint_coordinates(*one)["hinge 1"][:, 0]) for one in both.values())
energies = {name: np.asarray(post.energy(*one)) for name, one in both.items()}
forces = {name: np.asarray(wrench.force)[1:-1] for name, wrench in post.reactions(system, motion).items()}  # one-sided at both ends
reactions = {name: np.linalg.norm(force, axis=1) for name, force in forces.items()}
out_of_plane = max(np.abs(force @ turn[:, 2]).max() for force in forces.values())
poses = {name: jax.tree.map(np.asarray, frame) for name, frame in post.poses(system, motion).items()}
conserved = {
    "turns of the crank": crank[-1] / (2 * np.pi),
    "redundant constraints, tilted": f"{motion.redundant}",
    **{f"{name}: constraints, at most": values.max() for name, values in residuals.items()},
    **{f"{name}: largest relative change of energy": np.abs(values / values[0] - 1).max() for name, values in energies.items()},
    "crank angle: tilted against planar, at most": np.abs(crank - flat_crank).max(),
    "reactions: component out of the plane, at most": out_of_plane,
}

# %% Geometry: the points of the hinges, and one above the coupler whose path is drawn
ends = {name: np.array([[-0.5, 0, 0], [0.5, 0, 0]]) * length for name, length in (("crank", 1.0), ("coupler", 2.5), ("rocker", 2.0))}


def follow(name, points):
    """Points of a body, given in its axes, along the motion: rows, points, 3."""
    return poses[name].origin[:, None] + points @ np.swapaxes(poses[name].rotation, 1, 2)


rods = {name: follow(name, points) for name, points in ends.items()}
tracers = follow("coupler", np.array([[0.0, 0.0, 0.0], [0.0, 0.8, 0.0], [0.6, 1.4, 0.0]]))
ground = np.array([np.zeros(3), turn @ [2.2, 0, 0]])

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
COLORS = {"crank": BLUE, "coupler": ORANGE, "rocker": GREEN}
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 9), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.05))
panels = [left, *right.subfigures(3, 1)]
headings = ("1  Curves of the coupler", "2  Forces in the hinges", "3  Constraints", "4  Angle of the crank, tilted against planar")
for panel, heading in zip(panels, headings, strict=True):
    panel.suptitle(heading, x=0.02, ha="left", weight="bold", fontsize=14, color=INK)

one_turn = np.searchsorted(crank, 2 * np.pi) + 1
axes = left.add_subplot(projection="3d", computed_zorder=False)
for row in range(0, one_turn, max(one_turn // 9, 1)):
    for name, points in rods.items():
        axes.plot(*points[row].T, color=COLORS[name], lw=1.6, alpha=0.25, zorder=1)
for index, style in enumerate((PALE, GREY, PURPLE)):
    axes.plot(*tracers[:one_turn, index].T, color=style, lw=2.6, zorder=2)
show = one_turn // 7
for name, points in rods.items():
    axes.plot(*points[show].T, color=COLORS[name], lw=6, solid_capstyle="round", zorder=3)
    axes.text(*points[show].mean(axis=0), f"  {name}", color=COLORS[name], fontsize=12, zorder=6)
triangle = np.array([rods["coupler"][show, 0], tracers[show, 2], rods["coupler"][show, 1]])
axes.plot(*triangle.T, color=ORANGE, lw=1.2, zorder=3)
axes.plot(*tracers[show].T, "o", color=INK, ms=5, zorder=4, ls="none")
axes.plot(*ground.T, "^", color=INK, ms=11, zorder=5, ls="none")
points = np.concatenate([*(rod[:one_turn].reshape(-1, 3) for rod in rods.values()), tracers[:one_turn].reshape(-1, 3)])
middle, reach = 0.5 * (points.max(axis=0) + points.min(axis=0)), 0.5 * np.ptp(points, axis=0).max()
axes.set(**{f"{name}lim": (c - reach, c + reach) for name, c in zip("xyz", middle, strict=True)}, xlabel="x", ylabel="y", zlabel="z")
axes.set_box_aspect((1, 1, 1))
for side in (axes.xaxis, axes.yaxis, axes.zaxis):
    side.set_pane_color("#f7f9fb")
axes.view_init(35, -70)
left.supxlabel("Three points of the coupler over one turn of the crank; the plane of motion is tilted in space.", fontsize=12, color=GREY)

axes = panels[1].subplots()
for (name, size), color in zip(reactions.items(), (BLUE, ORANGE, GREEN, PURPLE), strict=True):
    axes.semilogy(crank[1:-1] / (2 * np.pi), size, color=color, lw=1.4, label=name)
axes.set(xlabel="turns of the crank", ylabel="force", xlim=(0, 4))
axes.legend(ncols=4, **ABOVE)
axes = panels[2].subplots()
for (name, values), color in zip(residuals.items(), (BLUE, ORANGE), strict=True):
    axes.semilogy(crank / (2 * np.pi), np.maximum(values, 1e-17), ".", color=color, ms=2.5, label=name)
axes.set(xlabel="turns of the crank", ylabel="largest residual", xlim=(0, crank[-1] / (2 * np.pi)), ylim=(1e-17, 1e-12))
axes.legend(ncols=2, markerscale=4, **ABOVE)
axes = panels[3].subplots()
axes.semilogy(crank / (2 * np.pi), np.maximum(np.abs(crank - flat_crank), 1e-17), color=PURPLE, lw=1.1)
axes.set(xlabel="turns of the crank", ylabel="difference", xlim=(0, crank[-1] / (2 * np.pi)), ylim=(1e-17, 1e-9))

# %% Table and picture
present("four_bar", conserved, figure)
