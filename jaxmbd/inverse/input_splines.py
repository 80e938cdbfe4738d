"""Inputs that vary smoothly: cubic splines in time, read in the middle of every step."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree
from scipy.interpolate import BSpline

from ..errors import ModelError
from ..numerics.arrays import known
from ..numerics.trial import explained

DEGREE = 3
"""Of the polynomials between two knots."""


class InputSplines(eqx.Module):
    """Splines for all numbers of a control like `control`, `steps` steps long with a knot every so many of them.

    Coefficients are flat, one for each number of the control and each basis function, function by function.
    """

    control: PyTree
    steps: int = eqx.field(static=True)
    every: int = eqx.field(static=True)

    @property
    def basis(self) -> Float[np.ndarray, "steps functions"]:
        """Values of the basis functions in the middle of every step."""
        return spline_basis(self.steps, self.every)

    @property
    def channels(self) -> int:
        """How many numbers a control has."""
        return ravel_pytree(self.control)[0].size

    @property
    def groups(self) -> tuple[int, ...]:
        """For every coefficient the number of the control that it belongs to."""
        return tuple(range(self.channels)) * self.basis.shape[1]

    def numbers(self, c: Float[Array, " k"]) -> Float[Array, "steps channels"]:
        """All numbers of the controls in the middle of each step."""
        return jnp.asarray(self.basis, c.dtype) @ c.reshape(-1, self.channels)

    def rows(self, c: Float[Array, " k"]) -> PyTree:
        """Controls, one row a step."""
        return jax.vmap(ravel_pytree(self.control)[1])(self.numbers(c))

    def constant(self, control: Float[Array, " channels"]) -> Float[Array, " k"]:
        """Coefficients of a control that does not change, given by its numbers."""
        return jnp.tile(control, self.basis.shape[1])

    def nearest(self, rows: PyTree) -> Float[Array, " k"]:
        """Coefficients of the splines nearest to rows of controls."""
        numbers = jax.vmap(lambda row: ravel_pytree(row)[0])(rows)
        return (jnp.asarray(np.linalg.pinv(self.basis), numbers.dtype) @ numbers).ravel()


def spline_basis(steps: int, every: int) -> Float[np.ndarray, "steps functions"]:
    """Values of cubic B-splines in the middle of every step; knots are `every` steps apart, or a little more or less to come out even.

    Two knots before the end are left out: the last inputs hardly reach the targets any more, and go on as those before them.
    """
    pieces = max(1, round(steps / every))
    knots = np.linspace(0, steps, pieces + 1)
    inside = knots[1:-3] if pieces > DEGREE else knots[1:-1]
    ends = np.repeat([0.0, steps], DEGREE + 1)
    return BSpline.design_matrix(np.arange(steps) + 0.5, np.sort(np.concatenate([ends, inside])), DEGREE).toarray()


def control_like(inputs: PyTree, dtype) -> PyTree:
    """A control of zeros: from names of inputs, or from anything shaped like a control."""
    names = [inputs] if isinstance(inputs, str) else inputs
    if isinstance(names, list | tuple) and names and all(isinstance(name, str) for name in names):
        return {name: jnp.zeros((), dtype) for name in names}
    leaves = jax.tree.leaves(inputs)
    if not leaves or any(isinstance(leaf, str) or callable(leaf) for leaf in leaves):
        raise ModelError("inputs must be names of inputs, or numbers shaped like one control, such as 0.0 or jnp.zeros(2)")
    return jax.tree.map(lambda leaf: jnp.zeros(jnp.shape(leaf), dtype), inputs)


def as_rows(controls: PyTree | Callable, times: Float[Array, " steps"]) -> PyTree:
    """Controls that are given, one row a step: as they are, or the values of a function."""
    if not callable(controls):
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, times.dtype), controls)
    with explained("controls"):
        return jax.vmap(controls)(times)


def rows_like(control: PyTree, guess: PyTree, steps: int, dtype) -> PyTree:
    """A guess of rows, judged by its structure and shapes."""
    structures: list[Any] = [jax.tree.structure(tree) for tree in (guess, control)]
    if structures[0] != structures[1]:
        raise ModelError(f"guess must have the structure of inputs, {structures[1]}, not {structures[0]}")
    cast = lambda leaf: jnp.asarray(leaf).astype(dtype)
    for leaf, one in zip(jax.tree.leaves(guess), jax.tree.leaves(control), strict=True):
        if jnp.shape(leaf) != (steps, *one.shape):
            raise ModelError(f"guess needs one row for each of {steps} steps, of shape {(steps, *one.shape)}, not {jnp.shape(leaf)}")
        numbers = known(cast(leaf))
        if numbers is not None and not np.isfinite(numbers).all():
            raise ModelError("guess has numbers that are not finite")
    return jax.tree.map(cast, guess)
