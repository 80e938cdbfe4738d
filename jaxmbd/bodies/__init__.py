"""Bodies: their coordinates, their frames, their inertia."""

from .base import AbstractBody as AbstractBody, Ground as Ground, Particle as Particle
from .planar import PlanarBody as PlanarBody
from .rigid import RigidBody as RigidBody
from .shapes import (
    AbstractShape as AbstractShape,
    Box as Box,
    Cylinder as Cylinder,
    Hull as Hull,
    Mesh as Mesh,
    Sphere as Sphere,
    Tube as Tube,
)
from .surfaces import Surface as Surface
