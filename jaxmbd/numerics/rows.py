"""Functions of one row for all rows of a trajectory."""

from collections.abc import Callable

import jax
from jaxtyping import PyTree


def over_rows(function: Callable, *columns: PyTree) -> PyTree:
    """`function(*row)` for every row, one after the other: a long trajectory never holds the matrices of all its rows at once."""
    return jax.lax.map(lambda row: function(*row), columns)
