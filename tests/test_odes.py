"""Constraints added to ordinary differential equations: fields, projections and multipliers, instant by instant."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from tests import mechanisms

odes = mbd.odes


def close(a, b, tolerance=1e-12):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def random_case(seed=0, n=5, m=3):
    """A plain linear mechanical problem with positive definite inertia, and rows of constraints."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, n))
    return half @ half.T + np.eye(n), rng.standard_normal((m, n)), rng.standard_normal(n), rng.standard_normal(n)


def flat(A, M, f, b=0.0, weight="identity", independent=False):
    """Dynamics with the constraints A q = b t^2/2 + ..., whose b' and b'' are known."""
    A, b = jnp.asarray(A), jnp.asarray(b)
    return odes.Dynamics.from_functions(
        np.asarray(M),
        lambda t, q, v, w, p: jnp.asarray(f),
        constraints=lambda t, q, p: A @ q - 0.5 * b * t**2 - jnp.zeros(A.shape[0]),
        weight=weight,
        independent=independent,
    )


@pytest.mark.parametrize("weight", ["identity", "mass", "matrix"])
def test_formulas_of_the_paper_with_redundant_rows(weight):
    """(11), (14) with Moore-Penrose inverses, of rows of which the last follows from the others."""
    M, A, f, v = random_case()
    A = np.vstack([A, A[0] - A[1]])
    b = A @ np.ones(5)
    W = {"identity": np.eye(5), "mass": M, "matrix": np.diag(np.arange(1.0, 6.0))}[weight]
    dynamics = flat(A, M, f, b, W if weight == "matrix" else weight)
    t, q = jnp.array(1.5), jnp.asarray(0.5 * 1.5**2 * np.ones(5))
    found = jax.jit(lambda y: odes.Projection().instant(dynamics, t, y, t))(odes.State(q, jnp.asarray(v)))
    inverse = lambda K: np.linalg.pinv(A @ np.linalg.inv(K) @ A.T, rcond=1e-10)
    mu = inverse(W) @ (A @ v - b * 1.5)
    velocity = v - np.linalg.solve(W, A.T @ mu)
    multipliers = inverse(M) @ (A @ np.linalg.solve(M, f) - b)
    close(found.rate.q, velocity, 1e-11)
    close(found.rate.v, np.linalg.solve(M, f - A.T @ multipliers), 1e-11)
    close(found.velocity_multipliers, mu, 1e-11)
    close(found.multipliers, multipliers, 1e-11)


def test_known_independence_changes_nothing():
    M, A, f, v = random_case(1)
    fields = [flat(A, M, f, A @ np.ones(5), independent=known) for known in (True, False)]
    y = odes.State(jnp.full(5, 0.125), jnp.asarray(v))
    one, other = (jax.jit(lambda y, d=d: odes.Projection().instant(d, jnp.array(0.5), y, jnp.array(0.0)))(y) for d in fields)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        close(a, b, 1e-11)


def test_inertia_may_be_missing_where_constraints_determine_the_motion():
    """A pendulum by its angle and the coordinates of its tip, of which only the tip has mass."""
    dynamics = odes.Dynamics.from_functions(
        [0.0, 2.0, 2.0],
        lambda t, q, v, w, p: jnp.array([0.0, 0.0, -2 * 9.81]),
        constraints=lambda t, q, p: jnp.array([q[1] - 3 * jnp.sin(q[0]), q[2] + 3 * jnp.cos(q[0])]),
    )
    angle, rate = 0.4, 0.7
    q = jnp.array([angle, 3 * np.sin(angle), -3 * np.cos(angle)])
    v = rate * jnp.array([1.0, 3 * np.cos(angle), 3 * np.sin(angle)])
    found = jax.jit(lambda y: odes.Field(dynamics)(0.0, y))(odes.State(q, v))
    close(found.q, v)
    close(found.v[0], -9.81 / 3 * np.sin(angle), 1e-11)


