"""What is kept of a motion: which rows, which fields of them, and what is reduced on the way."""

import difflib
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import numpy as np
from jax.tree_util import Partial
from jaxtyping import PyTree

from ..errors import ModelError

FIELDS = ("q", "v", "p", "multipliers", "incoming", "reaction", "stages", "carried")
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
                near = difflib.get_close_matches(str(name), FIELDS, 1)
                raise ModelError(
                    f"{name!r} is no field to save{f'; did you mean {near[0]!r}?' if near else ''} (there are {', '.join(FIELDS)})"
                )
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
