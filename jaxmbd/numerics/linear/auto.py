"""The choice of a linear solver by size and pattern."""

from collections.abc import Callable

from jaxtyping import Array, Float, PyTree

from .base import AbstractLinear, AbstractTangent
from .dense import Dense
from .layout import Layout
from .small import Small
from .sparse import analyse
from .sparse.tangent import Sparse

SMALL_UP_TO = 6
"""Unknowns up to which an inverse by elementary operations is faster than a library routine."""

DENSE_UP_TO = 190
"""Unknowns up to which dense tangents are taken: sparse ones run faster there too, but take twice as long to compile."""

FEWER_OPERATIONS = 8
"""So many times fewer operations a sparse factorisation must take than there are unknowns cubed: its small matrices run slower."""


class Auto(AbstractLinear):
    """`Small` for a handful of unknowns, `Dense` for some more or where they all hang together, otherwise `Sparse`."""

    def tangent(
        self, fn: Callable, x: Float[Array, " k"], args: PyTree = None, layout: Layout | None = None, valid: Array | bool = True
    ) -> AbstractTangent:
        return self.choice(fn, x, args, layout).tangent(fn, x, args, layout, valid)

    def choice(self, fn: Callable, x: Float[Array, " k"], args: PyTree, layout: Layout | None) -> AbstractLinear:
        """The solver for these equations."""
        if x.size <= SMALL_UP_TO:
            return Small()
        if x.size <= DENSE_UP_TO or layout is None:
            return Dense()
        analysis = analyse(fn, x, args, layout)
        worth = analysis is not None and FEWER_OPERATIONS * analysis.operations < x.size**3
        return Sparse() if worth else Dense()
