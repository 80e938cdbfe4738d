"""The figures of the verification page that concern mechanisms, measured; part of `python -m benchmarks verification`."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.constraints import calculus, counts

from .measure import largest, median_times, row

PUBLISHED_CONDITIONS = {1e-2: "5e4", 1e-3: "3e7", 1e-4: "3e10"}


def linkage() -> list[dict]:
    """Section 5.5 of Leyendecker, Marsden, Ortiz (2008): figures 12 to 17 and table 1."""
    section = "S0 5.5"
    system, q0 = mbd.assemble(*gallery.six_body_linkage())
    v0 = mbd.joint_velocities(system, q0, {"hinge 1": 30.0})
    ways = {
        "Multipliers()": (system, mbd.Multipliers()),
        "NullSpace()": (system, mbd.NullSpace()),
        "Reparametrised()": (system, mbd.Reparametrised()),
        'Reparametrised("implicit")': (system, mbd.Reparametrised("implicit")),
        "Reparametrised(), chart (109)": (system.with_chart(gallery.six_body_chart), mbd.Reparametrised()),
    }
    run = lambda way, dt=1e-2: mbd.simulate(ways[way][0], q0, v0, dt=dt, steps=100, formulation=ways[way][1])
    motions = {way: run(way) for way in ways}
    motion = motions["Multipliers()"]
    angles = {name: values[:, 0] for name, values in post.joint_coordinates(system, motion).items()}
    first, second = angles["hinge 1"], angles["hinge 2"]
    ranks = jax.vmap(lambda q: counts.matrix_rank(calculus.constraint_jacobian(system, 0.0, q)))(motion.q)
    rows = [
        row(section, "rank of the 72 x 72 Jacobian, all along", "71", str(sorted(set(ranks.tolist())))),
        row(section, "(106)", "zero", max(largest(angles[f"hinge {i + 2}"] - angles[f"hinge {i}"]) for i in range(1, 5))),
        row(section, "(107)", "zero", largest(jnp.sin(first) * (1 + jnp.sin(second)) - jnp.sin(second))),
        row(section, "range of theta 1, in units of pi", "-7/6 to 1/6", f"{first.min() / np.pi:.4f} to {first.max() / np.pi:.4f}"),
        row(section, "positions of five formulations", "the same", max(largest(other.q - motion.q) for other in motions.values())),
        row(section, "constraints", "zero", max(largest(post.constraint_residuals(system, other)) for other in motions.values())),
    ]
    for dt in PUBLISHED_CONDITIONS:
        fine = run("Multipliers()", dt)
        amplitudes = f"{np.ptp(post.energy(system, fine)):.1e} and {np.ptp(post.discrete_energy(system, fine)):.1e}"
        condition = post.condition_number(system, fine, mbd.Multipliers())[0]
        rows.append(row(section, f"condition number with multipliers, h = {dt:g}", PUBLISHED_CONDITIONS[dt], condition))
        rows.append(row(section, f"amplitudes of H_d and E_d in 100 steps, h = {dt:g}", "H_d smaller", amplitudes))
    times = median_times({way: lambda way=way: run(way).q for way in ways}, 5)
    for way in ways:
        rows.append(row(section, f"time of 100 steps beside Multipliers(): {way}", "", f"{times[way] / times['Multipliers()']:.2f}"))
    return rows


def loops() -> list[dict]:
    """A tilted four-bar of spatial joints over a million steps, and the order towards generalised coordinates."""
    from tests.test_closed_loops import Q0, SYSTEM, V0
    from tests.verification.test_generalised_coordinates import CASES, measured_order

    long = mbd.simulate(SYSTEM, Q0, V0, dt=0.01, steps=1_000_000, formulation=mbd.NullSpace(), save=1000)
    rows = [
        row(
            "loops",
            "four-bar, three redundant constraints: constraints in 1,000,000 steps",
            "zero",
            largest(post.constraint_residuals(SYSTEM, long)),
        )
    ]
    H = post.energy(SYSTEM, long)
    halves = f"{np.ptp(H[:500]):.3f} and {np.ptp(H[500:]):.3f}"
    rows.append(row("loops", "four-bar: range of the energy in the first and second half of them", "the same", halves))
    for case in CASES:
        rows.append(row("loops", f"{case}: order towards generalised coordinates", "2", f"{measured_order(case)[0]:.3f}"))
    return rows
