"""A mechanism as the user describes it."""

from collections.abc import Mapping
from typing import Any

from .assembling import assemble
from .parts import Parts
from .report import describe


class Mechanism(Parts):
    """Bodies, joints and loads, to be assembled with `assemble`.

    **Arguments**

    - `bodies`: by name, `RigidBody`, `PlanarBody`, `Particle` or another `Ground`; the body `"ground"` is always there.
    - `joints`: by name, `Joint` or `Gear`.
    - `loads`: `Gravity`, springs, forces, torques.

    `bodies` and `joints` are dictionaries, or pairs of name and part. Names must be unique among both, as placements use them.
    """

    def summary(self, placement: Mapping[str, Any] | None = None, *, solve: bool = False) -> str:
        """Degrees of freedom, redundant constraints and the joints that cause them, in the position that `assemble` finds."""
        return describe(*assemble(self, placement, solve=solve))
