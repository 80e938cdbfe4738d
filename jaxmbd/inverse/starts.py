"""Starts from which a wanted motion can go on."""

from jaxtyping import ArrayLike

from ..constraints import project
from ..constraints.inputs import as_coordinates
from ..constraints.servo import Servo, with_targets
from ..numerics.arguments import checked
from ..system import System, Vector, VectorLike


@checked
def consistent_start(
    system: System, servo: Servo, q: VectorLike, v: VectorLike | None = None, t0: ArrayLike = 0.0
) -> tuple[Vector, Vector]:
    r"""The position near `q` on the constraints that meets the targets at `t0`, and the velocity nearest to `v` that follows both.

    As `project`, with the targets among the constraints: $\gamma$ and its derivative at `t0` are those of the servo. Differentiable in
    everything. Targets that cannot be met from this guess are an error, and not a number inside `jit` and `vmap`.
    """
    q = as_coordinates(system, q, "q")
    system = system.astype(q.dtype)
    return project(with_targets(system, servo.astype(q.dtype), q), q, v, t0)
