"""Friction: laws of one coordinate that remember where they stuck, and dissipate exactly what the balance of energy says."""

from .base import AbstractFriction as AbstractFriction, Slip as Slip
from .elements import (
    FrictionGroup as FrictionGroup,
    Frictions as Frictions,
    Memory as Memory,
    OnCoordinates as OnCoordinates,
    stacked as stacked,
)
from .lugre import LuGre as LuGre
from .plasticity import AbstractPlasticity as AbstractPlasticity, Plasticity as Plasticity, Stribeck as Stribeck
from .viscous import Viscous as Viscous
