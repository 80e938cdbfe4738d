"""How an integration tells why a motion stopped."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

odes = mbd.odes
FREE = lambda t, q, v, w, p: jnp.zeros_like(q)
FALLING = lambda t, q, v, w, p: jnp.array([0.0, -9.81])
CIRCLE = lambda t, q, p: jnp.array([q @ q - 1.0])
SPEEDS = lambda t, q, v, p: jnp.array([v[0] - 1, v[1], v[0] - 1 - jnp.maximum(t - 0.5, 0)])
"""Two speeds are prescribed for one coordinate, which are the same until the time 0.5."""


def functions(forces=FREE, mass=1.0, **options):
    return odes.Dynamics.from_functions(mass, forces, **options)


def test_velocities_that_contradict_each_other_are_seen():
    """The nearest one in the sense of least squares fulfils neither; it counts where constraints may be met as well as possible."""
    dynamics = functions(velocity_constraints=SPEEDS)
    y, projection = odes.State(jnp.zeros(3), jnp.array([1.0, 0.0, 2.0])), odes.Projection()

    @jax.jit
    def at(t):
        velocity = lambda dynamics: projection.velocity(dynamics, t, y.q, y.v)
        return velocity(dynamics), velocity(dynamics.reduced(jnp.eye(3))), projection.instant(dynamics, t, y, t).rate.q

    (_, before), _, same = at(jnp.array(0.4))
    (v, after), (_, inexact), none = at(jnp.array(1.0))
    assert before and np.isfinite(same).all()
    assert not after and inexact and np.isnan(none).all()
    np.testing.assert_allclose(v, [1.25, 0, 2], atol=1e-14)


def test_velocities_that_come_to_contradict_each_other_end_the_motion():
    system = mbd.System.from_functions(kinetic=lambda t, q, v, p: 0.5 * v @ v, velocity_constraints=SPEEDS)
    told = r"stopped at t = 0\.5, .* with NO_VELOCITY: .* Worst constraint at the last iterate: number [02], off at the rate"
    with pytest.raises(mbd.SimulationError, match=told) as caught:
        odes.integrate(system, [0.0, 0.0, 0.0], [1.0, 0.0, 2.0], t1=1.0, saveat=11)
    motion = caught.value.trajectory
    assert [mbd.Result(int(code)).name for code in motion.results[5:8]] == ["SUCCESS", "NO_VELOCITY", "NOT_REACHED"]
    np.testing.assert_allclose(motion.q[:6, 0], motion.t[:6], atol=1e-12)
    assert motion.final.status.violation > 0.01


@pytest.mark.slow
def test_rates_of_positions_against_velocities():
    dynamics = functions(
        constraints=lambda t, q, p: q[:1] - t - jnp.maximum(t - 0.5, 0) ** 2, velocity_constraints=lambda t, q, v, p: v[:1] - 1.0
    )
    with pytest.raises(mbd.SimulationError, match=r"stopped at t = 0\.5, .* with NO_VELOCITY"):
        odes.integrate(dynamics, [0.0, 0.0], [1.0, 0.0], t1=1.0)


def test_a_projection_that_does_not_converge_is_the_cause_of_too_many_steps():
    dynamics = functions(FALLING, constraints=CIRCLE, independent=True)
    with pytest.raises(mbd.SimulationError, match=r"NOT_PROJECTED: .* may need more max_steps"):
        odes.integrate(dynamics, [1.0, 0.0], t1=1.0, method=odes.Projection(max_steps=1), max_steps=400)
