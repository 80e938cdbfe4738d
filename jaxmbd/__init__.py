"""jaxmbd: differentiable multibody dynamics that keeps what physics keeps."""

from . import post as post
from .errors import ModelError as ModelError, Result as Result, SimulationError as SimulationError
from .formulations import (
    AbstractFormulation as AbstractFormulation,
    Multipliers as Multipliers,
    NullSpace as NullSpace,
    Reparametrised as Reparametrised,
)
from .linear import Dense as Dense
from .newton import Newton as Newton, Solution as Solution
from .schemes import (
    AbstractScheme as AbstractScheme,
    AbstractVariational as AbstractVariational,
    Galerkin as Galerkin,
    Midpoint as Midpoint,
    Own as Own,
    Trapezoidal as Trapezoidal,
)
from .simulate import simulate as simulate, step as step
from .start import find_rank as find_rank, project as project, start as start
from .system import System as System
from .trajectory import State as State, Trajectory as Trajectory
