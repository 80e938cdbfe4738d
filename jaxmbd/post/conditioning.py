"""How well a step can be solved: condition numbers of the iteration matrix."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..formulations import AbstractFormulation
from ..numerics.arrays import over_rows
from ..numerics.lapack import singular_values
from ..numerics.newton import Newton
from ..schemes import StepInput
from ..simulation.solving import step_residual
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory


@along_trajectory("q", "v", "incoming", "carried")
def condition_number(
    system: System,
    trajectory: Trajectory,
    formulation: AbstractFormulation,
    scaled: bool = False,
    newton: Newton = Newton(),
    estimated: bool = False,
) -> Float[Array, " rows"]:
    r"""Condition number (2-norm) of the tangent of the step that leaves each saved row, at its solution.

    By default for the unknowns $(q, \lambda)$ and the equations as the papers write them; `scaled=True` gives the matrix that is
    solved here, with balances times $h$ and multipliers counted as $h^2 \lambda$. `estimated=True` estimates the latter, in the maximum
    norm, from a few solves with its factors: the way for large systems. Systems with controls are not covered.
    """
    scheme, dt = trajectory.scheme, trajectory.dt

    def at(t, q, v, p, carried, memory):
        problem = formulation.prepare(scheme, StepInput(system, t, dt, q, p, None, carried, memory))
        x0, scale = formulation.guess(jnp.asarray(scheme.fractions[1:], q.dtype)[:, None] * dt * v, problem)
        x = newton(step_residual, x0, (formulation, problem), scale, formulation.layout(problem)).value
        if estimated:
            return newton.linear.tangent(step_residual, x, (formulation, problem), formulation.layout(problem)).condition(x.size, x.dtype)
        matrix = jax.jacfwd(step_residual)(x, (formulation, problem))
        if not scaled:
            balances, multipliers = formulation.units(problem)
            matrix = matrix.at[balances].divide(dt)
            matrix = matrix.at[:, x.size - multipliers :].multiply(dt * dt)
        values = singular_values(matrix)
        return values[0] / values[-1]

    return over_rows(at, trajectory.t, trajectory.q, trajectory.v, trajectory.incoming, trajectory.carried, trajectory.memory)
