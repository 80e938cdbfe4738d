"""Mathematical pendulum: what a variational integrator keeps, and how momenta are read from positions.

After S. Leyendecker, J. E. Marsden, M. Ortiz, Variational integrators for constrained dynamical systems, ZAMM 88 (2008), section
3.1: the six panels follow its figures 1 to 6, and numbers in brackets are its equations. A mass point moves on the unit circle,
first without and then with gravity.
"""

# %% Setup: Lagrangian, constraint (48) and chart (49) as plain functions; gravity is a parameter
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone


def lagrangian(t, q, v, params):
    return params["mass"] * (0.5 * v @ v + params["gravity"] @ q)


def constraints(t, q, params):
    return jnp.array([0.5 * (q @ q - params["length"] ** 2)])


def chart(u, q):
    c, s = jnp.cos(u[0]), jnp.sin(u[0])
    return jnp.array([[c, -s], [s, c]]) @ q


params = {"mass": 1.0, "length": 1.0, "gravity": np.array([0.0, 0.0])}
point = mbd.System.from_functions(lagrangian, constraints=constraints, chart=chart, params=params)
pendulum = point.with_params(params | {"gravity": np.array([0.0, -9.81])})

# %% Motions: all with the same number of steps, so that each formulation is compiled once
steps = 64 if options().reduced else 100
formulations = (mbd.Multipliers(), mbd.NullSpace(), mbd.Reparametrised())


def run(system, v0, dt, formulation=formulations[0]):
    return mbd.simulate(system, [1.0, 0.0], v0, dt=dt, steps=steps, formulation=formulation)


circle_runs = [run(point, [0.0, 1.0], 0.1, formulation) for formulation in formulations]
swing_runs = [run(pendulum, [0.0, 0.0], 0.1, formulation) for formulation in formulations]
coarse_circle, coarse_swing = run(point, [0.0, 1.0], 0.8), run(pendulum, [0.0, 0.0], 0.2)


# %% What the motions kept
@jax.jit
def measure(system, motion):
    """Energies and absolute residuals over the nodes or steps of a motion."""
    p = post.momentum(system, motion)
    residuals = {
        "g": post.constraint_residuals(system, motion),
        "(45)": post.hidden_velocity_constraints(system, motion),
        "(46)": post.hidden_momentum_constraints(system, motion, p),
        "(46) projected": post.hidden_momentum_constraints(system, motion, motion.p),
    }
    energies = {"H": post.energy(system, motion, p), "E": post.discrete_energy(system, motion)}
    return energies | {name: jnp.abs(values).max(axis=1) for name, values in residuals.items()}


circle, swing = circle_runs[0], swing_runs[0]
on_circle, on_swing = measure(point, circle), measure(pendulum, swing)
multiplier = np.asarray(circle.multipliers[:, 0])  # positive by (38); the paper prints it with the other sign
difference = max(float(jnp.max(jnp.abs(other.q - runs[0].q))) for runs in (circle_runs, swing_runs) for other in runs[1:])
conserved = {
    "circle: lambda (published: 1.00251257867)": f"{multiplier.mean():.12f}",
    "circle: spread of lambda over the nodes": np.ptp(multiplier),
    "circle: change of H_d, at most": np.ptp(on_circle["H"]),
    "circle: change of E_d, at most": np.ptp(on_circle["E"]),
    "circle: hidden constraint (45), at most": on_circle["(45)"].max(),
    "circle: hidden constraint (46), at most": on_circle["(46)"].max(),
    "gravity: amplitude of H_d": np.ptp(on_swing["H"]),
    "gravity: amplitude of E_d": np.ptp(on_swing["E"]),
    "gravity: hidden constraint (45), at most": on_swing["(45)"].max(),
    "gravity: hidden constraint (46) for p_n, at most": on_swing["(46)"].max(),
    "gravity: hidden constraint (46) for projected p_n, at most": on_swing["(46) projected"].max(),
    "three formulations: difference of positions, at most": difference,
}

