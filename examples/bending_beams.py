"""Beams at rest: a moment rolls one up into a circle, a force bends another far, and a third one vibrates.

Equilibrium is found in load steps by Newton's method, with the stress of the beam among its unknowns, so that a beam of slenderness 10,000
takes the same steps as a stout one. Small vibrations follow from the same potential.
"""

# %% Setup: cantilevers clamped at the origin, along the third axis
import jax
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
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
    return mbd.equilibrium(*cantilever(1.0, section, 8, 2, [mbd.Torque("beam[-1]", (moment, 0, 0))]), steps=20)


rolled = {slenderness: roll_up(slenderness) for slenderness in (10.0, 1e4)}
tips = {slenderness: np.linalg.norm(found.q.reshape(-1, 4, 3)[-1, 0]) for slenderness, found in rolled.items()}

# %% Large deflection under a force at the tip: shortening 0.150971, deflection 0.710568
section = mbd.Section.rectangle(0.1, 0.5, 2.07e11, 7800.0)
PUBLISHED = np.array([0.150971, 0.710568])
counts, orders = ((4, 8), (1, 2)) if options().reduced else ((2, 4, 8, 16), (1, 2, 3))
bent = {}
for order in orders:
    for elements in counts:
        found = mbd.equilibrium(*cantilever(2.0, section, elements, order, [mbd.Force("beam[-1]", (0, 6.25e7, 0))]), steps=5)
        tip = np.asarray(found.q).reshape(-1, 4, 3)[-1, 0]
        bent[order, elements] = found, np.array([2.0 - tip[2], tip[1]])
finest, figures = bent[orders[-1], counts[-1]]

# %% Vibration of a slender cantilever
slender = mbd.Section.rectangle(0.02, 0.01, 7e10, 2700.0)
system, q0 = cantilever(1.0, slender, 8, 3)
modes = mbd.modes(system, q0, count=8)
shapes = np.asarray(modes.shapes).reshape(8, -1, 4, 3)[:, :, 0]
speed = np.sqrt(slender.stiffness[3, 3] / slender.mass)
table = {
    "roll-up: distance of the tip from the clamp, slenderness 10": tips[10.0],
    "roll-up: the same, slenderness 10,000": tips[1e4],
    "roll-up: Newton iterations a step, at most": f"{int(rolled[10.0].newton_steps.max())}, {int(rolled[1e4].newton_steps.max())}",
    "deflection: tip shortening (published 0.150971)": f"{figures[0]:.6f}",
    "deflection: tip deflection (published 0.710568)": f"{figures[1]:.6f}",
    "vibration: first frequency": f"{float(modes.frequencies[0]):.4f} Hz",
    "vibration: the same by Euler and Bernoulli": f"{1.875104**2 * speed / (2 * np.pi):.4f} Hz",
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74"
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure, ((first, second), (third, fourth)) = plt.subplots(2, 2, figsize=(15, 10), layout="constrained")
headings = ("1  A moment rolls a beam up", "2  A force bends a beam far", "3  Error of the tip", "4  Slowest vibrations of a cantilever")
for axes, heading in zip((first, second, third, fourth), headings, strict=True):
    axes.set_title(heading, loc="left", weight="bold", fontsize=14, color=INK)


def curve(q):
    """The line of a beam, drawn through its nodes."""
    return np.asarray(q).reshape(-1, 4, 3)[:, 0, 2], np.asarray(q).reshape(-1, 4, 3)[:, 0, 1]


shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.9, 21))
for row, shade in zip(rolled[1e4].path, shades, strict=True):
    first.plot(*curve(row), "-", color=shade, lw=2.2)
first.plot(*curve(rolled[1e4].q), "o", color=INK, ms=4)
first.set(aspect="equal", xticks=[], yticks=[])
first.text(0.98, 0.02, "slenderness 10,000, 20 load steps", transform=first.transAxes, ha="right", color=GREY)
for row, shade in zip(finest.path, plt.get_cmap("viridis")(np.linspace(0.1, 0.9, 6)), strict=True):
    second.plot(*curve(row), "-", color=shade, lw=3)
second.set(aspect="equal", xlabel="along the beam", ylabel="across")
for order, colour in zip(orders, (ORANGE, BLUE, GREEN), strict=False):
    errors = [np.abs(bent[order, elements][1] - PUBLISHED).max() for elements in counts]
    third.loglog(counts, errors, "o-", color=colour, lw=1.6, label=f"order {order}")
third.axhline(5e-7, color=PALE, lw=1.5, zorder=0)
third.annotate("digits of the published figures", (counts[0], 5e-7), xytext=(0, 4), textcoords="offset points", color=GREY, fontsize=9)
third.set(xlabel="elements", ylabel="largest error of both figures", xticks=counts, xticklabels=counts)
third.minorticks_off()
third.legend()
along = np.linspace(0, 1, shapes.shape[1])
for place, (shape, frequency) in enumerate(zip(shapes[:6], np.asarray(modes.frequencies), strict=False)):
    axis = np.abs(shape).max(axis=0).argmax()
    deflection = shape[:, axis] / np.abs(shape[:, axis]).max() * np.sign(shape[-1, axis])
    fourth.plot(along, 0.4 * deflection - place, color=(BLUE, ORANGE, GREEN)[axis], lw=2.2)
    fourth.axhline(-place, color=PALE, lw=1, zorder=0)
    fourth.text(1.02, -place, f"{frequency:.1f} Hz", va="center", color=INK)
fourth.text(0.0, 0.5, "across the thick side", color=BLUE)
fourth.text(0.35, 0.5, "across the thin side", color=ORANGE)
fourth.set_ylim(-5.6, 0.9)
fourth.axis("off")

# %% Table and picture
present("bending_beams", table, figure)
