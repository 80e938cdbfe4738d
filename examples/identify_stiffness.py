"""Identify stiffness: the bending stiffness along a beam, found from the noisy path of its tip.

A clamped beam with a weight at its tip falls, and is hit from below. Its stiffness tapers and has a weak spot; the record of the tip alone
tells where. Whole simulations are differentiated by the logarithms of the stiffnesses of all pieces, and a damped Gauss-Newton iteration
fits them. The singular values of these sensitivities say what can be known: without the blow, details would drown in the noise.
"""

# %% Setup: 12 elements, 6 pieces of constant stiffness, from a clamp along the second axis; the third one points up
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax.tree_util import Partial

import jaxmbd as mbd
from jaxmbd import post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

PIECES, BLOW, NOISE = 6, 150.0, 1e-3
dt, steps = (0.005, 100) if options().reduced else (0.0025, 200)


def blow(size, t):
    """A force upwards that lasts 30 ms."""
    return size * jnp.sin(jnp.pi * jnp.clip(t / 0.03, 0, 1)) ** 2 * jnp.array([0, 0, 1.0])


section = mbd.Section.rectangle(0.05, 0.03, 1.2e8, 1200.0)
beam = mbd.Beam.line((0, 0, 0), (0, 1, 0), section, 2 * PIECES, normal=(1, 0, 0), masses={-1: mbd.RigidBody.box(0.5, (0.05, 0.1, 0.3))})
clamp = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}
loads = [mbd.Gravity((0, 0, -9.81)), mbd.Force("beam[8]", Partial(blow, np.array(BLOW)))]
system, q0 = mbd.assemble(mbd.Mechanism({"beam": beam}, clamp, loads))
middles = (np.arange(PIECES) + 0.5) / PIECES
true = np.log((1.6 - 1.1 * middles) * (1 - 0.5 * np.exp(-(((middles - 0.6) / 0.1) ** 2))))  # a taper, and a weak spot at 0.6


# %% The path of the tip by the logarithms of the bending stiffnesses, relative to that of the section, and by the size of the blow
@jax.jit
def sensitivities(logarithms, size):
    """The derivative of the path by the logarithms, and the motion."""

    def path(logarithms):
        stiffness = jnp.asarray(system.params.beams[0].stiffness).at[:, 3, 3].multiply(jnp.repeat(jnp.exp(logarithms), 2))
        parts = lambda model: (model.beams[0].stiffness, model.loads[0].load.force.args[0])
        other = system.with_params(eqx.tree_at(parts, system.params, (stiffness, jnp.full(1, size))))
        motion = mbd.simulate(other, q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum(), throw=False)
        return tip(motion), motion

    return jax.jacfwd(path, has_aux=True)(logarithms)


def tip(motion):
    return motion.q.reshape(steps + 1, -1, 4, 3)[:, -1, 0, 1:]


truth = sensitivities(true, BLOW)[1]
truth.check(system)
record = tip(truth) + NOISE * jax.random.normal(jax.random.key(0), (steps + 1, 2))


# %% Damped Gauss-Newton, from coarse to fine: two halves first and then all pieces, since other minima lie beside the way
def linearise(logarithms, size=BLOW):
    slopes, motion = sensitivities(logarithms, size)
    residual = np.where(motion.successful, record - tip(motion), np.inf)  # a simulation that fails is no improvement
    return np.asarray(slopes).reshape(-1, PIECES) / NOISE, residual.ravel() / NOISE, tip(motion)


