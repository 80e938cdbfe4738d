"""Hanging chains: four heavy boxes on hinges or on ball joints, after Nielsen and Krenk (2013).

The chains are bent by a right angle and released from rest. Directors stay orthonormal by themselves, so only the multipliers of joints are
unknown beside the positions. Energy and the angular momentum about the vertical are kept to rounding, even with large steps.
"""

# %% Setup: a chain that moves in a plane, and the same on ball joints, turned out of that plane
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

chains = {"hinges": (False, 0.01, 500 if options().reduced else 1000), "ball joints": (True, 0.1, 80 if options().reduced else 150)}
INTERNAL = 24  # six constraints of each box come first: lengths and angles of its directors
headings = {"A": "Hinges: the chain stays in a plane, step 0.01", "E": "Ball joints: it leaves the plane, step 0.1"}
headings |= {"I": "Energy", "K": "Angular momentum", "M": "Constraints"}
layout = "ABEF;CDGH;IIJJ;KKLL;MMNN"
figure, axes = viz.sheet(layout, headings, space="EFGH", size=(18, 16), heights=(1.6, 1.6, 1, 1, 1))

# %% Motions, what they kept, and their pictures
conserved = {}
for (name, (spherical, dt, steps)), places, (first, second, third) in zip(chains.items(), ("ABCD", "EFGH"), ("IKM", "JLN"), strict=True):
    system, q0 = mbd.assemble(*mbd.gallery.hanging_chain(spherical))
    motion = mbd.simulate(
        system, q0, dt=dt, steps=steps, scheme=mbd.schemes.ConservativeDirector(), formulation=mbd.formulations.JointMultipliers()
    )
    total, kinetic = np.asarray(post.energy(system, motion)), 0.5 * np.sum(motion.p * motion.v, axis=1)
    momentum = np.asarray(post.angular_momentum(system, motion))
    residuals, rates = np.abs(post.constraint_residuals(system, motion)), np.abs(post.constraint_rates(system, motion))
    constraints = {
        "e(q): directors": residuals[:, :INTERNAL].max(axis=1),
        "rate of e(q)": rates[:, :INTERNAL].max(axis=1),  # in place of C(q) p of the paper, zero for the same reason
        "joints": residuals[:, INTERNAL:].max(axis=1),
    }
    conserved |= {
        f"{name}: time step, and number of steps": f"{dt:g}, {steps}",
        f"{name}: unknowns, 12 n + m": f"{q0.size + motion.multipliers.shape[1] - INTERNAL}",
        f"{name}: Newton iterations, at most": f"{int(motion.newton_steps.max())}",
        f"{name}: largest relative change of energy": np.abs(total / total[0] - 1).max(),
        f"{name}: largest angular momentum about axis 1": np.abs(momentum[:, 0]).max(),
        f"{name}: largest angular momentum about axis 2": np.abs(momentum[:, 1]).max(),
        f"{name}: largest angular momentum about the vertical": np.abs(momentum[:, 2]).max(),
        **{f"{name}: {label}, at most": values.max() for label, values in constraints.items()},
        f"{name}: rates of joints, not enforced, at most": rates[:, INTERNAL:].max(),
    }
    rows = np.rint(np.array([0.0, 1.2, 2.4, 3.6]) / dt).astype(int)
    plane = None if spherical else (1, 2)
    for letter, row in zip(places, rows, strict=True):
        viz.trails(system, motion, {"": ("link 4", (0, 0, -1.5))}, slice(row + 1), plane=plane, axes=axes[letter], colours=[viz.GREY])
        if spherical:
            axes[letter].view_init(16, -25)
    viz.snapshots(system, motion, rows, plane=plane, axes=[axes[letter] for letter in places])
    energies = {"total": total, "kinetic": kinetic, "potential": total - kinetic}
    viz.curves(motion.t, energies, axes=axes[first], xlabel="", colours=(viz.INK, viz.ORANGE, viz.BLUE))
    viz.curves(motion.t, dict(zip(("axis 1", "axis 2", "vertical"), momentum.T, strict=True)), axes=axes[second], xlabel="")
    viz.curves(motion.t, constraints, axes=axes[third], log=True, style="points")
present("hanging_chains", conserved, figure)
