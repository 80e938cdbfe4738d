"""Flying beam: a pulse of force and torque at one end sends a free beam tumbling through space, bending far.

The beam of Simo and Vu-Quoc ("flying spaghetti", 1988): length 10 from (6, 0, 0) to (0, 8, 0), EA = GA = 10,000, EI = GJ = 500, mass 1 and
second moments 10 of a unit of length. Here, at the end (6, 0, 0), with a pulse f(t) that rises to 200 at t = 2.5 and falls to 0 at t = 5:
the force f/10 along the first axis and the torques -f/2 about the second and -f about the third. Afterwards the beam flies freely: both
momenta and the energy stay what they are.
"""

# %% Setup: 6 elements of order 2
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

PEAK, DURATION = 200.0, 5.0


def pulse(t):
    return PEAK * jnp.maximum(0, 1 - jnp.abs(2 * t / DURATION - 1))


section = mbd.Section((1e4, 1e4, 1e4, 500.0, 500.0, 500.0), 1.0, (10.0, 10.0))
beam = mbd.Beam.line((6, 0, 0), (0, 8, 0), section, elements=6, order=2, normal=(0, 0, 1))
force = mbd.Force("beam[0]", lambda t: pulse(t) * jnp.array([0.1, 0, 0]))
torque = mbd.Torque("beam[0]", lambda t: pulse(t) * jnp.array([0, -0.5, -1]))
system, q0 = mbd.assemble(mbd.Mechanism({"beam": beam}, {}, [force, torque]))
dt, steps = 0.05, 120 if options().reduced else 240
motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())

# %% What is kept after the pulse
t = np.asarray(motion.t)
after = t > DURATION - dt / 2
linear, angular = (np.asarray(read(system, motion)) for read in (post.linear_momentum, post.angular_momentum))
energy = np.asarray(post.energy(system, motion))
kinetic = 0.5 * np.einsum("ri,ri->r", motion.p, motion.v)
change = lambda values: np.abs(values[after] - values[after][0]).max() / np.abs(values[after][0]).max()
centre = np.einsum("rac,a->rc", np.asarray(motion.q).reshape(-1, 13, 4, 3)[:, :, 0], np.array([1, *[4, 2] * 5, 4, 1]) / 36)
ends = np.asarray(motion.q).reshape(-1, 13, 4, 3)[:, [0, -1], 0]
table = {
    "linear momentum after the pulse (the impulse of the force is 50)": f"{linear[-1, 0]:.12f}",
    "linear momentum: largest relative change after the pulse": change(linear),
    "angular momentum: the same": change(angular),
    "energy: the same": change(energy),
    "energy after the pulse": f"{energy[-1]:.4f}",
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "path of the centre after the pulse: off a straight line": np.abs(np.diff(centre[after], 2, axis=0)).max(),
    "shortest distance of both ends (10 at the start)": np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).min(),
    "Newton iterations a step, at most": f"{int(motion.newton_steps.max())}",
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 12), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=(1.8, 1))
upper.suptitle("1  Snapshots from the side and from above", x=0.02, ha="left", weight="bold", fontsize=14, color=INK)
rows = np.arange(0, steps + 1, 10)
views = upper.subplots(2, 1, sharex=True)
for axes, plane, across in zip(views, ((0, 1), (0, 2)), ("second axis", "third axis"), strict=True):
    axes.plot(*centre[:, list(plane)].T, color=PALE, lw=1.5, zorder=0)
    bar = axes is views[1] and {"ax": views, "shrink": 0.6, "pad": 0.01}
    viz.snapshots(system, motion, rows, colour="bending moment", axes=axes, plane=plane, bar=bar)
    axes.plot(*ends[rows, 0][:, list(plane)].T, "o", color=INK, ms=4, zorder=5)
    axes.set(ylabel=across, ylim=centre[0, plane[1]] + np.array([-6.3, 6.3]), anchor="W")
    for row in rows[6::3]:
        axes.annotate(f"{t[row]:g}", ends[row, 0][list(plane)], xytext=(5, -10), textcoords="offset points", color=GREY, fontsize=9)
views[1].set(xlabel="first axis")

panels = lower.subplots(1, 3)
for values, axes in zip((linear, angular), panels, strict=False):
    for component, colour, name in zip(values.T, (BLUE, ORANGE, GREEN), ("first", "second", "third axis"), strict=True):
        axes.plot(t, component, color=colour, lw=1.8, label=name)
panels[1].legend(ncols=3, **ABOVE)
for name, values, colour in (("motion", kinetic, ORANGE), ("strain", energy - kinetic, GREEN), ("sum", energy, INK)):
    panels[2].plot(t, values, color=colour, lw=1.8, label=name)
panels[2].legend(ncols=3, **ABOVE)
for axes, heading in zip(panels, ("2  Linear momentum", "3  Angular", "4  Energy"), strict=True):
    axes.set_title(heading, loc="left", weight="bold", fontsize=14, color=INK)
    axes.set(xlabel="time", xlim=(0, t[-1]))
    axes.axvspan(0, DURATION, color=PALE, alpha=0.35, lw=0, zorder=0)

# %% Table and picture
present("flying_beam", table, figure)
