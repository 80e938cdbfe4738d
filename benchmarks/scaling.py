"""Chains, trees, ladders, strings and beams of growing length: sparse beside dense tangents, and beside Exudyn on the same chain.

Every row is measured in a process of its own, so that its peak of memory is its own too. Rows to be compared take turns, so that slow
phases of a machine fall on all of them. `SIZES` and `CASES` can be cut down from outside.
"""

import importlib.metadata
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd.numerics.compile import OPTIONS

SIZES = (4, 16, 64, 256, 1024, 4096)
DENSE_UP_TO = 64
STEPS, REPEATS, DT = 50, 5, 0.01
HINGES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
SIDEWAYS, IN_PLANE = (6.9, 6.9, 0.0), (9.81, 0.0, 0.0)


def string(particles: int):
    """Mass points on rods of unit length, stretched out level, as two functions for all of them."""

    def lagrangian(t, q, v, p):
        return 0.5 * p["m"] * v @ v - 9.81 * p["m"] * jnp.sum(q[2::3])

    def constraints(t, q, p):
        rods = jnp.diff(q.reshape(-1, 3), axis=0, prepend=jnp.zeros((1, 3), q.dtype))
        return 0.5 * (jnp.sum(rods**2, axis=1) - p["l"] ** 2)

    system = mbd.System.from_functions(lagrangian=lagrangian, constraints=constraints, params={"m": 0.1, "l": 1.0})
    q0 = jnp.outer(jnp.arange(1.0, particles + 1), jnp.array([1.0, 0.0, 0.0])).ravel()
    return mbd.find_rank(system, q0), q0  # as simulate does by itself where it is not hidden inside jit


def beam(elements: int):
    """A soft cantilever whose elements have the length 0.1, released level."""
    section = mbd.Section.circle(0.05, 1e7, 1e3)
    bodies = {"beam": mbd.Beam.line((0, 0, 0), (0.1 * elements, 0, 0), section, elements)}
    clamp = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}
    return mbd.assemble(mbd.Mechanism(bodies, clamp, [mbd.Gravity()]))


