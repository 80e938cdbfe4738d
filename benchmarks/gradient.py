"""What a gradient costs: value and gradient beside the forward run, and beside a run with more Newton iterations."""

import jax
import jax.numpy as jnp

import jaxmbd as mbd

from .measure import median_times

STEPS = 200
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


def row(links: int, scheme: str, formulation: str) -> dict:
    """Times of one combination; the last columns compare the backward pass after few and after many Newton iterations."""
    system = chain(links)
    q0 = jnp.zeros((links, 3)).at[:, 0].set(jnp.arange(1.0, links + 1)).ravel()

    def loss(masses, newton):
        trajectory = mbd.simulate(
            system.with_params({"m": masses, "l": system.params["l"]}),
            q0,
            dt=5e-3,
            steps=STEPS,
            scheme=SCHEMES[scheme],
            formulation=FORMULATIONS[formulation],
            newton=newton,
            save="end",
            throw=False,
        )
        return jnp.sum(trajectory.q[-1] ** 2), jnp.max(trajectory.newton_steps)

    few, many = (jax.jit(lambda m, n=n: loss(m, n)) for n in (mbd.Newton(), MORE_ITERATIONS))
    few_back, many_back = (jax.jit(jax.value_and_grad(lambda m, n=n: loss(m, n), has_aux=True)) for n in (mbd.Newton(), MORE_ITERATIONS))
    masses = jnp.ones(links)
    names = {"few": few, "few_back": few_back, "many": many, "many_back": many_back}
    t = median_times({name: lambda run=run: run(masses) for name, run in names.items()})
    return {
        "scheme": scheme,
        "formulation": formulation,
        "forward ms": 1e3 * t["few"],
        "value and gradient / forward": t["few_back"] / t["few"],
        "iterations": f"{int(few(masses)[1])} -> {int(many(masses)[1])}",
        "gradient ms": 1e3 * (t["few_back"] - t["few"]),
        "gradient ms, more iterations": 1e3 * (t["many_back"] - t["many"]),
    }


def run() -> list[dict]:
    """A chain of four links over 200 steps, every scheme with every formulation."""
    return [row(4, scheme, formulation) for scheme in SCHEMES for formulation in FORMULATIONS]
