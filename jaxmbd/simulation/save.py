"""What is kept of a motion: which rows, which fields of them, and what is reduced on the way."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, PyTree

from ..errors import ModelError
from ..numerics.arguments import checked
from ..numerics.naming import nearest
from ..numerics.trial import returned
from ..system import Vector

FIELDS = ("q", "v", "p", "multipliers", "incoming", "reaction", "stages", "carried", "memory")
"""Columns of a trajectory that are kept if asked for; times and the record of the solver always are."""


class Save(eqx.Module):
    """Which rows of a motion are saved, and what of them.

    **Arguments**

    - `every`: a row every so many steps, or `"end"` for the last state alone.
    - `fields`: names of columns of the trajectory, by default all. Those that are not asked for are not computed, and `None` in the
      trajectory: velocities, momenta and multipliers of a row cost as much as a step.
    - `reduce(total, row)`: what becomes of a total with each step, beginning with `initial`, any pytree; a row has `t`, `q`, `v` and `p`,
      and what a reduction does not touch is not computed. The last total is `trajectory.reduced`.
    """

    every: int | Literal["end"] = eqx.field(static=True)
    fields: tuple[str, ...] = eqx.field(static=True)
    reduce: Any
    initial: PyTree

    @checked
    def __init__(
        self,
        every: Any = 1,
        fields: str | Sequence[str] = FIELDS,
        reduce: Any = None,
        initial: PyTree = None,
    ):
        self.every, self.fields = every, (fields,) if isinstance(fields, str) else tuple(fields)
        self.reduce = Partial(reduce) if callable(reduce) and not isinstance(reduce, eqx.Module | Partial) else reduce
        self.initial = initial
        if every != "end" and (isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1):
            raise ModelError(f"save must be 'end' or a positive whole number of steps, not {every!r}")
        for name in self.fields:
            if name not in FIELDS:
                raise ModelError(f"{name!r} is no field to save; {nearest(name, FIELDS)}")
        if reduce is not None and not callable(reduce):
            raise ModelError(f"reduce must be a function of a total and a row, not {type(reduce).__name__}")
        if (reduce is None) != (initial is None):
            raise ModelError("a reduction needs both: reduce(total, row), and the initial total")

    @classmethod
    def of(cls, save: "Save | int | Literal['end'] | None") -> "Save":
        """What an argument `save` means."""
        if isinstance(save, Save):
            return save
        return cls(1 if save is None else save)

    def try_reduction(self, t: Array, q: Vector) -> None:
        """Refuse a reduction that does not return a total like the one that it begins with."""
        if self.reduce is None:
            return
        arrays: Callable = lambda total: jax.tree.map(jnp.asarray, total)
        reduce: Callable = lambda total, t, q: self.reduce(total, SimpleNamespace(t=t, q=q, v=q, p=q))
        after, before = returned("reduce", reduce, (self.initial, t, q), arrays), jax.eval_shape(arrays, self.initial)
        if after is None:
            raise ModelError("reduce must return a total like initial, but returned None: is a return missing?")
        structures: list[Any] = [jax.tree.structure(after), jax.tree.structure(before)]
        if structures[0] != structures[1]:
            raise ModelError(f"reduce must return a total of the structure of initial, {structures[1]}, not {structures[0]}")
        for new, old in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True):
            whole = jnp.issubdtype(old.dtype, jnp.integer) and not jnp.issubdtype(new.dtype, jnp.integer)
            if new.shape != old.shape or whole:
                raise ModelError(
                    f"reduce must return a total like initial, of {old.dtype} and shape {old.shape}, but returned {new.dtype} and shape "
                    f"{new.shape}{'; begin with 0.0 instead of 0' if whole and not new.shape else ''}"
                )

    def stride(self, steps: int) -> int:
        """Steps between saved rows."""
        if self.every == "end":
            return steps
        if steps % self.every:
            raise ModelError(f"save must be 'end' or a whole number that divides steps = {steps}, not {self.every!r}")
        return int(self.every)

    def asks(self, *fields: str) -> bool:
        """Whether one of these fields is asked for."""
        return any(field in self.fields for field in fields)
