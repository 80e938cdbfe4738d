"""Friction in joints: a law of one coordinate, told where it acts."""

from typing import Any

import equinox as eqx

from ..errors import ModelError
from ..friction import AbstractFriction
from ..numerics.checks import named, whole
from .base import AbstractOnCoordinate


class Friction(AbstractOnCoordinate):
    """Friction on a coordinate of a joint, by a law such as `mbd.friction.Plasticity(stiffness, limit)`."""

    joint: Any
    law: AbstractFriction
    index: int = eqx.field(static=True)

    def __init__(self, joint: Any, law: Any, index: Any = 0):
        self.joint, self.index = named("joint of a Friction", joint), whole("index of a Friction", index)
        if not isinstance(law, AbstractFriction):
            raise ModelError(
                f"law of the Friction on {joint!r} must be a law such as mbd.friction.Plasticity(stiffness, limit), an instance, but "
                f"{law!r} was given"
            )
        self.law = law
