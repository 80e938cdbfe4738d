"""Time discretisations."""

from .base import AbstractScheme as AbstractScheme, Samples as Samples, StepInput as StepInput
from .energy_momentum import AbstractInterval as AbstractInterval, EnergyMomentum as EnergyMomentum
from .galerkin import Galerkin as Galerkin
from .generalized_alpha import AbstractEnd as AbstractEnd, GeneralizedAlpha as GeneralizedAlpha
from .newmark import Newmark as Newmark
from .rigid_energy_momentum import (
    AbstractDirector as AbstractDirector,
    ConservativeDirector as ConservativeDirector,
    DirectorEnergyMomentum as DirectorEnergyMomentum,
)
from .variational import AbstractVariational as AbstractVariational, Midpoint as Midpoint, Own as Own, Trapezoidal as Trapezoidal
