"""Three-bar swing: a flexible beam between rigid links (Leyendecker, Marsden and Ortiz, figures 19 to 24).

A pulse along the beam sets it swinging. Near t = 1.4 the left link and the beam are almost in line, the right link turns back, and from
this "event X" on the beam vibrates. After the pulse the energy-momentum scheme keeps the energy exactly; that of the symplectic scheme
oscillates.
"""

# %% Setup: 20 elements, 276 coordinates, 154 constraints
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

system, q0 = mbd.assemble(*mbd.gallery.three_bar_swing())
dt, steps = 0.01, 60 if options().reduced else 300
schemes = {"symplectic": mbd.Midpoint(), "energy-momentum": mbd.EnergyMomentum()}
motions = {name: mbd.simulate(system, q0, dt=dt, steps=steps, scheme=scheme) for name, scheme in schemes.items()}

# %% Energy, event X, plane motion, forces along the beam
motion = motions["symplectic"]
t = np.asarray(motion.t)
energies = {name: np.asarray(post.energy(system, one)) for name, one in motions.items()}
after = t > 0.255
resultants = post.stress_resultants(system, motion)["beam"]
right = np.asarray(post.poses(system, motion)["right"].rotation)
angle = np.degrees(np.unwrap(np.arctan2(right[:, 1, 2], right[:, 2, 2])))
turns = np.flatnonzero(np.diff(np.sign(np.diff(angle)))) + 1
angular = np.abs(np.asarray(post.angular_momentum(system, motion)))
table = {
    "unknowns with multipliers, and of the chart": f"{q0.size + system.constraints(0.0, q0).size}, {system.params.increments}",
    "event X: the right link turns back at": f"{t[turns[0]]:.2f} s" if turns.size else "after the end",
    "energy-momentum: largest change of energy after the pulse": np.ptp(energies["energy-momentum"][after]),
    "symplectic: largest change of energy after the pulse": np.ptp(energies["symplectic"][after]),
    "angular momentum out of the plane, of that in it": angular[:, 1:].max() / angular[:, 0].max(),
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "largest axial force": np.abs(resultants.values[..., 2]).max(),
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a"
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(16, 9), layout="constrained")
left, plots = figure.subfigures(1, 2, width_ratios=(1.35, 1))

stress = np.linalg.norm(resultants.values[..., :3], axis=-1) + 100 * np.linalg.norm(resultants.values[..., 3:], axis=-1)
grid = left.subplots(4, 3)
left.suptitle("Forces along the beam, with moments times 100", x=0.02, ha="left", weight="bold", fontsize=14, color=INK)
rows = np.linspace(0, steps, 12).astype(int)
scale = {"location": "bottom", "shrink": 0.5, "aspect": 50}
viz.snapshots(system, motion, rows, colour=stress, axes=grid, plane=(1, 2), limits=(0, 4000), bar=scale)
for axes, row in zip(grid.flat, rows, strict=True):
    axes.set_title(f"t = {t[row]:.2f}", loc="left", color=GREY, fontsize=10)
    axes.axis("off")

top, middle, bottom = plots.subplots(3, 1, sharex=True)
for name, colour in (("symplectic", ORANGE), ("energy-momentum", BLUE)):
    top.plot(t, energies[name], color=colour, lw=1.6, label=name)
top.set(ylabel="energy", title="Energy")
top.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
zoom = top.inset_axes((0.3, 0.2, 0.6, 0.5))
for name, colour in (("symplectic", ORANGE), ("energy-momentum", BLUE)):
    zoom.plot(t[after], energies[name][after] - energies["energy-momentum"][-1], color=colour, lw=1.2)
zoom.set_title("deviation", fontsize=9, color=GREY)
middle.plot(t, resultants.values[:, 10, 2], color=INK, lw=1.2)
middle.set(ylabel="axial force", title="Right of the mass: axial force and bending moment")
moment = middle.twinx()
moment.plot(t, resultants.values[:, 10, 3], color=ORANGE, lw=1.2)
moment.set_ylabel("bending moment", color=ORANGE)
moment.spines["right"].set_visible(True)
bottom.plot(t, angle, color=BLUE, lw=1.6)
bottom.set(xlabel="time", ylabel="angle of the right link", title="Event X: the right link turns back")
for axes in (top, middle, bottom):
    axes.title.set(fontsize=12, color=INK, ha="left", position=(0, 1))
    if turns.size:
        axes.axvline(t[turns[0]], color=PALE, lw=1.5, zorder=0)

# %% Table and picture
present("three_bar_swing", table, figure)
