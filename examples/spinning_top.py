"""Spinning top: energy and momentum with large steps, after Rochinha and Sampaio.

A fast symmetric top nods and precesses; its axis starts at rest. With the Cayley map energy is exact for any step, with the exponential map
it oscillates within bounds. Then a top with three different moments tumbles: Newmark's method loses what the conserving scheme keeps.
"""

# %% Setup: tops on their tips, tilted by 0.3, with angular velocities given along their directors
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

FAST, TUMBLING = ((5.0, 5.0, 1.0), (0.0, 0.0, 50.0)), ((1.0, 2.2, 3.0), (8.0, 15.0, 4.0))  # moments and angular velocities
CAYLEY, EXPONENTIAL = mbd.schemes.DirectorEnergyMomentum(), mbd.schemes.DirectorEnergyMomentum(update="exponential")
cases = {
    "fast top, cayley, dt = 0.001": (*FAST, CAYLEY, 0.001),
    "fast top, cayley, dt = 0.04": (*FAST, CAYLEY, 0.04),
    "fast top, exponential, dt = 0.04": (*FAST, EXPONENTIAL, 0.04),
    "tumbling top, conserving, dt = 0.06": (*TUMBLING, CAYLEY, 0.06),
    "tumbling top, Newmark, dt = 0.06": (*TUMBLING, mbd.schemes.Newmark(), 0.06),
}
steps = 2000 if options().reduced else 8000  # the same for all, so that only three programs are compiled


def run(inertia, turning, scheme, dt):
    system, q0 = mbd.assemble(*mbd.gallery.spinning_top(inertia))
    v0 = mbd.joint_velocities(system, q0, {"tip": np.array(turning) @ q0.reshape(4, 3)[1:]})
    motion = mbd.simulate(system, q0, v0, dt=dt, steps=steps, scheme=scheme, formulation=mbd.formulations.JointMultipliers())
    axis = np.asarray(post.poses(system, motion)["top"].rotation[:, :, 2])
    momentum = np.asarray(post.angular_momentum(system, motion))
    spin = np.sum(momentum * axis, axis=1) / inertia[2]
    return {"t": np.asarray(motion.t), "energy": np.asarray(post.energy(system, motion)), "h": momentum, "axis": axis, "spin": spin}


# %% Frequencies, measured from the start to the last cusp of the axis, where it is highest and stands still
def frequencies(t, axis):
    height, turn = axis[:, 2], np.unwrap(np.arctan2(axis[:, 1], axis[:, 0]))
    rows = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] >= height[2:])) + 1
    before, here, after = (height[rows[-1] + i] for i in (-1, 0, 1))
    last = t[rows[-1]] + 0.5 * (t[1] - t[0]) * (after - before) / (2 * here - before - after)  # top of the parabola through three rows
    return 2 * np.pi * len(rows) / last, (np.interp(last, t, turn) - turn[0]) / last


def exact_frequencies(inertia=5.0, spin=50.0, weight=20.0, tilt=0.3):
    """From the integrals of motion: the height u of the axis swings between two roots of (u0 - u) (b (1 - u^2) - a^2 (u0 - u))."""
    a, b, u0 = spin / inertia, 2 * weight / inertia, np.cos(tilt)
    lower, beyond = np.sort(np.roots([-b, a**2, b - a**2 * u0]))
    u = u0 - (u0 - lower) * np.sin((np.arange(40) + 0.5) * np.pi / 80) ** 2
    pace = 1 / np.sqrt(b * (beyond - u))  # the time of a cycle is 2 pi times its mean
    return 1 / pace.mean(), np.sum(pace * a * (u0 - u) / (1 - u**2)) / pace.sum()


tops = {name: run(*case) for name, case in cases.items()}
conserved = {
    "fast top: nutation and precession, exact": "{:.4f}, {:.4f}".format(*exact_frequencies()),
    "fast top: nutation if it were small": f"{np.sqrt((50 / 5) ** 2 - 4 * 20 * np.cos(0.3) / 5):.4f}",
}
for name, top in tops.items():
    conserved[f"{name}: relative change of energy"] = np.abs(top["energy"] / top["energy"][0] - 1).max()
    conserved[f"{name}: relative change of h_3"] = np.abs(top["h"][:, 2] / top["h"][0, 2] - 1).max()
    if name.startswith("fast"):
        low, high = top["spin"].min(), top["spin"].max()
        conserved[f"{name}: nutation and precession, measured"] = "{:.4f}, {:.4f}".format(*frequencies(top["t"], top["axis"]))
        conserved[f"{name}: spin w.d3, lowest and highest"] = f"{low:.4f}, {high:.4f}"
        # What holds for very fast tops: the paper's numbers satisfy these two relations, and their product is Mgl / I11.
        conserved[f"{name}: I33 w.d3 / I11 and Mgl / (I33 w.d3)"] = f"{low / 5:.4f}, {20 / low:.4f}"

# %% Picture
headings = {"A": "Fast top: paths of its axis", "B": "The same from above", "C": "Energy of the fast top, dt = 0.04"}
headings |= {"D": "Tumbling top: path of $h$", "E": "Its energy, dt = 0.06", "F": "Its $h_3$"}
figure, axes = viz.sheet("ABC;DEF", headings, space="AD", size=(17, 10.5), heights=(1.2, 1))
fine, coarse, exponential, keeping, newmark = tops.values()
until = lambda top, name, end: top[name][top["t"] <= end]
pair = {"dt = 0.001": fine, "dt = 0.04": coarse}
viz.globe({label: until(top, "axis", 15.0) for label, top in pair.items()}, axes=axes["A"], reach=0.48, view=(38, -75))
viz.paths({label: until(top, "axis", 2.5) for label, top in pair.items()}, plane=(0, 1), axes=axes["B"], style={"dt = 0.04": "joined"})
changes = {
    label: (until(top, "t", 10), until(top, "energy", 10) - top["energy"][0])
    for label, top in (("exponential", exponential), ("cayley", coarse))
}
viz.curves(None, changes, axes=axes["C"], ylabel="change of energy")
pair = {"Newmark": newmark, "conserving": keeping}
viz.paths({label: until(top, "h", 60) for label, top in pair.items()}, axes=axes["D"])
viz.curves(until(keeping, "t", 60), {label: until(top, "energy", 60) for label, top in pair.items()}, axes=axes["E"], ylabel="energy")
viz.curves(until(keeping, "t", 60), {label: until(top, "h", 60)[:, 2] for label, top in pair.items()}, axes=axes["F"], ylabel="$h_3$")
present("spinning_top", conserved, figure)
