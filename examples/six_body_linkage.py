"""Six-body linkage: a ring of tetrahedra that turns itself inside out, with one constraint too many.

After S. Leyendecker, J. E. Marsden, M. Ortiz, Variational integrators for constrained dynamical systems, ZAMM 88 (2008), section
5.5: the panels follow its figures 12, 13, 14, 16 and 17, the table its table 1, and numbers in brackets are its equations. All
formulations give the same motion, be it with 143 unknowns a step or with one.
"""

# %% Setup: the ring starts as a cube, its first hinge turning at 30 rad/s
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mechanism, placement = mbd.gallery.six_body_linkage()
system, q0 = mbd.assemble(mechanism, placement)
v0 = mbd.joint_velocities(system, q0, {"hinge 1": 30.0})
print(mbd.assembly.describe(system, q0))

# %% Motions: one second is a little more than two and a half turns of the ring
steps, reduced = 100, options().reduced
ways = {
    "Multipliers": (system, mbd.Multipliers(), 72 + 71),
    "NullSpace": (system, mbd.NullSpace(), 72),
    "Reparametrised": (system, mbd.Reparametrised(), 5),  # increments of the five hinges, closed by equations
    "implicit chart": (system, mbd.Reparametrised("implicit"), 1),
    "chart (109)": (system.with_chart(mbd.gallery.six_body_chart), mbd.Reparametrised(), 1),
}
ways = {name: way for name, way in ways.items() if not reduced or name in ("Reparametrised", "chart (109)")}


def run(name, dt=0.01, t0=0.0, q=q0, v=v0):
    model, formulation, _ = ways[name]
    return jax.block_until_ready(mbd.simulate(model, q, v, dt=dt, steps=steps, t0=t0, formulation=formulation))


def duration(name):
    """Seconds of a run without compilation."""
    begin = time.perf_counter()
    run(name)
    return time.perf_counter() - begin


runs = {name: run(name) for name in ways}
seconds = {name: min(duration(name) for _ in range(3)) for name in ways}
motion = runs["Reparametrised"]
fine = [run("Reparametrised", dt=1e-3)]
while len(fine) < (3 if reduced else 10):  # every run goes on where the last one ended
    fine.append(run("Reparametrised", 1e-3, fine[-1].t[-1], fine[-1].q[-1], fine[-1].v[-1]))

# %% What the motion kept
angle = {name: np.asarray(values[:, 0]) for name, values in post.joint_coordinates(system, motion).items()}
theta1, theta2 = angle["hinge 1"], angle["hinge 2"]
symmetry = max(np.abs(angle[f"hinge {i + 2}"] - angle[f"hinge {i}"]).max() for i in range(1, 5))
poses, corners = post.poses(system, motion), [mechanism.joints[f"hinge {i or 6}"].at for i in range(6)]


def follow(i):
    """The corner of the cube at which body i begins, along the motion."""
    frame = poses[f"body {i}"]
    return frame.origin + frame.rotation @ (frame.rotation[0].T @ (corners[i] - frame.origin[0]))


distances = np.array([np.linalg.norm(follow(i) - follow(i + 3), axis=1) for i in range(3)])
kept = {}
for label, parts in (("h = 0.01", [motion]), ("h = 0.001", fine)):
    E = np.concatenate([post.discrete_energy(system, part) for part in parts])
    H = np.concatenate([post.energy(system, part)[:-1] for part in parts])
    kept[label] = (np.concatenate([part.t[:-1] for part in parts]), E, H)
conserved = {
    "distances sigma_1..3 of opposite corners, deviation from 0.1 sqrt(3)": np.abs(distances - 0.1 * np.sqrt(3)).max(),
    "angles: deviation from (106)": symmetry,
    "angles: deviation from (107)": np.abs(np.sin(theta1) * (1 + np.sin(theta2)) - np.sin(theta2)).max(),
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "formulations: difference of positions, at most": max(float(jnp.abs(other.q - motion.q).max()) for other in runs.values()),
    **{f"{label}: amplitude of E_d, of H_d": f"{np.ptp(E):.3g}, {np.ptp(H):.3g}" for label, (_, E, H) in kept.items()},
}

# %% Table 1: unknowns, conditioning of the first step, time. The paper has Lagrange multipliers and a chart like (109)
published = {"Multipliers": "143 | 5e+04 | 3e+07 | 3e+10 | 1", "chart (109)": "1 | 1 | 1 | 1 | 1"}
conserved["table 1: unknowns | condition for h = 1e-2, 1e-3, 1e-4 | time"] = "(published)"
for name, (model, formulation, unknowns) in ways.items():
    if not reduced or unknowns == 1:
        conditions = [float(post.condition_number(model, run("Reparametrised", dt), formulation)[0]) for dt in (1e-2, 1e-3, 1e-4)]
        row = [f"{unknowns}", *(f"{one:.0e}" for one in conditions), f"{seconds[name] / min(seconds.values()):.1f}"]
        conserved[f"  {name}"] = " | ".join(row) + (f"  ({published[name]})" if name in published else "")

# %% Picture
headings = {"A": "The ring at six times", "G": "Angles", "H": "Relation of the angles"}
headings |= {"I": "Distances of opposite corners", "J": "Energies"}
figure, axes = viz.sheet("AB;CD;EF|GH;IJ", headings, space="ABCDEF", size=(18, 11), widths=(1, 1.3))
rows = np.rint(np.array([0.02, 0.04, 0.08, 0.09, 0.13, 0.26]) / 0.01).astype(int)
viz.snapshots(system, motion, rows, axes=[axes[letter] for letter in "ABCDEF"])
viz.curves(motion.t, {"$\\theta^1$": theta1, "$\\theta^2$": theta2}, axes=axes["G"], style="joined", ylabel="angle")
x = np.linspace(-np.pi, 0, 200)
y = np.arcsin(np.sin(x) / (1 - np.sin(x)))  # one of four pieces of (107), which map into each other
loop = (np.concatenate([x, -y[::-1], x[::-1], y - np.pi]), np.concatenate([y, -x[::-1], np.pi - y[::-1], -x]))
relation = {"(107)": loop, "motion": (theta1, theta2)}
viz.curves(None, relation, axes=axes["H"], style={"(107)": "band", "motion": "points"}, xlabel="$\\theta^1$", ylabel="$\\theta^2$")
change = {f"$\\sigma_{i + 1}$": (values - 0.1 * np.sqrt(3)) / 1e-15 for i, values in enumerate(distances)}
viz.curves(motion.t, change, axes=axes["I"], style="points", ylabel="change in $10^{-15}$")
energies = {f"${name}$, ${label}$": (t, values) for label, (t, E, H) in kept.items() for name, values in (("E_d", E), ("H_d", H))}
viz.curves(None, energies, axes=axes["J"], ylabel="energy")
present("six_body_linkage", conserved, figure)
