"""A string of hundreds of mass points, written as two functions, falls and cracks like a whip.

Nothing is said about which points touch: the library finds that from the operations of the functions, and solves every step in a time that
grows in proportion to the number of points.
"""

# %% Setup: one function for the energies, one for all rods
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
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
structure = mbd.simulation.sparsity(system, q0)
print(structure)

# %% Motion: released from rest, with the exact energy
dt, steps = 0.002, 200 if options().reduced else 500
motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())
t, q = np.asarray(motion.t), np.asarray(motion.q).reshape(steps + 1, points, 2)
q = np.concatenate([np.zeros((steps + 1, 1, 2)), q], axis=1)
tension = np.abs(np.asarray(motion.multipliers))[1:-1]
speed = np.linalg.norm(np.asarray(motion.v).reshape(steps + 1, points, 2)[:, -1], axis=1)
energy = np.asarray(post.energy(system, motion))
conserved = {
    "unknowns of a step": str(structure.size),
    "nonzeros of its matrix": str(structure.pattern.nnz),
    "rods off their length, relatively": np.abs(post.constraint_residuals(system, motion)).max() / (length / points),
    "energy, largest change over the largest kinetic": np.abs(energy - energy[0]).max() / (0.5 * np.sum(motion.p * motion.v, axis=1)).max(),
    "fastest the tip goes": speed.max(),
    "largest tension, in weights": tension.max() / gravity,
}

# %% Picture
headings = {"A": "The string, and the path of its tip", "B": "Tension along it", "C": "Speed of the tip", "D": "The matrix of a step"}
figure, axes = viz.sheet("AB;CD", headings, size=(15, 11), widths=(1.25, 1))
strings = {f"t = {t[row]:.2g}": q[row] for row in np.linspace(0, steps, 6).astype(int)}
viz.paths(strings | {"tip": q[:, -1]}, axes=axes["A"], style={"tip": "dotted"})
along = {"label": "tension in weights", "ylabel": "place on the string, from the fixed end"}
viz.field(t[1:-1], (np.arange(points) + 0.5) / points, tension / gravity, axes=axes["B"], log=True, limits=(1e-2, 10), **along)
fall = np.sqrt(2 * gravity * np.maximum(-q[:, -1, 1], 0))
viz.curves(t, {"tip of the string": speed, "a stone that fell as deep": fall}, axes=axes["C"], ylabel="speed")
structure.spy(axes["D"])
axes["D"].set_xlabel(f"{structure.size} unknowns, {structure.pattern.nnz} nonzeros, {structure.colours} colours")
present("falling_string", conserved, figure)
