"""Beams at rest: a moment rolls one up into a circle, a force bends another far, and a third one vibrates.

Equilibrium is found in load steps by Newton's method, with the stress of the beam among its unknowns, so that a beam of slenderness 10,000
takes the same steps as a stout one. Small vibrations follow from the same potential.
"""

# %% Setup: cantilevers clamped at the origin, along the third axis
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

CLAMP = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}


def cantilever(length, section, elements, order, loads=()):
    beam = mbd.Beam.line((0, 0, 0), (0, 0, length), section, elements, order, normal=(1, 0, 0))
    return mbd.assemble(mbd.Mechanism({"beam": beam}, CLAMP, loads))


# %% Roll-up: the moment 2 pi EI / L, in 20 steps
def roll_up(slenderness):
    section = mbd.Section.rectangle(1 / slenderness, 1 / slenderness, 1e9, 1e3)
    moment = 2 * np.pi * float(section.stiffness[3, 3])
    rolling, q0 = cantilever(1.0, section, 8, 2, [mbd.Torque("beam[-1]", (moment, 0, 0))])
    return rolling, mbd.equilibrium(rolling, q0, steps=20)


(_, stout), (rolling, rolled) = roll_up(10.0), roll_up(1e4)
tip = lambda found: np.asarray(found.q).reshape(-1, 4, 3)[-1, 0]

# %% Large deflection under a force at the tip: shortening 0.150971, deflection 0.710568
section = mbd.Section.rectangle(0.1, 0.5, 2.07e11, 7800.0)
PUBLISHED = np.array([0.150971, 0.710568])
counts, orders = ((4, 8), (1, 2)) if options().reduced else ((2, 4, 8, 16), (1, 2, 3))
bent = {}
for order in orders:
    for elements in counts:
        bending, q0 = cantilever(2.0, section, elements, order, [mbd.Force("beam[-1]", (0, 6.25e7, 0))])
        finest = mbd.equilibrium(bending, q0, steps=5)
        bent[order, elements] = np.array([2.0 - tip(finest)[2], tip(finest)[1]])
figures = bent[orders[-1], counts[-1]]

# %% Vibration of a slender cantilever
slender = mbd.Section.rectangle(0.02, 0.01, 7e10, 2700.0)
system, q0 = cantilever(1.0, slender, 8, 3)
modes = mbd.modes(system, q0, count=6)
speed = np.sqrt(slender.stiffness[3, 3] / slender.mass)
table = {
    "roll-up: distance of the tip from the clamp, slenderness 10": np.linalg.norm(tip(stout)),
    "roll-up: the same, slenderness 10,000": np.linalg.norm(tip(rolled)),
    "roll-up: Newton iterations a step, at most": f"{int(stout.newton_steps.max())}, {int(rolled.newton_steps.max())}",
    "deflection: tip shortening (published 0.150971)": f"{figures[0]:.6f}",
    "deflection: tip deflection (published 0.710568)": f"{figures[1]:.6f}",
    "vibration: first frequency": f"{float(modes.frequencies[0]):.4f} Hz",
    "vibration: the same by Euler and Bernoulli": f"{1.875104**2 * speed / (2 * np.pi):.4f} Hz",
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74"
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(15, 10), layout="constrained")
panels = figure.subfigures(2, 2).ravel()
headings = ("1  A moment rolls a beam up", "2  A force bends a beam far", "3  Error of the tip", "4  Slowest vibrations")
for panel, heading in zip(panels, headings, strict=True):
    panel.suptitle(heading, x=0.02, ha="left", weight="bold", fontsize=14, color=INK)
first, second, third = (panel.subplots() for panel in panels[:3])

share = {"colour": np.linspace(0, 1, 21), "bar": {"label": "part of the moment", "shrink": 0.7}}
viz.snapshots(rolling, rolled.path, rows=21, axes=first, plane=(2, 1), cmap="viridis", width=2.2, **share)
first.text(0.98, 0.02, "slenderness 10,000, 20 load steps", transform=first.transAxes, ha="right", color=GREY)
first.axis("off")
viz.snapshots(bending, finest.path, axes=second, plane=(2, 1), colour="bending moment", bar={"shrink": 0.7})
second.set(xlabel="along the beam", ylabel="across")
for order, colour in zip(orders, (ORANGE, BLUE, GREEN), strict=False):
    errors = [np.abs(bent[order, elements] - PUBLISHED).max() for elements in counts]
    third.loglog(counts, errors, "o-", color=colour, lw=1.6, label=f"order {order}")
third.axhline(5e-7, color=PALE, lw=1.5, zorder=0)
third.annotate("digits of the published figures", (counts[0], 5e-7), xytext=(0, 4), textcoords="offset points", color=GREY, fontsize=9)
third.set(xlabel="elements", ylabel="largest error of both figures", xticks=counts, xticklabels=counts)
third.minorticks_off()
third.legend()
across = np.abs(modes.shapes.reshape(6, -1, 4, 3)[:, :, 0, :2]).max(axis=1).argmax(axis=1)
for i, axes in enumerate(panels[3].subplots(3, 2).flat):
    mode = mbd.Modes(modes.squares[i : i + 1], modes.shapes[i : i + 1])
    viz.modes(system, q0, mode, axes=axes, plane=(2, int(across[i])), colour=(BLUE, ORANGE)[across[i]])
panels[3].text(0.57, 0.975, "across the thick side", color=BLUE, va="top")
panels[3].text(0.79, 0.975, "across the thin side", color=ORANGE, va="top")

# %% Table and picture
present("bending_beams", table, figure)
