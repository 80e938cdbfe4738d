"""A string of hundreds of mass points, written as two functions, falls and cracks like a whip.

Nothing is said about which points touch: the library finds that from the operations of the functions, and solves every step in a time that
grows in proportion to the number of points.
"""

# %% Setup: one function for the energies, one for all rods
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

points = 60 if options().reduced else 200
length, gravity = 2.0, 9.81


def lagrangian(t, q, v, p):
    return p["mass"] / points * (0.5 * v @ v - gravity * jnp.sum(q[1::2]))


def constraints(t, q, p):
    """Every rod keeps its length; with this scaling the multipliers are the tensions."""
    rod = p["length"] / points
    ends = jnp.diff(q.reshape(-1, 2), axis=0, prepend=jnp.zeros((1, 2), q.dtype))
    return 0.5 * (jnp.sum(ends**2, axis=1) / rod - rod)


system = mbd.System.from_functions(lagrangian=lagrangian, constraints=constraints, params={"mass": 1.0, "length": length})
q0 = jnp.stack([jnp.linspace(0, length, points + 1)[1:], jnp.zeros(points)], axis=1).ravel()  # level, held at the left end
structure = mbd.sparsity(system, q0)
print(structure)

# %% Motion: released from rest, with the exact energy
dt, steps = 0.002, 200 if options().reduced else 500
motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())
t, q = np.asarray(motion.t), np.asarray(motion.q).reshape(steps + 1, points, 2)
q = np.concatenate([np.zeros((steps + 1, 1, 2)), q], axis=1)
tension = np.abs(np.asarray(motion.multipliers))[1:-1]
speed = np.linalg.norm(np.asarray(motion.v).reshape(steps + 1, points, 2)[:, -1], axis=1)
energy = np.asarray(post.energy(system, motion))
fall = np.sqrt(2 * gravity * np.maximum(-q[:, -1, 1], 0))  # a stone that fell as deep
conserved = {
    "unknowns of a step": str(structure.size),
    "nonzeros of its matrix": str(structure.pattern.nnz),
    "rods off their length, relatively": np.abs(post.constraint_residuals(system, motion)).max() / (length / points),
    "energy, largest change over the largest kinetic": np.abs(energy - energy[0]).max() / (0.5 * np.sum(motion.p * motion.v, axis=1)).max(),
    "fastest the tip goes": speed.max(),
    "largest tension, in weights": tension.max() / gravity,
}

# %% The picture
INK, GREY, BLUE, ORANGE = "#1f2933", "#66727f", "#1273b8", "#dd5f0a"
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure, axes = plt.subplots(2, 2, figsize=(14, 11), layout="constrained", width_ratios=(1.25, 1))
headings = ("1  The string every 0.04 time units", "2  Tension along it, in weights", "3  Speed of the tip", "4  The matrix of a step")
for panel, heading in zip(axes.ravel(), headings, strict=True):
    panel.set_title(heading, loc="left", weight="bold", fontsize=14, color=INK)

rows = np.arange(0, steps + 1, 20)
for row, colour in zip(rows, plt.get_cmap("plasma")(np.linspace(0, 0.9, len(rows))), strict=True):
    axes[0, 0].plot(*q[row].T, color=colour, lw=1.6)
axes[0, 0].plot(0, 0, "o", color=INK, ms=8)
axes[0, 0].plot(*q[:, -1].T, color=GREY, lw=0.8, ls=":")
axes[0, 0].set(aspect="equal", xlabel="x", ylabel="z")

image = axes[0, 1].pcolormesh(
    t[1:-1], (np.arange(points) + 0.5) / points, tension.T / gravity, cmap="magma", norm="log", vmin=1e-2, vmax=10, rasterized=True
)
figure.colorbar(image, ax=axes[0, 1], extend="both")
axes[0, 1].set(xlabel="time", ylabel="place on the string, from the fixed end")

axes[1, 0].plot(t, speed, color=BLUE, lw=1.8, label="tip of the string")
axes[1, 0].plot(t, fall, color=ORANGE, lw=1.4, ls="--", label="a stone that fell as deep")
axes[1, 0].set(xlabel="time", ylabel="speed", xlim=(0, t[-1]), ylim=(0, None))
axes[1, 0].legend(loc="upper left")

structure.spy(axes[1, 1])
axes[1, 1].set_title(
    f"{structure.size} unknowns, {structure.pattern.nnz} nonzeros, {structure.colours} colours", fontsize=11, color=GREY, y=-0.12
)

# %% Table and picture
present("falling_string", conserved, figure)
