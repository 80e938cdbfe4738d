"""What an assembled system has for parameters, in whatever coordinates."""

import abc
from typing import TYPE_CHECKING

import equinox as eqx

from ..errors import ModelError
from ..numerics.naming import Named
from ..system import System, Vector

if TYPE_CHECKING:
    from .model import Assembly


class AbstractModel(eqx.Module):
    """The parts of a mechanism, and coordinates that tell where they are."""

    @property
    @abc.abstractmethod
    def assembly(self) -> "Assembly":
        """The parts, stacked."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of coordinates."""

    @abc.abstractmethod
    def position(self, q: Vector) -> Vector:
        """The coordinates of directors and gauges that belong to its own."""

    @abc.abstractmethod
    def named_parameters(self) -> Named:
        """Every physical parameter by name: the one of its body, joint, gear, load or beam, and its own."""


def model_in(system: System) -> AbstractModel | None:
    """What a system was assembled from, if it was."""
    return system.params if isinstance(system.params, AbstractModel) else None


def require_model(system: System) -> AbstractModel:
    """What an assembled system was made of."""
    model = model_in(system)
    if model is None:
        raise ModelError("this needs a system from assemble; one from functions has no bodies and joints")
    return model


def parts_at(system: System, q: Vector) -> tuple["Assembly", Vector]:
    """The parts of an assembled system, and the coordinates of their directors at a position."""
    model = require_model(system)
    return model.assembly, model.position(q)
