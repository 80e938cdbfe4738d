"""Accuracy against time: adaptive steps with projection beside variational and energy-momentum schemes, and beside SciPy and SUNDIALS.

A spatial double pendulum in Cartesian coordinates, and a pendulum on a stiff spring, at the end of a short motion. SciPy and SUNDIALS
integrate the equations with constrained accelerations, compiled; every evaluation is a call from Python.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from jaxmbd import odes

from .measure import largest, median_times
from .schemes import advance

TOLERANCES = {"Adams": (1e-3, 1e-5, 1e-7, 1e-9, 1e-11), "BDF": (1e-3, 1e-5, 1e-7, 1e-9)}
"""By the multistep method that suits a motion."""
SOLVERS = {"Dopri5": diffrax.Dopri5(), "Dopri8": diffrax.Dopri8()}
SCHEMES = {"Midpoint": mbd.Midpoint(), "Galerkin(4)": mbd.Galerkin(4), "EnergyMomentum": mbd.EnergyMomentum()}
GRAVITY, STIFFNESS = 9.81, 1e6
REPEATS = 3


class Case(NamedTuple):
    """A system and its start, how long it moves, and with how many steps schemes do so."""

    make: Callable
    span: float
    steps: tuple[int, ...]
    sundials: str


def double_pendulum():
    """Released level from the first axis, with a push to the side."""
    from tests.mechanisms import chain

    start = mbd.project(chain(2, 3), jnp.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), jnp.array([0.0, 1.0, 0.3, 0.2, 0.0, -0.5]))
    return mbd.find_rank(chain(2, 3), start[0]), *start


def stiff_pendulum():
    """Hanging in equilibrium on a spring 300 times as fast as the swing, with a speed to the side."""
    potential = lambda t, q, p: 0.5 * p * (jnp.sqrt(q @ q) - 1) ** 2 + GRAVITY * q[1]
    system = mbd.System.from_functions(kinetic=lambda t, q, v, p: 0.5 * v @ v, potential=potential, params=STIFFNESS)
    return system, jnp.array([0.0, -1 - GRAVITY / STIFFNESS]), jnp.array([0.5, 0.0])


CASES = {
    "double pendulum": Case(double_pendulum, 2.0, (50, 200, 800, 3200), "Adams"),
    "stiff spring": Case(stiff_pendulum, 1.0, (50, 200, 800, 3200, 12800), "BDF"),
}


@eqx.filter_jit
def adaptive(dynamics, q0, v0, span, tolerance, solver):
    """The end of a motion, the tolerance being a number of the program."""
    controller = diffrax.PIDController(tolerance, tolerance)
    return odes.integrate(dynamics, q0, v0, t1=span, solver=solver, controller=controller, saveat=2, throw=False, max_steps=1_000_000)


def ours(case: Case, start) -> dict[str, dict[float, Callable]]:
    """Runs by method and by tolerance or step, each of which returns the last position."""
    system, q0, v0 = start
    span, formulation = jnp.asarray(case.span), mbd.Multipliers()
    stiff = {"Kvaerno5": diffrax.Kvaerno5()} if case.sundials == "BDF" else {}
    runs: dict[str, dict[float, Callable]] = {}
    for name, solver in (SOLVERS | stiff).items():
        runs[f"odes, {name}"] = {
            tol: lambda solver=solver, tol=tol: adaptive(system, q0, v0, span, jnp.asarray(tol), solver).q[-1]
            for tol in TOLERANCES[case.sundials]
        }
    for name, scheme in SCHEMES.items():
        runs[name] = {
            case.span / count: lambda scheme=scheme, count=count: (
                advance(system, q0, v0, span / count, jnp.asarray(count), scheme, formulation).q
            )
            for count in case.steps
        }
    return runs


def peers(case: Case, start) -> dict[str, dict[float, Callable]]:
    """SciPy and, where it is installed, SUNDIALS on the equations of `Baseline`."""
    system, q0, v0 = start
    n, y0 = q0.size, np.concatenate([q0, v0])
    field = odes.Field(odes.Dynamics.of(system), odes.Baseline())
    rate = jax.jit(lambda t, y: jnp.concatenate(jax.tree.leaves(field(t, odes.State(y[:n], y[n:])))))
    f = lambda t, y: np.asarray(rate(t, y))
    method = "Radau" if case.sundials == "BDF" else "DOP853"
    runs = {
        f"SciPy, {method}": {
            tol: lambda tol=tol: solve_ivp(f, (0, case.span), y0, method, rtol=tol, atol=tol).y[:n, -1] for tol in TOLERANCES[case.sundials]
        }
    }
    if importlib.util.find_spec("sksundae") is not None:
        runs[f"CVODE, {case.sundials}"] = {tol: lambda tol=tol: _cvode(f, case, y0, tol)[:n] for tol in TOLERANCES[case.sundials]}
    return runs


def _cvode(f, case: Case, y0, tol: float) -> np.ndarray:
    from sksundae.cvode import CVODE

    def right_hand_side(t, y, yp):
        yp[:] = f(t, y)

    solver = CVODE(right_hand_side, rtol=max(tol, 1e-12), atol=tol, method=case.sundials, max_num_steps=1_000_000)
    return solver.solve(np.array([0.0, case.span]), y0).y[-1]


def rows_of(name: str) -> list[dict]:
    """All methods on one motion, timed in turn; those that fail have no number as their error."""
    case = CASES[name]
    start = case.make()
    reference = adaptive(*start, jnp.asarray(case.span), jnp.asarray(1e-13), diffrax.Dopri8()).q[-1]
    runs = ours(case, start) | peers(case, start)
    flat = {(method, size): run for method, sizes in runs.items() for size, run in sizes.items()}
    times = median_times(flat, REPEATS)
    errors = {key: largest(run() - reference) for key, run in flat.items()}
    return [
        {"case": name, "method": method, "tolerance or step": size, "error": errors[method, size], "time in ms": 1e3 * times[method, size]}
        for method, size in flat
    ]


MEASURED: list[dict] = []


def run() -> list[dict]:
    """Every method on both motions."""
    MEASURED[:] = [row for name in CASES for row in rows_of(name)]
    return MEASURED


def pictures(folder: Path) -> list[Path]:
    """Time against error, one panel a motion."""
    import matplotlib

    matplotlib.use("Agg")
    from jaxmbd import viz

    palette = (viz.GREEN, viz.PURPLE, viz.RED, viz.BLUE, viz.ORANGE, viz.YELLOW)
    ours = dict(zip([*SCHEMES, *(f"odes, {name}" for name in (*SOLVERS, "Kvaerno5"))], palette, strict=True))
    letters = dict(zip(CASES, "AB", strict=True))
    figure, axes = viz.sheet("AB", {letter: name.capitalize() for name, letter in letters.items()}, size=(14, 6))
    for name, letter in letters.items():
        curves: dict = {}
        styles = {}
        for row in (row for row in MEASURED if row["case"] == name and np.isfinite(row["error"]) and row["error"] < 10):
            curves.setdefault(row["method"], []).append((row["error"], row["time in ms"]))
        for label, points in curves.items():
            curves[label] = tuple(np.transpose(points))
            styles[label] = "joined" if label in ours else "dashed"
        settings = {"xlabel": "error of positions", "ylabel": "time in ms", "xscale": "log"}
        colours = {label: ours.get(label, viz.GREY if label.startswith("SciPy") else viz.INK) for label in curves}
        viz.curves(None, curves, axes=axes[letter], style=styles, colours=colours, log=True, **settings)
        axes[letter].invert_xaxis()
    path = folder / "odes-work.png"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
    return [path]
