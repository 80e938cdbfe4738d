"""Servo press: a planar six-bar whose motor makes the ram go down fast, press slowly and come back.

A crank swings a rocker through a coupler, and the rocker pushes a ram through a rod, nearly stretched where it presses: a small torque
holds a large force. Which torque the wanted motion of the ram takes, with friction in its guide and without, comes out of the motion, and
is compared with the one equation of motion that the linkage has in the height of its ram.
"""

# %% Setup: five moving links; a workpiece that resists below a height; friction that sticks in the guide
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import inverse, loads, post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

foot, top, lengths = np.array([-1.0, 0.6]), np.array([0.0, 1.0]), {"crank": 0.2, "coupler": 0.74, "rocker": 0.5, "rod": 0.6}
masses, ram_mass, gravity, highest = {"crank": 8.0, "coupler": 6.0, "rocker": 5.0, "rod": 6.0}, 40.0, 9.81, 0.33


def across(a, b, first, second):
    """The corner of a triangle over two points, on the left of the way between them, at these distances."""
    way = b - a
    far = way @ way
    along = (far + first**2 - second**2) / (2 * far)
    return a + along * way + jnp.sqrt(first**2 / far - along**2) * jnp.array([-way[1], way[0]])


def links(height):
    """Where each link begins and ends, for a height of the ram."""
    pin = jnp.stack([jnp.zeros_like(height), height])
    knee = across(pin, jnp.asarray(top), lengths["rod"], lengths["rocker"])
    elbow = across(jnp.asarray(foot), knee, lengths["crank"], lengths["coupler"])
    return {"crank": (foot, elbow), "coupler": (elbow, knee), "rocker": (top, knee), "rod": (knee, pin)}


def pose(start, end):
    """Where a link is, and at which angle."""
    return 0.5 * (start + end), jnp.arctan2(*(end - start)[::-1])


def resistance(t, measured, params):
    """The force of the workpiece on the ram."""
    depth = params["surface"] - highest - measured["guide"][0]
    return params["stiffness"] * jax.nn.softplus(depth / params["width"]) * params["width"]


ends = links(jnp.asarray(highest))
placement = {name: ((*pose(*both)[0].tolist(), 0.0), float(pose(*both)[1])) for name, both in ends.items()} | {"ram": (0, highest, 0)}
bodies = {name: mbd.PlanarBody.rod(masses[name], lengths[name]) for name in lengths} | {"ram": mbd.PlanarBody.plate(ram_mass, (0.2, 0.1))}
pairs = {  # which links a hinge joins, and where
    "bearing": ("ground", "crank", ends["crank"][0]),
    "elbow": ("crank", "coupler", ends["crank"][1]),
    "knee": ("coupler", "rocker", ends["rocker"][1]),
    "pivot": ("ground", "rocker", ends["rocker"][0]),
    "knuckle": ("rocker", "rod", ends["rod"][0]),
    "pin": ("rod", "ram", ends["rod"][1]),
}
turn = mbd.Revolute((0, 0, 1))
joints = {name: mbd.Joint(turn, first, second, at=(*np.asarray(place), 0.0)) for name, (first, second, place) in pairs.items()}
joints["guide"] = mbd.Joint(mbd.Prismatic((0, 1, 0)), "ground", "ram", at=(0, highest, 0))
workpiece = {"surface": 0.02, "stiffness": 4e4, "width": 0.004}
acting = {
    "gravity": mbd.Gravity((0, -gravity, 0)),
    "motor": mbd.Motor("bearing"),
    "workpiece": loads.Controller("guide", resistance, params=workpiece),
    "rubbing": mbd.Friction("guide", mbd.friction.Stribeck(2e5, static=300.0, coulomb=200.0, velocity=0.1)),
}
system, q0 = mbd.assemble(mbd.Mechanism(bodies, joints, acting), placement)
smooth = system.replace({"rubbing.static": 0.0, "rubbing.coulomb": 0.0})


# %% The wanted motion of the ram: down to just above the workpiece, slowly through it, and up again; without jerk where pieces meet
def ramp(s):
    s = jnp.clip(s, 0, 1)
    return s**4 * (35 - 84 * s + 70 * s**2 - 20 * s**3)


def height(t):
    return highest - 0.3 * ramp(t / 0.8) - 0.08 * ramp((t - 0.5) / 1.0) + 0.38 * ramp((t - 1.5) / 0.9)


duration = 2.5
target = {"ram": inverse.Coordinate("guide", lambda t: height(t) - highest)}


