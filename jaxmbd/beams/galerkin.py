r"""Elements of beams, stacked: what they add to the inertia and to the potential of a mechanism.

Rows of frames $r = (\varphi, d_1, d_2, d_3)$ are interpolated between nodes (113). Strains are quadratic in them and see no rigid motion.
They count from those of the reference, by the same interpolation, so that curved beams are free of stress too.
"""

import abc
import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..geometry.frame import Rows
from ..numerics.arrays import Indices, join, take
from ..numerics.lapack import solve
from ..numerics.polynomials import gauss, lagrange

Elements = Float[Array, "elements nodes 4 3"]

PERMUTATIONS = np.cross(np.eye(3)[:, None], np.eye(3))
r"""The symbol $\epsilon_{ijk}$."""


@functools.cache
def shape_functions(order: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lagrange polynomials between equally spaced nodes at Gauss points of $[0, 1]$: their values, slopes, and the weights."""
    x, weights = gauss(points)
    return *lagrange(order, x), weights


class AbstractBeamGroup(eqx.Module):
    """Elements of one kind, those of each beam (`names`) one after the other, `counts` of them.

    `reference` are the rows of their nodes free of stress, `stiffness` that of their sections; `nodes[a]` are the bodies that are the node
    `a` of each element. Nodes of `lumped` elements have all of the inertia. Where the `stress` is given, forces and moments at the points
    of integration, the potential is a mixed one, stationary where they are those of the strains: tangents then know the stress before the
    displacements do.
    """

    reference: Elements | Float[np.ndarray, "elements nodes 4 3"]
    stiffness: Float[Array, "elements 6 6"] | Float[np.ndarray, "elements 6 6"]
    nodes: tuple[Indices, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    counts: Indices = eqx.field(static=True)
    stress: Float[Array, "elements points 6"] | None = eqx.field(default=None, kw_only=True)

    lumped: ClassVar[bool] = False

    @property
    def order(self) -> int:
        """That of the shape functions, and the number of points of integration."""
        return len(self.nodes) - 1

    def only(self, names: Sequence[str]) -> "AbstractBeamGroup":
        """The elements of some of the beams."""
        mine = [name in names for name in self.names]
        chosen = np.flatnonzero(np.repeat(mine, self.counts))
        arrays = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        arrays = {name: value[chosen] for name, value in arrays.items() if isinstance(value, jax.Array | np.ndarray)}
        nodes = tuple(tuple(np.asarray(places)[chosen].tolist()) for places in self.nodes)
        named, counts = tuple(itertools.compress(self.names, mine)), tuple(itertools.compress(self.counts, mine))
        return dataclasses.replace(self, **arrays, nodes=nodes, names=named, counts=counts)

    def along(self, values: Any) -> Any:
        """What the nodes of the elements of one beam have, `(elements, nodes, ...)`, node by node along the beam."""
        return join([values[:, :-1].reshape(-1, *values.shape[2:]), values[-1:, -1]])

    @abc.abstractmethod
    def inertia_form(self, a: Rows, b: Rows) -> Array:
        r"""$\int \Theta_{cd}\,a_c \cdot b_d\,ds$ between two fields of rows, zero for lumped elements."""

    @abc.abstractmethod
    def strains(self, rows: Rows) -> Float[Array, "elements points 6"]:
        """Strains at the points of integration."""

    @abc.abstractmethod
    def measures(self, dtype) -> Float[Array, "elements points"]:
        """The length that each point of integration stands for."""

    @property
    def has_power(self) -> bool:
        """Whether there are forces without a potential."""
        return False

    def power(self, rows: Rows, virtual: Rows) -> Array:
        """Their virtual power."""
        return jnp.zeros((), rows.dtype)

    def resultants(self, rows: Rows) -> Float[Array, "elements points 6"]:
        """Forces and moments along the directors, at the points of integration."""
        return jnp.einsum("eij,egj->egi", self.stiffness, self.strains(rows))

    def energies(self, rows: Rows) -> Float[Array, " elements"]:
        r"""Strain energy $\frac12 \varepsilon \cdot C \varepsilon$ of each element, or with a given stress
        $s \cdot \varepsilon - \frac12 s \cdot C^{-1} s$.
        """
        strains = self.strains(rows)
        if self.stress is None:
            return 0.5 * jnp.einsum("eg,egi,eij,egj->e", self.measures(rows.dtype), strains, self.stiffness, strains)
        relaxed = jax.vmap(jax.vmap(solve, (None, 0)))(jnp.asarray(self.stiffness), self.stress)
        return jnp.einsum("eg,egi,egi->e", self.measures(rows.dtype), self.stress, strains - 0.5 * relaxed)

    def at_nodes(self, rows: Rows) -> Elements:
        """The rows of the nodes of all elements."""
        return jnp.stack([take(rows, places) for places in self.nodes], axis=1)


class BeamGroup(AbstractBeamGroup):
    """Elements of one order with Lagrange polynomials; `inertia` is that of their sections."""

    inertia: Float[Array, "elements 4 4"] | Float[np.ndarray, "elements 4 4"]

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


def _strains(nodal: Elements, reference: Elements) -> Float[Array, "elements points 6"]:
    """Products of directors with tangents, and curvatures, with derivatives by the length of the reference."""
    order = nodal.shape[1] - 1
    values, slopes, _ = shape_functions(order, order)
    stretch = _stretch(reference, slopes)
    directors = jnp.einsum("ga,eaix->egix", _constant(values, nodal), nodal[:, :, 1:])
    derivatives = jnp.einsum("ga,eacx->egcx", _constant(slopes, nodal), nodal) / stretch[:, :, None, None]
    products = jnp.einsum("egix,egcx->egic", directors, derivatives)
    curvatures = jnp.einsum("ijk,egkj->egi", _constant(0.5 * PERMUTATIONS, nodal), products[..., 1:])
    return jnp.concatenate([products[..., 0], curvatures], axis=-1)


def _stretch(reference: Elements, slopes: np.ndarray) -> Float[Array, "elements points"]:
    """The length of the reference curve by the local coordinate of elements."""
    tangents = jnp.einsum("ga,eax->egx", _constant(slopes, reference), reference[:, :, 0])
    return jnp.sqrt(jnp.sum(tangents**2, axis=-1))


def _constant(values: np.ndarray, like: Array) -> Array:
    return jnp.asarray(values, like.dtype)
