"""Consistent starts: the nearest position on the constraint manifold, and the nearest velocity along it."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike

from ..errors import ModelError, Result
from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.lapack import solve
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector, VectorLike
from .calculus import constraint_jacobian, constraint_slopes
from .inputs import as_coordinates, require_finite, vector_like
from .manifold import manifold_at
from .rank import find_rank
from .units import extents, row_size, sizes


@checked
def project(
    system: System, q: VectorLike, v: VectorLike | None = None, t: ArrayLike = 0.0, newton: Newton = Newton(max_steps=50, line_search=True)
) -> tuple[Vector, Vector]:
    r"""The configuration near `q` on the constraint manifold, and the admissible velocity nearest to `v` there.

    The configuration moves along the normal space at `q`, $q + S^2 G^T(q)\,w$ with $g = 0$; the velocity changes least,
    $v - S (G S)^+ (G v + \partial g/\partial t)$, with coordinates counted in their sizes $S$ (see `Structure`), and with the rows of
    constraints on velocities under those of $G$. Differentiable in
    everything. A guess from which the manifold is not reached is an error; inside `jit` and `vmap`, where it cannot be one, position and
    velocity are not a number then, which `simulate` reports.
    """
    q = as_coordinates(system, q, "q")
    v = jnp.zeros_like(q) if v is None else vector_like(v, q, "v", "q")
    t = jnp.asarray(t, q.dtype)
    require_finite(t, "t")
    system = system.astype(q.dtype)
    if system.rank is None and manifold_at(system, t, q).decomposes:
        system = find_rank(system, _approach(*jax.lax.stop_gradient((system, q, t))), t)
    q1, v1, reached = _project(system, q, v, t, newton)
    if known(reached) is not None and not known(reached):
        values = np.abs(np.asarray(jax.lax.stop_gradient(system.constraints(t, q))))
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
        size = sizes(system, q)
        G = constraint_jacobian(system.holonomic, t, q) * size
        length = row_size(G)
        values, G = system.constraints(t, q) / length, G / length[:, None]
        damping = jnp.max(jnp.abs(values), initial=0) * jnp.eye(values.size, dtype=q.dtype)
        floor = jnp.finfo(q.dtype).eps * jnp.trace(G @ G.T) * jnp.eye(values.size, dtype=q.dtype)
        return q - size * (G.T @ solve(G @ G.T + damping + floor, values))

    return jax.lax.fori_loop(0, 50, body, q) if system.has("constraints") else q


@compiled
def _project(system: System, q: Vector, v: Vector, t: Scalar, newton: Newton) -> tuple[Vector, Vector, Array]:
    """Position, velocity, and whether the manifold was reached: if not, they are not a number."""
    found, result = manifold_at(system.holonomic, t, q).nearest(newton)
    size = constraint_slopes(system.holonomic, t, found, extents(system, found))
    near = jnp.abs(system.constraints(t, found)) <= jnp.sqrt(jnp.finfo(q.dtype).eps) * jnp.where(size > 0, size, 1)
    reached = (result == Result.SUCCESS) & jnp.all(near)
    factor = jnp.where(reached, 1, jnp.nan).astype(q.dtype)
    return factor * found, factor * manifold_at(system, t, found).nearest_velocity(v), reached
