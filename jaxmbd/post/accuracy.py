"""Order of convergence, measured."""

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ModelError, UnknownNameError
from ..numerics.arguments import checked
from ..numerics.naming import nearest
from ..simulation.save import FIELDS
from ..simulation.trajectory import Trajectory
from ..system import VectorLike


@checked
def order(dts: VectorLike, errors: VectorLike) -> float:
    """Slope of the errors against the time steps in double logarithmic scale, by least squares."""
    h, e = np.asarray(dts, float), np.asarray(errors, float)
    if h.ndim != 1 or h.shape != e.shape or h.size < 2 or not ((h > 0) & (e > 0)).all():
        raise ModelError(f"an order needs some positive time steps and as many positive errors, not {h.tolist()} and {e.tolist()}")
    return float(np.polyfit(np.log(h), np.log(e), 1)[0])


@checked
def convergence(run: Callable, dts: Sequence, reference: Trajectory, fields: Sequence = ("q", "p")) -> dict[str, tuple[np.ndarray, float]]:
    """Errors of the last rows of `run(dt)` against a reference, and their order.

    A field is the name of a column of the trajectory, or a function of a trajectory that returns rows.
    """
    for field in fields:
        if not callable(field) and field not in FIELDS:
            raise UnknownNameError(f"{field!r} is no column of a trajectory; {nearest(field, FIELDS)}")

    def read(trajectory, field):
        return np.asarray((field(trajectory) if callable(field) else getattr(trajectory, field))[-1])

    runs = [run(dt) for dt in dts]
    table = {}
    for field in fields:
        errors = np.array([np.max(np.abs(read(one, field) - read(reference, field))) for one in runs])
        table[field if isinstance(field, str) else field.__name__] = (errors, order(dts, errors))
    return table