def torque(system, steps):
    """The torque that the motion takes, with the motion; and how it was found."""
    method = {"dt": duration / steps, "steps": steps, "scheme": mbd.EnergyMomentum()}
    return inverse.inverse_dynamics(system, q0, jnp.zeros_like(q0), motion=target, **method), method


# %% The same without the library: one degree of freedom, with a mass that depends on the height
def mass(height):
    """Twice the kinetic energy at unit speed of the ram."""
    pull = jax.jacfwd(lambda height: {name: pose(*ends) for name, ends in links(height).items()})(height)
    return ram_mass + sum(masses[n] * (c @ c) + bodies[n].inertia * a**2 for n, (c, a) in pull.items())


def closed_form(t):
    weight = lambda h: gravity * (ram_mass * h + sum(masses[name] * pose(*ends)[0][1] for name, ends in links(h).items()))
    rate = lambda f: jax.jvp(f, (t,), (jnp.ones_like(t),))[1]
    speed = lambda t: jax.jvp(height, (t,), (jnp.ones_like(t),))[1]
    h, v = height(t), speed(t)
    needed = rate(lambda t: mass(height(t)) * speed(t)) - 0.5 * jax.grad(mass)(h) * v**2 + jax.grad(weight)(h)
    return (needed - resistance(t, {"guide": (h - highest, v)}, workpiece)) / jax.grad(lambda h: pose(*links(h)["crank"])[1])(h)


# %% Torques, and how they converge
counts = (250, 500) if options().reduced else (125, 250, 500, 1000)
runs = [torque(smooth, count)[0] for count in counts]
errors = [np.abs(np.asarray(run.inputs["motor"] - jax.vmap(closed_form)(run.times))).max() for run in runs]
found, method = torque(system, counts[-1])
motion, t, u = found.trajectory, np.asarray(found.trajectory.t), np.asarray(found.inputs["motor"])
back = mbd.simulate(system, motion.q[0], controls=found.controls, **method)
angles = post.joint_coordinates(system, motion)
crank, ram = (np.asarray(angles[name][:, 0]) for name in ("bearing", "guide"))
middle = {"guide": (0.5 * (ram[1:] + ram[:-1]), None)}
work = u * np.diff(crank) + np.asarray(resistance(None, middle, workpiece)) * np.diff(ram)
rubbing = post.friction(system, motion)["rubbing"]
energy = np.asarray(post.energy(system, motion) + rubbing.dissipated)
conserved = {
    "ram: distance from the wanted height, at most": np.abs(ram + highest - np.asarray(height(t))).max(),
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "change of energy, and energy dissipated, less work, relative, at most": np.abs(np.diff(energy) - work).max() / np.ptp(energy),
    "played back: distance from this motion, at most": np.abs(np.asarray(back.q - motion.q)).max(),
    "largest force of the workpiece": np.asarray(resistance(None, {"guide": (ram, None)}, workpiece)).max(),
    "largest torque without friction, and with it": f"{np.abs(runs[-1].inputs['motor']).max():.1f}, {np.abs(u).max():.1f}",
    **{f"torque against the closed form, {count} steps": error for count, error in zip(counts, errors, strict=True)},
    "order": np.log2(errors[-2] / errors[-1]),
}

# %% Picture
headings = {"A": "The press at three times", "B": "Height of the ram", "C": "Torque of the motor", "D": "Force of friction in the guide"}
headings |= {"E": "Torque against the closed form"}
figure, axes = viz.sheet("ABC;ADE", headings, size=(18, 9.5), widths=(1.3, 1, 1))
viz.snapshots(system, motion, np.rint(np.array([0.0, 0.3, 0.6]) * counts[-1]).astype(int), axes=axes["A"], plane=(0, 1))
viz.curves(t, {"wanted": height(t), "found": ram + highest}, axes=axes["B"], style={"wanted": "band"}, xlabel="", ylabel="height")
exact = np.asarray(jax.vmap(closed_form)(runs[-1].times))
both = {"closed form": exact, "without friction": runs[-1].inputs["motor"], "with friction": u}
drawn = {"closed form": "band", "without friction": "dashed"}
viz.curves(found.times, both, axes=axes["C"], style=drawn, xlabel="", ylabel="torque")
viz.curves(t, rubbing.force[1:], axes=axes["D"], ylabel="force")
viz.convergence(duration / np.array(counts), {"largest difference": errors}, axes=axes["E"], slopes=(2,))
present("servo_press", conserved, figure)
