"""Mathematical pendulum: what a variational integrator keeps, and how momenta are read from positions.

After S. Leyendecker, J. E. Marsden, M. Ortiz, Variational integrators for constrained dynamical systems, ZAMM 88 (2008), section
3.1: the panels follow its figures 1 to 6, and numbers in brackets are its equations. A mass point moves on the unit circle,
first without and then with gravity.
"""

# %% Setup: Lagrangian, constraint (48) and chart (49) as plain functions; gravity is a parameter
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post, viz
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
pendulum = point.replace({"gravity": np.array([0.0, -9.81])})

# %% Motions: all with the same number of steps, so that each formulation is compiled once
steps = 64 if options().reduced else 100
formulations = (mbd.Multipliers(), mbd.NullSpace(), mbd.Reparametrised())


def run(system, v0, dt, formulation=formulations[0]):
    return mbd.simulate(system, [1.0, 0.0], v0, dt=dt, steps=steps, formulation=formulation)


circle_runs = [run(point, [0.0, 1.0], 0.1, formulation) for formulation in formulations]
swing_runs = [run(pendulum, [0.0, 0.0], 0.1, formulation) for formulation in formulations]
circle, swing = circle_runs[0], swing_runs[0]


# %% What the motions kept
@jax.jit
def measure(system, motion):
    """Energies and absolute residuals over the nodes or steps of a motion."""
    p = post.momentum(system, motion)
    residuals = {
        "$g$": post.constraint_residuals(system, motion),
        "(45), velocities": post.hidden_velocity_constraints(system, motion),
        "(46), $p_n$": post.hidden_momentum_constraints(system, motion, p),
        "(46), projected $p_n$": post.hidden_momentum_constraints(system, motion, motion.p),
    }
    energies = {"$E_d$": post.discrete_energy(system, motion), "$H_d$": post.energy(system, motion, p)}
    return energies, {name: jnp.abs(values).max(axis=1) for name, values in residuals.items()}


(energies, residuals), (swing_energies, swing_residuals) = measure(point, circle), measure(pendulum, swing)
multiplier = np.asarray(circle.multipliers[:, 0])  # positive by (38); the paper prints it with the other sign
difference = max(float(jnp.max(jnp.abs(other.q - runs[0].q))) for runs in (circle_runs, swing_runs) for other in runs[1:])
conserved = {
    "circle: lambda (published: 1.00251257867)": f"{multiplier.mean():.12f}",
    "circle: spread of lambda over the nodes": np.ptp(multiplier),
    "circle: change of H_d, at most": np.ptp(energies["$H_d$"]),
    "circle: change of E_d, at most": np.ptp(energies["$E_d$"]),
    "circle: hidden constraint (45), at most": residuals["(45), velocities"].max(),
    "circle: hidden constraint (46), at most": residuals["(46), $p_n$"].max(),
    "gravity: amplitude of H_d": np.ptp(swing_energies["$H_d$"]),
    "gravity: amplitude of E_d": np.ptp(swing_energies["$E_d$"]),
    "gravity: hidden constraint (45), at most": swing_residuals["(45), velocities"].max(),
    "gravity: hidden constraint (46) for p_n, at most": swing_residuals["(46), $p_n$"].max(),
    "gravity: hidden constraint (46) for projected p_n, at most": swing_residuals["(46), projected $p_n$"].max(),
    "three formulations: difference of positions, at most": difference,
}

# %% Picture: constraint forces, energies and residuals, and the discrete Legendre transform, without (above) and with gravity
headings = {"A": "Constraint forces on a circle", "B": "Energy on the circle", "C": "Discrete Legendre transform, $h = 0.8$"}
headings |= {
    "D": "Constraints",
    "E": "The same with gravity",
    "F": "Energy",
    "G": "The same with gravity, $h = 0.2$",
    "H": "Constraints",
}
figure, axes = viz.sheet("ABC;ADC;EFG;EHG", headings, size=(17, 12))
turn = np.linspace(0, 2 * np.pi, 200)
rim = np.stack([np.cos(turn), np.sin(turn)], axis=1)


def draw_forces(axes, motion, nodes, every, scale):
    q, force = np.asarray(motion.q)[:nodes:every], -np.asarray(motion.q * motion.multipliers)[:nodes:every]
    viz.paths({"": rim, "$q_n$": q}, axes=axes, style={"": "band", "$q_n$": "points"}, colours=("", viz.INK))
    viz.arrows(q, force, axes=axes, scale=scale, colour=viz.PURPLE, label="$-G^T\\lambda_n$").set_axis_off()


def draw_legendre(axes, system, motion, nodes, scale):
    """Velocities at midpoints, momenta at nodes; both one-sided momenta are brought together by half the constraint impulse."""
    q, projected = np.asarray(motion.q)[:nodes], np.asarray(motion.p)[:nodes]
    p, raw = (np.asarray(post.momentum(system, motion, kind))[:nodes] for kind in ("constrained", "raw"))
    viz.paths({"": rim, "$q_n$": q}, axes=axes, style={"": "band", "$q_n$": "points"}, colours=("", viz.INK))
    middle, velocities = 0.5 * (q[1:] + q[:-1]), np.diff(q, axis=0) / float(motion.dt)
    viz.arrows(middle, velocities, axes=axes, scale=scale, middle=True, label="$(q_{n+1}-q_n)/h$")
    viz.arrows(q, raw, axes=axes, scale=scale, colour=viz.GREY, thin=True, label="$D_2L_d$")
    viz.arrows(q, projected, axes=axes, scale=scale, colour=viz.GREEN, label="projected $p_n$")
    viz.arrows(q, p, axes=axes, scale=scale, colour=viz.ORANGE, label="$p_n$").set_axis_off()


draw_forces(axes["A"], circle, 63, 3, 0.45)
viz.curves(circle.t, energies, axes=axes["B"], xlabel="", ylim=(0.4995, 0.5018))
viz.curves(circle.t, residuals, axes=axes["D"], log=True, style="points", ylim=(5e-18, 1e-13))
draw_legendre(axes["C"], point, run(point, [0.0, 1.0], 0.8), 5, 0.55)
draw_forces(axes["E"], swing, 12, 1, 0.025)
viz.curves(swing.t, swing_energies, axes=axes["F"], xlabel="")
viz.curves(swing.t, swing_residuals, axes=axes["H"], log=True, style="points", ylim=(5e-18, 1e1))
draw_legendre(axes["G"], pendulum, run(pendulum, [0.0, 0.0], 0.2), 5, 0.17)
present("pendulum", conserved, figure)
