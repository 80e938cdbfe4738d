"""Rotations, frames and rigid motions."""

from . import rotation as rotation
from .frame import Frame as Frame, Motion as Motion, identity as identity, twist as twist, velocity_at as velocity_at
