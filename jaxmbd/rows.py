"""Functions of one row for all rows of a trajectory."""

from collections.abc import Callable

import jax
from jaxtyping import PyTree


def over_rows(function: Callable, *columns: PyTree) -> PyTree:
    """`function(*row)` for every row, one after the other, for functions that factorise matrices.

    Not `jax.vmap`: batched factorisations share the threads of the CPU backend and wait for each other, and two of them at once can
    wait forever. Nor does a long trajectory then hold the matrices of all its rows.
    """
    return jax.lax.map(lambda row: function(*row), columns)
