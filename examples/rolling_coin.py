"""Rolling coin: a thin disc that rolls on a table without slip, upright, along a circle, and wobbling.

A coin leans into its curve. There is one motion for each angle in which it leans on steadily, its contact running along a circle
(A. Le Saux, R. I. Leine, C. Glocker, Dynamics of a rolling disk in the presence of dry friction, J. Nonlinear Sci. 15, 2005); pushed, it
wobbles about it. What holds the coin is one constraint on its position and two on its velocity, which keep the point that touches at rest.
"""

# %% Setup: a coin, its contact with the table, and nothing else
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import joints, post, viz
from jaxmbd.bodies import Cylinder
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

mass, radius, circle, gravity = 0.3048, 0.05, 0.5, 9.81
across = mbd.rotation.exp(np.array([np.pi / 2, 0, 0]))
coin = mbd.RigidBody(mass, mass * radius**2 * np.array([0.25, 0.5, 0.25]), shape=Cylinder(radius, 0.004, pose=mbd.Frame((0, 0, 0), across)))
contact = mbd.Joint(joints.RollingDisc(radius, axis=(0, 1, 0)), "ground", "coin")
mechanism = mbd.Mechanism({"coin": coin}, {"contact": contact}, [mbd.Gravity((0, 0, -gravity))])


# %% Steady rolling: the contact runs along a circle about the origin while the coin leans inwards
def steady(lean):
    """The pose of the coin, its spin about its axle, and the rate at which it goes round."""
    s, c, ratio = np.sin(lean), np.cos(lean), radius / circle
    spin = np.sqrt(4 * gravity / radius * s / ((6 - 5 * ratio * s) * ratio * c))
    ahead, axle, up = np.array([[0.0, 1, 0], [-c, 0, -s], [-s, 0, c]])
    return np.array([circle, 0, 0]) + radius * up, np.stack([ahead, axle, up], axis=1), spin, ratio * spin


def launched(lean, push=0.0):
    """The coin in steady motion, or with another angular velocity about the way ahead, in which it falls to its side."""
    centre, pose, spin, round_ = steady(lean)
    system, q0 = mbd.assemble(mechanism, {"coin": (centre, pose)})
    turning = round_ * np.array([0, 0, 1.0]) + spin * pose[:, 1] + push * pose[:, 0]
    velocity = np.cross(turning, radius * pose[:, 2])  # of the centre about the point that touches
    return system, q0, mbd.joint_velocities(system, q0, {"coin": (*velocity, *turning)}), 2 * np.pi / round_


def run(start, steps, scheme):
    system, q0, v0, period = start
    return mbd.simulate(system, q0, v0, dt=period / steps, steps=steps, scheme=scheme)


# %% Motions: one period of the steady circle in finer and finer steps, and a wobbling coin
counts = (250, 500) if options().reduced else (500, 1000, 2000)
lean = np.radians(20.0)
start = launched(lean)
system, q0, _, period = start
rounds = [run(start, count, mbd.Midpoint()) for count in counts]
errors = [np.abs(np.asarray(one.q[-1] - q0)).max() for one in rounds]
steady_run, wobble = rounds[-1], run(launched(lean, push=3.0), counts[-1], mbd.EnergyMomentum())


# %% What the motions kept, and the force at the contact beside its closed form: weight, and what keeps the centre on its circle
def touching(motion):
    """The points of the table that the coin touches."""
    return np.asarray(jax.vmap(contact.kind.contact, (None, 0))(mbd.Frame((0, 0, 0), np.eye(3)), post.poses(system, motion)["coin"]))


def leaning(motion):
    return np.degrees(np.arcsin(-np.asarray(post.poses(system, motion)["coin"].rotation)[:, 2, 1]))


def slip(motion):
    """In the middle of steps, where the schemes hold it."""
    q = motion.q
    held = jax.vmap(lambda q0, q1: system.velocity_constraints(0.0, 0.5 * (q0 + q1), (q1 - q0) / motion.dt))
    return np.abs(np.asarray(held(q[:-1], q[1:]))).max(axis=1)


force, pulled = (np.asarray(post.reactions(system, motion)["contact"].force)[1:-1] for motion in (steady_run, wobble))
across, needed = np.linalg.norm(force[:, :2], axis=1), np.linalg.norm(pulled[:, :2], axis=1)
friction = mass * (2 * np.pi / period) ** 2 * (circle - radius * np.sin(lean))
energy = np.asarray(post.energy(system, wobble))
conserved = {
    "steady: period (published: 2.838337855595421)": f"{period:.15f}",
    **{f"steady: distance from the start after a period, {n} steps": error for n, error in zip(counts, errors, strict=True)},
    "steady: order": np.log2(errors[-2] / errors[-1]),
    "steady: force that carries the coin against its weight, relative": np.abs(force[:, 2] / (mass * gravity) - 1).max(),
    "steady: friction against m v^2 / R of the centre, relative": np.abs(across / friction - 1).max(),
    "wobbling: change of energy, relative": np.ptp(energy) / energy[0],
    "wobbling: height of the rim over the table, at most": np.abs(post.constraint_residuals(system, wobble)).max(),
    "wobbling: slip, at most": slip(wobble).max(),
    "wobbling: coefficient of friction that keeps it from slipping": (needed / pulled[:, 2]).max(),
}

# %% Picture
headings = {"A": "A coin that was pushed, along its way", "B": "Where it touches the table", "C": "How far it leans, in degrees"}
headings |= {
    "D": "Force at the contact, while it wobbles",
    "E": "Energy and slip while it wobbles",
    "F": "After one period of the steady motion",
}
figure, axes = viz.sheet("AAB;AAC;DEF", headings, space="A", size=(18, 14), heights=(1.2, 1, 1.1))
ways = {"steady": touching(steady_run), "wobbling": touching(wobble)}
viz.paths(ways, axes=axes["A"], style={"steady": "dotted"}, colours=(viz.GREY, viz.ORANGE))
viz.snapshots(system, wobble, np.linspace(0, counts[-1], 26)[:-1].astype(int), axes=axes["A"], bodies=viz.BLUE, frame=False)
viz.paths(ways, axes=axes["B"], plane=(0, 1), style={"steady": "band"}, colours=(viz.ORANGE,))
t = np.asarray(wobble.t)
viz.curves(t, {"steady": leaning(steady_run), "wobbling": leaning(wobble)}, axes=axes["C"], style={"steady": "band"}, colours=(viz.ORANGE,))
forces = {"carries": pulled[:, 2], "keeps from slipping": needed, "weight": np.full_like(needed, mass * gravity)}
viz.curves(t[1:-1], forces, axes=axes["D"], style={"weight": "dotted"})
drift = np.abs(energy - energy[0]) / energy[0]
viz.curves(t, {"energy, relative": drift, "slip": slip(wobble)}, axes=axes["E"], log=True, style="points")
sizes = np.round(1e3 * period / np.array(counts), 2)
viz.convergence(sizes, {"distance from the start": errors}, axes=axes["F"], slopes=(2,), xlabel="step in milliseconds")
axes["A"].view_init(42, -60)
axes["A"].set_box_aspect(np.ptp([axes["A"].get_xlim(), axes["A"].get_ylim(), axes["A"].get_zlim()], axis=1), zoom=1.5)
present("rolling_coin", conserved, figure)