found = np.zeros(PIECES)
J, r, fit = linearise(found)
first, history = fit, [r @ r / r.size]
for parts, rounds in ((2, 4), (PIECES, 6)):
    basis, damping = np.repeat(np.eye(parts), PIECES // parts, axis=0), 1e-2
    for _ in range(rounds):
        S = J @ basis
        trial = found + basis @ np.linalg.solve(S.T @ S + damping * np.diag(np.sum(S**2, axis=0)), S.T @ r)
        ahead = linearise(trial)
        better = ahead[1] @ ahead[1] < r @ r
        found, (J, r, fit) = (trial, ahead) if better else (found, (J, r, fit))
        damping *= 0.1 if better else 10
        history.append(r @ r / r.size)
deviations = np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
spectra = {name: np.linalg.svd(one, compute_uv=False) for name, one in (("with the blow", J), ("without", linearise(true, 0.0)[0]))}
errors = np.exp(found - true) - 1
table = {
    "noise of the record": f"{1000 * NOISE:g} mm, the tip moves by {1000 * float(np.ptp(record[:, 1])):.0f} mm",
    "loss, by its expected value: at the start and at the end": f"{history[0]:.3g}, {history[-1]:.3g}",
    "stiffness of pieces: largest error": f"{100 * np.abs(errors).max():.2f} % (piece {np.abs(errors).argmax() + 1})",
    "standard deviations, from clamp to tip": ", ".join(f"{100 * one:.2f}" for one in deviations) + " %",
    "error by standard deviation, root mean square": np.sqrt(np.mean(((found - true) / deviations) ** 2)),
    **{f"singular values of the sensitivities, {name}": f"{one[0]:.3g} to {one[-1]:.3g}" for name, one in spectra.items()},
    "the weak spot: true and found stiffness": f"{np.exp(true[3]):.4f}, {np.exp(found[3]):.4f}",
}

# %% The picture
INK, PALE, GREY, BLUE, ORANGE, GREEN, PURPLE = "#1f2933", "#c5ced8", "#66727f", "#1273b8", "#dd5f0a", "#139a74", "#7b4fb5"
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0, "handlelength": 1.4, "columnspacing": 1.2}
plt.rcParams.update({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
figure = plt.figure(figsize=(17, 10), layout="constrained")
swing, stiffness, tips, losses, spectrum = figure.subplot_mosaic("AAABBB;CCCDEE", height_ratios=(1.2, 1)).values()
headings = ("1  Curvature of the beam", "2  Bending stiffness", "3  Height of the tip", "4  Gauss-Newton", "5  Identifiability")
for axes, heading in zip((swing, stiffness, tips, losses, spectrum), headings, strict=True):
    axes.set_title(heading, loc="left", weight="bold", fontsize=14, color=INK)

curvature = np.abs(post.strains(system, truth)["beam"].values[..., 3])
viz.snapshots(system, truth, colour=curvature, axes=swing, plane=(1, 2), bar={"shrink": 0.7})
swing.plot(*np.asarray(record).T, ".", color=GREY, ms=3, zorder=1)
swing.axis("off")
stiffness.stairs(np.exp(true), np.linspace(0, 1, PIECES + 1), color=PALE, lw=7, label="true", baseline=None)
stiffness.axhline(1.0, color=ORANGE, lw=1.2, ls="--", label="first guess")
bars = 3 * deviations * np.exp(found)
stiffness.errorbar(middles, np.exp(found), bars, fmt="o", color=BLUE, ms=7, capsize=4, label="found, and three deviations")
stiffness.set(xlabel="along the beam", ylabel="relative to the section", ylim=(0, None), xlim=(0, 1))
stiffness.legend(ncols=3, **ABOVE)
t = np.asarray(truth.t)
tips.plot(t, record[:, 1], ".", color=GREY, ms=4, label="record with noise")
tips.plot(t, first[:, 1], color=ORANGE, lw=1.2, ls="--", label="first guess")
tips.plot(t, fit[:, 1], color=BLUE, lw=1.6, label="fit")
tips.set(xlabel="time", xlim=(0, t[-1]))
tips.legend(ncols=3, **ABOVE)
losses.semilogy(history, "o-", color=PURPLE, lw=1.6, ms=6)
losses.axhline(1.0, color=PALE, lw=1.5, zorder=0)
losses.annotate("noise", (0, 1.0), xytext=(0, 5), textcoords="offset points", color=GREY)
losses.set(xlabel="iteration", ylabel="mean square, by that of noise")
for (name, one), colour in zip(spectra.items(), (GREEN, PALE), strict=True):
    spectrum.semilogy(np.arange(1, PIECES + 1), one, "s", color=colour, ms=7, label=name)
spectrum.axhline(1.0, color=PALE, lw=1.5, zorder=0)
spectrum.legend()
spectrum.set(xlabel="number", ylabel="singular value, by the noise", xticks=range(1, PIECES + 1))

# %% Table and picture
present("identify_stiffness", table, figure)
