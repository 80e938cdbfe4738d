"""What can go wrong, and how it is told: exceptions for model mistakes, codes for numerical failure."""

import enum


class Result(enum.IntEnum):
    """Outcome of one time step; anything but `SUCCESS` ends the motion there."""

    SUCCESS = 0
    NOT_CONVERGED = 1
    NON_FINITE = 2
    SINGULAR = 3
    RANK_CHANGED = 4
    OFF_MANIFOLD = 5
    NOT_REACHED = 6
    TURNED_OVER = 7

    @property
    def meaning(self) -> str:
        """The outcome in words, with advice."""
        return _MEANING[self]


_MEANING = {
    Result.SUCCESS: "the step was solved",
    Result.NOT_CONVERGED: "Newton's method did not converge; try a smaller dt, more max_steps or line_search=True",
    Result.NON_FINITE: "the residual became infinite or NaN; look for a division by zero or a root in the functions",
    Result.SINGULAR: "the equations of the step are singular: the constraints lose rank there, or a coordinate has neither "
    "inertia nor stiffness",
    Result.RANK_CHANGED: "the rank of the constraint Jacobian changed: the mechanism stands in a singular position, or "
    "its constraints are redundant and mbd.find_rank(system, q0) was not called before jit",
    Result.OFF_MANIFOLD: "the step left the constraint manifold; a chart given by the user does not fit the constraints",
    Result.NOT_REACHED: "an earlier step failed",
    Result.TURNED_OVER: "a body turned by almost half a turn, or inside out, in one step; take a smaller dt",
}


class ModelError(ValueError):
    """A mechanism or a call that cannot be right: wrong shapes, inconsistent starts, impossible arguments."""


class UnknownNameError(ModelError, KeyError):
    """A name that nothing has. As a `KeyError` it is what dictionaries of results raise."""

    __str__ = Exception.__str__


class SimulationError(RuntimeError):
    """A step that could not be solved. The trajectory up to it is kept in `trajectory`."""

    def __init__(self, message: str, trajectory):
        super().__init__(message)
        self.trajectory = trajectory
