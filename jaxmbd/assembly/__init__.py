"""Mechanisms from bodies, joints and loads, put together and stacked into a system."""

from .assembling import assemble as assemble
from .connections import Gear as Gear, Joint as Joint
from .mechanism import Mechanism as Mechanism
from .report import describe as describe
from .velocities import joint_velocities as joint_velocities
