"""What solvers and messages may know of an assembled mechanism."""

import functools

from ..system import Structure
from .model import Assembly
from .rigid_motion import turned_over
from .sizes import coordinate_sizes


def structure_of(model: Assembly) -> Structure:
    """Parts are bodies and gauges; nodes of beams have inertia only with the constraints that keep their directors orthonormal."""
    return Structure(
        parts=model.parts_of_coordinates(),
        pivots=tuple(model.gauge_rows()),
        internal=tuple(model.internal_rows()),
        held=bool(model.beams),
        owners=tuple(model.owners()),
        quadratic=True,
        leaps=functools.partial(turned_over, model),
        sizes=functools.partial(coordinate_sizes, model),
    )
