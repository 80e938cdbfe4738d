"""Which manifold a system has."""

from ...system import Scalar, System, Vector
from ..counts import constraint_count
from .base import AbstractManifold
from .dense import DenseManifold
from .sparse import SparseManifold

LARGE = 300
"""Coordinates and constraints together beyond which matrices are not decomposed."""


def manifold_at(system: System, t: Scalar, q: Vector) -> AbstractManifold:
    """The constraint manifold about `q`, by the means that suit its size."""
    large = q.size + constraint_count(system, q) > LARGE
    return (SparseManifold if large else DenseManifold)(system, t, q)
