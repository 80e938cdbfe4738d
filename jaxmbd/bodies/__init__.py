"""Bodies: their coordinates, their frames, their inertia."""

from .base import AbstractBody as AbstractBody, Ground as Ground, Particle as Particle
from .beam import Beam as Beam, node_name as node_name
from .planar import PlanarBody as PlanarBody
from .rigid import RigidBody as RigidBody
from .section import Section as Section
