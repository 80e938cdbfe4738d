"""Loads: potentials and forces between bodies, on joints, and gravity."""

from .base import (
    AbstractJointLoad as AbstractJointLoad,
    AbstractLoad as AbstractLoad,
    AbstractOnCoordinate as AbstractOnCoordinate,
    Gravity as Gravity,
)
from .drives import Motor as Motor
from .forces import Force as Force, JointForce as JointForce, Torque as Torque, UserForce as UserForce
from .springs import JointSpring as JointSpring, Potential as Potential, Spring as Spring
