"""Tracing and compiling `simulate` for chains of growing length, beside the shortest: it must not grow with the number of bodies."""

import time

import jax

import jaxmbd as mbd
from jaxmbd.numerics.compile import OPTIONS

LINKS = (16, 64, 256)
FORMULATIONS = {"Multipliers": mbd.Multipliers(), "NullSpace": mbd.NullSpace(), "Reparametrised": mbd.Reparametrised()}
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def seconds(links: int, formulation: str) -> tuple[float, float]:
    """Time to trace, and time to compile, a run of 100 steps."""
    system, q0 = mbd.assemble(*mbd.gallery.chain(links, AXES))
    run = lambda q: mbd.simulate(system, q, dt=0.01, steps=100, formulation=FORMULATIONS[formulation], throw=False).q
    begin = time.perf_counter()
    lowered = jax.jit(run).lower(q0)
    traced = time.perf_counter()
    lowered.compile(OPTIONS.get(jax.default_backend()))
    return traced - begin, time.perf_counter() - traced


def run() -> list[dict]:
    """All formulations; the first compilation of a process is slower and does not count."""
    seconds(2, "Multipliers")
    rows = []
    for name in FORMULATIONS:
        shortest = None
        for links in LINKS:
            traced, compiled = seconds(links, name)
            shortest = shortest or traced + compiled
            ratio = (traced + compiled) / shortest
            rows.append(
                {"formulation": name, "bodies": links, "trace s": traced, "compile s": compiled, f"time / {LINKS[0]} bodies": ratio}
            )
    return rows
