"""Points of bodies along a motion: positions, velocities, accelerations; by name."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..assembly.abstract_model import require_model
from ..assembly.model import as_assembly
from ..constraints.manifold import manifold_at
from ..errors import ModelError
from ..geometry.frame import Frame
from ..numerics.arguments import checked
from ..numerics.arrays import over_rows
from ..numerics.naming import look_up
from ..simulation.trajectory import Trajectory
from ..system import System, Vector, VectorLike
from .along import control_at, friction_at, memory_of
from .directors import along_mechanism

Local = Float[Array, "3"]


class PointMotion(eqx.Module):
    """A point in space at the saved times."""

    position: Float[Array, "rows 3"]
    velocity: Float[Array, "rows 3"]
    acceleration: Float[Array, "rows 3"]


@checked
def point(
    system: System, trajectory: Trajectory, body: str, at: VectorLike = (0.0, 0.0, 0.0), controls: Callable | None = None
) -> PointMotion:
    """The motion of the point `at`, in body axes, of a body given by name; nodes of beams may be counted from the end, `"beam[-1]"`.

    Accelerations are those of the continuous equations of motion at the saved positions and velocities. A system whose forces take a
    control needs `controls`, a function of time, for them.
    """
    names = require_model(system).assembly.bodies
    index = names.index(look_up(body, names, "there is no body"))
    local = jnp.asarray(at)
    if local.shape != (3,):
        raise ModelError(f"a point of body {body!r} is given by three components in its axes, not by shape {local.shape}")
    return _motion(system, trajectory, index, local.astype(trajectory.t.dtype), controls)


@along_mechanism("q", "v")
def _motion(system: System, trajectory: Trajectory, index: int, local: Local, controls: Callable | None) -> PointMotion:
    model = as_assembly(system)
    place: Callable = lambda q: Frame.from_rows(model.frames(q)[index]).point(local)
    rate = lambda q, v: jax.jvp(place, (q,), (v,))

    def accelerated(t: Array, q: Vector, v: Vector, memory: PyTree) -> Local:
        a, _ = manifold_at(system, t, q).acceleration(v, control_at(controls, t), friction_at(system, memory, q, v))
        return jax.jvp(lambda q, v: rate(q, v)[1], (q, v), (v, a))[1]

    memory = memory_of(system, trajectory, "point")
    position, velocity = jax.vmap(rate)(trajectory.q, trajectory.v)
    return PointMotion(position, velocity, over_rows(accelerated, trajectory.t, trajectory.q, trajectory.v, memory))
