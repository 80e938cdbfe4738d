"""Chains, trees, ladders, strings and beams of growing length: sparse beside dense tangents, and beside Exudyn on the same chain.

Every row is measured in a process of its own, so that its peak of memory is its own too. `SIZES` and `CASES` can be cut down from outside.
"""

import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd.compiling import OPTIONS

SIZES = (4, 16, 64, 256, 1024, 4096)
DENSE_UP_TO = 64
STEPS, REPEATS, DT = 50, 3, 0.01
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


def measure(case: str, size: int, solver: str) -> dict:
    """One row, in this process."""
    jax.config.update("jax_enable_x64", True)
    if solver == "Exudyn":
        return _exudyn(size)
    system, q0 = CASES[case](size)
    newton = mbd.Newton(linear=getattr(mbd, solver)())
    run = lambda q: mbd.simulate(system, q, dt=DT, steps=STEPS, newton=newton, throw=False, save="end")
    begin = time.perf_counter()
    lowered = jax.jit(run).lower(q0)
    program = lowered.compile(OPTIONS.get(jax.default_backend()))
    compiled = time.perf_counter() - begin
    motion = jax.block_until_ready(program(q0))
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        jax.block_until_ready(program(q0))
        times.append(time.perf_counter() - begin)
    return {
        "ms a step": float(np.median(times)) / STEPS * 1e3,
        "most iterations": int(motion.newton_steps.max()),
        "compile s": compiled,
        "peak MB": _peak(),
        "largest |g|": float(jnp.abs(system.constraints(jnp.zeros(()), motion.q[-1])).max()),
        "result": mbd.Result(int(motion.results.max())).name,
    }


def _exudyn(size: int) -> dict:
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
    times, iterations = [], 0.0
    for _ in range(REPEATS):
        solver = exu.MainSolverImplicitSecondOrder()
        begin = time.perf_counter()
        solver.SolveSystem(mbs, settings)
        times.append(time.perf_counter() - begin)
        iterations = solver.it.newtonStepsCount / STEPS
    blank = {"compile s": 0.0, "peak MB": _peak(), "largest |g|": float("nan"), "result": "SUCCESS"}
    return {"ms a step": float(np.median(times)) / STEPS * 1e3, "most iterations": round(iterations)} | blank


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _row(case: str, size: int, solver: str) -> dict | None:
    """One row, from a new process."""
    code = f"import json; from benchmarks.scaling import measure; print(json.dumps(measure({case!r}, {size}, {solver!r})))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=os.environ)
    if done.returncode:
        print(f"left out: {case} {size} {solver}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
        return None
    row = {"case": case, "bodies": size, "solver": solver} | json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{case} {size} {solver}: {row['ms a step']:.3f} ms a step, compiled in {row['compile s']:.1f} s, {row['result']}", flush=True)
    return row


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        print(f"left out: {name} is not installed")
        return False
    return True


def run() -> list[dict]:
    """All rows, those to be compared one after the other, with ratios to the shortest of their case and to Exudyn."""
    peers = {"hinges": ["Exudyn"] if _installed("exudyn") else []}
    rows = []
    for case in CASES:
        for size in SIZES:
            solvers = ["Sparse", *(["Dense"] if size <= DENSE_UP_TO else []), *peers.get(case, [])]
            found = [row for row in (_row(case, size, solver) for solver in solvers) if row is not None]
            sparse = found[0]["ms a step"] if found else float("nan")
            rows += [row | {"time / Sparse": row["ms a step"] / sparse} for row in found]
    for row in rows:
        row["slope from 64"] = _slope(rows, row)
    return rows


def _slope(rows: list[dict], row: dict) -> float:
    """The slope of time against size in logarithms, from 64 bodies to the size of the row."""
    same = [r for r in rows if (r["case"], r["solver"]) == (row["case"], row["solver"]) and 64 <= r["bodies"] <= row["bodies"]]
    if len(same) < 2:
        return float("nan")
    return float(np.polyfit(np.log([r["bodies"] for r in same]), np.log([r["ms a step"] for r in same]), 1)[0])


def pictures(folder: Path) -> list[Path]:
    """Time a step and time to compile against size."""
    import matplotlib.pyplot as plt

    rows = json.loads((folder / "scaling.json").read_text())["rows"]
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
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
        panel.grid(True, which="major", alpha=0.3)
    axes[0].legend(fontsize=7)
    path = folder / "scaling.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return [path]
