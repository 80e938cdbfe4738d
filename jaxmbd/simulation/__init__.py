"""The time loop: a start, steps, and what is kept of them."""

from .save import FIELDS as FIELDS, Save as Save
from .start import initial_state as initial_state
from .step_pattern import sparsity as sparsity
from .stepping import step as step
from .time_loop import simulate as simulate
from .trajectory import State as State, Status as Status, Trajectory as Trajectory
