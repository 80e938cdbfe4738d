"""Pitch link of a helicopter blade: a rigid link in place of a stiff one, in equations that know nothing of constraints.

After P. Masarati, Adding kinematic constraints to purely differential dynamics, Computational Mechanics 47 (2011), section 4.3 (its
figures 10 to 12). Flap and pitch of a blade are two linear equations (30). A rigid link from the blade to the swashplate (29) is added to
them by projection, or else they have the stiffness of the control system, whose vibration then dictates the steps. It needs tighter
tolerances too: with those of the others every step may err by a hundredth of the vibration, which grows.
"""

# %% Setup: table 3 of the paper, whose "v = 1.0625" is the square of the flap frequency ratio
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from jaxmbd import odes, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

SPEED, FLAP, TWIST, CROSS, LOCK, RATIO = 40.0, 416.67, 9.375e-2, 1.875e-2, 8.0, 1.0625
HINGE, ARM, BALL, LINK = np.array([0.2, 0.0, 0.0]), (0.05, 0.2), np.array([0.25, 0.2, -0.15]), 0.15
COUPLING, STIFFNESS, PUSH = 0.25, 1.6538e4, 1e4
inertia = np.array([[FLAP, -CROSS], [-CROSS, TWIST]])
stiffness = SPEED**2 * (inertia + np.diag([FLAP * (RATIO - 1), 0.0]))


def forces(t, q, v, w, params):
    """Inertia that stiffens, aerodynamics that damp and push once a turn, and the control system."""
    control = params["control"] * jnp.array([0.0, -q[1] - COUPLING * q[0]])
    flap = -LOCK / 16 * SPEED * FLAP * v[0] + PUSH * jnp.cos(SPEED * t + jnp.pi / 2)
    return jnp.array([flap, 0.0]) + control - stiffness @ q


def link(t, q, params):
    """The length of the link (29), whose upper end moves with both angles (28)."""
    (flap, pitch), (along, across) = q, ARM
    out, up = along, across * jnp.sin(pitch)
    upper = [jnp.cos(flap) * out - jnp.sin(flap) * up, across * jnp.cos(pitch), jnp.sin(flap) * out + jnp.cos(flap) * up]
    rod = HINGE + jnp.stack(upper) - BALL
    return jnp.sqrt(rod @ rod)[None] - LINK


# %% The link as a constraint, projected (present) or only accelerated along (baseline), or the stiff control system (penalty)
rigid = odes.Dynamics.from_functions(inertia, forces, constraints=link, independent=True, params={"control": 0.0})
stiff = odes.Dynamics.from_functions(inertia, forces, params={"control": STIFFNESS})
end = 1.0 if options().reduced else 2.0
turns = int(end * SPEED / (2 * np.pi)) // 2
t = np.linspace(0, end, 64 * 2 * turns + 1)
limits = {"t1": end, "rtol": 1e-2, "atol": 1e-4, "dt0": 0.01, "dtmax": 0.01, "saveat": t, "solver": diffrax.Dopri5()}
motions = {
    "present": odes.integrate(rigid, [0.0, 0.0], **limits),
    "baseline": odes.integrate(rigid, [0.0, 0.0], method=odes.Baseline(), **limits),
    "penalty": odes.integrate(stiff, [0.0, 0.0], **limits | {"rtol": 1e-3, "atol": 1e-5}),
}
lengths, rates = {}, {}
for name, motion in motions.items():
    values = jax.vmap(lambda q, v: jax.jvp(lambda q: link(0.0, q, None)[0], (q,), (v,)))(motion.q, motion.v)
    lengths[name], rates[name] = (np.abs(np.asarray(one)) for one in values)

# %% The force along the link, and its harmonics over the last turns
pull = {name: np.asarray(motions[name].multipliers[:, 0]) for name in ("present", "baseline")}
torque = -STIFFNESS * (motions["penalty"].q[:, 1] + COUPLING * motions["penalty"].q[:, 0])
pull["penalty"] = np.asarray(-torque) / ARM[1]
last = t > end - 2 * np.pi / SPEED * (turns // 2)
waves = np.stack([np.ones(last.sum()), *(f(k * SPEED * t[last]) for k in range(1, 6) for f in (np.cos, np.sin))], axis=1)
parts = {name: np.linalg.lstsq(waves, force[last])[0] for name, force in pull.items()}
harmonics = {name: np.hypot(part[1::2], part[2::2]) for name, part in parts.items()}
table = {f"{name}: steps": f"{int(motion.scheme.accepted)}, and {int(motion.scheme.rejected)} rejected" for name, motion in motions.items()}
table |= {
    f"{name}: length of the link and its rate, off by at most": f"{lengths[name].max():.1e}, {rates[name].max():.1e}" for name in motions
}
table |= {f"{name}: harmonics 1 to 4 of the force along the link": ", ".join(f"{a:.2g}" for a in harmonics[name][:4]) for name in pull}

# %% Picture
headings = {
    "A": "Flap",
    "B": "Pitch",
    "C": "Length of the link, error",
    "D": "Pitch rate",
    "E": "Force along the link",
    "F": "Its harmonics",
}
figure, axes = viz.sheet("ABC;DEF", headings, size=(18, 10))
styles = {"present": "line", "baseline": "dashed", "penalty": "line"}
colours = {"present": viz.BLUE, "baseline": viz.ORANGE, "penalty": viz.PALE}
looks = {"style": styles, "colours": colours}
order = ("penalty", "present", "baseline")
for letter, column, label in (("A", 0, "degrees"), ("B", 1, "degrees")):
    viz.curves(t, {name: np.degrees(np.asarray(motions[name].q[:, column])) for name in order}, axes=axes[letter], ylabel=label, **looks)
viz.curves(t, {name: np.degrees(np.asarray(motions[name].v[:, 1])) for name in order}, axes=axes["D"], ylabel="degrees per second", **looks)
viz.curves(t, {name: lengths[name] for name in order}, axes=axes["C"], log=True, ylim=(1e-18, 1e-1), **looks)
viz.curves(t[last], {name: pull[name][last] for name in ("present", "baseline")}, axes=axes["E"], ylabel="N", **looks)
counts = np.arange(1, 6)
frequency = {"xlabel": "times the frequency of the rotor", "ylabel": "N", "xticks": counts}
joined = dict.fromkeys(order, "joined")
viz.curves(counts, {name: harmonics[name] for name in order}, axes=axes["F"], log=True, style=joined, colours=colours, **frequency)
present("blade_pitch_link", table, figure)
