r"""The constraint manifold about one position: its layout for solvers, multipliers of forces, admissible velocities, nearest points.

Small systems decompose the constraint Jacobian. Large ones see it through products alone: their problems are sparse, all of their
constraints are kept, and redundant ones made a little soft. `manifold_at` is the one place where that is decided.
"""

from .base import AbstractManifold as AbstractManifold
from .choice import manifold_at as manifold_at
from .dense import DenseManifold as DenseManifold
from .sparse import SparseManifold as SparseManifold
