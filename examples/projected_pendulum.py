"""Projected pendulum: a constraint added to an ordinary differential equation, beside ways that only stabilise it.

After P. Masarati, Adding kinematic constraints to purely differential dynamics, Computational Mechanics 47 (2011), section 4.1: the panels
follow its figures 1 and 2, and numbers in brackets are its equations. An adaptive Runge-Kutta method moves a mass point on a rod,
released level, for ten seconds.
"""

# %% Setup: kinetic and potential energy, and the length of the rod (27) as the constraint
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import odes, post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

system = mbd.System.from_functions(
    kinetic=lambda t, q, v, p: 0.5 * p["mass"] * v @ v,
    potential=lambda t, q, p: 9.81 * p["mass"] * q[1],
    constraints=lambda t, q, p: jnp.sqrt(q @ q)[None] - p["length"],
    params={"mass": 1.0, "length": 1.0},
)

# %% Four ways of having the constraint (8), (11)-(17), at a loose and at a tight tolerance
methods = {
    "present": odes.Projection(tolerance=1e-12),
    "baseline": odes.Baseline(),
    "Baumgarte (2, 2)": odes.Baumgarte(2.0, 2.0),
    "Braun, Goldfarb": odes.BraunGoldfarb(),
}
tolerances = {"rtol = 1e-3, atol = 1e-6": (1e-3, 1e-6), "rtol = atol = 1e-9": (1e-9, 1e-9)}
end = 4.0 if options().reduced else 10.0


def run(method, rtol, atol):
    limits = {"t1": end, "dt0": 0.01, "dtmax": 0.1, "rtol": rtol, "atol": atol, "saveat": 401}
    return odes.integrate(system, [1.0, 0.0], solver=diffrax.Dopri5(), method=method, **limits)


motions = {label: {name: run(method, *both) for name, method in methods.items()} for label, both in tolerances.items()}

# %% What they kept: length, velocity along the rod, energy
table = {}
kept = {label: {} for label in tolerances}
for label, of_methods in motions.items():
    for name, motion in of_methods.items():
        q, v = np.asarray(motion.q), np.asarray(motion.v)
        length = np.linalg.norm(q, axis=1)
        along, energy = np.sum(q * v, axis=1) / length, np.asarray(post.energy(system, motion))
        kept[label][name] = {"length": length - 1, "velocity": along, "energy": energy - energy[0]}
        table[f"{label}, {name}: steps"] = f"{int(motion.scheme.accepted)}, and {int(motion.scheme.rejected)} rejected"
        table[f"{label}, {name}: length, velocity along the rod, energy, off by at most"] = ", ".join(
            f"{np.abs(values).max():.1e}" for values in kept[label][name].values()
        )

# %% Picture: the path and the steps, and a row of what was kept for each tolerance
rows = dict(zip(tolerances, ("BCD", "FGH"), strict=True))
what = {"length": "Length of the rod, error", "velocity": "Velocity along the rod", "energy": "Energy, change"}
headings = {"A": "Path, loose tolerance"} | dict(zip("BCD", (f"{text}, loose" for text in what.values()), strict=True))
headings |= {"E": "Accepted steps"} | dict(zip("FGH", (f"{text}, tight" for text in what.values()), strict=True))
figure, axes = viz.sheet("ABCD;EFGH", headings, size=(20, 10))
limits = {"length": (1e-17, 1e-1), "velocity": (1e-17, 1e-1), "energy": (1e-10, 1e0)}
loose, tight = motions.values()
viz.paths({name: np.asarray(motion.q) for name, motion in loose.items()}, axes=axes["A"])
steps = {label: [int(motion.scheme.accepted) for motion in of_methods.values()] for label, of_methods in motions.items()}
ticks = {"xlabel": "", "xticks": range(4), "xticklabels": [name.replace(" ", "\n", 1) for name in methods]}
viz.curves(np.arange(4), steps, axes=axes["E"], style="joined", log=True, ylim=(20, 1e5), **ticks)
for label, row in rows.items():
    for letter, quantity in zip(row, what, strict=True):
        sizes = {name: np.abs(values[quantity]) for name, values in kept[label].items()}
        viz.curves(loose["present"].t, sizes, axes=axes[letter], log=True, ylim=limits[quantity])
present("projected_pendulum", table, figure)
