"""Geometrically exact beams: curves, sections, and the elements they are cut into."""

from .beam import Beam as Beam
from .elements import AbstractElements as AbstractElements
from .section import Section as Section
