"""Flexible pendulum: a soft rod swings from a hinge, bends far, and keeps its energy to rounding.

Released at rest from the horizontal, a rubber rod lags behind a rigid one of the same mass, whips, and exchanges energy between height,
motion and bending. The energy-momentum scheme keeps the sum exactly.
"""

# %% Setup: one metre of rubber, hinged about the first axis; the rigid rod beside it
import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

LENGTH, G = 1.0, 9.81
section = mbd.Section.circle(radius=0.02, E=2e6, density=1100.0)
dt, steps = 0.005, 240 if options().reduced else 600
hinge = lambda body: {"hinge": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", body, at=(0, 0, 0))}
gravity = [mbd.Gravity((0, 0, -G))]
beam = mbd.Beam.line((0, 0, 0), (0, LENGTH, 0), section, elements=6, order=2, normal=(1, 0, 0))
system, q0 = mbd.assemble(mbd.Mechanism({"rod": beam}, hinge("rod[0]"), gravity))
motion = mbd.simulate(system, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())

rod = mbd.RigidBody.box(section.mass * LENGTH, (0.04, LENGTH, 0.04))
rigid, r0 = mbd.assemble(mbd.Mechanism({"rod": rod}, hinge("rod"), gravity), {"rod": (0, LENGTH / 2, 0)})
stiff = mbd.simulate(rigid, r0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum())

# %% Energy and its parts, the tips, the moment along the rod
t = np.asarray(motion.t)
energy, rigid_energy = np.asarray(post.energy(system, motion)), np.asarray(post.energy(rigid, stiff))
kinetic = 0.5 * np.einsum("ri,ri->r", motion.p, motion.v)
lengths = np.asarray(system.params.beams[0].measures(float)).ravel()
bending = np.asarray(post.strain_energy(system, motion)["rod"].values) @ lengths
moment = post.stress_resultants(system, motion)["rod"]
tip = np.asarray(post.poses(system, motion)["rod[12]"].origin)
pose = post.poses(rigid, stiff)["rod"]
rigid_tip = np.asarray(pose.origin + LENGTH / 2 * pose.rotation[:, :, 1])
angle, rigid_angle = (np.degrees(np.unwrap(np.arctan2(path[:, 1], -path[:, 2]))) for path in (tip, rigid_tip))
turn, rigid_turn = (int(np.argmax(np.diff(one) > 0)) for one in (angle, rigid_angle))
work = section.mass * G * LENGTH**2 / 2
table = {
    "energy, by the work of gravity down to the lowest position: largest change": np.ptp(energy) / work,
    "the same of the rigid pendulum": np.ptp(rigid_energy) / work,
    "largest part of bending in the energy": bending.max() / work,
    "largest bending moment": f"{np.abs(moment.values[..., 3]).max():.3g} N m",
    "constraints, at most": np.abs(post.constraint_residuals(system, motion)).max(),
    "out of the plane, at most": np.abs(motion.q.reshape(-1, 13, 4, 3)[:, :, 0, 0]).max(),
    "first return of the tip, rigid and flexible": f"{t[rigid_turn]:.2f} s, {t[turn]:.2f} s",
    "Newton iterations a step, at most": f"{int(motion.newton_steps.max())}",
}

# %% Picture
headings = {"A": "The first swing", "B": "Angle of the tip", "C": "Bending moment along the rod", "D": "Energy"}
figure, axes = viz.sheet("AB;AB;CD", headings, size=(17, 10), widths=(1.2, 1))
paths = {"tip of the rigid rod": rigid_tip[:rigid_turn], "tip of the soft one": tip[:turn]}
viz.paths(paths, plane=(1, 2), axes=axes["A"], style={"tip of the rigid rod": "dashed"}, colours=(viz.GREY, viz.PALE))
viz.snapshots(system, motion, range(0, turn + 1, 14), colour="bending moment 1", axes=axes["A"], plane=(1, 2), frame=False)
viz.curves(t, {"rigid": rigid_angle, "soft": angle}, axes=axes["B"], style={"rigid": "band"}, ylabel="degrees", yticks=(-90, 0, 90))
viz.field(t, moment.s, moment.values[..., 3], axes=axes["C"], label="N m", ylabel="along the rod")
parts = {"height": energy - kinetic - bending, "motion": kinetic, "bending": bending, "sum": energy}
viz.curves(t, parts, axes=axes["D"], ylabel="J", colours=(viz.BLUE, viz.ORANGE, viz.GREEN, viz.INK))
present("flexible_pendulum", table, figure)
