"""Beams at rest: a moment rolls one up into a circle, a force bends another far, and a third one vibrates.

Equilibrium is found in load steps by Newton's method, with the stress of the beam among its unknowns, so that a beam of slenderness 10,000
takes the same steps as a stout one. Small vibrations follow from the same potential.
"""

# %% Setup: cantilevers clamped at the origin, along the third axis
import jax
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
errors = {f"order {order}": [] for order in orders}
for order in orders:
    for elements in counts:
        bending, q0 = cantilever(2.0, section, elements, order, [mbd.Force("beam[-1]", (0, 6.25e7, 0))])
        finest = mbd.equilibrium(bending, q0, steps=5)
        figures = np.array([2.0 - tip(finest)[2], tip(finest)[1]])
        errors[f"order {order}"].append(np.abs(figures - PUBLISHED).max())

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

# %% Picture: of the vibrations, those across the thick side are blue, those across the thin side orange
headings = {"A": "A moment rolls a beam up", "B": "A force bends a beam far", "C": "Error of the tip", "D": "Slowest vibrations"}
figure, axes = viz.sheet("AABB;CCDE;CCFG;CCHI", headings, size=(15, 11), heights=(2.4, 1, 1, 1))
share = {"colour": np.linspace(0, 1, 21), "bar": {"label": "part of the moment", "shrink": 0.7}}
viz.snapshots(rolling, rolled.path, rows=21, axes=axes["A"], plane=(2, 1), cmap="viridis", width=2.2, frame=False, **share)
viz.snapshots(bending, finest.path, axes=axes["B"], plane=(2, 1), colour="bending moment", bar={"shrink": 0.7})
viz.mark(viz.convergence(counts, errors, axes=axes["C"], xlabel="elements"), y=5e-7, text="digits of the published figures")
across = np.abs(modes.shapes.reshape(6, -1, 4, 3)[:, :, 0, :2]).max(axis=1).argmax(axis=1)
for i, letter in enumerate("DEFGHI"):
    mode = mbd.statics.Modes(modes.squares[i : i + 1], modes.shapes[i : i + 1])
    viz.modes(system, q0, mode, axes=axes[letter], plane=(2, int(across[i])), colour=(viz.BLUE, viz.ORANGE)[across[i]])
present("bending_beams", table, figure)
