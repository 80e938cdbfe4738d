"""What the unknowns of a system of equations are."""

from typing import NamedTuple

import numpy as np


class Layout(NamedTuple):
    """Unknowns are `coordinates` and then `multipliers`, both once a stage, with equations in the same order.

    The rest tells a sparse solver which supernodes to begin with, so that pivoting inside them is enough. `pairs` are pivots of two by
    two: a coordinate without inertia, and the number of a constraint that determines it. `groups` are numbers of the parts that coordinates
    belong to, for equations in which no smaller groups can be seen. `held` are constraints without which a part has not enough inertia, and
    which join its supernode: a coordinate of the part, and the number of the constraint. `dependent`: constraints may be redundant.
    `stiff`: coordinates begin although they are poor pivots, and solves win back the digits that this costs.
    """

    stages: int
    coordinates: int
    multipliers: int
    pairs: tuple[tuple[int, int], ...] = ()
    groups: tuple[int, ...] = ()
    held: tuple[tuple[int, int], ...] = ()
    dependent: bool = False
    stiff: bool = False

    @classmethod
    def plain(cls, size: int) -> "Layout":
        """For equations of which nothing is known."""
        return cls(1, size, 0)

    @property
    def base(self) -> np.ndarray:
        """The number of each unknown, the same in all stages."""
        first = np.tile(np.arange(self.coordinates), self.stages)
        return np.concatenate([first, self.coordinates + np.tile(np.arange(self.multipliers), self.stages)])

    @property
    def is_multiplier(self) -> np.ndarray:
        """Which unknowns are multipliers."""
        return self.base >= self.coordinates
