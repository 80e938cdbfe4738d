"""Stewart platform: which forces in six legs move it along a wanted path?

The legs are measured lengths with motors on them, the platform is one free body. It heaves, tilts and turns, and comes back to rest; the
forces come out of the motion, and are compared with Newton's and Euler's equations.
"""

# %% Setup: three pairs of legs between the ground and the platform
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import inverse, post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mass, radius, height = 50.0, 0.6, 1.2
pairs = 2 * np.pi / 3 * np.repeat(np.arange(3), 2)
spread = np.tile([-1.0, 1.0], 3)
ring = lambda size, angles, z: np.stack([size * np.cos(angles), size * np.sin(angles), np.full(6, z)], axis=1)
feet, heads = ring(1.0, pairs + spread * 0.25, 0.0), ring(radius, pairs + spread * (np.pi / 3 - 0.2), -0.05)
legs = {f"leg {i + 1}": mbd.Joint(mbd.joints.Length(), "ground", "platform", on_a=feet[i], on_b=heads[i]) for i in range(6)}
motors = {f"force {i + 1}": mbd.Motor(f"leg {i + 1}") for i in range(6)}
platform = mbd.RigidBody.cylinder(mass, radius, 0.1)
mechanism = mbd.Mechanism({"platform": platform}, legs, {"gravity": mbd.Gravity(), **motors})
system, q0 = mbd.assemble(mechanism, {"platform": (0, 0, height)})

# %% The wanted motion, from rest to rest without jerk at both ends
duration = 2.0


def phase(t):
    s = t / duration
    return 2 * jnp.pi * s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)


def place(t):
    """Where the middle of the platform is to be."""
    return jnp.array([0.2 * jnp.sin(phase(t)), 0.2 * (jnp.cos(phase(t)) - 1), height + 0.1 * jnp.sin(phase(t) / 2) ** 2])


def attitude(t):
    """How it is to be turned."""
    return mbd.rotation.exp(jnp.array([0.25 * jnp.sin(phase(t)), 0.2 * jnp.sin(2 * phase(t)), 0.4 * jnp.sin(phase(t) / 2) ** 2]))


targets = {"place": inverse.Point("platform", place), "attitude": inverse.Orientation("platform", attitude)}


def forces(steps):
    return inverse.inverse_dynamics(system, q0, jnp.zeros_like(q0), motion=targets, dt=duration / steps, steps=steps)


def newton_euler(t):
    """The same forces from the accelerations of the wanted motion, without the library."""
    second = lambda f: jax.jacfwd(jax.jacfwd(f))
    R, turning = attitude(t), lambda t: jnp.stack([(jax.jacfwd(attitude)(t) @ attitude(t).T)[i, j] for i, j in ((2, 1), (0, 2), (1, 0))])
    spin = lambda t: attitude(t) @ jnp.asarray(platform.inertia) @ attitude(t).T @ turning(t)
    arms = heads @ R.T
    rods = place(t) + arms - feet
    along = rods / jnp.linalg.norm(rods, axis=1, keepdims=True)
    wrench = jnp.concatenate([mass * (second(place)(t) + jnp.array([0, 0, 9.81])), jax.jacfwd(spin)(t)])
    return jnp.linalg.solve(jnp.concatenate([along.T, jnp.cross(arms, along).T]), wrench)


# %% Forces, and how they converge
counts = (50, 100, 200) if options().reduced else (50, 100, 200, 400)
runs = {count: forces(count) for count in counts}
found = runs[counts[-1]]
motion, t = found.trajectory, np.asarray(found.trajectory.t)
in_legs = lambda run: np.stack([np.asarray(values) for values in run.inputs.values()], axis=1)
errors = [np.abs(in_legs(run) - np.asarray(jax.vmap(newton_euler)(run.times))).max() for run in runs.values()]
frame = post.poses(system, motion)["platform"]
back = mbd.simulate(system, q0, dt=duration / counts[-1], steps=counts[-1], controls=found.controls)
off_path = np.linalg.norm(np.asarray(frame.origin - jax.vmap(place)(motion.t)), axis=1)
off_attitude = np.abs(np.asarray(frame.rotation - jax.vmap(attitude)(motion.t))).max(axis=(1, 2))
conserved = {
    "distance from the path, at most": off_path.max(),
    "directors off their wanted ones, at most": off_attitude.max(),
    "played back: distance from this motion, at most": np.abs(np.asarray(back.q - motion.q)).max(),
    "largest force in a leg": np.abs(in_legs(found)).max(),
    **{f"forces against Newton and Euler, {count} steps": error for count, error in zip(counts, errors, strict=True)},
    "order": np.log2(errors[-2] / errors[-1]),
}

# %% Picture
headings = {"A": "Platform and legs", "B": "Forces in the legs", "C": "Lengths of the legs", "D": "Forces against Newton and Euler"}
figure, axes = viz.sheet("AB;AC;AD", headings, space="A", size=(16, 10))
rows = np.linspace(0, counts[-1], 5).astype(int)[:4]
viz.trails(system, motion, {"centre": ("platform", (0, 0, 0)), "rim": ("platform", (radius, 0, 0))}, axes=axes["A"])
viz.snapshots(system, motion, rows[1:3], axes=axes["A"])
for row in rows[1:3]:
    tips = np.asarray(frame.origin[row]) + heads @ np.asarray(frame.rotation[row]).T
    viz.paths({f"{row} {i}": np.stack([feet[i], tips[i]]) for i in range(6)}, axes=axes["A"], colours=[viz.GREY])
axes["A"].get_legend() and axes["A"].get_legend().remove()
axes["A"].view_init(18, -60)
viz.curves(found.times, dict(found.inputs), axes=axes["B"], xlabel="", ylabel="force")
lengths = {name: values[:, 0] for name, values in post.joint_coordinates(system, motion).items() if name in legs}
viz.curves(t, lengths, axes=axes["C"], ylabel="length")
viz.convergence(duration / np.array(counts), {"largest difference": errors}, axes=axes["D"], slopes=(2,))
present("stewart_platform", conserved, figure)
