"""Unstable rotation: a body that is spun up about its middle axis and turns over again and again, after Rochinha and Sampaio.

A torque spins the body up about the axis of its intermediate moment of inertia, then a short push disturbs it. From there on no torque
acts: energy and all of the angular momentum stay, whatever the step. The size of the step is felt while the torque acts.
"""

# %% Setup: a free body at rest, and the history of the torque
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone
# No distribution of mass has the moments of the paper: 5 + 1 < 10. Euler's equations do not mind, so the warning is put aside.
warnings.filterwarnings("ignore", message=".*triangle inequality.*")
MOMENTS = np.array([5.0, 10.0, 1.0])


def torque(dt, t):
    """20 about axis 1 until one step before t = 2, then one push about axis 2.

    The ends are a quarter of a step late, so that schemes which look at the middle or at the end of a step agree on them.
    """
    first, second = jnp.array([20.0, 0.0, 0.0]), jnp.array([0.0, 0.2, 0.0]) / dt
    return jnp.where(t < 2 - 0.75 * dt, first, jnp.where(t < 2 + 0.25 * dt, second, 0.0))


# %% Motions: the same number of steps of both sizes, so that each scheme is compiled once
steps = 1000 if options().reduced else 2000


def run(scheme, dt):
    load = mbd.Torque("body", jax.tree_util.Partial(torque, jnp.asarray(dt)))
    system, q0 = mbd.assemble(mbd.Mechanism({"body": mbd.RigidBody(1.0, MOMENTS)}, {}, [load]), {"body": (0, 0, 0)})
    motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.formulations.JointMultipliers(), throw=False)
    rotation, momentum = post.poses(system, motion)["body"].rotation, post.angular_momentum(system, motion)
    turning = jnp.einsum("tji,tj->ti", rotation, momentum) / MOMENTS  # in body axes: the convected angular velocity
    values = {"t": motion.t, "rotation": rotation, "h": momentum, "turning": turning, "energy": post.energy(system, motion)}
    return {name: np.asarray(value)[: int(motion.reached) + 1] for name, value in values.items()}


# The energy-momentum scheme gives a mass to every director, and one of them is negative here, (5 + 1 - 10) / 2: soon its steps are not
# solved. With moments that a body can have, such as (5, 6, 1), it runs on. Schemes that see angular velocities alone do not mind.
schemes = {"conserving": mbd.schemes.DirectorEnergyMomentum(), "Newmark": mbd.schemes.Newmark(), "energy-momentum": mbd.EnergyMomentum()}
motions = {(name, dt): run(scheme, dt) for name, scheme in schemes.items() for dt in (0.01, 0.1)}

# %% What the motions kept after the push
conserved = {}
for (name, dt), motion in motions.items():
    t, free, case = motion["t"], motion["t"] > 2 + 1.5 * dt, f"{name}, dt = {dt}"
    energy, momentum = motion["energy"][free], motion["h"][free]
    motion["energy change"] = (t[free], np.abs(energy / energy[:1] - 1))
    motion["h change"] = (t[free], np.linalg.norm(momentum - momentum[:1], axis=1) / np.linalg.norm(momentum[:1]))
    if len(t) <= steps:
        conserved[f"{case}: Newton's method stops at"] = f"t = {t[-1]:.4g}"
    if t[-1] < 9:
        continue
    turns = np.count_nonzero(np.diff(np.sign(motion["turning"][free & (t <= 10), 0])))
    conserved[f"{case}: kinetic energy after the push"] = f"{energy[0]:.3f}"
    conserved[f"{case}: relative change of energy"] = motion["energy change"][1].max()
    conserved[f"{case}: angular momentum after the push"] = ", ".join(f"{value:.4f}" for value in momentum[0])
    conserved[f"{case}: relative change of angular momentum"] = motion["h change"][1].max()
    conserved[f"{case}: how often the body turned over until t = 10"] = f"{turns}"

# %% Picture: spheres on the left, a column for each step
headings = {"A": "Body axis 1 in space turns over", "B": "Angular momentum seen from the body"}
headings |= {
    "C": "Kinetic energy, dt = 0.01",
    "D": "dt = 0.1",
    "E": "Angular momentum",
    "G": "Turning about body axes",
    "I": "Change after the push",
}
figure, axes = viz.sheet("ACD;AEF;BGH;BIJ", headings, space="AB", size=(18, 12))
fine, coarse = motions["conserving", 0.01], motions["conserving", 0.1]
viz.globe(fine["rotation"][(fine["t"] >= 2) & (fine["t"] <= 5), :, 0], axes=axes["A"], view=(22, 40))
seen = {f"dt = {one['t'][1]:g}": (MOMENTS * one["turning"])[(one["t"] >= 2) & (one["t"] <= 10)] for one in (fine, coarse)}
seen = {label: rows / np.linalg.norm(rows, axis=1, keepdims=True) for label, rows in seen.items()}
viz.globe(seen, axes=axes["B"], style={"dt = 0.1": "points"}, view=(22, 40))
for dt, letters in ((0.01, "CEGI"), (0.1, "DFHJ")):
    keeping, newmark, stopped = (motions[name, dt] for name in schemes)
    energies = {"conserving": (keeping["t"], keeping["energy"]), "Newmark": (newmark["t"], newmark["energy"])}
    viz.curves(None, energies, axes=axes[letters[0]], xlabel="", ylim=(0, 180))
    viz.mark(axes[letters[0]], x=stopped["t"][-1], text="energy-momentum stops")
    momenta = {"size": np.linalg.norm(keeping["h"], axis=1)} | {f"$h_{i + 1}$": keeping["h"][:, i] for i in range(3)}
    viz.curves(keeping["t"], momenta, axes=axes[letters[1]], style={"size": "band"}, xlabel="")
    viz.curves(keeping["t"], {f"axis {i + 1}": keeping["turning"][:, i] for i in range(3)}, axes=axes[letters[2]], xlabel="")
    changes = {f"{name}: {label}": motions[name, dt][f"{label} change"] for name in list(schemes)[:2] for label in ("energy", "h")}
    viz.curves(None, changes, axes=axes[letters[3]], log=True)
    for letter in letters:
        axes[letter].set_xlim(0, 10)
present("unstable_rotation", conserved, figure)