CASES = {
    "hinges": lambda n: mbd.assemble(*mbd.gallery.chain(n, HINGES, gravity=SIDEWAYS)),
    "balls": lambda n: mbd.assemble(*mbd.gallery.chain(n, (None,), gravity=SIDEWAYS)),
    "tree": lambda n: mbd.assemble(*mbd.gallery.tree(n, gravity=SIDEWAYS)),
    "ladder": lambda n: mbd.assemble(*mbd.gallery.ladder(max(1, n // 3), gravity=IN_PLANE)),
    "string": string,
    "beam": beam,
}


Prepared = tuple[Callable[[], None], Callable[[], dict]]
"""A motion that is ready to be run, and what is known of it afterwards."""


def serve(case: str, size: int, solver: str) -> None:
    """The process of a row: gets ready, runs once for every line that it is sent, and tells the rest at their end."""
    jax.config.update("jax_enable_x64", True)
    once, facts = _exudyn(size) if solver == "Exudyn" else _ours(case, size, solver)
    once()
    print("ready", flush=True)
    for _ in sys.stdin:
        begin = time.perf_counter()
        once()
        print((time.perf_counter() - begin) / STEPS * 1e3, flush=True)
    print(json.dumps(facts() | {"peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))


def _ours(case: str, size: int, solver: str) -> Prepared:
    system, q0 = CASES[case](size)
    newton = mbd.Newton(linear=getattr(mbd.linear, solver)())
    run = lambda q: mbd.simulate(system, q, dt=DT, steps=STEPS, newton=newton, throw=False, save="end")
    begin = time.perf_counter()
    program = jax.jit(run).lower(q0).compile(OPTIONS.get(jax.default_backend()))
    compiled = time.perf_counter() - begin

    def facts() -> dict:
        motion = program(q0)
        return {
            "most iterations": int(motion.newton_steps.max()),
            "compile s": compiled,
            "largest |g|": float(jnp.abs(system.constraints(jnp.zeros(()), motion.q[-1])).max()),
            "result": mbd.Result(int(motion.results.max())).name,
        }

    return lambda: jax.block_until_ready(program(q0)), facts


def _exudyn(size: int) -> Prepared:
    """The chain on hinges with redundant coordinates: generalized-alpha, index 3, modified Newton, sparse LU (Eigen)."""
    import exudyn as exu
    from exudyn.rigidBodyUtilities import RigidBodyInertia

    mbs = exu.SystemContainer().AddSystem()
    inertia = RigidBodyInertia(mass=1.0, inertiaTensor=np.diag([0.01 + 1.0, 0.01 + 1.0, 0.02]) / 12)
    above = mbs.CreateGround()
    for i in range(size):
        body = mbs.CreateRigidBody(inertia=inertia, referencePosition=[0, 0, -(i + 0.5)], gravity=list(SIDEWAYS))
        mbs.CreateRevoluteJoint(bodyNumbers=[above, body], position=[0, 0, -i], axis=list(HINGES[i % 2]), useGlobalFrame=True)
        above = body
    mbs.Assemble()
    settings = exu.SimulationSettings()
    integration = settings.timeIntegration
    integration.numberOfSteps, integration.endTime = STEPS, STEPS * DT
    integration.newton.useModifiedNewton = True
    integration.newton.relativeTolerance = integration.newton.absoluteTolerance = 1e-10
    integration.generalizedAlpha.spectralRadius = 0.9
    integration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = 1e9
    settings.linearSolverType = exu.LinearSolverType.EigenSparse
    iterations = []

    def once() -> None:
        solver = exu.MainSolverImplicitSecondOrder()
        if not solver.SolveSystem(mbs, settings):
            raise RuntimeError("Exudyn did not solve all steps")
        iterations.append(solver.it.newtonStepsCount / STEPS)

    def facts() -> dict:
        return {"most iterations": round(iterations[-1]), "compile s": 0.0, "largest |g|": float("nan"), "result": "SUCCESS"}

    return once, facts


class Row:
    """One row, measured in a process of its own: `times` in ms a step, and what was said when it failed."""

    def __init__(self, case: str, size: int, solver: str):
        self.about, self.times, self.failed = {"case": case, "bodies": size, "solver": solver}, [], ""
        code = f"from benchmarks.scaling import serve; serve({case!r}, {size}, {solver!r})"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], text=True, **pipes)
        self._expect(lambda answer: answer == "ready")

    def turn(self) -> None:
        """Run once more."""
        if not self.failed:
            print("go", file=self.process.stdin, flush=True)
            self._expect(lambda answer: answer and self.times.append(float(answer)) is None)

    def _expect(self, good: Callable) -> None:
        if not good(self.process.stdout.readline().strip()):
            self.failed = (self.process.communicate()[1].strip().splitlines() or ["no message"])[-1]

    def finish(self) -> dict | None:
        """The row, or `None` with a word on why there is none."""
        name = " ".join(map(str, self.about.values()))
        if self.failed:
            print(f"left out: {name}: {self.failed}", flush=True)
            return None
        facts = json.loads(self.process.communicate()[0])
        row = self.about | {"ms a step": float(np.median(self.times)), "least": min(self.times)} | facts
        print(f"{name}: {row['ms a step']:.3f} ms a step, compiled in {row['compile s']:.1f} s, {row['result']}", flush=True)
        return row


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        print(f"left out: {name} is not installed")
        return False
    return True


def run() -> list[dict]:
    """All rows."""
    peers = {"hinges": ["Exudyn"] if _installed("exudyn") else []}
    rows = []
    for case in CASES:
        for size in SIZES:
            rows += _side_by_side(case, size, ["Sparse", *(["Dense"] if size <= DENSE_UP_TO else []), *peers.get(case, [])])
    for row in rows:
        row["slope from 64"] = _slope(rows, row)
    return rows


def _side_by_side(case: str, size: int, solvers: list[str]) -> list[dict]:
    """Rows of one case and size, which get ready one after the other and then take turns, with ratios to the sparse one."""
    started = [Row(case, size, solver) for solver in solvers]
    for _ in range(REPEATS):
        for row in started:
            row.turn()
    found = [row for row in (one.finish() for one in started) if row is not None]
    sparse = next((row["ms a step"] for row in found if row["solver"] == "Sparse"), float("nan"))
    return [row | {"time / Sparse": row["ms a step"] / sparse} for row in found]


def _slope(rows: list[dict], row: dict) -> float:
    """The slope of time against size in logarithms, from 64 bodies to the size of the row."""
    same = [r for r in rows if (r["case"], r["solver"]) == (row["case"], row["solver"]) and 64 <= r["bodies"] <= row["bodies"]]
    if len(same) < 2:
        return float("nan")
    return float(np.polyfit(np.log([r["bodies"] for r in same]), np.log([r["ms a step"] for r in same]), 1)[0])


def pictures(folder: Path) -> list[Path]:
    """Time a step and time to compile against size."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    rows = json.loads((folder / "scaling.json").read_text())["rows"]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4.8), layout="constrained")
    styles = {"Sparse": "o-", "Dense": "x--", "Exudyn": "s:"}
    for case, solver in dict.fromkeys((row["case"], row["solver"]) for row in rows):
        same = [row for row in rows if (row["case"], row["solver"]) == (case, solver)]
        colour = f"C{list(CASES).index(case)}"
        for panel, key in zip(axes, ("ms a step", "compile s", "peak MB"), strict=True):
            if solver == "Exudyn" and key != "ms a step":
                continue
            label = f"{case}, {solver}"
            panel.loglog([row["bodies"] for row in same], [row[key] for row in same], styles[solver], color=colour, label=label)
    for panel, title in zip(axes, ("time a step (ms)", "time to trace and compile (s)", "peak of memory (MB)"), strict=True):
        panel.set_xlabel("bodies")
        panel.set_title(title)
        panel.grid(True, which="both", alpha=0.3)
        panel.yaxis.set(
            major_locator=LogLocator(subs=(1, 2, 5)), major_formatter=StrMethodFormatter("{x:g}"), minor_formatter=NullFormatter()
        )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=8)
    path = folder / "scaling.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return [path]
