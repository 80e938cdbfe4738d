"""Motions by adaptive solvers with projection: exact ends, orders, dense output, events, failures, derivatives, batches."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest
from scipy.integrate import solve_ivp

import jaxmbd as mbd
from tests import mechanisms

odes = mbd.odes
G = 13.750371636040745654980191559621
"""With this gravity a pendulum of unit length that starts horizontally swings with period 2."""

FREE = lambda t, q, v, w, p: jnp.zeros_like(q)


def pendulum():
    return mechanisms.pendulum(G).with_rank(1)


def error_at_start(motion):
    """How far the last row is from the start of the pendulum."""
    return float(np.linalg.norm(np.concatenate([np.asarray(motion.q[-1]) - [1, 0], np.asarray(motion.v[-1])])))


def taken(motion):
    return int(motion.scheme.accepted) + int(motion.scheme.rejected)


def test_pendulum_of_fifteen_periods():
    """Smaller errors in far fewer steps than the backward differentiation of CVODE with projection: 1.79e-6 in 6,542 steps."""
    system = pendulum()
    motion = odes.integrate(system, [1.0, 0.0], t1=30.0, rtol=1e-9, atol=1e-9, solver=diffrax.Tsit5(), saveat=61)
    assert error_at_start(motion) < 5e-7
    assert taken(motion) < 6542 / 2
    assert np.max(np.abs(np.linalg.norm(motion.q, axis=1) - 1)) < 1e-15
    assert np.max(np.abs(mbd.post.constraint_rates(system, motion))) < 1e-13
    np.testing.assert_allclose(motion.multipliers, mbd.post.multipliers(system, motion), atol=1e-10)
    assert np.ptp(mbd.post.energy(system, motion)) < 1e-5
    with pytest.raises(mbd.ModelError, match="of one length"):
        mbd.post.hidden_velocity_constraints(system, motion)
    with pytest.raises(mbd.ModelError, match="adaptive steps"):
        mbd.simulate(system, start=motion.final, steps=1)


PUBLISHED = {1e-5: (2.25e-3, 1421), 1e-7: (7.79e-5, 3013), 1e-9: (1.79e-6, 6542)}
"""Error and steps of SUNDIALS' own example of projection, CVODE with relative and absolute tolerances of this size."""


@pytest.mark.slow
@pytest.mark.parametrize("solver", [diffrax.Tsit5(), diffrax.Dopri8()], ids=["order 5", "order 8"])
def test_errors_and_steps_beside_those_published(solver):
    """At the loosest tolerance ours has to be smaller by ten for a smaller error."""
    for tolerance, (error, steps) in PUBLISHED.items():
        own = 0.1 * tolerance if tolerance == 1e-5 else tolerance
        motion = odes.integrate(pendulum(), [1.0, 0.0], t1=30.0, rtol=own, atol=own, solver=solver, saveat=2)
        assert error_at_start(motion) < error
        assert taken(motion) < 0.6 * steps


def test_event_at_the_lowest_point():
    """A quarter of the period after the start; rows after it hold the state there."""
    lowest = diffrax.Event(lambda t, y, args, **kwargs: y.q[0], optimistix.Newton(1e-12, 1e-12))
    motion = odes.integrate(pendulum(), [1.0, 0.0], t1=1.0, rtol=1e-9, atol=1e-9, event=lowest, saveat=[0.0, 0.25, 0.6, 0.8, 1.0])
    assert motion.successful
    np.testing.assert_allclose(motion.final.t, 0.5, atol=1e-8)
    np.testing.assert_allclose(motion.q[-1], [0, -1], atol=1e-8)
    np.testing.assert_allclose(motion.t, [0, 0.25, motion.final.t, motion.final.t, motion.final.t])
    assert [mbd.Result(code).name for code in motion.results.tolist()] == ["SUCCESS"] * 2 + ["AFTER_EVENT"] * 3


