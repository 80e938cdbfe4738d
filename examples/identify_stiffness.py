"""Identify stiffness: the bending stiffness along a beam, found from the noisy path of its tip.

A clamped beam with a weight at its tip falls, and is hit from below. Its stiffness tapers and has a weak spot; the record of the tip alone
tells where. Whole simulations are differentiated by the logarithms of the stiffnesses of all pieces, and a damped Gauss-Newton iteration
fits them. The singular values of these sensitivities say what can be known: without the blow, details would drown in the noise.
"""

# %% Setup: 12 elements, 6 pieces of constant stiffness, from a clamp along the second axis; the third one points up
import jax
import jax.numpy as jnp
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
loads = {"gravity": mbd.Gravity((0, 0, -9.81)), "blow": mbd.Force("beam[8]", Partial(blow, np.array(BLOW)))}
system, q0 = mbd.assemble(mbd.Mechanism({"beam": beam}, clamp, loads))
middles = (np.arange(PIECES) + 0.5) / PIECES
true = np.log((1.6 - 1.1 * middles) * (1 - 0.5 * np.exp(-(((middles - 0.6) / 0.1) ** 2))))  # a taper, and a weak spot at 0.6


# %% The path of the tip by the logarithms of the bending stiffnesses, relative to that of the section, and by the size of the blow
def varied(logarithms, size):
    bending = jnp.repeat(jnp.exp(logarithms), 2) * system.parameters["beam.stiffness[:, 3, 3]"]
    return system.replace({"beam.stiffness[:, 3, 3]": bending, "blow.force[0]": size})


@jax.jit
def sensitivities(logarithms, size):
    """The derivative of the path by the logarithms, and the motion."""

    def path(logarithms):
        motion = mbd.simulate(varied(logarithms, size), q0, dt=dt, steps=steps, scheme=mbd.EnergyMomentum(), throw=False)
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

# %% Picture
headings = {"A": "Curvature of the beam, and the record of its tip", "B": "Bending stiffness, by that of the section"}
headings |= {"C": "Height of the tip", "D": "Gauss-Newton", "E": "Identifiability"}
figure, axes = viz.sheet("AAABBB;CCCDEE", headings, size=(17, 10), heights=(1.2, 1))
bent = varied(true, BLOW)
curvature = np.abs(post.strains(bent, truth)["beam"].values[..., 3])
viz.paths(record, axes=axes["A"], style="points", colours=[viz.GREY])
viz.snapshots(bent, truth, colour=curvature, axes=axes["A"], plane=(1, 2), frame=False, bar={"shrink": 0.7})
along = np.repeat(np.linspace(0, 1, PIECES + 1), 2)[1:-1]
guesses = {"true": np.repeat(np.exp(true), 2), "first guess": np.ones(2 * PIECES)}
drawn = {"true": "band", "first guess": "dashed"}
viz.curves(along, guesses, axes=axes["B"], style=drawn, colours=[viz.ORANGE], xlabel="along the beam", ylim=(0, 1.9))
viz.bars(middles, np.exp(found), 3 * deviations * np.exp(found), axes=axes["B"], label="found, and three deviations")
fits = {"record with noise": record[:, 1], "first guess": first[:, 1], "fit": fit[:, 1]}
drawn = dict(zip(fits, ("points", "dashed", "line"), strict=True))
viz.curves(truth.t, fits, axes=axes["C"], style=drawn, colours=(viz.GREY, viz.ORANGE, viz.BLUE))
viz.curves(
    range(len(history)), history, axes=axes["D"], log=True, style="joined", xlabel="iteration", ylabel="mean square, by that of noise"
)
viz.curves(range(1, PIECES + 1), spectra, axes=axes["E"], log=True, style="joined", xlabel="number", ylabel="singular value")
for letter in "DE":
    viz.mark(axes[letter], y=1.0, text="noise")
present("identify_stiffness", table, figure)
