"""Slider-crank: kinematics against the closed form, and a mass found from a measured motion.

Whole simulations can be differentiated: the sensitivity of the slider's path to the mass of the connecting rod drives a Gauss-Newton
iteration that recovers the mass from a noisy record of the path.
"""

# %% Setup: planar crank, rod and slider; gravity acts
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mechanism, placement = mbd.gallery.slider_crank(crank=1.0, rod=2.0, masses=(1.0, 2.0, 1.5))
system, q0 = mbd.assemble(mechanism, placement)
v0 = mbd.joint_velocities(system, q0, {"bearing": 8.0})
dt, steps = 0.01, 200 if options().reduced else 400


# %% The path of the slider as a function of the mass of the rod: its inertia matrix grows with it, nothing else changes
rod = system.params.bodies.index("rod")


def simulate(mass):
    scaled = jnp.asarray(system.params.inertia).at[rod].multiply(mass / 2.0)
    other = system.with_params(eqx.tree_at(lambda model: model.inertia, system.params, scaled))
    return mbd.simulate(other, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised(), throw=False)


@jax.jit
def path_and_slope(mass):
    """The path, its derivative by the mass, and the whole motion."""

    def path(mass):
        motion = simulate(mass)
        return post.joint_coordinates(system, motion)["guide"][:, 0], motion

    return jax.jvp(path, (mass,), (jnp.ones_like(mass),), has_aux=True)


# %% Fit: Gauss-Newton on a record with noise, from a mass that is twice too large
record, exact_slope, motion = path_and_slope(2.0)
motion.check(system)
measured = np.asarray(record) + np.random.default_rng(0).normal(0, 0.02, steps + 1)
masses = [4.0]
for _ in range(6):
    model, slope, _ = path_and_slope(masses[-1])
    masses.append(masses[-1] + float(slope @ (measured - model) / (slope @ slope)))
first, (found, slope, _) = path_and_slope(masses[0])[0], path_and_slope(masses[-1])
difference = (path_and_slope(2.0 + 1e-5)[0] - path_and_slope(2.0 - 1e-5)[0]) / 2e-5
mismatch = float(jnp.abs(difference - exact_slope).max() / jnp.abs(exact_slope).max())
deviation = 0.02 / float(jnp.linalg.norm(slope))  # of the mass, by the noise of the record

# %% What the motion kept, and the closed form of slider-crank kinematics
t = np.asarray(motion.t)
coordinates, rates = post.joint_coordinates(system, motion), post.joint_rates(system, motion)
angle, omega, slider, speed = (np.asarray(part[name][:, 0]) for name in ("bearing", "guide") for part in (coordinates, rates))
reach = np.sqrt(4.0 - np.sin(angle) ** 2)
closed = np.cos(angle) + reach - 3.0
closed_speed = -omega * np.sin(angle) * (1 + np.cos(angle) / reach)
energy = np.asarray(post.energy(system, motion))
conserved = {
    "turns of the crank": angle[-1] / (2 * np.pi),
    "slider: position against the closed form, at most": np.abs(slider - closed).max(),
    "slider: velocity against the closed form, at most": np.abs(speed - closed_speed).max(),
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "energy: largest relative change": np.abs(energy / energy[0] - 1).max(),
    "derivative of the path: relative difference to finite differences": mismatch,
    "mass of the rod, true": 2.0,
    "mass of the rod, found": f"{masses[-1]:.5f} +- {deviation:.5f}",
    "last change of the mass": abs(masses[-1] - masses[-2]),
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 10), layout="constrained")
figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1))
panels = [*upper.subfigures(1, 2, width_ratios=(1.6, 1)), *lower.subfigures(1, 2, width_ratios=(1.6, 1))]
headings = ("1  One turn of the crank", "2  Slider over crank angle", "3  Path of the slider: record and fit", "4  Gauss-Newton")
for panel, heading in zip(panels, headings, strict=True):
    panel.suptitle(heading, x=0.02, ha="left", weight="bold", fontsize=14, color=INK)

axes = panels[0].subplots()
circle = np.linspace(0, 2 * np.pi, 200)
axes.plot(np.cos(circle), np.sin(circle), color=PALE, lw=1.2, zorder=0)
axes.plot([0.6, 3.4], [-0.1, -0.1], color=PALE, lw=1.2, zorder=0)
axes.plot([0.6, 3.4], [0.1, 0.1], color=PALE, lw=1.2, zorder=0)
wanted = np.linspace(0, 2 * np.pi, 17)[:-1] + 0.35
for row in np.searchsorted(angle, wanted):
    bold = 1.0 if row == np.searchsorted(angle, wanted[2]) else 0.22
    pin, end = np.array([np.cos(angle[row]), np.sin(angle[row])]), np.array([3.0 + slider[row], 0.0])
    axes.plot(*np.transpose([pin, end]), color=ORANGE, lw=5, alpha=bold, solid_capstyle="round")
    axes.plot(*np.transpose([[0, 0], pin]), color=BLUE, lw=5, alpha=bold, solid_capstyle="round")
    axes.add_patch(plt.Rectangle(end - [0.2, 0.1], 0.4, 0.2, color=GREEN, alpha=bold, lw=0))
    axes.plot(*np.transpose([[0, 0], pin, end]), "o", color=INK, ms=5, alpha=bold)
axes.set(aspect="equal", xlim=(-1.2, 3.5), ylim=(-1.15, 1.15))
axes.axis("off")

top, bottom = panels[1].subplots(2, 1, sharex=True)
order = np.argsort(angle % (2 * np.pi))
for axes, exact, values, label in ((top, closed, slider, "position"), (bottom, closed_speed / omega, speed / omega, "speed / crank speed")):
    axes.plot((angle % (2 * np.pi))[order], exact[order], color=PALE, lw=5, label="closed form")
    axes.plot(angle % (2 * np.pi), values, ".", color=BLUE, ms=3, label="simulation")
    axes.set(ylabel=label, xlim=(0, 2 * np.pi), xticks=np.pi * np.arange(5) / 2)
bottom.set_xticklabels(["0", "$\\pi/2$", "$\\pi$", "$3\\pi/2$", "$2\\pi$"])
bottom.set_xlabel("crank angle")
top.legend(ncols=2, markerscale=3, **ABOVE)

axes = panels[2].subplots()
axes.plot(t, measured, ".", color=GREY, ms=4, label="record with noise")
axes.plot(t, first, color=ORANGE, lw=1.2, ls="--", label=f"first guess, mass {masses[0]:g}")
axes.plot(t, found, color=BLUE, lw=1.6, label=f"fit, mass {masses[-1]:.3f}")
axes.set(xlabel="time", ylabel="position", xlim=(0, min(t[-1], 4.0)))
axes.legend(ncols=3, **ABOVE)
axes = panels[3].subplots()
axes.plot(masses, "o-", color=PURPLE, lw=1.6, ms=7)
axes.axhline(2.0, color=PALE, lw=1.5, zorder=0)
axes.annotate("true", (len(masses) - 1, 2.0), xytext=(0, -14), textcoords="offset points", ha="right", color=GREY)
axes.set(xlabel="iteration", ylabel="mass of the rod")

# %% Table and picture
present("slider_crank", conserved, figure)