def test_constraints_that_contradict_each_other_on_the_way():
    """A link whose ends are moved apart until it would have to be longer than it is, at t = 1."""
    dynamics = odes.Dynamics.from_functions(
        1.0,
        FREE,
        constraints=lambda t, q, p: jnp.array([q @ q - 1, q[0] - jnp.sin(0.5 * jnp.pi * t) - p["excess"] * t]),
        params={"excess": 0.1},
    )
    with pytest.raises(
        mbd.SimulationError, match=r"stopped at t = 0\.7.* with NOT_PROJECTED: .* Worst constraint at the last iterate: number"
    ) as caught:
        odes.integrate(dynamics, [0.0, 1.0], [0.5 * np.pi + 0.1, 0.0], t1=1.0, saveat=11)
    motion = caught.value.trajectory
    good = np.asarray(motion.results) == mbd.Result.SUCCESS
    assert good.sum() == 8
    np.testing.assert_allclose(motion.q[good, 0], np.sin(0.5 * np.pi * motion.t[good]) + 0.1 * motion.t[good], atol=1e-12)
    assert np.all(np.isfinite(motion.q))
    assert [mbd.Result(int(code)).name for code in motion.results[8:]] == ["NOT_PROJECTED", "NOT_REACHED", "NOT_REACHED"]


def test_states_that_are_no_coordinates():
    """An actuator with a lag pushes a mass along a line: closed form."""
    lag, slope = 0.5, 0.3
    dynamics = odes.Dynamics.from_functions(
        1.0,
        lambda t, q, v, w, p: jnp.array([w["force"], 0.0]),
        constraints=lambda t, q, p: jnp.array([q[1] - slope * q[0]]),
        states=lambda t, q, v, w, p: {"force": (1 - w["force"]) / p},
        params=lag,
    )
    motion = odes.integrate(dynamics, [0.0, 0.0], None, {"force": 0.0}, t1=2.0, rtol=1e-9, atol=1e-10, saveat=5)
    force = 1 - np.exp(-motion.t / lag)
    np.testing.assert_allclose(motion.w["force"], force, atol=1e-8)
    np.testing.assert_allclose(motion.v[:, 0], (motion.t - lag * force) / (1 + slope**2), atol=1e-8)
    np.testing.assert_allclose(motion.multipliers[:, 0], -slope * force / (1 + slope**2), atol=1e-8)
    np.testing.assert_allclose(motion.velocity_multipliers, 0, atol=1e-14)


def cross(**options):
    """A mass on a cross of two lines: at the middle nothing holds it."""
    return odes.Dynamics.from_functions(
        1.0, lambda t, q, v, w, p: jnp.array([0.0, p]), constraints=lambda t, q, p: q[:1] * q[1:], params=0.0, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("start", [-0.5, 0.0])
def test_rank_that_changes_on_the_way(start):
    motion = odes.integrate(cross(), [start, 0.0], [1.0, 0.0], t1=1.0, saveat=5)
    np.testing.assert_allclose(motion.q[:, 0], start + motion.t, atol=1e-12)
    np.testing.assert_allclose(motion.q[:, 1], 0, atol=1e-12)


@pytest.mark.slow
def test_constraints_that_appear_twice_from_some_time_on():
    """A second, redundant length of the pendulum that is switched on smoothly: the motion is that of one."""
    dynamics = odes.Dynamics.from_functions(
        1.0,
        lambda t, q, v, w, p: jnp.array([0.0, -G]),
        constraints=lambda t, q, p: jnp.array([1.0, 100 * jnp.maximum(t - 0.7, 0) ** 3]) * 0.5 * (q @ q - 1),
    )
    motion = odes.integrate(dynamics, [1.0, 0.0], t1=2.0, rtol=1e-9, atol=1e-9)
    assert error_at_start(motion) < 1e-6


def fixed(dynamics, solver, steps, rows, duration=1.2, projection=odes.Projection()):
    """A motion with so many equal steps, by a call of diffrax."""
    y0 = odes.State(jnp.array([1.0, 0.0]), jnp.zeros(2))
    return diffrax.diffeqsolve(
        diffrax.ODETerm(odes.Field(dynamics, projection)),
        odes.Projected(solver, dynamics, projection),
        0.0,
        duration,
        duration / steps,
        y0,
        saveat=diffrax.SaveAt(ts=rows),
        max_steps=500,
    ).ys


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "at the ends"])
def test_orders_of_steps_and_of_dense_output(inside):
    """5 and 8 at the ends of steps; between them not below those of the interpolants, 5 and 6, and on the constraints everywhere."""
    dynamics, projection = odes.Dynamics.of(pendulum()), odes.Projection(inside=inside)
    rows = jnp.linspace(0, 1.2, 37)
    reference = fixed(dynamics, diffrax.Dopri8(), 400, rows)
    counts = np.array([10, 14, 20, 28, 40])
    run = eqx.filter_jit(lambda solver, steps: fixed(dynamics, solver, steps, rows, projection=projection))
    for solver, at_ends, between in ((diffrax.Dopri5(), 4.8, 4.7), (diffrax.Dopri8(), 7.8, 5.8)):
        motions = [run(solver, jnp.asarray(count, float)) for count in counts]
        ends = [jnp.max(jnp.abs(motion.q[-1] - reference.q[-1])) for motion in motions]
        dense = [jnp.max(jnp.abs(motion.v - reference.v)) for motion in motions]
        assert mbd.post.order(1.2 / counts, ends) > at_ends
        assert mbd.post.order(1.2 / counts, dense) > between
        for motion in motions:
            assert jnp.max(jnp.abs(jnp.sum(motion.q**2, axis=1) - 1)) < 1e-14
            assert jnp.max(jnp.abs(jnp.sum(motion.q * motion.v, axis=1))) < 1e-13


