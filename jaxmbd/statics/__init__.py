"""Positions of rest, paths of them, and small vibrations about them."""

from .arc_length import EquilibriumPath as EquilibriumPath, equilibrium_path as equilibrium_path
from .rest import Equilibrium as Equilibrium, equilibrium as equilibrium
from .vibration import Modes as Modes, modes as modes
