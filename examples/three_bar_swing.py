"""Three-bar swing: a flexible beam between rigid links (Leyendecker, Marsden and Ortiz, figures 19 to 24).

A pulse along the beam sets it swinging. Near t = 1.4 the left link and the beam are almost in line, the right link turns back, and from
this "event X" on the beam vibrates. After the pulse the energy-momentum scheme keeps the energy exactly; that of the symplectic scheme
oscillates.
"""

# %% Setup: 20 elements, 276 coordinates, 154 constraints
import jax
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

# %% Picture
headings = {"A": "Forces along the beam, with moments times 100", "X": "Energy, off its last value, after the pulse"}
headings |= {"Y": "Right of the mass: axial force, 100 times the moment", "Z": "Angle of the right link"}
figure, axes = viz.sheet("ABC;DEF;GHI;JKL|X;Y;Z", headings, size=(17, 10), widths=(1.3, 1))
stress = np.linalg.norm(resultants.values[..., :3], axis=-1) + 100 * np.linalg.norm(resultants.values[..., 3:], axis=-1)
grid, rows = [axes[letter] for letter in "ABCDEFGHIJKL"], np.linspace(0, steps, 12).astype(int)
scale = {"location": "bottom", "shrink": 0.5, "aspect": 50}
viz.snapshots(system, motion, rows, colour=stress, axes=grid, plane=(1, 2), limits=(0, 4000), bar=scale)
changes = {name: values[after] - energies["energy-momentum"][-1] for name, values in energies.items()}
viz.curves(t[after], changes, axes=axes["X"], ylabel="energy")
viz.curves(t, {"force": resultants.values[:, 10, 2], "moment": 100 * resultants.values[:, 10, 3]}, axes=axes["Y"])
viz.curves(t, angle, axes=axes["Z"], ylabel="degrees")
for letter in "XYZ"[: 3 * turns.size]:
    viz.mark(axes[letter], x=t[turns[0]], text="event X")
present("three_bar_swing", table, figure)