@pytest.mark.slow
def test_dense_solution_backwards_and_forwards():
    """`SaveAt(dense=True)` leaves a solution that can be evaluated anywhere, on the constraints, also of a motion back in time."""
    dynamics = odes.Dynamics.of(pendulum())
    y0 = odes.State(jnp.array([1.0, 0.0]), jnp.zeros(2))
    for t1 in (1.0, -1.0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(odes.Field(dynamics)),
            odes.Projected(diffrax.Tsit5(), dynamics),
            0.0,
            t1,
            None,
            y0,
            saveat=diffrax.SaveAt(dense=True),
            stepsize_controller=diffrax.PIDController(1e-9, 1e-9),
            max_steps=300,
        )
        y = jax.vmap(solution.evaluate)(t1 * jnp.linspace(0, 1, 21))
        np.testing.assert_allclose(jnp.linalg.norm(y.q, axis=1), 1, atol=1e-14)
        np.testing.assert_allclose(y.q[10], [0, -1], atol=1e-7)
        np.testing.assert_allclose(y.q[::-1] * jnp.array([-1.0, 1.0]), y.q, atol=1e-7)


@pytest.mark.slow
def test_implicit_solver_for_a_stiff_spring():
    """A pendulum beside a stiff spring with damper: Kvaerno needs few steps where an explicit solver is held up."""
    stiff = mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[1] - 0.5e6 * q[2] ** 2,
        forces=lambda t, q, v, p: jnp.array([0.0, 0.0, -1e4 * v[2]]),
        constraints=lambda t, q, p: jnp.array([0.5 * (q[:2] @ q[:2] - 1)]),
    )
    start = [1.0, 0.0, 1e-3]
    implicit = odes.integrate(stiff, start, t1=2.0, solver=diffrax.Kvaerno5(), rtol=1e-7, atol=1e-7, saveat=5)
    explicit = odes.integrate(stiff, start, t1=2.0, rtol=1e-7, atol=1e-7, saveat=5)
    np.testing.assert_allclose(implicit.q[:, :2], explicit.q[:, :2], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(implicit.q[:, :2], axis=1), 1, atol=1e-14)
    assert taken(implicit) < 0.1 * taken(explicit)


@pytest.mark.slow
def test_drift_of_the_baseline_and_what_others_do_to_it():
    """Ten seconds, as in figs. 1 and 2: nothing drifts but the baseline, and penalties hold the length only softly."""
    system, off = mechanisms.pendulum().with_rank(1), {}
    for method in (
        odes.Projection(tolerance=1e-12),
        odes.Baseline(),
        odes.Baumgarte(2.0, 2.0),
        odes.BraunGoldfarb(),
        odes.Penalty(1e4, 10.0),
    ):
        motion = odes.integrate(system, [1.0, 0.0], t1=10.0, rtol=1e-3, atol=1e-6, dtmax=0.1, dt0=0.01, method=method)
        off[type(method).__name__] = np.max(np.abs(np.linalg.norm(motion.q, axis=1) - 1))
    assert off["Projection"] < 1e-12
    assert off["Baumgarte"] < 0.1 * off["Baseline"]
    assert off["BraunGoldfarb"] < 0.1 * off["Baseline"]
    assert 1e-2 < off["Baseline"] < 5e-2
    assert 1e-3 < off["Penalty"] < 1e-2


