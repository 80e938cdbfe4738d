"""What can go wrong, and how it is told: exceptions for model mistakes, codes for numerical failure and for starts that are hidden."""

import enum

import numpy as np

MOST_NAMED = 8
"""Members of a batch, or places in an array, that a message names."""


class Result(enum.IntEnum):
    """Outcome of one time step, or of the judgement of a start; anything but `SUCCESS` ends the motion there.

    Codes from ten to fourteen speak of the start: no step is taken from it. Where numbers are seen such a start is a `ModelError`; inside
    `jit` and `vmap`, where they are hidden, it gets the code. Codes from twenty on are those of adaptive steps (`mbd.odes`).
    """

    SUCCESS = 0
    NOT_CONVERGED = 1
    NON_FINITE = 2
    SINGULAR = 3
    RANK_CHANGED = 4
    OFF_MANIFOLD = 5
    NOT_REACHED = 6
    TURNED_OVER = 7
    LOST_TURN = 8
    NOT_DRIVEN = 9
    INCONSISTENT_POSITION = 10
    INCONSISTENT_VELOCITY = 11
    OTHER_MOTION = 12
    BAD_TIME_STEP = 13
    NON_FINITE_INPUT = 14
    NOT_PROJECTED = 20
    STEP_TOO_SMALL = 21
    STEPS_EXHAUSTED = 22
    AFTER_EVENT = 23
    NO_VELOCITY = 24

    @property
    def meaning(self) -> str:
        """The outcome in words, with advice."""
        return _MEANING[self]

    @property
    def of_start(self) -> bool:
        """Whether the start was wrong, and no step."""
        return Result.INCONSISTENT_POSITION <= self <= Result.NON_FINITE_INPUT


_MEANING = {
    Result.SUCCESS: "the step was solved",
    Result.NOT_CONVERGED: "Newton's method did not converge; try a smaller dt, more max_steps or line_search=True",
    Result.NON_FINITE: "the residual became infinite or NaN; look for a division by zero or a root in the functions",
    Result.SINGULAR: "the equations of the step are singular: the constraints lose rank there, a coordinate has neither inertia nor "
    "stiffness, or a derivative of a function is NaN, as that of a norm at zero",
    Result.RANK_CHANGED: "the rank of the constraint Jacobian changed: the mechanism stands in a singular position, redundant constraints "
    "contradict each other, or they are redundant and mbd.find_rank(system, q0) was not called before jit",
    Result.OFF_MANIFOLD: "the step left the constraint manifold; a chart given by the user does not fit the constraints",
    Result.NOT_REACHED: "an earlier step failed, or the start was wrong",
    Result.TURNED_OVER: "a body turned by almost half a turn, or inside out, in one step; take a smaller dt",
    Result.LOST_TURN: "the counted angle of a joint changed by half or full turns that its bodies did not make; take a smaller dt",
    Result.NOT_DRIVEN: "no inputs were found with which the step meets the targets of its servo: the wanted motion is out of reach, passes "
    "a singular position, jumps, takes more than the limits of the inputs, or is driven by too few inputs or through springs; change the "
    "motion, the inputs or the start, or take a smaller dt",
    Result.INCONSISTENT_POSITION: "the position at the start does not fulfil the constraints (joints do not meet, or parameters changed "
    "and q0 did not); mbd.project(system, q0, v0) finds the nearest start that does, and assemble(..., solve=True) closes a mechanism",
    Result.INCONSISTENT_VELOCITY: "the velocity at the start is not tangent to the constraints, or none was found that leads to q1; "
    "mbd.project(system, q0, v0) finds the nearest tangent one, and a q1 nearer to q0, or a smaller dt, can be reached",
    Result.OTHER_MOTION: "the state to go on from belongs to another system or time step: their parameters differ; go on with those that "
    "the motion began with, or start anew from its q and v",
    Result.BAD_TIME_STEP: "the time step is not a positive finite number; give dt > 0, and to go back in time reverse the velocity",
    Result.NON_FINITE_INPUT: "a position, velocity, time, control or parameter that was given is infinite or NaN; look where it was "
    "computed. Inside jit, mbd.project returns NaN where it does not reach the constraints from its guess",
    Result.NOT_PROJECTED: "no position was found that fulfils the constraints: they contradict each other there, or the mechanism is "
    "locked or in a singular position; look at the last state, and at the motion that constraints prescribe. With independent=True none "
    "may follow from the others, and a Projection may need more max_steps",
    Result.STEP_TOO_SMALL: "the tolerances ask for steps below the smallest one: the motion is stiff or jumps there; take an implicit "
    "solver such as diffrax.Kvaerno5(), larger tolerances, or a smaller dtmin",
    Result.STEPS_EXHAUSTED: "max_steps were taken before the end; give more, larger tolerances, or for a stiff motion an implicit solver",
    Result.AFTER_EVENT: "an event ended the motion before this row, which holds the state at the event",
    Result.NO_VELOCITY: "no velocity was found that fulfils the constraints: those on velocities contradict each other there, or the rates "
    "of those on positions; look at the motion that constraints prescribe from then on",
}


def explanations(what_failed: str, advice: str) -> list[str]:
    """For programs whose numbers are hidden while they are written: a message for every code, found at its number."""
    known = {int(result): result for result in Result}
    said = lambda result: f"{'the start was refused' if result.of_start else what_failed} with {result.name}: {result.meaning}; {advice}"
    return [said(known[code]) if code in known else "" for code in range(max(known) + 1)]


def name_members(codes: np.ndarray) -> str:
    """Which members of a batch failed, how many, and with which codes."""
    groups = []
    for code in np.unique(codes[codes != Result.SUCCESS]):
        members = np.argwhere(codes == code)
        named = ", ".join(member_name(member) for member in members[:MOST_NAMED])
        others = len(members) - MOST_NAMED
        groups.append(f"{named}{f' and {others} others' if others > 0 else ''} with {Result(int(code)).name}")
    return f"{(codes != Result.SUCCESS).sum()} of {codes.size} batch members failed: {'; '.join(groups)}"


def member_name(index: np.ndarray) -> str:
    """A member of a batch by its place: a number, or several in brackets where a batch has several axes."""
    return str(int(index[0])) if len(index) == 1 else f"({', '.join(str(int(i)) for i in index)})"


class ModelError(ValueError):
    """A mechanism or a call that cannot be right: wrong shapes, inconsistent starts, impossible arguments."""


class UnknownNameError(ModelError, KeyError):
    """A name that nothing has. As a `KeyError` it is what dictionaries of results raise."""

    __str__ = Exception.__str__


class SimulationError(RuntimeError):
    """A start that was refused inside `jit`, or a step that could not be solved. The trajectory up to it is kept in `trajectory`."""

    def __init__(self, message: str, trajectory):
        super().__init__(message)
        self.trajectory = trajectory
