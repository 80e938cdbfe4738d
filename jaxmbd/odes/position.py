r"""Positions on the manifold of the constraints, near predicted ones: (16), (17), with the derivative of the implicit function theorem."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..constraints.units import extents, row_size
from ..numerics.implicit import root_derivative
from ..numerics.lapack import solve
from ..system import Scalar, Vector
from .dynamics import Dynamics


class Tolerance(NamedTuple):
    """When the iteration ends: constraints are this small (`None`: at rounding), or after so many steps without success."""

    tolerance: float | None
    max_steps: int


def project_position(dynamics: Dynamics, t: Scalar, q: Vector, until: Tolerance) -> tuple[Vector, Bool[Array, ""]]:
    r"""The position $x = \bar x - W^{-1} A^T(\bar x)\,\nu$ with $\varphi(x) = 0$ (16), and whether it was found.

    Newton's method begins at the prediction $\bar x$ and keeps its normals, for redundant constraints those of the Moore-Penrose inverse.
    """
    if dynamics.count(q) == 0:
        return q, jnp.array(True)
    return _on_manifold((dynamics, t, q), until=until)


class _Normals(NamedTuple):
    """At the prediction: the Jacobian $A$ and what corrects residuals, $P = W^{-1} A^T (A W^{-1} A^T)^+$."""

    A: Float[Array, "m n"]
    P: Float[Array, "n m"]

    @classmethod
    def at(cls, dynamics: Dynamics, t: Scalar, q: Vector) -> "_Normals":
        """Those of a position."""
        directions = dynamics.position_directions(t, q)
        A = directions.length[:, None] * directions.rows / directions.size
        return cls(A, directions.inverse_for(dynamics.weight(t, q)))

    def turned(self, A: Float[Array, "m n"]) -> Float[Array, "m m"]:
        """What has become of residuals along the normals at a position with another Jacobian; the identity at the prediction."""
        return jnp.eye(A.shape[0], dtype=A.dtype) + (A - self.A) @ self.P


def _equations(x: Vector, args: tuple[Dynamics, Scalar, Vector]) -> Vector:
    r"""$(1 - P A)(x - \bar x) + P \varphi(x)$, in two parts that do not mix: the move is normal, the constraints are met."""
    dynamics, t, q = args
    at = _Normals.at(dynamics, t, q)
    return x - q - at.P @ (at.A @ (x - q) - dynamics.constraints(t, x))


@eqx.filter_custom_jvp
def _on_manifold(args, *, until):
    dynamics, t, q = args
    at, eps = _Normals.at(dynamics, t, q), float(jnp.finfo(q.dtype).eps)
    extent = extents(dynamics.system, q) if dynamics.form is None else jnp.maximum(jnp.abs(q), dynamics.sizes(q))

    def better(carry):
        x, _, steps = carry
        values, A = dynamics.constraints(t, x), _jacobian(dynamics, t, x)
        move = -at.P @ solve(at.turned(A), values)
        done = jnp.max(jnp.abs(move) / extent) <= eps**0.75
        if until.tolerance is not None:
            done = done | (jnp.max(jnp.abs(values)) <= until.tolerance)
        return x + move, done, steps + 1

    unsolved = lambda carry: ~carry[1] & (carry[2] < until.max_steps) & jnp.all(jnp.isfinite(carry[0]))
    x, done, _ = jax.lax.while_loop(unsolved, better, (q, jnp.array(False), jnp.int32(0)))
    met = jnp.abs(dynamics.constraints(t, x)) <= eps**0.5 * row_size(at.A * extent) if not dynamics.inexact else True
    return x, done & jnp.all(jnp.isfinite(x)) & jnp.all(met)


@_on_manifold.def_jvp
def _on_manifold_jvp(primals, tangents, *, until):
    r"""The implicit function theorem; the Jacobian of the equations is $1 + P (A(x) - A)$, whose inverse is one of residuals (Woodbury)."""
    (args,), (d_args,) = primals, tangents
    x, reached = _on_manifold(args, until=until)
    dynamics, t, q = args
    near = jnp.where(reached, x, q)
    at, A = _Normals.at(dynamics, t, q), _jacobian(dynamics, t, near)
    inverse = lambda b: b - at.P @ solve(at.turned(A), (A - at.A) @ b)
    return (x, reached), (root_derivative(_equations, near, args, d_args, inverse, reached), None)


def _jacobian(dynamics: Dynamics, t: Scalar, x: Vector) -> Float[Array, "m n"]:
    count = dynamics.count(x)
    return (jax.jacrev if count < x.size else jax.jacfwd)(dynamics.constraints, 1)(t, x)
