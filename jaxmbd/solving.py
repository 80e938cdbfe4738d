"""The solution of one step: Newton's method on the equations of a formulation, and its derivative by all that came before."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .errors import Result
from .formulations import AbstractFormulation, Nodes, Problem
from .newton import Newton
from .schemes import AbstractScheme, StepInput


class SolvedStep(eqx.Module):
    """The nodes of a step (where it failed, the last iterate), with the result of Newton's method and the regularity of $G$."""

    nodes: Nodes
    result: Array
    steps: Array
    residual: Array
    regular: Array


def solve_step(
    before: StepInput, guess: Nodes, alive: Array | bool, scheme: AbstractScheme, formulation: AbstractFormulation, newton: Newton
) -> SolvedStep:
    """Solve a step from predicted nodes, unless it is not `alive`."""
    guess = jax.lax.stop_gradient(guess)
    nodes, _, *rest = _solve(before, guess=guess, alive=alive, scheme=scheme, formulation=formulation, newton=newton)
    result, steps, residual, regular = rest
    return SolvedStep(nodes, result, steps, residual, regular)


def step_residual(x: Float[Array, " k"], args: tuple[AbstractFormulation, Problem]) -> Float[Array, " k"]:
    """The equations of a step, as Newton's method sees them."""
    formulation, problem = args
    return formulation.residual(x, problem)


@eqx.filter_custom_jvp
def _solve(before, *, guess, alive, scheme, formulation, newton):
    problem = formulation.prepare(scheme, before)
    x0, scale = formulation.guess(guess, problem)
    solution = newton.solve(step_residual, x0, (formulation, problem), scale, alive)
    nodes = formulation.nodes(solution.value, problem)
    return nodes, solution.value, solution.result, solution.steps, solution.residual, problem.frame.regular


@_solve.def_jvp
def _solve_jvp(primals, tangents, *, guess, alive, scheme, formulation, newton):
    """The implicit function theorem: one solve, however many iterations were taken; zero where the step failed."""
    (before,), (d_before,) = primals, tangents
    nodes, x, result, *rest = _solve(before, guess=guess, alive=alive, scheme=scheme, formulation=formulation, newton=newton)
    solved = result == Result.SUCCESS
    problem = formulation.prepare(scheme, jax.lax.stop_gradient(before))
    at_rest = jnp.broadcast_to(before.q0, nodes.shape)
    x = jnp.where(solved, x, formulation.guess(at_rest, problem)[0])
    twin, variable = formulation.differentiated(before, problem)
    y = x if twin is formulation else twin.unknowns(jnp.where(solved, nodes, at_rest), variable)

    def equations(y, before):
        return twin.residual(y, formulation.differentiated(before, problem)[1])

    def positions(y, before):
        return twin.nodes(y, formulation.differentiated(before, problem)[1])

    _, change = eqx.filter_jvp(lambda before: equations(y, before), (before,), (d_before,))
    if change is None:  # the equations do not depend on what is varied
        return (nodes, x, result, *rest), (None,) * (3 + len(rest))
    d_y = jnp.where(solved, -newton.linear.tangent(lambda y: equations(y, before), y, valid=solved).solve(change), 0)
    _, d_nodes = eqx.filter_jvp(positions, (y, before), (d_y, d_before))
    d_x = d_y if twin is formulation else None
    return (nodes, x, result, *rest), (jnp.where(solved, d_nodes, 0), d_x, *(None for _ in (result, *rest)))
