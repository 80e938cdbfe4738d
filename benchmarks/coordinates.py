"""A step of small mechanisms in coordinates of directors and of joints, and what compiling it takes, side by side."""

import time

import jax
import jax.numpy as jnp

import jaxmbd as mbd

from .measure import median_times

STEPS = 1000
WAYS = {
    "directors, Multipliers": ("directors", mbd.Multipliers()),
    "directors, Reparametrised": ("directors", mbd.Reparametrised()),
    "joints": ("joints", mbd.Multipliers()),
}
AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def mechanisms() -> dict:
    """Chains on hinges at right angles to each other, and a four-bar in space with three redundant constraints."""
    chains = {f"chain of {links}": mbd.gallery.chain(links, AXES) for links in (1, 4, 16)}
    rod = lambda length: mbd.RigidBody.box(length, (length, 0.1, 0.1))
    at = {
        "left": ("ground", "crank", 0),
        "knee": ("crank", "coupler", 1),
        "wrist": ("coupler", "rocker", 4),
        "right": ("ground", "rocker", 2),
    }
    joints = {name: mbd.Joint(mbd.Revolute(), a, b, at=(x, 0, 0)) for name, (a, b, x) in at.items()}
    bodies = {"crank": rod(1.0), "coupler": rod(3.0), "rocker": rod(2.0)}
    placement = {"crank": (0.5, 0, 0), "coupler": (2.5, 0, 0), "rocker": (3, 0, 0), "left": 0.9}
    return chains | {"four-bar": (mbd.Mechanism(bodies, joints, [mbd.Gravity((0, -9.81, 0))]), placement)}


def run() -> list[dict]:
    """Microseconds a step of 1,000, from rest, and the closure of loops at the end."""
    rows = []
    for name, (mechanism, placement) in mechanisms().items():
        runs, ready, unknowns, open_by = {}, {}, {}, {}
        for way, (coordinates, formulation) in WAYS.items():
            system, q0 = mbd.assemble(mechanism, placement, coordinates=coordinates)
            runs[way] = lambda s=system, q=q0, f=formulation: mbd.simulate(s, q, dt=2e-3, steps=STEPS, formulation=f, save="end").q
            begin = time.perf_counter()
            end = jax.block_until_ready(runs[way]())
            ready[way] = time.perf_counter() - begin
            unknowns[way] = q0.size
            open_by[way] = float(jnp.max(jnp.abs(system.astype(end.dtype).constraints(jnp.zeros(()), end[-1])), initial=0))
        times = median_times(runs, repeats=7)
        first = times[next(iter(WAYS))]
        for way, taken in times.items():
            rows.append(
                {
                    "mechanism": name,
                    "coordinates": way,
                    "number": unknowns[way],
                    "us a step": 1e6 * taken / STEPS,
                    "beside the first": taken / first,
                    "first call s": ready[way],
                    "constraints off": open_by[way],
                }
            )
    return rows