# %% Drawing: one colour for all that comes from velocities, one for momenta, one for projected momenta
INK, PALE, GREY, FORCE, VELOCITY, MOMENTUM, PROJECTED = "#1f2933", "#c5ced8", "#66727f", "#7b4fb5", "#1273b8", "#dd5f0a", "#139a74"
RESIDUALS = {
    "g": (GREY, "s", "$g(q_n)$"),
    "(45)": (VELOCITY, "o", "(45), velocities"),
    "(46)": (MOMENTUM, "^", "(46), $p_n$"),
    "(46) projected": (PROJECTED, "v", "(46), projected $p_n$"),
}
ABOVE = {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.98), "borderaxespad": 0, "handlelength": 1.2, "columnspacing": 0.9}


def stage(axes, x, y):
    """An empty plane with the circle and its centre."""
    turn = np.linspace(0, 2 * np.pi, 400)
    axes.plot(np.cos(turn), np.sin(turn), color=PALE, lw=1.4, zorder=0)
    axes.plot(0, 0, "+", color=INK, ms=9)
    axes.set(aspect="equal", xlim=x, ylim=y)
    axes.axis("off")
    return axes


def arrows(axes, at, vectors, color, scale, **style):
    """Vectors at points of the plane, `scale` long for a vector of length one."""
    style = {"units": "inches", "width": 0.034, "headwidth": 3.6, "headlength": 4.5, "headaxislength": 4.1, "zorder": 3} | style
    axes.quiver(*at.T, *vectors.T, color=color, angles="xy", scale_units="xy", scale=1 / scale, **style)


def key(axes, x, y, *lines):
    """Coloured lines of text, as a legend for arrows."""
    for row, (text, color) in enumerate(lines):
        axes.annotate(text, (x, y), xytext=(0, -18 * row), textcoords="offset points", color=color, ha="center", va="top", fontsize=12)


def draw_forces(axes, motion, nodes, every, scale):
    """Snapshots of the first nodes, and the constraint forces at every so many of them."""
    q, force = np.asarray(motion.q)[:nodes], -np.asarray(motion.q * motion.multipliers)[:nodes]
    arrows(axes, q[::every], force[::every], FORCE, scale)
    axes.plot(*q.T, "o", color=INK, ms=5.5, zorder=4)


def draw_residuals(axes, motion, values, names, top):
    """Absolute residuals over time; those of steps stand at the middle of their step."""
    t = np.asarray(motion.t)
    for color, marker, label, size in ((*RESIDUALS[name], values[name]) for name in names):
        at = t if len(size) == len(t) else 0.5 * (t[1:] + t[:-1])
        size = np.maximum(size, 1e-17)  # exact zeros would be lost on a logarithmic scale
        axes.semilogy(at, size, color=color, marker=marker, label=label, ls="none", ms=3.8, mew=0, alpha=0.85, clip_on=False)
    axes.set(xlabel="time", ylabel="absolute residual", xlim=(0, t[-1]), ylim=(5e-18, top))
    axes.legend(ncols=3 if len(names) == 3 else 2, **ABOVE)


def draw_energies(axes, motion, values):
    """$E_d$ at the middle of steps and $H_d$ at nodes."""
    t = np.asarray(motion.t)
    axes.plot(0.5 * (t[1:] + t[:-1]), values["E"], color=VELOCITY, lw=1.8, label="$E_d(q_n, q_{n+1})$")
    axes.plot(t, values["H"], color=MOMENTUM, lw=1.8, label="$H_d(q_n, p_n)$")
    axes.set(ylabel="energy", xlim=(0, t[-1]))


def draw_legendre(axes, system, motion, nodes, match, scale):
    """Velocities at midpoints, momenta at nodes; at node `match`, how both one-sided momenta are brought together."""
    q, projected, reaction = (np.asarray(rows)[:nodes] for rows in (motion.q, motion.p, motion.reaction))
    p, raw = (np.asarray(post.momentum(system, motion, kind))[:nodes] for kind in ("constrained", "raw"))
    middle, tangent = 0.5 * (q[1:] + q[:-1]), 0.7 * q[:, ::-1] * [-1, 1]
    for start, end in (*zip(q - tangent, q + tangent, strict=True), *zip(0 * middle, middle, strict=True)):
        axes.plot(*np.transpose([start, end]), color=GREY, lw=0.8, ls=":", zorder=0)
    axes.plot(*q.T, color=PALE, lw=1.2, zorder=0)
    arrows(axes, middle, np.diff(q, axis=0) / float(motion.dt), VELOCITY, scale, pivot="mid")
    sides = np.array([raw[match], raw[match] - reaction[match]])
    arrows(axes, q[[match, match]], sides, GREY, scale, width=0.018)
    axes.plot(*(q[match] + scale * sides).T, color=FORCE, lw=1.5, ls="--")
    arrows(axes, q, projected, PROJECTED, scale)
    arrows(axes, q, p, MOMENTUM, scale)
    axes.plot(*q.T, "o", color=INK, ms=6.5, zorder=4)


