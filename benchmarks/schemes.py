"""All schemes on the same motions: order, invariants, stiffness, cost and conditioning; pictures of their energies."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.simulation.start import initial_state

from .measure import largest, median_times

GENERAL = {
    "Midpoint": mbd.Midpoint(),
    "Trapezoidal": mbd.Trapezoidal(),
    "Galerkin(4)": mbd.Galerkin(4),
    "EnergyMomentum": mbd.EnergyMomentum(),
    "GeneralizedAlpha(0.8)": mbd.schemes.GeneralizedAlpha(0.8),
    "GeneralizedAlpha(1)": mbd.schemes.GeneralizedAlpha(1.0),
}
FOR_BODIES = {
    "ConservativeDirector": mbd.schemes.ConservativeDirector(),
    'DirectorEnergyMomentum("exponential")': mbd.schemes.DirectorEnergyMomentum("exponential"),
    "Newmark": mbd.schemes.Newmark(),
}
DAMPED = {f"GeneralizedAlpha({rho:g})": mbd.schemes.GeneralizedAlpha(rho) for rho in (0.0, 0.5)}
SCHEMES = GENERAL | FOR_BODIES
TIMED_STEPS = 50
G, STIFFNESS = 9.81, 9.81e8


@dataclasses.dataclass(frozen=True)
class Case:
    """A motion with the step and the number of steps that are measured; orders are measured over `span`, if there is one."""

    make: Callable
    dt: float
    steps: int
    span: float | None = None
    rigid: bool = True

    @property
    def schemes(self) -> dict[str, mbd.schemes.AbstractScheme]:
        return SCHEMES if self.rigid else GENERAL

    @property
    def formulation(self) -> mbd.formulations.AbstractFormulation:
        return mbd.formulations.JointMultipliers() if self.rigid else mbd.Multipliers()


def top():
    """Turning at 50 rad/s about its own axis, tilted by 0.3."""
    system, q0 = mbd.assemble(*gallery.spinning_top())
    return mbd.find_rank(system, q0), q0, mbd.joint_velocities(system, q0, {"tip": 50 * q0[9:12]})


def chain():
    """Four heavy bodies on ball joints, released from rest."""
    system, q0 = mbd.assemble(*gallery.hanging_chain(spherical=True))
    return mbd.find_rank(system, q0), q0, jnp.zeros_like(q0)


def linkage():
    """A ring of six bodies with one redundant constraint."""
    system, q0 = mbd.assemble(*gallery.six_body_linkage())
    return mbd.find_rank(system, q0), q0, mbd.joint_velocities(system, q0, {"hinge 1": 30.0})


def stiff_pendulum(stretch: float = 0.0, angle: float = 0.0, speed: float = 0.0):
    """A mass point on a spring that oscillates 10,000 times as fast as the pendulum swings; at rest its length is in equilibrium."""
    potential = lambda t, q, p: 0.5 * p["k"] * (jnp.sqrt(q @ q) - 1) ** 2 + p["g"] * q[1]
    system = mbd.System.from_functions(kinetic=lambda t, q, v, p: 0.5 * v @ v, potential=potential, params={"k": STIFFNESS, "g": G})
    length = 1 + G * np.cos(angle) / STIFFNESS + stretch
    return system, length * jnp.array([np.sin(angle), -np.cos(angle)]), speed * jnp.array([np.cos(angle), np.sin(angle)])


CASES = {
    "top": Case(top, 0.01, 5000, span=0.04),
    "top, h w = 1.5": Case(top, 0.03, 1000),
    "chain": Case(chain, 0.01, 5000, span=0.2),
    "linkage": Case(linkage, 0.005, 5000, span=0.02),
    "stiff, h = 0.05": Case(functools.partial(stiff_pendulum, speed=0.5), 0.05, 400, rigid=False),
    "stiff, h = 0.05, stretched": Case(functools.partial(stiff_pendulum, stretch=1e-4, speed=0.5), 0.05, 400, rigid=False),
    "stiff, h = 0.01, from the side": Case(functools.partial(stiff_pendulum, angle=np.pi / 2), 0.01, 2000, rigid=False),
}


@functools.cache
def motion(case: str):
    return CASES[case].make()


@functools.cache
def long_run(case: str, name: str) -> dict:
    """What a run kept, from the end of its first step to the last that was solved, and its fifth row alone."""
    (system, q0, v0), at = motion(case), CASES[case]
    scheme = (at.schemes | DAMPED)[name]
    run = mbd.simulate(system, q0, v0, dt=at.dt, steps=at.steps, scheme=scheme, formulation=at.formulation, throw=False)
    reached = int(run.reached)
    rows = slice(1, reached + 1)
    column = lambda values: np.asarray(values)[rows]
    fifth = jax.tree.map(lambda leaf: leaf[5:6] if leaf.ndim and leaf.shape[0] == at.steps + 1 else leaf, run)
    found = {"reached": reached, "t": column(run.t), "energy": column(post.energy(system, run)), "fifth": fifth}
    found |= {"iterations": column(run.newton_steps), "q": column(run.q)}
    if at.rigid:
        found |= {"momentum": column(post.angular_momentum(system, run)), "constraints": column(post.constraint_residuals(system, run))}
        found |= {"rates": column(post.constraint_rates(system, run)) / largest(np.append(column(run.v), 1e-300))}
    return found


@eqx.filter_jit
def advance(system, q0, v0, dt, steps, scheme, formulation):
    """The state after any number of steps, in one compiled program."""
    first = initial_state(system, q0, v0, dt, jnp.zeros_like(dt), scheme)
    return jax.lax.fori_loop(0, steps, lambda _, state: mbd.simulation.step(system, state, dt, scheme, formulation)[0], first)


def ends(case: str, name: str, steps: int, span: float) -> mbd.simulation.State:
    at = CASES[case]
    return advance(*motion(case), jnp.asarray(span / steps), jnp.asarray(steps), at.schemes[name], at.formulation)


def order(case: str, name: str) -> float:
    """The slope of the errors of positions against the steps."""
    span, counts = CASES[case].span, (10, 20, 40)
    reference = _reference(case)
    errors = [largest(ends(case, name, count, span).q - reference) for count in counts]
    return post.order([span / count for count in counts], errors)


@functools.cache
def _reference(case: str):
    return ends(case, "Galerkin(4)", 400, CASES[case].span).q


def row(case: str, name: str, times: dict[str, float]) -> dict:
    """One scheme on one motion; energies are counted from the end of the first step and relative to `_unit`."""
    at, run = CASES[case], long_run(case, name)
    kept = {"change of energy": "", "end": "", "momentum": "", "constraints": "", "hidden": "", "iterations": ""}
    if run["reached"] > 0:
        energy = (run["energy"] - _energy(case)) / _unit(case)
        kept |= {"change of energy": f"{largest(energy):.1e}", "end": f"{energy[-1]:+.1e}", "iterations": f"{run['iterations'].mean():.1f}"}
    if run["reached"] > 0 and at.rigid:
        L = run["momentum"]
        symmetric = case != "linkage"
        kept["momentum"] = f"{largest(L[:, 2] - L[0, 2]) / np.linalg.norm(L, axis=1).max():.1e}" if symmetric else "no symmetry"
        kept |= {"constraints": f"{largest(run['constraints']):.1e}", "hidden": f"{largest(run['rates']):.1e}"}
    costs = {"order": "", "time": "", "cond M": "", "cond JM": ""}
    if at.span is not None:
        system = motion(case)[0]
        condition = lambda kind: f"{float(post.condition_number(system, run['fifth'], kind)[0]):.0e}"
        costs = {"order": f"{order(case, name):.2f}", "time": f"{times[name] / times['Midpoint']:.1f}"}
        costs |= {"cond M": condition(mbd.Multipliers()), "cond JM": condition(mbd.formulations.JointMultipliers())}
    outcome = f"all {at.steps}" if run["reached"] == at.steps else f"fails at {run['reached'] + 1}"
    return {"case": case, "scheme": name, "steps": outcome, "order": costs.pop("order")} | kept | costs


def _energy(case: str) -> float:
    """The energy of the start, which `EnergyMomentum` keeps."""
    return float(long_run(case, "EnergyMomentum")["energy"][0])


def _unit(case: str) -> float:
    """What energies are compared with: the energy of the start; for the stiff pendulum, that of a fall by its length."""
    return abs(_energy(case)) if CASES[case].rigid else G


def rows_of(case: str) -> list[dict]:
    """All schemes on one motion, timed in turn over fifty steps."""
    at = CASES[case]
    times: dict[str, float] = {}
    if at.span is not None:
        times = median_times({name: lambda name=name: ends(case, name, TIMED_STEPS, TIMED_STEPS * at.dt) for name in at.schemes}, repeats=7)
    return [row(case, name, times) for name in at.schemes]


def run() -> list[dict]:
    """Every scheme on every motion it can do (allow half an hour)."""
    return [row for case in CASES for row in rows_of(case)]


def _panel(axes, case: str, colours: dict, top: float | None = None) -> None:
    """Changes of energy over time, the largest in each of 250 parts, one line a scheme; a run that fails ends with a cross."""
    for name, colour in colours.items():
        found = long_run(case, name)
        change = np.abs(found["energy"] - _energy(case)) / _unit(case) + 1e-17
        envelope = np.minimum(np.maximum.reduceat(change, np.arange(0, change.size, max(1, change.size // 250))), top or np.inf)
        times = np.linspace(found["t"][0], found["t"][-1], envelope.size)
        axes.semilogy(times, envelope, color=colour, lw=1.2, ls="--" if name == "Trapezoidal" else "-", label=name)
        if found["reached"] < CASES[case].steps:
            axes.plot(times[-1], envelope[-1], "x", color=colour, ms=8, mew=2, clip_on=False, zorder=5)
    axes.set(xlabel="time in s", ylabel="change of energy, relative", title=case, ylim=(None, top))


def _signed_panel(axes, case: str, colours: dict) -> None:
    """Energies over time on a linear scale."""
    for name, colour in colours.items():
        found = long_run(case, name)
        axes.plot(found["t"], (found["energy"] - _energy(case)) / _unit(case), color=colour, lw=1.2)
    axes.set(xlabel="time in s", ylabel="energy - energy of the start, relative", title=case, ylim=(-1.1, 0.2))


def pictures(folder: Path) -> list[Path]:
    """Long-time energies, numerical dissipation, and the stiff pendulum."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = plt.get_cmap("tab10").colors
    every = dict(zip(SCHEMES, colours, strict=False))
    damping = dict(zip([*DAMPED, "GeneralizedAlpha(0.8)", "GeneralizedAlpha(1)", "EnergyMomentum"], colours, strict=False))
    general = {name: every[name] for name in GENERAL}
    stiff = [(functools.partial(_panel, top=1e10), case, general) for case in CASES if case.startswith("stiff")]
    plans = {
        "schemes-energy": [(_panel, "chain", every), (_panel, "linkage", every)],
        "schemes-dissipation": [(_panel, "chain", damping), (_signed_panel, "chain", damping)],
        "schemes-stiff": stiff,
    }
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, panels in plans.items():
        figure, axes = plt.subplots(1, len(panels), figsize=(3.7 * len(panels) + 2, 4.6), squeeze=False, layout="constrained")
        for place, (draw, case, names) in zip(axes[0], panels, strict=True):
            draw(place, case, names)
            place.grid(alpha=0.3)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        written.append(folder / f"{name}.png")
        figure.savefig(written[-1], dpi=90)
        plt.close(figure)
    return written
