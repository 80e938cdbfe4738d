"""What constraints admit and forbid at one configuration: ranks, null spaces, charts, projections, consistent starts."""

from . import calculus as calculus
from .consistent_start import project as project
from .manifold import AbstractManifold as AbstractManifold, manifold_at as manifold_at
from .rank import find_rank as find_rank
