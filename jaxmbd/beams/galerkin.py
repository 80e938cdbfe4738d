r"""Elements with Lagrange polynomials.

Rows of frames $r = (\varphi, d_1, d_2, d_3)$ are interpolated between nodes (113). Strains are quadratic in them.
"""

import functools
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..geometry.frame import Rows
from ..numerics.polynomials import gauss, lagrange
from .elements import PERMUTATIONS, AbstractElements, Nodal


@functools.cache
def shape_functions(order: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lagrange polynomials between equally spaced nodes at Gauss points of $[0, 1]$: their values, slopes, and the weights."""
    x, weights = gauss(points)
    return *lagrange(order, x), weights


class GalerkinElements(AbstractElements):
    """Elements of one order with Lagrange polynomials, and reduced integration of strains."""

    orders: ClassVar[tuple[int, ...]] = (1, 2, 3)

    def inertia_form(self, a: Rows, b: Rows) -> Array:
        """Exact on straight beams."""
        values, slopes, weights = shape_functions(self.order, self.order + 1)
        stretch = _stretch(jnp.asarray(self.reference, a.dtype), slopes)
        fields = [jnp.einsum("ga,eacx->egcx", _constant(values, rows), self.at_nodes(rows)) for rows in (a, b)]
        products = jnp.einsum("egcx,egdx->egcd", *fields)
        return jnp.einsum("g,eg,ecd,egcd->", _constant(weights, a), stretch, self.inertia, products)

    def strains(self, rows: Rows) -> Float[Array, "elements points 6"]:
        reference = jnp.asarray(self.reference, rows.dtype)
        return _strains(self.at_nodes(rows), reference) - _strains(reference, reference)

    def measures(self, dtype) -> Float[Array, "elements points"]:
        _, slopes, weights = shape_functions(self.order, self.order)
        return jnp.asarray(weights, dtype) * _stretch(jnp.asarray(self.reference, dtype), slopes)


def _strains(nodal: Nodal, reference: Nodal) -> Float[Array, "elements points 6"]:
    """Products of directors with tangents, and curvatures, with derivatives by the length of the reference."""
    order = nodal.shape[1] - 1
    values, slopes, _ = shape_functions(order, order)
    stretch = _stretch(reference, slopes)
    directors = jnp.einsum("ga,eaix->egix", _constant(values, nodal), nodal[:, :, 1:])
    derivatives = jnp.einsum("ga,eacx->egcx", _constant(slopes, nodal), nodal) / stretch[:, :, None, None]
    products = jnp.einsum("egix,egcx->egic", directors, derivatives)
    curvatures = jnp.einsum("ijk,egkj->egi", _constant(0.5 * PERMUTATIONS, nodal), products[..., 1:])
    return jnp.concatenate([products[..., 0], curvatures], axis=-1)


def _stretch(reference: Nodal, slopes: np.ndarray) -> Float[Array, "elements points"]:
    """The length of the reference curve by the local coordinate of elements."""
    tangents = jnp.einsum("ga,eax->egx", _constant(slopes, reference), reference[:, :, 0])
    return jnp.sqrt(jnp.sum(tangents**2, axis=-1))


def _constant(values: np.ndarray, like: Array) -> Array:
    return jnp.asarray(values, like.dtype)
