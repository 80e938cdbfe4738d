"""The system of a mechanism in the coordinates of directors."""

from ..system import System
from . import functions
from .chart import chart
from .model import Assembly
from .structure import structure_of


def director_system(model: Assembly, powered: bool) -> System:
    """The system; `powered` says that it has forces beside its potential."""
    return System.from_functions(
        kinetic=functions.kinetic,
        potential=functions.potential,
        constraints=functions.constraints,
        velocity_constraints=functions.velocity_constraints_of(model),
        forces=functions.forces_of(model, powered),
        chart=chart,
        closures=model.closures,
        structure=structure_of,
        friction=functions.friction if model.frictions else None,
        params=model,
    )
