"""Four-bar linkage: a planar mechanism tilted in space, with three constraints too many.

Four revolute joints of spatial bodies say the same thing more than once. The rank is found, reactions are the smallest ones that fit, and
the motion is that of the same linkage built of planar bodies.
"""

# %% Setup: the linkage in an arbitrary orientation, and the same in the plane
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

turn = np.asarray(mbd.rotation.exp(jnp.array([0.7, -0.4, 0.5])))
tilted = mbd.gallery.four_bar(turn=turn)
planar = mbd.gallery.four_bar(planar=True)

# %% Motions: the crank starts fast enough to go round again and again
dt, steps = 0.005, 500 if options().reduced else 2000


def run(mechanism, placement):
    system, q0 = mbd.assemble(mechanism, placement)
    print(mbd.assembly.describe(system, q0))  # the same as mechanism.summary(placement)
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 8.0})
    return system, mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised())


both = {"tilted": run(*tilted), "planar": run(*planar)}
system, motion = both["tilted"]

# %% What the motions kept
residuals = {name: np.abs(post.constraint_residuals(*one)).max(axis=1) for name, one in both.items()}
crank, flat_crank = (np.asarray(post.joint_coordinates(*one)["hinge 1"][:, 0]) for one in both.values())
energies = {name: np.asarray(post.energy(*one)) for name, one in both.items()}
forces = {name: np.asarray(wrench.force)[1:-1] for name, wrench in post.reactions(system, motion).items()}  # one-sided at both ends
conserved = {
    "turns of the crank": crank[-1] / (2 * np.pi),
    "redundant constraints, tilted": f"{motion.redundant}",
    **{f"{name}: constraints, at most": values.max() for name, values in residuals.items()},
    **{f"{name}: largest relative change of energy": np.abs(values / values[0] - 1).max() for name, values in energies.items()},
    "crank angle: tilted against planar, at most": np.abs(crank - flat_crank).max(),
    "reactions: component out of the plane, at most": max(np.abs(force @ turn[:, 2]).max() for force in forces.values()),
}

# %% Picture
headings = {"A": "Three points of the coupler over one turn", "B": "Forces in the hinges", "C": "Constraints", "D": "Tilted against planar"}
figure, axes = viz.sheet("AB;AC;AD", headings, space="A", size=(16, 9))
one_turn = int(np.searchsorted(crank, 2 * np.pi)) + 1
points = {"middle": ("coupler", (0, 0, 0)), "above": ("coupler", (0, 0.8, 0)), "aside": ("coupler", (0.6, 1.4, 0))}
viz.trails(system, motion, points, slice(one_turn), axes=axes["A"], colours=(viz.GREY, viz.PURPLE, viz.RED))
viz.snapshots(system, motion, np.append(np.linspace(0, one_turn, 7).astype(int), one_turn // 7), axes=axes["A"])
axes["A"].view_init(40, -70)
turns = crank / (2 * np.pi)
sizes = {name: np.linalg.norm(force, axis=1) for name, force in forces.items()}
viz.curves(turns[1:-1], sizes, axes=axes["B"], log=True, xlabel="", ylabel="force", xlim=(0, 4))
viz.curves(turns, residuals, axes=axes["C"], log=True, style="points", xlabel="", ylabel="largest constraint")
viz.curves(turns, crank - flat_crank, axes=axes["D"], log=True, xlabel="turns of the crank", ylabel="difference of angles")
present("four_bar", conserved, figure)