# %% The picture
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 11.5), layout="constrained")
figure.get_layout_engine().set(w_pad=0.15, h_pad=0.1)
panels = figure.subfigures(2, 3, wspace=0.04, hspace=0.03).ravel()
captions = {
    "1  Mass point on a circle, $h = 0.1$": "Constraint forces point to the centre,\nand all are of the same size.",
    "2  What the circle keeps": "$H_d$ keeps the energy it was given, $E_d$ another value nearby;\nall constraints hold to rounding.",
    "3  Discrete Legendre transform, $h = 0.8$": "Velocities are tangent at midpoints, momenta at nodes:\n"
    "half the constraint impulse leads from either side to $p_n$.",
    "4  Pendulum released from rest, $h = 0.1$": "Forces grow towards the bottom. Momenta $p_n$ miss the hidden\n"
    "constraint; velocities and projected momenta fulfil it.",
    "5  Energy of the pendulum": "Both energies stay near zero. Closer, $H_d$ deviates less than $E_d$,\nand to the other side.",
    "6  Discrete Legendre transform, $h = 0.2$": "With gravity, momenta $p_n$ leave the tangent;\nprojected momenta lie on it.",
}
for panel, (heading, text) in zip(panels, captions.items(), strict=True):
    panel.suptitle(heading, x=0.04, ha="left", weight="bold", fontsize=14, color=INK)
    panel.supxlabel(text, x=0.04, ha="left", fontsize=12, color=GREY)

axes = stage(panels[0].subplots(), (-1.1, 1.1), (-1.1, 1.1))
draw_forces(axes, circle, 63, 3, 0.45)
key(axes, 0, 0.3, ("$-G^T\\lambda_n$", FORCE), (f"$\\lambda_n = {multiplier.mean():.8f}$", INK))

top, bottom = panels[1].subplots(2, 1, sharex=True)
draw_energies(top, circle, on_circle)
top.set_ylim(0.4995, 0.5018)
top.legend(ncols=2, **ABOVE)
draw_residuals(bottom, circle, on_circle, ("g", "(45)", "(46)"), 1e-13)

axes = stage(panels[2].subplots(), (-1.35, 1.35), (-1.1, 1.4))
draw_legendre(axes, point, coarse_circle, 5, 2, 0.55)
sides = (("$D_2L_d$ and $-D_1L_d$", GREY), ("$\\mp h\\,G^T\\lambda_n/2$", FORCE))
key(axes, 0.25, -0.25, ("$(q_{n+1}-q_n)/h$", VELOCITY), ("$p_n$", MOMENTUM), *sides)

top, bottom = panels[3].subplots(2, 1, height_ratios=(1.5, 1))
stage(top, (-1.35, 1.35), (-1.06, 0.1))
draw_forces(top, swing, 12, 1, 0.025)
key(top, 1.05, -0.75, ("$-G^T\\lambda_n$", FORCE))
draw_residuals(bottom, swing, on_swing, RESIDUALS, 1e1)

top, bottom = panels[4].subplots(2, 1, sharex=True)
height = 9.81 * np.asarray(swing.q[:, 1])
draw_energies(top, swing, on_swing)
top.plot(swing.t, height, color=PALE, zorder=0, label="potential")
top.plot(swing.t, on_swing["H"] - height, color=PALE, ls="--", zorder=0, label="kinetic")
draw_energies(bottom, swing, on_swing)
bottom.set(xlabel="time", ylabel="energy, fine scale")
top.legend(ncols=4, **ABOVE)

axes = stage(panels[5].subplots(), (-1.45, 1.25), (-1.45, 0.35))
draw_legendre(axes, pendulum, coarse_swing, 5, 2, 0.17)
key(axes, -0.5, 0.3, ("$(q_{n+1}-q_n)/h$", VELOCITY), ("$p_n$", MOMENTUM), ("projected $p_n$", PROJECTED), *sides)

# %% Table and picture
present("pendulum", conserved, figure)
