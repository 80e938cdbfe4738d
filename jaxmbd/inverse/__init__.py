"""From a wanted motion to the inputs that bring it about: targets, servo constraints, inverse dynamics."""

from ..constraints.servo import AbstractTarget as AbstractTarget, Servo as Servo
from .dynamics import InverseDynamics as InverseDynamics, inverse_dynamics as inverse_dynamics
from .paths import Path as Path
from .starts import consistent_start as consistent_start
from .targets import Coordinate as Coordinate, Function as Function, Orientation as Orientation, Point as Point
