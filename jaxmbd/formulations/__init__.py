"""How constraints enter a step."""

from .base import AbstractFormulation as AbstractFormulation, Moves as Moves, Problem as Problem
from .driven import Driven as Driven, acting_control as acting_control
from .joint_multipliers import JointMultipliers as JointMultipliers
from .multipliers import Multipliers as Multipliers
from .null_space import NullSpace as NullSpace, null_space_source as null_space_source
from .reparametrised import Reparametrised as Reparametrised
