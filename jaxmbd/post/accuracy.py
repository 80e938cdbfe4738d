"""Order of convergence, measured."""

from collections.abc import Callable, Sequence

import numpy as np

from ..numerics.arguments import checked
from ..simulation.trajectory import Trajectory
from ..system import VectorLike


@checked
def order(dts: VectorLike, errors: VectorLike) -> float:
    """Slope of the errors against the time steps in double logarithmic scale, by least squares."""
    return float(np.polyfit(np.log(np.asarray(dts)), np.log(np.asarray(errors)), 1)[0])


@checked
def convergence(run: Callable, dts: Sequence, reference: Trajectory, fields: Sequence = ("q", "p")) -> dict[str, tuple[np.ndarray, float]]:
    """Errors of the last rows of `run(dt)` against a reference, and their order.

    A field is the name of a column of the trajectory, or a function of a trajectory that returns rows.
    """

    def read(trajectory, field):
        return np.asarray((field(trajectory) if callable(field) else getattr(trajectory, field))[-1])

    runs = [run(dt) for dt in dts]
    table = {}
    for field in fields:
        errors = np.array([np.max(np.abs(read(one, field) - read(reference, field))) for one in runs])
        table[field if isinstance(field, str) else field.__name__] = (errors, order(dts, errors))
    return table
