"""Friction oscillator: a mass that sticks and slips, and where its energy goes.

After Uhlar and Betsch: a mass on a friction element with E = 350 and F_max = 50. What the scheme shows as lost is what the element has
dissipated, to rounding in every step. Then a mass drawn through a spring, which rests and jumps again and again.
"""

# %% Setup: one mass, three laws of friction
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present
from jaxmbd.friction import LuGre, Plasticity, Stribeck

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

laws = {
    "plastic": Plasticity(stiffness=350.0, limit=50.0),
    "hardening": Plasticity(stiffness=350.0, limit=30.0, hardening=80.0),
    "Stribeck": Stribeck(stiffness=350.0, static=50.0, coulomb=30.0, velocity=0.8),
}


def mass(law, m=2.0, pull=None):
    """A mass held by friction; a spring of stiffness 2 may pull it along, its other end moving with the speed `pull`."""
    potential = None if pull is None else lambda t, q, p: (q[0] - pull * t) ** 2
    kinetic = lambda t, q, v, p: 0.5 * p["m"] * v @ v
    return mbd.System.from_functions(kinetic=kinetic, potential=potential, friction={"pad": (0, law)}, params={"m": m})


# %% Motions: thrown with speed 4 onto the element; drawn from rest with speed 0.1
dt, steps = 0.002, 750
thrown = {name: mass(law) for name, law in laws.items()}
motions = {name: mbd.simulate(system, [0.0], [4.0], dt=dt, steps=steps, scheme=mbd.EnergyMomentum()) for name, system in thrown.items()}
sliding = {name: post.friction(thrown[name], motion)["pad"] for name, motion in motions.items()}

drawn = mass(LuGre(1e5, damping=np.sqrt(1e5), static=1.5, coulomb=1.0, velocity=1e-3, viscous=0.4), m=1.0, pull=0.1)
duration = 15 if options().reduced else 40
jumping = mbd.simulate(drawn, [0.0], dt=1e-3, steps=1000 * duration, scheme=mbd.EnergyMomentum(), save=20)
bristles = post.friction(drawn, jumping)["pad"]

# %% What the motions kept
t = np.asarray(motions["plastic"].t)
energy = {name: np.asarray(post.energy(thrown[name], motion)) for name, motion in motions.items()}
balance = {name: np.diff(energy[name] + np.asarray(sliding[name].dissipated)) / energy[name][0] for name in laws}


def rest(limit):
    """Where the slip ends, for a limit."""
    system = thrown["plastic"].replace({"pad.limit": limit})
    last = mbd.simulate(system, jnp.zeros(1), jnp.full(1, 4.0), dt=dt, steps=steps, scheme=mbd.EnergyMomentum(), save="end")
    return last.memory[0].state.slip[0, 0]


places = np.asarray(motions["plastic"].q[np.array([50, 250, 500]), 0])
value, slope = jax.value_and_grad(rest)(50.0)
conserved = {
    **{f"{name}: largest imbalance of energy in a step, relative": np.abs(values).max() for name, values in balance.items()},
    **{f"{name}: least energy dissipated in a step": np.diff(np.asarray(one.dissipated)).min() for name, one in sliding.items()},
    "position at t = 0.1, 0.5 and 1 (by hand: 0.31496, 0.18572, 0.23085)": "{:.5f}, {:.5f}, {:.5f}".format(*places),
    "slip where it stays, and its derivative by the limit": f"{float(value):.6f}, {float(slope):.6f}",
    "drawn mass breaks away at": f"{float(jumping.t[np.argmax(np.asarray(jumping.q[:, 0]) > 0.01)]):.2f} s",
}

# %% Picture
headings = {"A": "A mass thrown onto a friction element", "B": "Force against position", "C": "Plastic: where the energy is"}
headings |= {"D": "Imbalance of energy in each step", "E": "A mass drawn through a spring", "F": "Its friction"}
figure, axes = viz.sheet("ABC;DEF", headings, size=(17, 9.5))
viz.curves(t, {name: motion.q[:, 0] for name, motion in motions.items()}, axes=axes["A"], ylabel="position", xlabel="")
middle = lambda motion: 0.5 * np.asarray(motion.q[1:, 0] + motion.q[:-1, 0])
loops = {name: (middle(motion), sliding[name].force[1:]) for name, motion in motions.items()}
viz.curves(None, loops, axes=axes["B"], xlabel="position", ylabel="force")
pad = sliding["plastic"]
parts = {"kinetic": energy["plastic"] - np.asarray(pad.stored), "stored": pad.stored, "dissipated": pad.dissipated}
viz.curves(t, {**parts, "sum": energy["plastic"] + np.asarray(pad.dissipated)}, axes=axes["C"], style={"sum": "dashed"}, xlabel="")
viz.curves(t, balance, axes=axes["D"], log=True, style="points", ylabel="relative to the energy", ylim=(1e-17, 1e-14))
viz.curves(
    jumping.t, {"mass": jumping.q[:, 0], "end of the spring": 0.1 * jumping.t}, axes=axes["E"], style={"end of the spring": "dashed"}
)
viz.curves(jumping.t, bristles.force, axes=axes["F"], ylabel="force")
present("friction_oscillator", conserved, figure)
