"""Time discretisations."""

from .base import AbstractScheme as AbstractScheme, StepInput as StepInput
from .galerkin import Galerkin as Galerkin
from .variational import (
    AbstractVariational as AbstractVariational,
    Midpoint as Midpoint,
    Own as Own,
    Trapezoidal as Trapezoidal,
)
