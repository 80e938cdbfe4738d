"""Joints: what two frames may do relative to each other."""

from .base import AbstractJoint as AbstractJoint, Free as Free
from .lower_pairs import (
    Cylindrical as Cylindrical,
    Fixed as Fixed,
    Planar as Planar,
    Prismatic as Prismatic,
    Revolute as Revolute,
    Screw as Screw,
    Spherical as Spherical,
)
from .others import Distance as Distance, PointOnLine as PointOnLine, Universal as Universal, UserJoint as UserJoint
