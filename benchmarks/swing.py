"""The three-bar swing of S0 (table 2, figure 25): run times of schemes and formulations, sparse beside dense, and their convergence."""

import time

import jax
import numpy as np

import jaxmbd as mbd
from jaxmbd import gallery, post

from .measure import median_times, row

SECTION = "S0 6.2"
PUBLISHED_TIMES = {
    ("EnergyMomentum", "Multipliers"): "1.5",
    ("EnergyMomentum", "Reparametrised"): "1.2",
    ("Midpoint", "Multipliers"): "1.4",
    ("Midpoint", "Reparametrised"): "1",
}
SCHEMES = {"EnergyMomentum": mbd.EnergyMomentum(), "Midpoint": mbd.Midpoint()}
FIELDS = ("q", "v", "p", "multipliers")


def run() -> list[dict]:
    """All rows; the time step of run times is 1e-3, at which 1,000 steps end before event X."""
    return [*times(), *solvers(), *approach()]


def times(steps: int = 100, repeats: int = 7) -> list[dict]:
    """Run times beside that of the symplectic scheme on the chart, all with dense tangents as in the paper."""
    system, q0 = mbd.assemble(*gallery.three_bar_swing())
    newton = mbd.Newton(linear=mbd.linear.Dense())

    def way(scheme, formulation):
        return lambda: (
            mbd.simulate(
                system, q0, dt=1e-3, steps=steps, scheme=SCHEMES[scheme], formulation=getattr(mbd, formulation)(), newton=newton, save="end"
            ).q
        )

    found = median_times({pair: way(*pair) for pair in PUBLISHED_TIMES}, repeats)
    ratios = {pair: f"{seconds / found['Midpoint', 'Reparametrised']:.2f}" for pair, seconds in found.items()}
    what = "time beside Midpoint, Reparametrised"
    return [row(SECTION, f"{what}: {', '.join(pair)}", published, ratios[pair]) for pair, published in PUBLISHED_TIMES.items()]


def solvers(steps: int = 1000) -> list[dict]:
    """Seconds for 1,000 steps after compilation, each solver once."""
    system, q0 = mbd.assemble(*gallery.three_bar_swing())
    rows = []
    for scheme in SCHEMES:
        for linear in (mbd.linear.Sparse(), mbd.linear.Dense()):
            once = lambda scheme=scheme, linear=linear: mbd.simulate(
                system, q0, dt=1e-3, steps=steps, scheme=SCHEMES[scheme], newton=mbd.Newton(linear=linear), save=10
            )
            jax.block_until_ready(once().q)
            begin = time.perf_counter()
            jax.block_until_ready(once().q)
            seconds = time.perf_counter() - begin
            expected = "< 10" if isinstance(linear, mbd.linear.Sparse) else ""
            rows.append(row(SECTION, f"{scheme}, {type(linear).__name__}: {steps} steps, s", expected, f"{seconds:.2f}"))
    return rows


def approach(dts: tuple[float, ...] = (8e-3, 4e-3, 2e-3, 1e-3), end: float = 0.4) -> list[dict]:
    """How the trajectories of both schemes approach each other as the time step falls."""
    system, q0 = mbd.assemble(*gallery.three_bar_swing())
    distances: dict[str, list[float]] = {field: [] for field in FIELDS}
    for dt in dts:
        steps = round(end / dt)
        exact, symplectic = (mbd.simulate(system, q0, dt=dt, steps=steps, scheme=scheme, save=steps // 10) for scheme in SCHEMES.values())
        for field in FIELDS:
            first, second = (np.asarray(getattr(motion, field))[1:-1] for motion in (exact, symplectic))
            distances[field].append(float(np.abs(first - second).max()))
    rows = []
    for field, values in distances.items():
        what = f"largest distance of both schemes, {field}, h = {', '.join(f'{dt:g}' for dt in dts)}"
        found = f"{', '.join(f'{value:.1e}' for value in values)}: order {post.order(dts, values):.2f}"
        rows.append(row(SECTION, what, "order 2", found))
    return rows
