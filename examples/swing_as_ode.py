"""Swing as an ordinary differential equation: a beam on two links, explicit steps, and what stiffness costs them.

After P. Masarati, Adding kinematic constraints to purely differential dynamics, Computational Mechanics 47 (2011), section 4.2 (its
figures 4 to 8, tables 1 and 2). Two links are constraints on the ends of a beam that carries a mass. Four finite volumes have vibrations of
10 kHz that explicit steps must follow; a few forms in a floating frame, (23) to (26), have only those that matter; without the axial one
they move in the longest steps allowed.
"""

# %% Setup: the beam in a plane, two-node finite volumes (31) to (37), nodes with place and angle; E = 73 GPa
import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import eigh

import jaxmbd as mbd
from jaxmbd import odes, post, viz
from jaxmbd.cli import options, present

jax.config.update("jax_enable_x64", True)  # a script may decide this; the library leaves it alone

LENGTH, MASS, LINKS = 0.72, 0.5, np.array([0.36, 0.36 * np.sqrt(2)])
HOOKS = np.array([[0.0, 0.36], [LENGTH + 0.36, 0.36]])
MODULUS, DENSITY, WIDTH, HEIGHT = 73e9, 2700.0, 0.005, 0.001
AREA, BENDING = WIDTH * HEIGHT, MODULUS * WIDTH * HEIGHT**3 / 12
AXIAL, SHEAR = MODULUS * AREA, 5 / 6 * MODULUS / 2.6 * AREA


