"""Bodies: their coordinates, their frames, their inertia."""

from .base import AbstractBody as AbstractBody, Ground as Ground, Particle as Particle
from .planar import PlanarBody as PlanarBody
from .rigid import RigidBody as RigidBody
