"""Linear solvers for Newton's method."""

from .base import AbstractLinear as AbstractLinear, AbstractTangent as AbstractTangent
from .dense import Dense as Dense
from .refine import refined_solve as refined_solve
