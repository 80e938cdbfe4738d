r"""Elements of beams, stacked: what every kind of element says, and what follows from it.

A kind of element is a class derived from `AbstractElements`, or from `AbstractLumpedElements` where nodes have all of the
inertia. It says which strains follow from the rows of its nodes, and where; energies, forces, tangents and pictures
follow. Strains see no rigid motion, and count from those of the reference, so that curved beams are free of stress too.
"""

import abc
import dataclasses
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
from ..numerics.polynomials import gauss

Nodal = Float[Array, "elements nodes 4 3"]

PERMUTATIONS = np.cross(np.eye(3)[:, None], np.eye(3))
r"""The symbol $\epsilon_{ijk}$."""


class AbstractElements(eqx.Module):
    """Elements of one kind, those of each beam (`names`) one after the other, `counts` of them.

    `reference` are the rows of their nodes free of stress, `stiffness` and `inertia` those of their sections; `nodes[a]`
    are the bodies that are the node `a` of each element. Where the `stress` is given, forces and moments at the points of
    integration, the potential is a mixed one, stationary where they are those of the strains: tangents then know the
    stress before the displacements do.

    The class says which `orders` there are, an element of order $k$ having $k + 1$ nodes; whether nodes are rigid bodies
    with the inertia of the chunks of the beam about them (`lumped`: elements have none, and `inertia` is `None`); and
    whether the stiffness may be corrected for bending within elements (`correctable`).
    """

    reference: Nodal | Float[np.ndarray, "elements nodes 4 3"]
    stiffness: Float[Array, "elements 6 6"] | Float[np.ndarray, "elements 6 6"]
    inertia: Float[Array, "elements 4 4"] | Float[np.ndarray, "elements 4 4"] | None
    nodes: tuple[Indices, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    counts: Indices = eqx.field(static=True)
    stress: Float[Array, "elements points 6"] | None = eqx.field(default=None, kw_only=True)

    orders: ClassVar[tuple[int, ...]] = (1,)
    lumped: ClassVar[bool] = False
    correctable: ClassVar[bool] = False

    @property
    def order(self) -> int:
        """Number of nodes less one."""
        return len(self.nodes) - 1

    @property
    def points(self) -> Float[np.ndarray, " points"]:
        """Where in an element its strains are taken, as fractions of it: points of Gauss, as many as the order."""
        return gauss(self.order)[0]

    def only(self, names: Sequence[str]) -> "AbstractElements":
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
        r"""$\int \Theta_{cd}\,a_c \cdot b_d\,ds$ between two fields of rows."""

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

    def at_nodes(self, rows: Rows) -> Nodal:
        """The rows of the nodes of all elements."""
        return jnp.stack([take(rows, places) for places in self.nodes], axis=1)


class AbstractLumpedElements(AbstractElements):
    """Elements without inertia of their own: their nodes have it."""

    lumped: ClassVar[bool] = True

    def inertia_form(self, a: Rows, b: Rows) -> Array:
        return jnp.zeros((), a.dtype)
