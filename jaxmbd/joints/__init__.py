"""Joints: what two frames may do relative to each other."""

from .base import AbstractJoint as AbstractJoint, Free as Free
from .distance import Distance as Distance
from .lower_pairs import (
    Cylindrical as Cylindrical,
    Fixed as Fixed,
    Planar as Planar,
    Prismatic as Prismatic,
    Revolute as Revolute,
    Screw as Screw,
    Spherical as Spherical,
)
from .measures import AbstractMeasure as AbstractMeasure, Angle as Angle, Length as Length, Measure as Measure
from .point_on_line import PointOnLine as PointOnLine
from .rolling import KnifeEdge as KnifeEdge, RollingBall as RollingBall, RollingDisc as RollingDisc
from .universal import Universal as Universal
from .user import UserJoint as UserJoint
