"""A free-floating parallel manipulator on a figure of eight (Uhlar and Betsch, section 6).

A base and a platform float in the plane without gravity, tied by three telescopic legs. Motors turn the legs against the base; nothing
holds the base. The platform follows a figure of eight without turning, once with friction in the hinges of the motors, E = 350 and
F_max = 50, and once without. The paper tells neither sizes nor masses: those here are chosen.
"""

# %% Setup: six degrees of freedom, three motors, and friction beside them
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import inverse, post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

plain, placement = mbd.gallery.floating_manipulator()
rubbed, _ = mbd.gallery.floating_manipulator(mbd.friction.Plasticity(stiffness=350.0, limit=50.0))


# %% The wanted motion: an eight from rest to rest, without jerk at both ends
dt, steps = 0.01, 60 if options().reduced else 300
duration = dt * steps


def eight(t):
    """Where the middle of the platform is to be."""
    s = t / duration
    phase = 2 * jnp.pi * s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)
    return jnp.stack([0.25 * jnp.sin(phase), 0.12 * jnp.sin(2 * phase)])


targets = {"path": inverse.Point("platform", eight, along="xy"), "attitude": inverse.Orientation("platform", np.eye(3), about="z")}
method = {"dt": dt, "steps": steps, "scheme": mbd.EnergyMomentum()}


def follow(mechanism):
    """The manipulator, the torques that the motion takes, and what comes of playing them back."""
    system, q0 = mbd.assemble(mechanism, placement)
    found = inverse.inverse_dynamics(system, q0, jnp.zeros_like(q0), motion=targets, **method)
    return system, found, mbd.simulate(system, q0, controls=found.controls, **method)


without, with_friction = follow(plain), follow(rubbed)

# %% What was kept
system, found, back = with_friction
motion, t, times = found.trajectory, np.asarray(found.trajectory.t), np.asarray(found.times)
poses, joint_angles = post.poses(system, motion), post.joint_coordinates(system, motion)
missed = np.abs(np.asarray(poses["platform"].origin)[:, :2] - np.asarray(jax.vmap(eight)(t)))
torques = {name: np.asarray(values) for name, values in found.inputs.items()}
easy = {name: np.asarray(values) for name, values in without[1].inputs.items()}
turned = {f"foot {i}": np.asarray(joint_angles[f"foot {i}"][:, 0]) for i in (1, 2, 3)}
work = sum(u * np.diff(angle) for u, angle in zip(torques.values(), turned.values(), strict=True))
balance = np.diff(post.energy(system, motion) + post.dissipated(system, motion)) - work
rubbing = [np.asarray(one.force[1:]) for one in post.friction(system, motion).values()]
momenta = {
    "linear momentum": np.abs(post.linear_momentum(system, motion)).max(axis=1),
    "angular momentum": np.abs(post.angular_momentum(system, motion)).max(axis=1),
}
table = {
    "distance from the path, at most": missed.max(),
    "linear momentum, at most": momenta["linear momentum"].max(),
    "angular momentum, at most": momenta["angular momentum"].max(),
    "change of energy, and energy dissipated, less work of the motors, at most": np.abs(balance).max(),
    "played back with friction: distance from this motion, at most": np.abs(np.asarray(back.q - motion.q)).max(),
    "played back without: the same": np.abs(np.asarray(without[2].q - without[1].trajectory.q)).max(),
    "largest torque without and with friction": "{:.2f}, {:.2f}".format(
        *(max(map(np.max, map(np.abs, u.values()))) for u in (easy, torques))
    ),
    "torques with friction less those without less friction, at most": max(
        np.abs(u - v - F).max() for u, v, F in zip(torques.values(), easy.values(), rubbing, strict=True)
    ),
}

# %% Picture
headings = {
    "A": "Base and platform",
    "B": "Torques of the motors, with friction and without",
    "C": "Angles of the legs",
    "D": "Off the path, and momenta",
}
figure, axes = viz.sheet("AB;AC;AD", headings, size=(16, 9))
viz.trails(system, motion, {"platform": ("platform", (0, 0, 0)), "base": ("base", (0, 0, 0))}, axes=axes["A"], plane=(0, 1))
viz.snapshots(system, motion, np.array([0, steps // 3, 2 * steps // 3]), axes=axes["A"], plane=(0, 1))
both = {**torques, **{f"{name} without": values for name, values in easy.items()}}
dashed = {name: "dashed" for name in both if name.endswith("without")}
colours = dict(zip(both, 2 * (viz.BLUE, viz.ORANGE, viz.GREEN), strict=True))
viz.curves(times, both, axes=axes["B"], style=dashed, colours=colours, xlabel="", ylabel="torque")
viz.curves(t, {name: np.degrees(values - values[0]) for name, values in turned.items()}, axes=axes["C"], xlabel="", ylabel="degrees")
errors = {"off the path": missed.max(axis=1), **momenta}
viz.curves(t, errors, axes=axes["D"], log=True, style="points")
present("free_floating_manipulator", table, figure)