@pytest.mark.slow
def test_agreement_with_the_variational_motion():
    """The bead on a turning hoop as tolerances get tighter, beside `simulate` and beside its one angle, integrated by SciPy."""
    system, start = mechanisms.bead_on_moving_wire(), ([1.0, 0.0, 0.0], [0.0, 3.0, 0.0])
    slope = lambda t, y: [y[1], -9.81 * np.cos(y[0]) - 9 * np.sin(y[0]) * np.cos(y[0])]
    angle = solve_ivp(slope, (0, 1), [0.0, 0.0], rtol=1e-13, atol=1e-13, method="DOP853").y[0, -1]
    reference = np.array([np.cos(angle) * np.cos(3), np.cos(angle) * np.sin(3), np.sin(angle)])
    variational = mbd.simulate(system, *start, dt=0.02, steps=50, scheme=mbd.Galerkin(4), save="end")
    errors = []
    for tolerance in (1e-4, 1e-7, 1e-10):
        motion = odes.integrate(system, *start, t1=1.0, rtol=tolerance, atol=tolerance, saveat=3)
        errors.append(float(np.max(np.abs(motion.q[-1] - reference))))
        np.testing.assert_allclose(mbd.post.constraint_residuals(system, motion), 0, atol=1e-14)
    assert errors[0] > 50 * errors[1] > 50 * errors[2]
    assert errors[2] < 1e-9
    np.testing.assert_allclose(motion.q[-1], variational.q[-1], atol=1e-6)


@pytest.mark.slow
def test_redundant_mechanism_with_reactions():
    """A spatial four-bar linkage with three constraints too many: motion and reactions are those of `simulate`."""
    system, q0 = mbd.assemble(*mbd.gallery.four_bar())
    motion = odes.integrate(system, q0, t1=0.3, rtol=1e-8, atol=1e-8, saveat=4)
    other = mbd.simulate(system, q0, dt=1e-3, steps=300, save=100)
    assert motion.redundant == 3
    np.testing.assert_allclose(motion.q, other.q, atol=1e-5)
    mine, its = mbd.post.reactions(system, motion), mbd.post.reactions(system, other)
    for joint in mine:
        np.testing.assert_allclose(mine[joint].force[1:-1], its[joint].force[1:-1], atol=1e-3)
        np.testing.assert_allclose(mine[joint].torque[1:-1], its[joint].torque[1:-1], atol=1e-3)
    np.testing.assert_allclose(mbd.post.constraint_residuals(system, motion), 0, atol=1e-13)
    angles = [np.asarray(mbd.post.joint_coordinates(system, one)["hinge 1"]) for one in (motion, other)]
    np.testing.assert_allclose(*angles, atol=1e-5)


def swung(x, adjoint):
    """Where a pendulum of length x[0] under gravity x[1] is that starts with the speed x[2]; its path is adaptive."""
    system = mechanisms.pendulum().with_rank(1).with_params({"m": 1.0, "l": x[0], "g": x[1]})
    q0, v0 = x[0] * jnp.array([0.6, -0.8]), x[2] * jnp.array([0.8, 0.6])
    motion = odes.integrate(system, q0, v0, t1=0.7, rtol=1e-8, atol=1e-8, saveat=3, max_steps=200, adjoint=adjoint, throw=False)
    return jnp.concatenate([motion.q[-1], motion.q[1], motion.multipliers[-1]])


