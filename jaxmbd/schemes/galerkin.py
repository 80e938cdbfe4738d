"""Galerkin variational schemes: a polynomial in time, a quadrature rule, any even order."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..errors import ModelError
from ..numerics.arguments import checked
from ..numerics.polynomials import gauss, interpolation, lobatto
from ..system import Scalar
from .variational import AbstractVariational, Lagrangian

Matrix = tuple[tuple[float, ...], ...]


class Galerkin(AbstractVariational):
    r"""$L_d = \operatorname{ext} \sum_j h\,b_j\,L(q(c_j h), \dot q(c_j h))$ over polynomials $q$ of degree $s$: order $2s$.

    The nodes of the polynomial are the $s+1$ Lobatto points of the step, and all of them lie on the constraint manifold. The
    deviation of the path between them is then orthogonal to the constraint forces up to $O(h^{2s+1})$, so that the order
    is kept with either quadrature: `"lobatto"` at the nodes ($s+1$ points) or `"gauss"` ($s$ points). Degree one gives
    `Trapezoidal` and `Midpoint`.
    """

    fractions: tuple[float, ...] = eqx.field(static=True)
    weights: tuple[float, ...] = eqx.field(static=True)
    points: tuple[float, ...] = eqx.field(static=True)
    point_weights: tuple[float, ...] = eqx.field(static=True)
    values: Matrix = eqx.field(static=True)
    rates: Matrix = eqx.field(static=True)

    @checked
    def __init__(self, order: int = 4, quadrature: Literal["lobatto", "gauss"] = "lobatto"):
        if order < 2 or order % 2:
            raise ModelError(f"Galerkin schemes have even order 2, 4, 6, ..., not {order}")
        degree = order // 2
        nodes, weights = lobatto(degree + 1)
        points, point_weights = (nodes, weights) if quadrature == "lobatto" else gauss(degree)
        self.fractions, self.weights = _numbers(nodes), _numbers(weights)
        self.points, self.point_weights = _numbers(points), _numbers(point_weights)
        self.values = tuple(map(_numbers, interpolation(nodes, points)))
        self.rates = tuple(map(_numbers, interpolation(nodes, points, derivative=1)))

    @property
    def control_at(self) -> tuple[float, ...]:
        return self.points

    def discrete_lagrangian(self, system: Lagrangian, t: Scalar, dt: Scalar, q: Float[Array, "nodes n"]) -> Scalar:
        points, weights, values, rates = (jnp.asarray(a, q.dtype) for a in (self.points, self.point_weights, self.values, self.rates))
        lagrangian = jax.vmap(system.lagrangian)
        return dt * weights @ lagrangian(t + points * dt, values @ q, rates @ (q - q[0]) / dt)


def _numbers(values) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