def test_positions_are_projected_with_the_weight_and_its_normals():
    """(16): the correction is W^-1 A^T at the prediction times something, and constraints hold to rounding."""
    W = jnp.diag(jnp.array([1.0, 4.0, 0.5]))
    dynamics = odes.Dynamics.from_functions(
        jnp.ones(3), lambda t, q, v, w, p: q, constraints=lambda t, q, p: jnp.array([q @ q - 1, q[0] * q[1] - 0.3]), weight=W
    )
    start = jnp.array([0.75, 0.5, 0.55])
    q, reached = jax.jit(lambda q: odes.Projection().position(dynamics, jnp.array(0.0), q))(start)
    assert reached
    close(dynamics.constraints(0.0, q), 0, 1e-15)
    A = jax.jacfwd(dynamics.constraints, 1)(0.0, start)
    normal = jnp.linalg.solve(W, A.T)
    residual = jnp.linalg.lstsq(normal, q - start)[0]
    close(normal @ residual, q - start, 1e-13)


def test_tolerance_of_positions():
    dynamics = odes.Dynamics.of(mechanisms.pendulum())
    near = jax.jit(lambda q: odes.Projection(tolerance=1e-3).position(dynamics, jnp.array(0.0), q)[0])(jnp.array([1.2, 0.3]))
    off = abs(float(dynamics.constraints(0.0, near)[0]))
    assert 1e-12 < off < 1e-3


@pytest.mark.parametrize("redundant", [False, True])
def test_derivative_of_the_projection(redundant):
    """By the implicit function theorem, in the prediction and the parameters, against differences."""

    def constraints(t, q, p):
        rows = jnp.array([q @ q - p**2, q[2] - 0.2 * q[0] ** 2])
        return jnp.append(rows, rows[0] + rows[1]) if redundant else rows

    def project(x):
        dynamics = odes.Dynamics.from_functions(jnp.ones(3), lambda t, q, v, w, p: q, constraints=constraints, params=x[3])
        on, _ = odes.Projection().state(dynamics, jnp.array(0.0), odes.State(x[:3], x[4:]))
        return jnp.concatenate([on.q, on.v])

    x, step = jnp.array([0.8, 0.6, 0.1, 1.01, 0.3, -0.2, 0.5]), 1e-5
    slopes = jax.jit(jax.jacfwd(project))(x)
    fast = jax.jit(jax.vmap(project))
    differences = (fast(x + step * jnp.eye(7)) - fast(x - step * jnp.eye(7))).T / (2 * step)
    close(slopes, differences, 1e-8)
    close(jax.jit(jax.jacrev(project))(x), slopes, 1e-10)


def test_moving_constraints_by_differentiation():
    """The bead on a turning hoop: rates of constraints vanish along the field up to the second order."""
    system = mechanisms.bead_on_moving_wire()
    dynamics = odes.Dynamics.of(system, independent=True)
    turn = lambda t: jnp.array([jnp.cos(3 * t), jnp.sin(3 * t), 0.0])
    t = jnp.array(0.3)
    q, v = jax.jvp(turn, (t,), (jnp.ones_like(t),))
    field = jax.jit(lambda t, y: odes.Field(dynamics)(t, y))(t, odes.State(q, v + jnp.array([0, 0, 0.5])))
    along = (jnp.ones_like(t), field.q, field.v)
    _, change = jax.jvp(dynamics.rate, (t, q, field.q), along)
    close(change, 0, 1e-12)
    close(dynamics.rate(t, q, field.q), 0, 1e-14)


def test_constraints_on_velocities():
    """A sled: its velocity is projected and its acceleration keeps it so; positions are free."""
    system = mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        velocity_constraints=lambda t, q, v, p: jnp.array([jnp.sin(q[2]) * v[0] - jnp.cos(q[2]) * v[1] - 0.2]),
    )
    mine = odes.Dynamics.from_functions(
        jnp.ones(3),
        lambda t, q, v, w, p: jnp.zeros(3),
        velocity_constraints=lambda t, q, v, p: jnp.array([jnp.sin(q[2]) * v[0] - jnp.cos(q[2]) * v[1] - 0.2]),
    )
    y = odes.State(jnp.array([0.1, 0.2, 0.6]), jnp.array([1.0, 0.3, 0.9]))
    for dynamics in (odes.Dynamics.of(system), mine):
        found = jax.jit(lambda y, d=dynamics: odes.Field(d)(0.0, y))(y)
        close(dynamics.rate(jnp.array(0.0), y.q, found.q), 0, 1e-15)
        _, change = jax.jvp(lambda q, v, d=dynamics: d.rate(jnp.array(0.0), q, v), (y.q, found.q), (found.q, found.v))
        close(change, 0, 1e-14)


