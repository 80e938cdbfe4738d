"""Linear solvers for Newton's method."""

from .base import AbstractLinear as AbstractLinear, AbstractTangent as AbstractTangent
from .dense import Dense as Dense
