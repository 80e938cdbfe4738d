r"""Small vibrations about an equilibrium of any constrained system.

With $K$ the derivative of all forces at fixed multipliers, $M$ the mass matrix and $P$ a null space matrix of the constraints, modes
solve $P^T K P\,x = \omega^2 P^T M P\,x$ and move coordinates by $P x$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..constraints.calculus import constraint_forces, equations_of_motion, mass_matrix
from ..constraints.inputs import as_coordinates
from ..constraints.manifold import DenseManifold
from ..constraints.rank import find_rank
from ..constraints.split import null_space, split
from ..errors import ModelError
from ..numerics.arguments import checked
from ..numerics.arrays import known, root
from ..numerics.compile import compiled
from ..numerics.lapack import generalised_eigh
from ..system import Scalar, System, Vector, VectorLike
from .outcome import require_holonomic


class Modes(eqx.Module):
    r"""Squares of circular frequencies in rising order, and changes of coordinates, one row a mode, of unit mass $\phi^T M \phi = 1$."""

    squares: Float[Array, " modes"]
    shapes: Float[Array, "modes n"]

    @property
    def frequencies(self) -> Float[Array, " modes"]:
        """In hertz; where the equilibrium is not stable, minus the rate at which a motion grows, over a full turn."""
        return jnp.sign(self.squares) * root(jnp.abs(self.squares)) / (2 * np.pi)


@checked
def modes(system: System, q: VectorLike, *, t: ArrayLike = 0.0, count: int | None = None) -> Modes:
    r"""The `count` slowest modes (default: all) about the equilibrium `q`, as `equilibrium` finds it.

    Forces without a potential count with the symmetric part of their derivative; forces that depend on velocities do not count.
    Differentiable where frequencies are distinct. A position out of balance is an error; inside `jit`, where it cannot be one, the modes
    are not a number.
    """
    require_holonomic(system, "modes about a position of rest")
    q = as_coordinates(system, q, "q")
    if count is not None and count < 1:
        raise ModelError(f"count must be a positive number of modes, not {count}")
    system, t = system.astype(q.dtype).with_step(jnp.ones((), q.dtype)), jnp.asarray(t, q.dtype)
    if system.rank is None:
        system = find_rank(system, q, t)
    found, unbalanced, at_rest = _modes(system, q, t)
    if known(at_rest) is not None and not known(at_rest):
        off = float(jax.lax.stop_gradient(unbalanced))
        raise ModelError(f"forces are out of balance by {off:.3g} at this position; use mbd.equilibrium(system, q) to find one at rest")
    squares = known(found.squares)
    if squares is not None and not np.isfinite(squares).all():
        raise ModelError("the mass matrix is singular for an admissible motion: every free motion needs inertia to have a frequency")
    return Modes(found.squares[:count], found.shapes[:count])


@compiled
def _modes(system: System, q: Vector, t: Scalar) -> tuple[Modes, Array, Array]:
    """All modes, the largest force out of balance, and whether that is rounding: if not, modes are not a number."""
    zero = jnp.zeros_like(q)
    forces = lambda q: equations_of_motion(system, t, q, zero, zero)
    P = null_space(system, t, q, "chart" if system.has("chart") else "qr", split(system, t, q))
    multipliers = DenseManifold(system, t, q).multipliers(-forces(q))
    balance = lambda q: forces(q) + constraint_forces(system, t, q, multipliers)
    K, M = P.T @ jax.jacfwd(balance)(q) @ P, P.T @ mass_matrix(system, t, q, zero) @ P
    squares, vectors = generalised_eigh(0.5 * (K + K.T), 0.5 * (M + M.T))
    stiffness = jnp.max(jnp.abs(K), initial=0) * jnp.max(jnp.abs(q))
    unbalanced = jnp.max(jnp.abs(P.T @ forces(q)), initial=0)
    limits = jnp.finfo(q.dtype)
    at_rest = ~(unbalanced > jnp.sqrt(limits.eps) * jnp.maximum(stiffness, limits.tiny))
    factor = jnp.where(at_rest, 1, jnp.nan).astype(q.dtype)
    return Modes(factor * squares, factor * (P @ vectors).T), unbalanced, at_rest
