"""Overhead crane: forces that carry a load from rest to rest, through a rope.

The trolley and the winch pull the load through a rope that only pulls along itself: what is wanted of the load says nothing of forces until
it is differentiated four times. The inputs are found for the whole horizon at once by least squares, and compared with the closed form, in
which the rope has the direction of the acceleration of the load less that of gravity.
"""

# %% Setup: q holds the place of the trolley, the length of the rope, and the place of the load
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import viz
from jaxmbd.cli import options, present
from jaxmbd.inverse import follow

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

trolley_mass, winch_mass, load_mass, depth, gravity = 10.0, 0.5, 5.0, 4.0, 9.81
system = mbd.System.from_functions(
    kinetic=lambda t, q, v, p: 0.5 * (p["trolley"] * v[0] ** 2 + p["winch"] * v[1] ** 2 + p["load"] * v[2:] @ v[2:]),
    potential=lambda t, q, p: p["load"] * gravity * q[3],
    constraints=lambda t, q, p: jnp.array([0.5 * ((q[2] - q[0]) ** 2 + q[3] ** 2 - q[1] ** 2)]),
    forces=lambda t, q, v, p, control: jnp.array([control["drive"], control["winch"], 0.0, 0.0]),
    params={"trolley": trolley_mass, "winch": winch_mass, "load": load_mass},
)
q0 = [0.0, depth, 0.0, -depth]

# %% The wanted way of the load: 4 across and 2 up in three seconds; six derivatives vanish at both ends
ramp = np.polynomial.Polynomial([0] * 7 + [1716, -9009, 20020, -24024, 16380, -6006, 924])


def way(t):
    s = jnp.polyval(jnp.asarray(ramp.coef[::-1]), jnp.clip((t - 0.5) / 3, 0, 1))
    return jnp.array([4 * s, -depth + 2 * s])


def missed(system, t, q):
    return q[2:] - way(t)


# %% Inputs for the whole horizon; then the same with forces that cost something, so that the load is carried only near its way
steps = 80 if options().reduced else 160
dt = 4.0 / steps
horizon = {"targets": {"load": missed}, "inputs": ("drive", "winch"), "dt": dt, "steps": steps}
found = follow(system, q0, **horizon)
cheaper = follow(system, q0, **horizon, effort={"drive": 1e-6, "winch": 1e-6}, guess=found.inputs)
again = mbd.simulate(system, q0, dt=dt, steps=steps, controls=found.inputs, formulation=mbd.NullSpace())


# %% The closed form: the rope pulls the load along its acceleration less that of gravity; the rest is Newton's law
def trolley_and_rope(t):
    (along, up), (faster_along, faster_up) = way(t), jax.jacfwd(jax.jacfwd(way))(t)
    trolley = along - up * faster_along / (faster_up + gravity)
    return jnp.array([trolley, jnp.hypot(along - trolley, up)])


def forces(t):
    (along, up), (trolley, rope) = way(t), trolley_and_rope(t)
    tension = load_mass * (jax.jacfwd(jax.jacfwd(way))(t)[1] + gravity) * rope / -up
    trolley_faster, rope_faster = jax.jacfwd(jax.jacfwd(trolley_and_rope))(t)
    return jnp.array([trolley_mass * trolley_faster - tension * (along - trolley) / rope, winch_mass * rope_faster - tension])


t = np.asarray(found.trajectory.t)
exact = np.asarray(jax.vmap(forces)(t[:-1] + dt / 2))
drive, winch = np.asarray(found.inputs["drive"]), np.asarray(found.inputs["winch"])
wanted = np.asarray(jax.vmap(way)(t))
conserved = {
    "load: distance from its way, at most": np.abs(found.missed["load"]).max(),
    "force of the drive against the closed form, relative": np.abs(drive - exact[:, 0]).max() / np.abs(exact[:, 0]).max(),
    "force of the winch against the closed form, relative": np.abs(winch - exact[:, 1]).max() / np.abs(exact[:, 1]).max(),
    "played back in another formulation: difference of positions": np.abs(again.q - found.trajectory.q).max(),
    "iterations": int(found.iterations),
    "with effort: largest force of the drive": f"{np.abs(cheaper.inputs['drive']).max():.1f} instead of {np.abs(drive).max():.1f}",
    "with effort: distance of the load from its way, at most": np.abs(cheaper.missed["load"]).max(),
}

# %% Picture
headings = {"A": "From rest to rest", "B": "Force of the drive", "C": "Force of the winch", "D": "Distance of the load from its way"}
figure, axes = viz.sheet("AB;CD", headings, size=(17, 13))
rows = np.linspace(0.5 / dt, 3.5 / dt, 9).round().astype(int)
trolley, _, *load = np.asarray(found.trajectory.q)[rows].T
ropes = {f"{row}": np.stack([[x, 0.0], end]) for row, x, end in zip(rows, trolley, np.transpose(load), strict=True)}
viz.paths({"way of the load": wanted, "rail": np.array([[-0.5, 0.0], [5.5, 0.0]])}, axes=axes["A"], style="band")
for rope in ropes.values():
    viz.paths({"": rope}, axes=axes["A"], colours=(viz.GREY,))
ends = {"trolley": np.stack([trolley, 0 * trolley], axis=1), "load": np.transpose(load)}
viz.paths(ends, axes=axes["A"], style="points", colours=(viz.BLUE, viz.ORANGE))
drawn = {"closed form": "band", "follow": "points", "with effort": "line"}
effort = cheaper.inputs
viz.curves(t, {"closed form": exact[:, 0], "follow": drive, "with effort": effort["drive"]}, axes=axes["B"], style=drawn)
viz.curves(t, {"closed form": exact[:, 1], "follow": winch, "with effort": effort["winch"]}, axes=axes["C"], style=drawn)
distances = {name: np.linalg.norm(one.missed["load"], axis=1) for name, one in (("follow", found), ("with effort", cheaper))}
viz.curves(t, distances, axes=axes["D"], log=True, ylim=(1e-12, 1))
present("overhead_crane", conserved, figure)
