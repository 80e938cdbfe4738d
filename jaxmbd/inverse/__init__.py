"""From a wanted motion to the inputs that bring it about: targets, servo constraints, inverse dynamics, inputs over a horizon."""

from ..constraints.servo import AbstractTarget as AbstractTarget, Servo as Servo
from .dynamics import InverseDynamics as InverseDynamics, inverse_dynamics as inverse_dynamics
from .followed import Followed as Followed
from .horizon import follow as follow
from .paths import Path as Path
from .starts import consistent_start as consistent_start
from .targets import Coordinate as Coordinate, Function as Function, Orientation as Orientation, Point as Point
