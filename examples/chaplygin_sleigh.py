"""Chaplygin sleigh: a body on a blade that cannot slip sideways, and turns round by itself.

Nothing pushes the sleigh and nothing brakes it, and yet it does not go on as it began: running backwards it swings round and ends running
forwards, along a straight line, with the same speed (S. A. Chaplygin, 1911). Its energy stays; its momentum does not, for the blade pushes
sideways, and with energy alone kept, motions can approach one of them for ever. The closed form has hyperbolic functions of time.
"""

# %% Setup: the sleigh from parts, a body and a blade; and as plain functions of the point on the blade and the direction
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import joints, post, viz
from jaxmbd.bodies import Hull
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mass, inertia, ahead, energy = 1.0, 0.02, 0.2, 0.5  # the centre of mass is ahead of the blade
length, width = 0.45, 0.08
outline = [(x, y, z) for x, y in ((-0.1, -width), (-0.1, width), (0.3, 0.8 * width), (0.3, -0.8 * width), (length, 0)) for z in (0, 0.01)]
sleigh = mbd.PlanarBody(mass, inertia, com=(ahead, 0), shape=Hull(np.array(outline)))
blade = mbd.Joint(joints.KnifeEdge(axis=(0, 1, 0)), "ground", "sleigh")
system, q0 = mbd.assemble(mbd.Mechanism({"sleigh": sleigh}, {"blade": blade}), {"sleigh": (0, 0, 0)})


def kinetic(t, q, v, params):
    """Of the blade's point and the direction."""
    centre = v[:2] + ahead * v[2] * jnp.array([-jnp.sin(q[2]), jnp.cos(q[2])])
    return 0.5 * mass * centre @ centre + 0.5 * inertia * v[2] ** 2


def sideways(t, q, v, params):
    return jnp.array([jnp.cos(q[2]) * v[1] - jnp.sin(q[2]) * v[0]])


plain = mbd.System.from_functions(kinetic=kinetic, potential=lambda t, q, params: 0.0, velocity_constraints=sideways)

# %% The closed form: v = V tanh kt, w = W sech kt
about_blade = inertia + mass * ahead**2
fastest, turning = np.sqrt(2 * energy / mass), np.sqrt(2 * energy / about_blade)
k = ahead / about_blade * np.sqrt(2 * energy * mass)
begin, duration = -1.2, 3.0


def rates(t):
    return fastest * np.tanh(k * t), turning / np.cosh(k * t)


# %% Motions in finer and finer steps, in two schemes, and of the functions
v, w = rates(begin)
v0 = mbd.joint_velocities(system, q0, {"sleigh": (v, 0, 0, 0, 0, w)})
counts = (150, 300) if options().reduced else (150, 300, 600, 1200)
schemes = {"EnergyMomentum": mbd.EnergyMomentum(), "Midpoint": mbd.Midpoint()}


def run(count, scheme):
    return mbd.simulate(system, q0, v0, dt=duration / count, steps=count, scheme=scheme)


def found(motion):
    """Speed along the blade and angular velocity."""
    c, s = np.asarray(motion.q[:, 2:4]).T
    forward = c * motion.v[:, 0] + s * motion.v[:, 1]
    return np.asarray(forward), np.asarray(c * motion.v[:, 3] - s * motion.v[:, 2])


runs = {name: [run(count, scheme) for count in counts] for name, scheme in schemes.items()}
motion = runs["EnergyMomentum"][-1]
t = np.asarray(motion.t) + begin
again = mbd.simulate(plain, [0.0, 0.0, 0.0], [v, 0.0, w], dt=duration / counts[-1], steps=counts[-1], scheme=mbd.EnergyMomentum())
errors = {
    name: [max(np.abs(one - exact).max() for one, exact in zip(found(m), rates(np.asarray(m.t) + begin), strict=True)) for m in motions]
    for name, motions in runs.items()
}
push = np.linalg.norm(post.reactions(system, motion)["blade"].force, axis=1)
v, w = rates(t)
exact = mass * inertia / about_blade * np.abs(v * w)  # sideways, of the centre of mass
conserved = {
    **{f"rates against the closed form, {name}": error[-1] for name, error in errors.items()},
    **{f"order, {name}": np.log2(error[-2] / error[-1]) for name, error in errors.items()},
    "parts against functions: difference of positions, at most": np.abs(motion.q[:, :2] - again.q[:, :2]).max(),
    "change of energy, relative": np.ptp(post.energy(system, motion)) / energy,
    "speed at the start and at the end": f"{found(motion)[0][0]:.6f}, {found(motion)[0][-1]:.6f}",
    "force of the blade against the closed form, relative": np.abs(push - exact)[1:-1].max() / np.abs(exact).max(),
}

# %% Picture
headings = {"A": "Turning round", "B": "Speed along the blade", "C": "Angular velocity", "D": "Force of the blade"}
headings |= {"E": "Change of energy, relative", "F": "Rates against the closed form"}
figure, axes = viz.sheet("AAB;AAC;DEF", headings, size=(17, 13))
rows = np.linspace(0, counts[-1], 11).round().astype(int)
viz.trails(system, motion, {"blade": ("sleigh", (0, 0, 0)), "centre of mass": ("sleigh", (ahead, 0, 0))}, axes=axes["A"], plane=(0, 1))
viz.snapshots(system, motion, rows, axes=axes["A"], plane=(0, 1), bodies=viz.GREEN)
for panel, number in (("B", 0), ("C", 1)):
    both = {"closed form": rates(t)[number], "found": found(motion)[number]}
    viz.curves(t, both, axes=axes[panel], style={"closed form": "band"}, xlabel="")
viz.curves(t[1:-1], {"closed form": exact[1:-1], "found": push[1:-1]}, axes=axes["D"], style={"closed form": "band"})
viz.energies(system, {name: one[-1] for name, one in runs.items()}, axes=axes["E"], relative=True, style="points", ylabel="")
viz.convergence(duration / np.array(counts), errors, axes=axes["F"], slopes=(2,))
present("chaplygin_sleigh", conserved, figure)
