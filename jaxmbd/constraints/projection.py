"""Displacements along a normal space onto the constraint manifold."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import Result
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector
from .split import Split
from .units import extents, within


def normal_correction(
    system: System, t: Scalar, q: Vector, move: Vector, at: Split, normal: Float[Array, "n r"], newton: Newton
) -> tuple[Vector, Array]:
    r"""A displacement $d + R w$ from `q` to the constraint manifold at time `t`, $w$ solved from $g = 0$, and the code of the solve."""
    if normal.shape[1] == 0:
        return move, jnp.int32(Result.SUCCESS)
    w = jnp.zeros(normal.shape[1], q.dtype)
    solution = newton(_normal_residual, w, (system, t, q + move, at, normal), scale=within(normal, extents(system, q + move)))
    return move + normal @ solution.value, solution.result


def _normal_residual(w, args):
    system, t, q, at, normal = args
    return at.pick(system.constraints(t, q + normal @ w))
