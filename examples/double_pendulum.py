"""Double pendulum in space: two boxes on perpendicular hinges, built from parts.

The motion is chaotic, but its energy is not: the midpoint rule lets it oscillate without drift, a Galerkin scheme of order four lets it
oscillate by far less.
"""

# %% Setup: bodies, joints and loads by name; the hinges turn about x and y
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mechanism = mbd.Mechanism(
    bodies={"upper": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0)), "lower": mbd.RigidBody.box(1.0, (0.1, 0.1, 1.0))},
    joints={
        "shoulder": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "upper", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute((0, 1, 0)), "upper", "lower", at=(0, 0, -1)),
    },
    loads=[mbd.Gravity((0, 0, -9.81))],
)
# Bodies are placed as they hang straight down, and then the joints are turned.
placement = {"upper": (0, 0, -0.5), "lower": (0, 0, -1.5), "shoulder": 2.0, "elbow": 1.2}
system, q0 = mbd.assemble(mechanism, placement)
v0 = mbd.joint_velocities(system, q0, {"shoulder": 0.0, "elbow": 3.0})
print(mbd.assembly.describe(system, q0))

# %% Motions: the same start with two schemes
dt, steps = 0.01, 600 if options().reduced else 1200
schemes = {"Midpoint": mbd.Midpoint(), "Galerkin(4)": mbd.Galerkin(4)}
run = lambda scheme: mbd.simulate(system, q0, v0, dt=dt, steps=steps, formulation=mbd.Reparametrised(), scheme=scheme)
runs = {name: run(scheme) for name, scheme in schemes.items()}
motion = runs["Galerkin(4)"]
energies = {name: np.asarray(post.energy(system, one)) for name, one in runs.items()}
force = np.asarray(post.reactions(system, motion)["shoulder"].force)[1:-1]  # multipliers are one-sided at both ends
conserved = {
    "energy at the start": energies["Midpoint"][0],
    **{f"{name}: largest change of energy": np.abs(values - values[0]).max() for name, values in energies.items()},
    **{f"{name}: constraints, at most": np.abs(post.constraint_residuals(system, one)).max() for name, one in runs.items()},
    "Galerkin(4): hidden constraints, at most": np.abs(post.constraint_rates(system, motion)).max(),
    "largest force in the shoulder, in weights": np.linalg.norm(force, axis=1).max() / (2 * 9.81),
}

# %% Picture
headings = {"A": "Path of the tip, from early (dark) to late", "B": "Angles of the joints", "C": "Force in the shoulder", "D": "Energy"}
figure, axes = viz.sheet("AB;AC;AD", headings, space="A", size=(16, 9))
viz.trails(system, motion, {"": ("lower", (0, 0, -0.5))}, times=motion.t, axes=axes["A"])
viz.snapshots(system, motion, [0, 12, 24, 36], axes=axes["A"])
viz.curves(motion.t, {name: c[:, 0] for name, c in post.joint_coordinates(system, motion).items()}, axes=axes["B"], ylabel="angle")
viz.curves(motion.t[1:-1], dict(zip("xyz", force.T, strict=True)), axes=axes["C"], ylabel="force")
viz.mark(axes["C"], y=2 * 9.81, text="weight")
viz.energies(system, runs, axes=axes["D"])
present("double_pendulum", conserved, figure)
