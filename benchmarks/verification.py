"""The figures of the verification page, measured: `python -m benchmarks verification` prints them as rows."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd
from jaxmbd import post
from jaxmbd.constraints import calculus
from tests.mechanisms import chain, charged_particle, kepler, pendulum, rotate, spherical_pendulum

from .measure import largest, row
from .verification_mechanisms import linkage, loops

SCHEMES = {
    "Midpoint()": (mbd.Midpoint(), 2),
    "Trapezoidal()": (mbd.Trapezoidal(), 2),
    "Galerkin(4)": (mbd.Galerkin(4), 4),
    'Galerkin(4, "gauss")': (mbd.Galerkin(4, "gauss"), 4),
    "Galerkin(6)": (mbd.Galerkin(6), 6),
    'Galerkin(6, "gauss")': (mbd.Galerkin(6, "gauss"), 6),
}
FORMULATIONS = {"Multipliers()": mbd.Multipliers(), "NullSpace()": mbd.NullSpace(), "Reparametrised()": mbd.Reparametrised()}
IMPLICIT = mbd.Reparametrised("implicit", "qr")


def published() -> list[dict]:
    """Section 3.1 of Leyendecker, Marsden, Ortiz (2008), 100 steps of 0.1."""
    section, rows = "S0 3.1", []
    for name, gravity, v0 in (("circle", 0.0, [0.0, 1.0]), ("gravity", 9.81, [0.0, 0.0])):
        system = pendulum(gravity)
        run = lambda formulation, system=system, v0=v0: mbd.simulate(system, [1.0, 0.0], v0, dt=0.1, steps=100, formulation=formulation)
        motion = run(mbd.Multipliers())
        p = post.momentum(system, motion)
        H, E = post.energy(system, motion), post.discrete_energy(system, motion)
        if gravity == 0:
            rows += [
                row(section, "circle: multiplier", "1.00251257867", f"{float(motion.multipliers[0, 0]):.13f}"),
                row(section, "circle: spread of the multipliers", "none", np.ptp(motion.multipliers)),
                row(section, "circle: change of H_d", "none", np.ptp(H)),
                row(section, "circle: change of E_d", "none", np.ptp(E)),
                row(section, "circle: E_d", "another constant", f"{float(E[0]):.6f}"),
                row(section, "circle: (46) for p_n", "zero", largest(post.hidden_momentum_constraints(system, motion, p))),
            ]
        else:
            rows += [
                row(section, "gravity: amplitude of H_d", "smaller than of E_d", f"{np.ptp(H):.3f}"),
                row(section, "gravity: amplitude of E_d", "", f"{np.ptp(E):.3f}"),
                row(section, "gravity: (46) for p_n", "not zero", largest(post.hidden_momentum_constraints(system, motion, p))),
                row(section, "gravity: (46) for projected p_n", "zero", largest(post.constraint_rates(system, motion))),
            ]
        rows.append(row(section, f"{name}: (45)", "zero", largest(post.hidden_velocity_constraints(system, motion))))
        rows.append(row(section, f"{name}: constraint", "zero", largest(post.constraint_residuals(system, motion))))
        others = [*FORMULATIONS.values(), mbd.NullSpace("qr"), mbd.NullSpace("chart"), mbd.Reparametrised(source="user"), IMPLICIT]
        difference = max(largest(run(other).q - motion.q) for other in others)
        rows.append(row(section, f"{name}: positions of (22), (25), (28), (30)", "the same", difference))
    return rows


def orders() -> list[dict]:
    """Slopes on a spatial double pendulum in Cartesian coordinates over 0.4 s."""
    system = chain(2, 3)
    q0, v0 = mbd.project(system, [1.0, 0.0, 0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 0.3, 0.2, 0.0, -0.5])
    reference = mbd.simulate(system, q0, v0, dt=0.4 / 200, steps=200, scheme=mbd.Galerkin(8), save="end")

    def multipliers(motion):
        return post.multipliers(system, motion)

    rows = []
    for name, (scheme, order) in SCHEMES.items():
        counts = {2: (32, 64, 128), 4: (16, 32, 64), 6: (12, 16, 24)}[order]
        run = lambda dt, scheme=scheme: mbd.simulate(system, q0, v0, dt=dt, steps=round(0.4 / dt), scheme=scheme, save="end")
        table = post.convergence(run, [0.4 / count for count in counts], reference, ("q", "p", multipliers))
        rows.append(row("orders", f"{name}: q, p, multipliers", str(order), ", ".join(f"{slope:.2f}" for _, slope in table.values())))
    return rows


def invariants() -> list[dict]:
    """Momentum maps over 20 s, energy over a million steps, symplecticity of one step."""
    turn = lambda s, q: q.at[:2].set(rotate(s, q[:2]))
    motions = {
        "spherical pendulum": (spherical_pendulum(), [0.8, 0.0, -0.6], [0.0, 1.5, 0.0]),
        "Kepler problem": (kepler(), [1.0, 0.0], [0.0, 1.2]),
        "charged particle": (charged_particle(), [1.0, 0.0, 0.3], [0.0, 1.0, 0.5]),
    }
    rows = []
    for motion, (system, q0, v0) in motions.items():
        for name, dt in (("Midpoint()", 0.02), ("Galerkin(4)", 0.05), ("Galerkin(6)", 0.1)):
            trajectory = mbd.simulate(system, q0, v0, dt=dt, steps=round(20 / dt), scheme=SCHEMES[name][0])
            change = np.ptp(post.momentum_map(system, trajectory, turn))
            rows.append(row("invariants", f"{motion}: angular momentum, {name}, dt = {dt}", "constant", change))
    system = pendulum()
    long = mbd.simulate(system, [1.0, 0.0], dt=0.05, steps=1_000_000, formulation=mbd.NullSpace(), save=5000)
    short = mbd.simulate(system, [1.0, 0.0], dt=0.05, steps=2000)
    H = post.energy(system, long)
    rows += [
        row("invariants", "pendulum: energy range in 2,000 steps of 0.05", "", np.ptp(post.energy(system, short))),
        row("invariants", "pendulum: largest energy error in 1,000,000 steps", "not larger", largest(H)),
        row("invariants", "pendulum: constraint in 1,000,000 steps", "zero", largest(post.constraint_residuals(system, long))),
    ]
    for name, (scheme, _) in SCHEMES.items():
        rows.append(row("invariants", f"change of dq ^ dp in one step, {name}", "none", symplectic_defect(scheme)))
    return rows


def symplectic_defect(scheme: mbd.schemes.AbstractScheme) -> float:
    """Canonical two-form of admissible variations of a double pendulum, before and after a step of 0.1."""
    guess, rates = jnp.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0]), jnp.array([0.0, 1.0, 0.3, 0.2, 0.0, -0.5])
    system, dt = mbd.find_rank(chain(2, 3), guess), jnp.array(0.1)

    def ends(z):
        q, v = mbd.project(system, guess + z[:6], rates + z[6:])
        motion = mbd.simulate(system, q, v, dt=dt, steps=1, scheme=scheme, throw=False)
        return (q, calculus.momentum(system, jnp.array(0.0), q, v)), (motion.q[-1], motion.p[-1])

    start, end = jax.jit(jax.jacfwd(ends))(jnp.zeros(12))
    form = lambda dq, dp: dq.T @ dp - dp.T @ dq
    return largest(form(*end) - form(*start))


def derivatives() -> list[dict]:
    """A loss of final state and a multiplier by mass, length, gravity, angle, rate and time step: largest relative differences."""
    from tests.gradients.test_simulation import POINT, central_differences, loss

    rows = []
    for name, (scheme, _) in SCHEMES.items():
        forward_reverse = reverse_differences = 0.0
        for formulation in (*FORMULATIONS.values(), IMPLICIT):
            f = lambda x, s=scheme, c=formulation: loss(x, s, c)
            both = jax.jit(lambda x, f=f: (f(x), jax.grad(f)(x), jax.jacfwd(f)(x)))
            _, reverse, forward = both(POINT)
            differences = central_differences(lambda x, both=both: both(x)[0], POINT)
            size = max(abs(float(value)) for value in reverse.values())
            forward_reverse = max(forward_reverse, *(abs(float(forward[k] - reverse[k])) / size for k in POINT))
            reverse_differences = max(reverse_differences, *(abs(float(differences[k] - reverse[k])) / size for k in POINT))
        rows.append(row("derivatives", f"{name}: forward against reverse mode", "< 1e-10", forward_reverse))
        rows.append(row("derivatives", f"{name}: reverse mode against central differences", "< 1e-6", reverse_differences))
    return rows


def run() -> list[dict]:
    """All sections."""
    return published() + linkage() + orders() + invariants() + loops() + derivatives()
