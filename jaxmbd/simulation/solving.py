"""The solution of one step: Newton's method on the equations of a formulation, and its derivative by all that came before."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..errors import Result
from ..formulations import AbstractFormulation, Moves, Problem
from ..numerics.implicit import root_derivative
from ..numerics.linear import refined_solve
from ..numerics.newton import Newton
from ..schemes import AbstractScheme, StepInput


class Method(eqx.Module):
    """How steps are taken: three choices that do not know of each other."""

    scheme: AbstractScheme
    formulation: AbstractFormulation
    newton: Newton


class SolvedStep(eqx.Module):
    """The displacements of a step (where it failed, the last iterate), with the result of Newton's method and the regularity of $G$.

    `inputs` are those that a servo took.
    """

    moves: Moves
    inputs: PyTree
    result: Array
    steps: Array
    residual: Array
    regular: Array


def solve_step(before: StepInput, guess: Moves, alive: Array | bool, method: Method) -> SolvedStep:
    """Solve a step from predicted displacements, unless it is not `alive`."""
    solved, *_ = _solve(before, guess=jax.lax.stop_gradient(guess), alive=alive, method=method)
    return SolvedStep(*solved)


def step_residual(x: Float[Array, " k"], args: tuple[AbstractFormulation, Problem]) -> Float[Array, " k"]:
    """The equations of a step, as Newton's method sees them."""
    formulation, problem = args
    return formulation.residual(x, problem)


@eqx.filter_custom_jvp
def _solve(before, *, guess, alive, method):
    """The fields of a `SolvedStep`, and for the derivative: unknowns, last tangent of Newton's method, what was prepared once."""
    formulation = method.formulation
    problem = formulation.prepare(method.scheme, before)
    x0, scale = formulation.guess(guess, problem)
    solution, tangent = method.newton.solve(step_residual, x0, (formulation, problem), scale, formulation.layout(problem), alive)
    moves = formulation.moves(solution.value, problem)
    inputs = formulation.inputs(solution.value, problem)
    solved = (moves, inputs, solution.result, solution.steps, solution.residual, problem.split.regular)
    return solved, solution.value, tangent, (problem.split, problem.basis, problem.whole, problem.chart)


@_solve.def_jvp
def _solve_jvp(primals, tangents, *, guess, alive, method):
    """The implicit function theorem, with the last tangent of Newton's method where that serves; zero where the step failed."""
    (before,), (d_before,) = primals, tangents
    out, formulation = _solve(before, guess=guess, alive=alive, method=method), method.formulation
    (moves, inputs, result, *rest), x, last, prepared = out
    fixed = (result, *rest), (last, prepared)

    def change(d_moves, d_inputs, d_x):
        none, others = jax.tree.map(lambda _: None, fixed)
        return (d_moves, d_inputs, *none), d_x, *others

    solved = result == Result.SUCCESS
    problem = jax.lax.stop_gradient(Problem(method.scheme, before, *prepared))
    at_rest = jnp.zeros_like(moves)
    twin, variable = formulation.differentiated(before, problem)
    own = twin is formulation
    y = jnp.where(solved, x, formulation.guess(at_rest, problem)[0])
    y = y if own else formulation.restated(y, jnp.where(solved, moves, at_rest), problem, twin, variable)

    def equations(y, before):
        return twin.residual(y, formulation.differentiated(before, problem)[1])

    def outcome(y, before):
        variable = formulation.differentiated(before, problem)[1]
        return twin.moves(y, variable), twin.inputs(y, variable)

    def solve(rhs):
        if own:
            operator = jax.linearize(lambda y: equations(y, before), y)[1]
            return refined_solve(operator, rhs, jax.lax.stop_gradient(last), solved)
        return method.newton.linear.tangent(step_residual, y, (twin, variable), twin.layout(variable), solved).solve(rhs)

    d_y = root_derivative(equations, y, before, d_before, solve, solved)
    if d_y is None:
        return out, change(None, jax.tree.map(lambda _: None, inputs), None)
    _, d_outcome = eqx.filter_jvp(outcome, (y, before), (d_y, d_before))
    d_moves, d_inputs = jax.tree.map(lambda d: jnp.where(solved, d, 0), d_outcome)
    return out, change(d_moves, d_inputs, d_y if own else None)
