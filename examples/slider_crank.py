"""Slider-crank: kinematics against the closed form, and a mass found from a measured motion.

Whole simulations can be differentiated: the sensitivity of the slider's path to the mass of the connecting rod drives a Gauss-Newton
iteration that recovers the mass from a noisy record of the path.
"""

# %% Setup: planar crank, rod and slider; gravity acts
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mechanism, placement = mbd.gallery.slider_crank(crank=1.0, rod=2.0, masses=(1.0, 2.0, 1.5))
system, q0 = mbd.assemble(mechanism, placement)
v0 = mbd.joint_velocities(system, q0, {"bearing": 8.0})
dt, steps = 0.01, 200 if options().reduced else 400
inertia = system.parameters["rod.inertia"] / system.parameters["rod.mass"]


# %% The path of the slider as a function of the mass of the rod: its moment of inertia grows with it, nothing else changes
@jax.jit
def path_and_slope(mass):
    """The path, its derivative by the mass, and the whole motion."""

    def path(mass):
        other = system.replace({"rod.mass": mass, "rod.inertia": mass * inertia})
        motion = mbd.simulate(other, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised(), throw=False)
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
mismatch = jnp.abs(difference - exact_slope).max() / jnp.abs(exact_slope).max()

# %% What the motion kept, and the closed form of slider-crank kinematics
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
    "mass of the rod, found": f"{masses[-1]:.5f} +- {0.02 / float(jnp.linalg.norm(slope)):.5f}",  # by the noise of the record
    "last change of the mass": abs(masses[-1] - masses[-2]),
}

# %% Picture
headings = {"A": "One turn of the crank", "B": "Position of the slider", "C": "Its speed by that of the crank"}
headings |= {"D": "Path of the slider: record and fit", "E": "Gauss-Newton"}
figure, axes = viz.sheet("AAAABBCC;DDDDDEEE", headings, size=(17, 9.5))
rows = np.searchsorted(angle, np.append(np.linspace(0, 2 * np.pi, 13)[:-1], 0.9))
viz.snapshots(system, motion, rows, plane=(0, 1), axes=axes["A"], frame=False)
order = np.argsort(angle % (2 * np.pi))
for letter, exact, values in (("B", closed, slider), ("C", closed_speed / omega, speed / omega)):
    pair = {"closed form": exact[order], "simulation": values[order]}
    drawn = {"closed form": "band", "simulation": "points"}
    viz.curves(angle[order] % (2 * np.pi), pair, axes=axes[letter], style=drawn, xlabel="crank angle")
fits = {"record with noise": measured, f"first guess, mass {masses[0]:g}": first, f"fit, mass {masses[-1]:.3f}": found}
drawn = dict(zip(fits, ("points", "dashed", "line"), strict=True))
viz.curves(motion.t, fits, axes=axes["D"], style=drawn, colours=(viz.GREY, viz.ORANGE, viz.BLUE), ylabel="position")
viz.mark(viz.curves(range(7), masses, axes=axes["E"], style="joined", xlabel="iteration", ylabel="mass of the rod"), y=2.0, text="true")
present("slider_crank", conserved, figure)
