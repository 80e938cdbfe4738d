"""Linear solvers for Newton's method."""

from .auto import Auto as Auto
from .base import AbstractLinear as AbstractLinear, AbstractTangent as AbstractTangent
from .dense import Dense as Dense
from .refine import refined_solve as refined_solve
from .small import Small as Small
from .sparse import Sparse as Sparse
from .structure import Analysis as Analysis, Layout as Layout, analyse as analyse
