"""Consistent starts: the rank of the constraints, projection onto the manifold, the first momentum."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, PyTree

from ..constraints.calculus import constraint_jacobian, constraint_rate
from ..constraints.consistency import as_coordinates, vector_like
from ..constraints.saddle import clearly_independent, nearest_position, nearest_velocity
from ..constraints.splitting import constraint_count, is_large, numerical_rank, saddle_layout, split_coordinates
from ..errors import ModelError, Result
from ..formulations import Multipliers, normal_correction
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.lapack import solve
from ..numerics.newton import Newton
from ..schemes import AbstractScheme, StepInput
from ..system import Scalar, System, Vector, VectorLike
from .trajectory import State, Status


def find_rank(system: System, q: VectorLike, t: ArrayLike = 0.0) -> System:
    """The system with the rank of its constraints at `q` fixed.

    `simulate` does this by itself where it sees numbers. Redundant constraints need it before `jit` or `vmap`. Take a `q` that
    fulfils the constraints: away from them redundant constraints look independent. Where the constraints of a large system are not
    clearly independent the cost is cubic in its size, so that `assemble` and `simulate` leave such systems as they are unless a
    formulation needs the rank: redundant constraints are then made soft.
    """
    q = as_coordinates(system, q)
    system = system.astype(q.dtype)
    found = with_rank_if_cheap(system.with_rank(None), q, t)
    return found if found.rank is not None else _with_numerical_rank(system, q, t)


def with_rank_if_cheap(system: System, q: Vector, t: ArrayLike = 0.0) -> System:
    """The system with its rank, unless that takes a decomposition of large matrices to find."""
    if system.rank is not None:
        return system
    if not is_large(system, q) or system.closures == 0 or not system.has("constraints"):
        return _with_numerical_rank(system, q, t)
    independent = known(_clearly_independent(*jax.lax.stop_gradient((system, jnp.asarray(t, q.dtype), q))))
    return system.with_rank(constraint_count(system, q)) if independent else system


def _with_numerical_rank(system: System, q: Vector, t: ArrayLike) -> System:
    rank = known(_numerical_rank(*jax.lax.stop_gradient((system, jnp.asarray(t, q.dtype), q))))
    return system if rank is None else system.with_rank(int(rank))


_numerical_rank, _clearly_independent = compiled(numerical_rank), compiled(clearly_independent)


def project(
    system: System, q: VectorLike, v: VectorLike | None = None, t: ArrayLike = 0.0, newton: Newton = Newton(max_steps=50, line_search=True)
) -> tuple[Vector, Vector]:
    r"""The configuration near `q` on the constraint manifold, and the admissible velocity nearest to `v` there.

    The configuration moves along the normal space at `q`, $q + G^T(q)\,w$ with $g = 0$; the velocity changes least,
    $v - G^+ (G v + \partial g/\partial t)$. Differentiable in everything. A guess from which the manifold is not reached is an error.
    """
    q = as_coordinates(system, q, "q")
    v = jnp.zeros_like(q) if v is None else vector_like(v, q, "v")
    t = jnp.asarray(t, q.dtype)
    system = system.astype(q.dtype)
    if system.rank is None and not is_large(system, q):
        system = find_rank(system, _approach(*jax.lax.stop_gradient((system, q, t))), t)
    q1, v1, result = (_project_large if is_large(system, q) else _project)(system, q, v, t, newton)
    outcome, remaining = known(result), known(jnp.abs(system.constraints(t, q1)))
    if outcome is None or remaining is None:
        return q1, v1
    far = remaining > np.sqrt(jnp.finfo(q.dtype).eps) * max(1.0, float(np.max(np.abs(np.asarray(jax.lax.stop_gradient(q1))))))
    if outcome != Result.SUCCESS or far.any():
        values = np.abs(np.asarray(system.constraints(t, q)))
        worst = system.constraint_name(int(values.argmax()))
        raise ModelError(
            f"project: the constraint manifold was not reached from this guess (worst constraint: {worst}, off by {values.max():.3g} "
            "at the guess); give a guess closer to it, or check that the constraints can be met"
        )
    return q1, v1


@compiled
def _approach(system: System, q: Vector, t: Scalar) -> Vector:
    """Near the manifold by damped least squares, which need no rank: away from it redundant constraints look independent."""

    def body(_, q):
        values, G = system.constraints(t, q), constraint_jacobian(system, t, q)
        damping = jnp.max(jnp.abs(values), initial=0) * jnp.eye(values.size, dtype=q.dtype)
        floor = jnp.finfo(q.dtype).eps * jnp.trace(G @ G.T) * jnp.eye(values.size, dtype=q.dtype)
        return q - G.T @ solve(G @ G.T + damping + floor, values)

    return jax.lax.fori_loop(0, 50, body, q) if system.has("constraints") else q


@compiled
def _project(system: System, q: Vector, v: Vector, t: Scalar, newton: Newton):
    at = split_coordinates(system, t, q)
    normal = at.independent(constraint_jacobian(system, t, q)).T
    move, result = normal_correction(system, t, q, jnp.zeros_like(q), at, normal, newton)
    q = q + move
    at = split_coordinates(system, t, q)
    rows = at.independent(constraint_jacobian(system, t, q))
    if rows.shape[0]:
        v = v - rows.T @ solve(rows @ rows.T, at.pick(constraint_rate(system, t, q, v)))
    return q, v, result


@compiled
def _project_large(system: System, q: Vector, v: Vector, t: Scalar, newton: Newton):
    q, result = nearest_position(system, t, q, newton)
    return q, nearest_velocity(system, t, q, v), result


def discrete_momentum(scheme: AbstractScheme, step: StepInput, q1: Vector, newton: Newton) -> Vector:
    r"""$-D_1 L_d(q_0, q_1)$, the momentum with which a step from `q0` leads to `q1`; nodes inside it are solved for."""
    problem = Multipliers().prepare(scheme, step)
    fractions = jnp.asarray(scheme.fractions[1:-1], q1.dtype)[:, None]
    inside = fractions * (q1 - step.q0)
    if inside.size:
        multipliers = jnp.zeros(inside.shape[0] * problem.rank, q1.dtype)
        x = jnp.concatenate([inside.ravel(), multipliers])
        layout = saddle_layout(step.system, step.q0, problem.split, scheme.stages - 1)
        inside = newton(_inside_residual, x, (problem, q1 - step.q0), layout=layout).value[: inside.size].reshape(inside.shape)
    return -scheme.balance(jnp.vstack([inside, q1 - step.q0]), step)[0]


def _inside_residual(x, args):
    """Equations (22) of the nodes inside a step whose ends are given."""
    problem, whole = args
    count = problem.scheme.stages - 1
    inside, multipliers = x[: count * whole.size].reshape(count, -1), x[count * whole.size :].reshape(count, -1)
    moves = jnp.vstack([inside, whole])
    forces = problem.constraint_forces(moves, jnp.vstack([jnp.zeros_like(multipliers[:1]), multipliers]))
    return jnp.concatenate([(problem.balance(moves) - forces)[1:].ravel(), problem.constraints(moves)[:-1].ravel()])


def start(system: System, q0: Vector, v0: Vector, dt: Array, t0: Array, scheme: AbstractScheme, control: PyTree = None) -> State:
    """The state before the first step, with a straight line as the first guess."""
    zero = jnp.zeros((), q0.dtype)
    status = Status(jnp.int32(Result.SUCCESS), jnp.int32(0), zero, jnp.int32(-1), zero)
    fractions = jnp.asarray(scheme.fractions[1:], q0.dtype)[:, None]
    p0, carried = scheme.start(system, t0, dt, q0, v0, control)
    return State(jnp.int32(0), t0, q0, p0, fractions * dt * v0, -dt * v0, status, carried)