def test_ritz_forms_are_the_formulas_of_the_paper():
    """(23)-(26): forces, inertia, weight and constraints through x = X r."""
    M, A, f, _ = random_case(2)
    X, r = np.random.default_rng(3).standard_normal((5, 4)), np.random.default_rng(4).standard_normal(4)
    dynamics = flat(A, M, f, 0 * A[:, 0], weight=M).reduced(X)
    start = jnp.zeros(4)
    found = jax.jit(lambda v: odes.Field(dynamics)(0.0, odes.State(start, v)))(jnp.asarray(r))
    AX, MX = A @ X, X.T @ M @ X
    inverse = np.linalg.solve(MX, AX.T) @ np.linalg.pinv(AX @ np.linalg.solve(MX, AX.T))
    close(found.q, r - inverse @ AX @ r, 1e-10)
    free = np.linalg.solve(MX, X.T @ f)
    close(found.v, free - inverse @ AX @ free, 1e-10)


def test_curved_forms_are_the_same_motion():
    """The pendulum by its angle alone, as a map: no constraint is left, and the acceleration is that of the angle."""
    dynamics = odes.Dynamics.of(mechanisms.pendulum()).reduced(lambda r: jnp.array([jnp.sin(r[0]), -jnp.cos(r[0])]))
    found = jax.jit(lambda y: odes.Field(dynamics)(0.0, y))(odes.State(jnp.array([0.8]), jnp.array([1.1])))
    close(found.v, [-9.81 * np.sin(0.8)], 1e-12)
    close(found.q, [1.1])


def test_forms_that_meet_constraints_only_nearly():
    """Two forms cannot meet three conditions: they are met in the sense of least squares, and the iteration ends."""
    X = np.random.default_rng(5).standard_normal((5, 2))
    M, A, f, _ = random_case(6)
    dynamics = flat(A, M, f, A @ np.ones(5) * 1e-3).reduced(X)
    t = jnp.array(1.0)
    r, reached = jax.jit(lambda r: odes.Projection().position(dynamics, t, r))(jnp.zeros(2))
    D = np.linalg.norm(A @ X * np.asarray(dynamics.sizes(jnp.zeros(2))), axis=1)[:, None]
    wanted = np.linalg.lstsq(A @ X / D, A @ np.ones(5) * 0.5e-3 / D[:, 0], rcond=None)[0]
    assert reached
    close(r, wanted, 1e-12)


def test_projected_changes_are_those_of_the_projection():
    """The part of an error that is kept is the derivative of the projection at a state on the constraints."""
    dynamics = odes.Dynamics.of(mechanisms.pendulum())
    y = odes.State(jnp.array([0.6, 0.8]), jnp.array([-1.6, 1.2]))
    change = odes.State(jnp.array([0.3, 0.1]), jnp.array([-0.2, 0.5]))
    projection, t = odes.Projection(), jnp.array(0.0)

    def both(y, change):
        on = lambda y: projection.state(dynamics, t, y)[0]
        return projection.tangent(dynamics, t, y, change), jax.jvp(on, (y,), (change,))[1]

    mine, derivative = jax.jit(both)(y, change)
    close(mine.q, derivative.q)
    close(mine.v, derivative.v)


def test_methods_to_compare_with():
    """Violations are fed back as the formulas say, from a state off the constraints."""
    dynamics = odes.Dynamics.of(mechanisms.pendulum())
    y, t = odes.State(jnp.array([1.1, 0.2]), jnp.array([0.3, -0.4])), jnp.array(0.0)
    rate, value = dynamics.rate(t, y.q, y.v), dynamics.constraints(t, y.q)

    def second(method, dt=0.1):
        found = jax.jit(lambda y: method.instant(dynamics, t, y, jnp.array(dt)))(y)
        return found, y.q @ found.rate.v + y.v @ y.v

    close(second(odes.Baseline())[1], 0)
    close(second(odes.Baumgarte(2.0, 3.0))[1], -4 * rate[0] - 9 * value[0])
    found, acceleration = second(odes.BraunGoldfarb())
    close(acceleration, -rate[0] / 0.1)
    close(y.q @ found.rate.q, -value[0] / 0.1)
    found, _ = second(odes.Penalty(100.0, 5.0))
    close(found.multipliers, 100 * value + 5 * rate)
    close(found.rate.v, jnp.array([0, -9.81]) - found.multipliers[0] * y.q)


