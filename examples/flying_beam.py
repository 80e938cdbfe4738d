"""Flying beam: a pulse of force and torque at one end sends a free beam tumbling through space, bending far.

The beam of Simo and Vu-Quoc ("flying spaghetti", 1988): length 10 from (6, 0, 0) to (0, 8, 0), EA = GA = 10,000, EI = GJ = 500, mass 1 and
second moments 10 of a unit of length. Here, at the end (6, 0, 0), with a pulse f(t) that rises to 200 at t = 2.5 and falls to 0 at t = 5:
the force f/10 along the first axis and the torques -f/2 about the second and -f about the third. Afterwards the beam flies freely: both
momenta and the energy stay what they are.
"""

# %% Setup: 6 elements of order 2
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

PEAK, DURATION = 200.0, 5.0
pulse = lambda t: PEAK * jnp.maximum(0, 1 - jnp.abs(2 * t / DURATION - 1))
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
nodes = np.asarray(motion.q).reshape(-1, 13, 4, 3)[:, :, 0]
centre = np.einsum("rac,a->rc", nodes, np.array([1, *[4, 2] * 5, 4, 1]) / 36)
table = {
    "linear momentum after the pulse (the impulse of the force is 50)": f"{linear[-1, 0]:.12f}",
    "linear momentum: largest relative change after the pulse": change(linear),
    "angular momentum: the same": change(angular),
    "energy: the same": change(energy),
    "energy after the pulse": f"{energy[-1]:.4f}",
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "path of the centre after the pulse: off a straight line": np.abs(np.diff(centre[after], 2, axis=0)).max(),
    "shortest distance of both ends (10 at the start)": np.linalg.norm(nodes[:, 0] - nodes[:, -1], axis=1).min(),
    "Newton iterations a step, at most": f"{int(motion.newton_steps.max())}",
}

# %% Picture
headings = {"A": "Snapshots from the side", "B": "From above", "C": "Linear momentum", "D": "Angular momentum", "E": "Energy"}
figure, axes = viz.sheet("AAABBB;CCDDEE", headings, size=(17, 10), heights=(1.3, 1))
for letter, plane in (("A", (0, 1)), ("B", (0, 2))):
    viz.paths({"centre of mass": centre, "loaded end": nodes[:, 0]}, plane=plane, axes=axes[letter], colours=(viz.PALE, viz.GREY))
    viz.snapshots(system, motion, range(0, steps + 1, 10), colour="bending moment", axes=axes[letter], plane=plane, bar={"shrink": 0.6})
components = lambda values: dict(zip(("first", "second", "third axis"), values.T, strict=True))
for letter, values in (("C", components(linear)), ("D", components(angular))):
    viz.mark(viz.curves(t, values, axes=axes[letter]), x=(0.0, DURATION), text="pulse")
viz.mark(viz.curves(t, {"motion": kinetic, "strain": energy - kinetic, "sum": energy}, axes=axes["E"]), x=(0.0, DURATION), text="pulse")
present("flying_beam", table, figure)
