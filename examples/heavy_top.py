"""Heavy top: a fast spin, and three ways in which its axis nods.

The axis is released with no, a little or the opposite precession. Energy, the angular momentum about the vertical and the spin about the
axis of the top are kept: the last two are symmetries, which the variational scheme keeps to rounding.
"""

# %% Setup: a symmetric top on its tip, tilted by 40 degrees
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

tilt, spin = np.radians(40.0), 15.0
mechanism, placement = mbd.gallery.heavy_top(mass=1.0, length=0.5, inertia=(0.2, 0.2, 0.3))
system, q0 = mbd.assemble(mechanism, placement | {"tip": (0.0, tilt, 0.0)})
axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
# Three precessions about the vertical at the start; slow regular precession would be m g l / (J spin).
regular = 9.81 * 0.5 / (0.3 * spin)
precessions = {"wavy": 0.45 * regular, "cusped": 0.0, "looping": -0.6 * regular}
starts = jnp.stack([mbd.joint_velocities(system, q0, {"tip": spin * axis + [0, 0, rate]}) for rate in precessions.values()])

# %% Motions: one batch over the velocities at the start
dt, steps = 0.005, 600 if options().reduced else 1200
run = lambda v0: mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised(), throw=False)
batch = jax.jit(jax.vmap(run))(starts)
batch.check(system)  # without `throw`, a member that fails lets the others run on: look whether one did


# %% What the motions kept
@jax.jit
@jax.vmap
def measure(motion):
    axis, momentum = post.poses(system, motion)["top"].rotation[:, :, 2], post.angular_momentum(system, motion)
    about_axis = jnp.sum(momentum * axis, axis=1)
    kept = {"energy": post.energy(system, motion), "angular momentum about the vertical": momentum[:, 2]}
    return axis, kept | {"angular momentum about the axis": about_axis}, jnp.abs(post.constraint_residuals(system, motion)).max()


paths, values, residuals = jax.tree.map(np.asarray, measure(batch))
labels = ("energy", "angular momentum about the vertical", "angular momentum about the axis")
changes = {label: np.abs(values[label] / values[label][:, :1] - 1) for label in labels}
conserved = {f"{label}: relative change, {name}": changes[label][i].max() for label in labels for i, name in enumerate(precessions)}
conserved["constraints, at most"] = residuals.max()

# %% Picture
captions = ("With the precession: waves", "From rest: cusps", "Against the precession: loops")
headings = dict(zip("ABCDE", (*captions, "Tilt of the axis", "What the motions keep"), strict=True))
figure, axes = viz.sheet("AABBCC;DDDEEE", headings, space="ABC", size=(17, 9.5), heights=(1.4, 1))
t = np.asarray(batch.t[0])
shown = t <= 3.0
for letter, path, colour in zip("ABC", paths, (viz.BLUE, viz.ORANGE, viz.GREEN), strict=True):
    viz.globe(path[shown], axes=axes[letter], reach=np.radians(70), view=(38, 75), colours=[colour])
tilts = np.degrees(np.arccos(paths[:, shown, 2]))
viz.curves(t[shown], dict(zip(precessions, tilts, strict=True)), axes=axes["D"], ylabel="degrees")
largest = {label: rows.max(axis=0) for label, rows in changes.items()}
viz.curves(t, largest, axes=axes["E"], log=True, ylabel="relative change", ylim=(1e-17, 1e-1))
present("heavy_top", conserved, figure)