@pytest.mark.slow
def test_gradients_through_adaptive_runs():
    """By parameters and starts, backwards and forwards, against differences; starts and parameters are a batch of these."""
    x, step = jnp.array([1.1, 9.81, 0.4]), 1e-4
    runs = jax.jit(jax.vmap(lambda x: swung(x, diffrax.RecursiveCheckpointAdjoint())))
    moved = runs(jnp.concatenate([x + step * jnp.eye(3), x - step * jnp.eye(3)]))
    differences = (moved[:3] - moved[3:]).T / (2 * step)
    backwards = jax.jit(jax.jacrev(lambda x: swung(x, diffrax.RecursiveCheckpointAdjoint())))(x)
    forwards = jax.jit(jax.jacfwd(lambda x: swung(x, diffrax.ForwardMode())))(x)
    direct = jax.jit(jax.jacrev(lambda x: swung(x, diffrax.DirectAdjoint())))(x)
    scale = np.max(np.abs(differences))
    np.testing.assert_allclose(backwards, differences, atol=1e-5 * scale)
    np.testing.assert_allclose(forwards, backwards, atol=1e-9 * scale)
    np.testing.assert_allclose(direct, backwards, atol=1e-9 * scale)


@pytest.mark.slow
def test_batches_survive_members_that_fail():
    """Inside `vmap` a wrong start is a code of its own member."""
    run = lambda q: odes.integrate(pendulum(), q, t1=2.0, rtol=1e-8, atol=1e-8, saveat=3, throw=False)
    motion = jax.jit(jax.vmap(run))(jnp.array([[1.0, 0.0], [1.1, 0.0], [0.0, -1.0]]))
    assert motion.successful.tolist() == [True, False, True]
    np.testing.assert_allclose(motion.q[0, -1], [1, 0], atol=1e-5)
    np.testing.assert_allclose(motion.q[2, -1], [0, -1], atol=1e-12)
    assert motion.results[1].tolist() == [mbd.Result.INCONSISTENT_POSITION, mbd.Result.NOT_REACHED, mbd.Result.NOT_REACHED]
    with pytest.raises(mbd.SimulationError, match="1 of 3 batch members failed: 1 with INCONSISTENT_POSITION"):
        motion.check()


@pytest.mark.slow
def test_steps_that_become_too_small_or_too_many():
    system = pendulum()
    with pytest.raises(mbd.SimulationError, match=r"stopped at t = .* with STEP_TOO_SMALL"):
        odes.integrate(system, [1.0, 0.0], t1=1.0, rtol=1e-10, atol=1e-10, dtmin=0.01)
    with pytest.raises(mbd.SimulationError, match=r"after \d+ steps, with STEPS_EXHAUSTED"):
        odes.integrate(system, [1.0, 0.0], t1=1.0, rtol=1e-10, atol=1e-10, max_steps=20, dt0=1e-4)
    falling = mbd.System.from_functions(lagrangian=lambda t, q, v, p: 0.5 * v @ v - jnp.sqrt(q[0]))
    with pytest.raises(mbd.SimulationError, match="NON_FINITE"):
        odes.integrate(falling, [1.0], t1=10.0)


@pytest.mark.slow
def test_single_precision():
    with jax.enable_x64(False):
        motion = odes.integrate(pendulum(), jnp.array([1.0, 0.0], jnp.float32), t1=2.0, rtol=1e-5, atol=1e-5, saveat=5)
    assert motion.q.dtype == jnp.float32
    np.testing.assert_allclose(jnp.linalg.norm(motion.q, axis=1), 1, atol=3e-7)
    assert error_at_start(motion) < 1e-2


@pytest.mark.slow
def test_controls_of_a_system():
    """Functions of time, and of all states, as those of a controller."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        forces=lambda t, q, v, p, control: control["push"] * jnp.array([1.0, 0.0]),
        constraints=lambda t, q, p: jnp.array([q[1] - 0.5 * q[0]]),
    )
    held = odes.Dynamics.of(system, controls=lambda t, q, v, w: {"push": -4 * q[0] - w}, states=lambda t, q, v, w, p: 0.0 * w)
    motion = odes.integrate(held, [1.0, 0.5], None, jnp.array(0.0), t1=1.0, rtol=1e-9, atol=1e-9, saveat=3)
    np.testing.assert_allclose(motion.q[:, 0], np.cos(2 / np.sqrt(1.25) * motion.t), atol=1e-7)
    timed = odes.integrate(system, [0.0, 0.0], t1=1.0, controls=lambda t: {"push": t}, saveat=3)
    np.testing.assert_allclose(timed.q[:, 0], timed.t**3 / 6 / 1.25, atol=1e-6)
