"""What a gradient costs: value and gradient beside the forward run, and beside a run with more Newton iterations."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

import jaxmbd as mbd
from jaxmbd.numerics.compile import OPTIONS

from .measure import median_times

SCHEMES = {
    "Midpoint": mbd.Midpoint(),
    "Trapezoidal": mbd.Trapezoidal(),
    "Galerkin(4)": mbd.Galerkin(4),
    "Galerkin(6)": mbd.Galerkin(6),
    "EnergyMomentum": mbd.EnergyMomentum(),
}
FORMULATIONS = {"Multipliers": mbd.Multipliers(), "NullSpace": mbd.NullSpace(), "Reparametrised": mbd.Reparametrised()}
MORE_ITERATIONS = mbd.Newton(residual_tolerance=0.0, step_tolerance=0.0)


def chain(links: int) -> mbd.System:
    """Masses on massless links in space, in Cartesian coordinates."""

    def constraints(t, q, p):
        points = jnp.vstack([jnp.zeros((1, 3), q.dtype), q.reshape(links, 3)])
        return 0.5 * (jnp.sum(jnp.diff(points, axis=0) ** 2, axis=1) - p["l"] ** 2)

    def lagrangian(t, q, v, p):
        return 0.5 * p["m"] @ jnp.sum(v.reshape(links, 3) ** 2, axis=1) - 9.81 * p["m"] @ q.reshape(links, 3)[:, 2]

    return mbd.System.from_functions(lagrangian, constraints=constraints, params={"m": jnp.ones(links), "l": jnp.ones(links)})


def small(scheme: str, formulation: str) -> dict:
    """A chain of four masses over 200 steps, by all masses."""
    links = 4
    system = chain(links)
    q0 = jnp.zeros((links, 3)).at[:, 0].set(jnp.arange(1.0, links + 1)).ravel()
    settings = {"dt": 5e-3, "steps": 200, "scheme": SCHEMES[scheme], "formulation": FORMULATIONS[formulation]}
    vary = lambda masses: system.with_params({"m": masses, "l": system.params["l"]})
    return {"chain": "4 masses, 200 steps", "scheme": scheme, "formulation": formulation} | _compare(vary, jnp.ones(links), q0, settings)


def large(bodies: int, steps: int) -> dict:
    """A chain of bodies on hinges, with sparse tangents, by the inertia of all bodies."""
    system, q0 = mbd.assemble(*mbd.gallery.chain(bodies, ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), gravity=(6.9, 6.9, 0.0)))
    vary = lambda inertia: system.with_params(eqx.tree_at(lambda model: model.inertia, system.params, inertia))
    named = {"chain": f"{bodies} bodies, {steps} steps", "scheme": "Midpoint", "formulation": "Multipliers"}
    return named | _compare(vary, jnp.asarray(system.params.inertia), q0, {"dt": 1e-2, "steps": steps})


def _compare(vary: Callable, at: Array, q0: Array, settings: dict) -> dict:
    """Times of value and gradient by what is varied; the last columns compare the backward pass after few and many Newton iterations."""

    def loss(varied, newton):
        motion = mbd.simulate(vary(varied), q0, newton=newton, save="end", throw=False, **settings)
        return jnp.mean(motion.q[-1] ** 2), jnp.max(motion.newton_steps)

    programs = {}
    for name, newton in {"few": mbd.Newton(), "many": MORE_ITERATIONS}.items():
        value = lambda varied, newton=newton: loss(varied, newton)
        for kind, function in {"": value, " back": jax.value_and_grad(value, has_aux=True)}.items():
            programs[name + kind] = jax.jit(function).lower(at).compile(OPTIONS.get(jax.default_backend()))
    t = median_times({name: lambda run=run: run(at) for name, run in programs.items()})
    megabytes = lambda name: programs[name].memory_analysis().temp_size_in_bytes / 1e6
    return {
        "forward ms": 1e3 * t["few"],
        "value and gradient / forward": t["few back"] / t["few"],
        "temporary MB": f"{megabytes('few'):.2g} -> {megabytes('few back'):.2g}",
        "iterations": f"{int(programs['few'](at)[1])} -> {int(programs['many'](at)[1])}",
        "gradient ms": 1e3 * (t["few back"] - t["few"]),
        "gradient ms, more iterations": 1e3 * (t["many back"] - t["many"]),
    }


def run() -> list[dict]:
    """Four masses with every scheme and every formulation, and large chains, of twice the bodies and over twice the steps."""
    rows = [small(scheme, formulation) for scheme in SCHEMES for formulation in FORMULATIONS]
    return [*rows, *(large(bodies, steps) for bodies, steps in ((128, 100), (256, 100), (256, 200)))]
