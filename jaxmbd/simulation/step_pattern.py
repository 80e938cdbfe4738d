"""What the linear solver sees of a system: which equations of a step hold which unknowns."""

import jax.numpy as jnp
from jaxtyping import ArrayLike

from ..constraints.inputs import as_coordinates
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..formulations import AbstractFormulation, Multipliers
from ..numerics.arguments import checked
from ..numerics.linear import Analysis, analyse
from ..numerics.linear.layout import Layout
from ..schemes import AbstractScheme, Midpoint, StepInput
from ..system import System, VectorLike
from .solving import step_residual


@checked
def sparsity(
    system: System,
    q0: VectorLike,
    dt: ArrayLike = 0.01,
    scheme: AbstractScheme = Midpoint(),
    formulation: AbstractFormulation = Multipliers(),
) -> Analysis:
    """The structure of the equations of a step, as `Sparse()` would solve them.

    `print` tells it in a line: unknowns, nonzeros, colours (directional derivatives that a tangent takes), bandwidth, levels of
    elimination. Its method `spy` draws it.
    """
    q = as_coordinates(system, q0)
    system = with_rank_if_cheap(system.astype(q.dtype), q)
    if system.controlled:
        raise ModelError("the structure of systems with controls cannot be looked at; leave the control out of the forces")
    t, dt = jnp.zeros((), q.dtype), jnp.asarray(dt, q.dtype)
    system = system.with_step(dt)
    p, carried = scheme.start(system, t, q, jnp.zeros_like(q), None)
    problem = formulation.prepare(scheme, StepInput(system, t, dt, q, p, None, carried, system.memory(q)))
    x, _ = formulation.guess(jnp.zeros((scheme.stages, q.size), q.dtype), problem)
    found = analyse(step_residual, x, (formulation, problem), formulation.layout(problem) or Layout.plain(x.size))
    if found is None:
        raise ModelError(f"the equations of {type(formulation).__name__} for this system are dense")
    return found