def inertia(elements):
    """Mass and moment of inertia of the chunk of each node, as the diagonal of a matrix."""
    size = LENGTH / elements
    mass, moment = np.full(elements + 1, DENSITY * AREA * size), np.full(elements + 1, DENSITY * AREA * size**3 / 12)
    mass[[0, -1]], moment[[0, -1]] = mass[1] / 2, moment[1] / 2
    mass[elements // 2] += MASS
    return np.stack([mass, mass, moment], axis=1).ravel()


def strain_energy(x):
    """Axial strain, shear and curvature in the middle of each element; the stiffness to shear is corrected for its slenderness."""
    nodes = x.reshape(-1, 3)
    size = LENGTH / (nodes.shape[0] - 1)
    (along, up), turn = jnp.diff(nodes[:, :2], axis=0).T / size, 0.5 * (nodes[1:, 2] + nodes[:-1, 2])
    stretch, shear = jnp.cos(turn) * along + jnp.sin(turn) * up - 1, jnp.cos(turn) * up - jnp.sin(turn) * along
    corrected = 1 / (1 / SHEAR + size**2 / (12 * BENDING))
    return 0.5 * size * jnp.sum(AXIAL * stretch**2 + corrected * shear**2 + BENDING * (jnp.diff(nodes[:, 2]) / size) ** 2)


def straight(elements):
    return np.pad(np.linspace(0, LENGTH, elements + 1)[:, None], ((0, 0), (0, 2))).ravel()


def pull(t, x):
    """The triangular force of 0.256 s at the mass, along the first axis."""
    return jnp.zeros_like(x).at[3 * (x.size // 6)].set(2 * jnp.maximum(0, 1 - jnp.abs(2 * t / 0.256 - 1)))


def links(t, x, params):
    """Both links keep their length."""
    rods = x.reshape(-1, 3)[jnp.array([0, -1]), :2] - HOOKS
    return jnp.sqrt(jnp.sum(rods**2, axis=1)) - LINKS


# %% The beam of finite volumes, and its forms between pins: vibrations 1 to 3 across, and the first one along (table 1)
volumes = mbd.System.from_functions(
    kinetic=lambda t, x, v, p: 0.5 * inertia(4) @ v**2,
    potential=lambda t, x, p: strain_energy(x),
    forces=lambda t, x, v, p: pull(t, x),
    constraints=links,
)
fine = straight(40)
free = np.delete(np.arange(fine.size), [0, 1, fine.size - 3, fine.size - 2])
stiffness = np.asarray(jax.hessian(strain_energy)(jnp.asarray(fine)))[np.ix_(free, free)]
squares, shapes = eigh(stiffness, np.diag(inertia(40)[free]))
frequencies = np.sqrt(np.abs(squares)) / (2 * np.pi)
chosen = [0, 1, 2, int(np.argmin(np.abs(frequencies - 319.5)))]
forms = np.zeros((4, fine.size))
forms[:, free] = shapes[:, chosen].T


def nodes(r):
    """The nodes of the fine beam, from the middle and the angle of its frame, and amplitudes of forms."""
    x, y, turn = (fine + r[3:] @ forms[: r.size - 3]).reshape(-1, 3).T
    x = x - LENGTH / 2
    c, s = jnp.cos(r[2]), jnp.sin(r[2])
    return jnp.stack([r[0] + c * x - s * y, r[1] + s * x + c * y, r[2] + turn], axis=1).ravel()


modal = mbd.System.from_functions(
    kinetic=lambda t, r, v, p: 0.5 * inertia(40) @ jax.jvp(nodes, (r,), (v,))[1] ** 2,
    potential=lambda t, r, p: 0.5 * squares[chosen[: r.size - 3]] @ r[3:] ** 2,
    forces=lambda t, r, v, p: jax.vjp(nodes, r)[1](pull(t, nodes(r)))[0],
    constraints=lambda t, r, p: links(t, nodes(r), p),
)

# %% Motions as in table 2: each with the constraints projected (present) and only accelerated along (baseline)
# With looser tolerances steps grow beyond what is stable, and fast vibrations with them, until they are as large as the tolerance allows.
shorter = 0.15 if options().reduced else 1.0
models = {
    "finite volumes": (volumes, straight(4), 0.69 * shorter),
    "four forms": (modal, np.array([LENGTH / 2, *np.zeros(6)]), shorter),
    "without the axial form": (modal, np.array([LENGTH / 2, *np.zeros(5)]), shorter),
}
limits = {"rtol": 1e-6, "atol": 1e-8, "dt0": 1e-5, "dtmax": 1e-3, "solver": diffrax.Dopri5(), "saveat": 801}
methods = {"present": odes.Projection(), "baseline": odes.Baseline()}
motions = {
    (model, way): odes.integrate(system, start, t1=end, method=method, throw=False, **limits)
    for model, (system, start, end) in models.items()
    for way, method in methods.items()
}

# %% Steps, constraints, markers A to E: both ends, the mass, and the quarters between
lengths, rates, markers = {}, {}, {}
table = {"vibrations between pins, of table 1": ", ".join(f"{frequencies[i]:.4g}" for i in chosen) + " Hz"}
for (model, way), motion in motions.items():
    system = models[model][0]
    lengths[model, way] = np.abs(np.asarray(post.constraint_residuals(system, motion))).max(axis=1)
    rates[model, way] = np.abs(np.asarray(post.constraint_rates(system, motion))).max(axis=1)
    x = np.asarray(motion.q if model == "finite volumes" else jax.vmap(nodes)(motion.q)).reshape(motion.t.size, -1, 3)
    markers[model, way] = x[:, :: x.shape[1] // 4, :2]
    steps = f"{int(motion.scheme.accepted)}, and {int(motion.scheme.rejected)} rejected, to {float(motion.final.t):.2f} s"
    table[f"{model}, {way}: steps"] = steps
    table[f"{model}, {way}: constraints and their rates, at most"] = f"{lengths[model, way].max():.1e}, {rates[model, way].max():.1e}"

# %% Picture
headings = {"A": "Without the axial form: the swing at some times, and its markers", "B": "Height of the mass"}
headings |= {"C": "Accepted steps", "D": "Constraints, baseline and present", "E": "Their rates"}
figure, axes = viz.sheet("AAABBB;CCDDEE", headings, size=(19, 12), heights=(1.2, 1))
best = markers["without the axial form", "present"]
for row in np.linspace(0, best.shape[0] - 1, 9).astype(int):
    whole = np.asarray(nodes(motions["without the axial form", "present"].q[row])).reshape(-1, 3)[:, :2]
    viz.paths({"": np.stack([HOOKS[0], whole[0]])}, axes=axes["A"], colours=(viz.PALE,))
    viz.paths({"": np.stack([HOOKS[1], whole[-1]])}, axes=axes["A"], colours=(viz.PALE,))
    viz.paths({"": whole}, axes=axes["A"], colours=(viz.GREY,))
viz.paths({name: best[:, i] for i, name in enumerate("ABCDE")}, axes=axes["A"], style="line")
middle = {model: (motions[model, "present"].t, markers[model, "present"][:, 2, 1]) for model in models}
viz.curves(None, {model: curve for model, curve in middle.items()}, axes=axes["B"], style={"four forms": "dashed"})
counts = {way: [int(motions[model, way].scheme.accepted) for model in models] for way in methods}
ticks = {"xlabel": "", "xticks": range(3), "xticklabels": [model.replace(" ", "\n", 1) for model in models]}
viz.curves(np.arange(3), counts, axes=axes["C"], style={"present": "joined", "baseline": "dashed"}, log=True, **ticks)
for letter, found in (("D", lengths), ("E", rates)):
    shown = {model: (model, "baseline") for model in models} | {"four forms, present": ("four forms", "present")}
    viz.curves(None, {label: (motions[key].t, found[key]) for label, key in shown.items()}, axes=axes[letter], log=True, ylim=(1e-17, 1e0))
present("swing_as_ode", table, figure)
