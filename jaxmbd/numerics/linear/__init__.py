"""Linear solvers for Newton's method."""

from .auto import Auto as Auto
from .base import AbstractLinear as AbstractLinear, AbstractTangent as AbstractTangent
from .dense import Dense as Dense
from .layout import Layout as Layout
from .refine import refined_solve as refined_solve
from .small import Small as Small
from .sparse import Analysis as Analysis, analyse as analyse
from .sparse.tangent import Sparse as Sparse
