"""What is asked of a robot at one position: where its bodies are, Jacobians, mass matrix and bias forces, in any coordinates."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PyTree

from .assembly.abstract_model import parts_at
from .constraints.calculus import equations_of_motion, mass_matrix as hessian
from .constraints.inputs import as_coordinates, vector_like
from .errors import ModelError
from .geometry.frame import Frame, twist
from .numerics.arguments import checked
from .numerics.naming import look_up
from .system import System, Vector, VectorLike


@checked
def forward_kinematics(system: System, q: VectorLike) -> dict[str, Frame]:
    """The frame of every body by name: its origin, and its directors as the columns of a rotation matrix."""
    system, q = _at(system, q)
    model, at = parts_at(system, q)
    rows = model.frames(at)
    return {name: Frame.from_rows(rows[i]) for i, name in enumerate(model.bodies)}


@checked
def point_jacobian(system: System, q: VectorLike, body: str, at: VectorLike = (0.0, 0.0, 0.0)) -> Float[Array, "3 n"]:
    """The velocity in space of the point `at`, in body axes, for every rate of a coordinate."""
    system, q = _at(system, q)
    local = jnp.asarray(at, q.dtype)
    if local.shape != (3,):
        raise ModelError(f"a point of body {body!r} is given by three components in its axes, not by shape {local.shape}")
    return jax.jacfwd(lambda q: _frame(system, q, body).point(local))(q)


@checked
def body_jacobian(system: System, q: VectorLike, body: str) -> Float[Array, "6 n"]:
    """The velocity of the origin of a body and its angular velocity, both in space, for every rate of a coordinate."""
    system, q = _at(system, q)

    def velocity(rate: Vector) -> Float[Array, "6"]:
        frame, change = jax.jvp(lambda q: _frame(system, q, body), (q,), (rate,))
        return jnp.concatenate(twist(frame, change))

    return jax.jacfwd(velocity)(jnp.zeros_like(q))


@checked
def mass_matrix(system: System, q: VectorLike, t: ArrayLike = 0.0) -> Float[Array, "n n"]:
    r"""$M = \partial^2 L/\partial v^2$."""
    system, q = _at(system, q)
    return hessian(system, jnp.asarray(t, q.dtype), q, jnp.zeros_like(q))


@checked
def bias_forces(
    system: System, q: VectorLike, v: VectorLike | None = None, t: ArrayLike = 0.0, control: PyTree = None
) -> Float[Array, " n"]:
    r"""What forces on the coordinates have to be for no acceleration.

    $b = \frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} - f$ with $\dot v = 0$: forces $M a + b$ give the
    accelerations $a$. At rest, and without springs, $b$ is that of gravity.
    """
    system, q = _at(system, q)
    v = jnp.zeros_like(q) if v is None else vector_like(v, q, "v")
    return equations_of_motion(system, jnp.asarray(t, q.dtype), q, v, jnp.zeros_like(q), control)


def _at(system: System, q: VectorLike) -> tuple[System, Vector]:
    """A system and a position in one precision."""
    q = as_coordinates(system, q, "q")
    return system.astype(q.dtype), q


def _frame(system: System, q: Vector, body: str) -> Frame:
    model, at = parts_at(system, q)
    return Frame.from_rows(model.frames(at)[model.bodies.index(look_up(body, model.bodies, "there is no body"))])
