"""A mechanism as the user describes it."""

from collections.abc import Iterable, Mapping
from typing import Any

from .assembling import assemble
from .parts import Parts
from .report import describe


class Mechanism(Parts):
    """Bodies, joints and loads, to be assembled with `assemble`.

    **Arguments**

    - `bodies`: by name, `RigidBody`, `PlanarBody`, `Particle` or another `Ground`; the body `"ground"` is always there.
    - `joints`: by name, `Joint` or `Gear`.
    - `loads`: by name or not, `Gravity`, springs, forces, torques. Those without a name are called by their kind: `"gravity"`, `"spring"`,
      a second one `"spring 2"`, `"joint spring"`.

    All three are dictionaries, or pairs of name and part. Names must be unique among all parts: placements and parameters use them.
    """

    def __init__(self, bodies: Mapping | Iterable, joints: Mapping | Iterable = (), loads: Mapping | Iterable = ()):
        super().__init__(bodies, joints, loads)

    def summary(self, placement: Mapping[str, Any] | None = None, *, solve: bool = False) -> str:
        """Degrees of freedom, redundant constraints and the joints that cause them, in the position that `assemble` finds."""
        return describe(*assemble(self, placement, solve=solve))