def sprung_linkage():
    """A plane four-bar linkage with a spring on a hinge, whose angle is counted by a coordinate without inertia."""
    mechanism, placement = mbd.gallery.four_bar(planar=True)
    bodies = {name: body for name, body in mechanism.bodies.items() if name != "ground"}
    loads = [mbd.Gravity((0, -9.81, 0)), mbd.JointSpring("hinge 1", stiffness=3.0, damping=0.1)]
    return mbd.assemble(mbd.Mechanism(bodies, mechanism.joints, loads), placement)


def reduced_beam():
    """A cantilever that bends by two forms, with its floating frame."""
    section = mbd.Section((3.0e4, 4.0e4, 9.0e4, 40.0, 25.0, 30.0), 2.0, (0.03, 0.05))
    beam = mbd.Beam.line((0, 0, 0), (0, 0, 1.0), section, 2, 1, normal=(1, 0, 0))
    clamp = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}
    system, q0 = mbd.assemble(mbd.Mechanism({"beam": beam}, clamp, [mbd.Gravity((0, -9.81, 0))]))
    x, forms = np.linspace(0, 1, 3), np.zeros((2, 3, 4, 3))
    for form, across in enumerate((1, 0)):
        forms[form, :, 0, across], forms[form, :, 3, across], forms[form, :, 2 - form, 2] = x**2, 2 * x, -2 * x
    reduced = mbd.reduction.ritz(system, q0, {"beam": forms})
    return reduced.system, reduced.q0


@pytest.mark.slow
@pytest.mark.parametrize("make", [sprung_linkage, reduced_beam])
def test_systems_with_coordinates_without_inertia(make):
    """Accelerations and multipliers are those of the saddle point problem that the manifold solves."""
    system, q0 = make()
    q, t = jnp.asarray(q0), jnp.array(0.0)
    system = mbd.find_rank(system.astype(q.dtype), q)
    y = odes.State(q, jnp.zeros_like(q))
    found = jax.jit(lambda y: odes.Projection().instant(odes.Dynamics.of(system), t, y, t))(y)
    a, multipliers = jax.jit(lambda y: mbd.constraints.manifold_at(system, t, y.q).sharing().acceleration(y.v))(y)
    close(found.rate.v, a, 1e-12 * float(jnp.max(jnp.abs(a))))
    close(found.multipliers, multipliers, 1e-12 * float(jnp.max(jnp.abs(multipliers))))


def test_functions_are_tried_and_named():
    forces = lambda t, q, v, w, p: -q
    with pytest.raises(mbd.ModelError, match="forces takes 2 positional arguments; it must take 5"):
        odes.Dynamics.from_functions(1.0, lambda q, v: q)
    with pytest.raises(mbd.ModelError, match="weight must be 'identity'"):
        odes.Dynamics.from_functions(1.0, forces, weight="masses")
    with pytest.raises(mbd.ModelError, match="affine in v"):
        odes.integrate(
            odes.Dynamics.from_functions(1.0, forces, velocity_constraints=lambda t, q, v, p: jnp.array([v @ v - 1])), [1.0, 0.0], t1=1.0
        )
    with pytest.raises(mbd.ModelError, match="the dynamics have no states"):
        odes.integrate(odes.Dynamics.from_functions(1.0, forces), [1.0], w0=jnp.zeros(1), t1=1.0)
    with pytest.raises(mbd.ModelError, match="does not fulfil the constraints: number 0"):
        odes.integrate(mechanisms.pendulum(), [1.1, 0.0], t1=1.0)
    with pytest.raises(mbd.ModelError, match="v0 is not tangent"):
        odes.integrate(mechanisms.pendulum(), [1.0, 0.0], [1.0, 0.0], t1=1.0)
    with pytest.raises(mbd.ModelError, match="without turning back"):
        odes.integrate(mechanisms.pendulum(), [1.0, 0.0], t1=1.0, saveat=[0.0, 2.0])
    friction = {"hinge": (0, mbd.friction.Plasticity(10.0, 1.0))}
    with pytest.raises(mbd.ModelError, match="friction with a memory"):
        odes.Dynamics.of(mbd.System.from_functions(kinetic=lambda t, q, v, p: 0.5 * v @ v, friction=friction))


def test_the_rest_works_without_diffrax():
    code = """
import sys
sys.modules["diffrax"] = None
import jaxmbd as mbd
assert mbd.odes.Dynamics
try:
    mbd.odes.integrate
except mbd.ModelError as error:
    assert "pip install 'jaxmbd[odes]'" in str(error)
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
