r"""Equilibrium: positions at which a system can rest.

Forces of the potential, other forces and those of constraints balance, $\partial V/\partial q - f + G^T \lambda = 0$ with $g = 0$.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from .assembly import Assembly
from .calculus import constraint_forces, constraint_jacobian, equations_of_motion
from .checks import as_coordinates, known
from .compiling import compiled
from .errors import ModelError, Result
from .kinetics import Instant
from .linear import Auto, Dense, Layout
from .newton import Newton, Solution
from .splitting import Split, chart_size, constraint_count, fulfilled, is_large, pull_to_chart, rank, saddle_layout, split
from .start import with_rank_if_cheap
from .system import Scalar, System, Vector, VectorLike


class Equilibrium(eqx.Module):
    """A position of rest with its multipliers; `path` leads to it, one row a load step, with a code and a number of iterations for each."""

    q: Float[Array, " n"]
    multipliers: Float[Array, " m"]
    path: Float[Array, "rows n"]
    results: Int[Array, " steps"]
    newton_steps: Int[Array, " steps"]

    @property
    def successful(self) -> Array:
        """Whether all load steps were solved."""
        return jnp.all(self.results == Result.SUCCESS)


def equilibrium(
    system: System, q: VectorLike, *, steps: int = 1, t: ArrayLike = 0.0, newton: Newton = Newton(reuse=1), throw: bool = True
) -> Equilibrium:
    r"""The position near `q` at which the system can rest, with all its loads as they are at the time `t`.

    **Arguments**

    - `q`: where to start. What is out of balance there is taken off in equal parts, one a step: started from a position free of stress,
      `steps` are load steps.
    - `newton`: the solver; load steps are long, so that its tangents are renewed in every iteration.
    - `throw`: raise an error where a step was not solved; otherwise look at `results`.

    The derivative by all parameters follows from the equations at the last position, whatever led there.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ModelError(f"steps must be a positive whole number, not {steps!r}")
    if system.controlled:
        raise ModelError("the forces of this system take a control: put its value at rest into the forces instead")
    q = as_coordinates(system, q, "q")
    system, t = system.astype(q.dtype), jnp.asarray(t, q.dtype)
    system = with_rank_if_cheap(system, q, t)
    found = _solve(system, q, t, steps, newton)
    codes = known(found.results)
    if throw and codes is None:
        return eqx.error_if(found, ~found.successful, "a load step was not solved; call equilibrium(..., throw=False) to see which")
    if throw and codes is not None and codes.any():
        failed = int((codes != Result.SUCCESS).argmax())
        raise ModelError(
            f"load step {failed + 1} of {steps} was not solved ({Result(int(codes[failed])).name}): take more steps, start closer to the "
            "equilibrium, or hold what is free to move"
        )
    return found


@compiled
def _solve(system: System, q: Vector, t: Scalar, steps: int, newton: Newton) -> Equilibrium:
    """The path by the few unknowns of a chart where there is one; its end, with derivatives, from the equations with multipliers."""
    fixed = jax.lax.stop_gradient((system, t, q))
    load = (_load_on_chart if system.has("chart") else _load_with_multipliers)(*fixed, newton)

    def step(carry, remaining):
        q, guess, alive = carry
        solution, found = load(q, guess, remaining, alive)
        good = alive & (solution.result == Result.SUCCESS)
        result = jnp.where(alive, solution.result, jnp.int32(Result.NOT_REACHED))
        after = jnp.where(good, found, q), jnp.where(good, solution.value, guess), good
        return after, (after[0], result, solution.steps)

    remaining = 1 - jnp.arange(1, steps + 1, dtype=q.dtype) / steps
    unknowns = jax.eval_shape(lambda: load(fixed[2], None, remaining[0], True)[0].value)
    blank = (fixed[2], jnp.zeros(unknowns.shape, q.dtype), jnp.array(True))
    (last, *_), (path, results, iterations) = jax.lax.scan(step, blank, remaining)
    end, at = _saddle(system, t, last, jnp.zeros(last.size + constraint_count(system, last), q.dtype), newton)
    results = results.at[-1].max(end.result)
    path = jnp.concatenate([fixed[2][None], path])
    return Equilibrium(last + end.value[: q.size], at.spread(end.value[q.size :]), path, results, iterations)


def _force(system: System, t: Scalar, q: Vector) -> Vector:
    """What constraint forces have to balance."""
    zero = jnp.zeros_like(q)
    return equations_of_motion(system, t, q, zero, zero, jnp.ones((), q.dtype))


def _load_on_chart(system: System, t: Scalar, start: Vector, newton: Newton) -> Callable:
    """Load steps by increments of the chart, from one step to the next, and multipliers of what it leaves open.

    What is out of balance is counted as forces and torques in space: those of dead loads then grow in proportion. The stress of beams is
    unknown too, and eliminated first: slender beams bend in long steps only if their stretching does not follow every iterate.
    """
    size, newton = chart_size(system, start), newton if not system.closures else _with_dense(newton)
    stresses = sum(stress.size for stress in _stresses(system))
    out_of_balance = pull_to_chart(system, t, start, _force(system, t, start))

    def load(q: Vector, guess: Array | None, remaining: Array, alive: Array | bool) -> tuple[Solution, Vector]:
        at = split(system, t, q) if system.closures else Split.trivial(q)
        count = (system.closures or 0) if at.closing is None else at.closing.shape[0]
        x = jnp.zeros(stresses + size + count, q.dtype) if guess is None else guess
        layout = Layout(1, stresses, size + count) if stresses else Layout(1, size, count)
        scale = jnp.pad(_scale(q, size, count), (stresses, 0))
        solution, _ = newton.solve(_on_chart, x, (system, t, q, remaining * out_of_balance, at), scale, layout, alive)
        return solution, system.chart(solution.value[stresses : stresses + size], q, t, t)

    return load


def _on_chart(x: Array, args: tuple) -> Array:
    """Stress and strain, forces and torques, and what the chart leaves open."""
    system, t, start, remaining, at = args
    system, strained, x = _with_stress(system, x)
    u, mu = x[: remaining.size], x[remaining.size :]
    q = system.chart(u, start, t, t)
    force = _force(system, t, q)
    closing = jnp.zeros(0, q.dtype)
    if mu.size:
        held = fulfilled(system, q)
        spread = mu if at.closing is None else mu @ at.closing
        force = force + constraint_forces(system, t, q, jnp.pad(spread, (held, 0)))
        closing = system.constraints(t, q)[held:] if at.closing is None else at.closing @ system.constraints(t, q)[held:]
    return jnp.concatenate([*strained(q), pull_to_chart(system, t, q, force) - remaining, closing])


def _stresses(system: System) -> list[Float[Array, "elements points 6"]]:
    """Blank forces and moments of all beams."""
    model = system.params
    if not isinstance(model, Assembly):
        return []
    return [jnp.zeros((*group.stiffness.shape[:1], group.order, 6), group.stiffness.dtype) for group in model.beams]


def _with_stress(system: System, x: Array) -> tuple[System, Callable, Array]:
    """The system with the stress of beams at the head of unknowns, how far it is from that of their strains, and the other unknowns."""
    given = []
    for blank in _stresses(system):
        given.append(x[: blank.size].reshape(blank.shape))
        x = x[blank.size :]
    if not given:
        return system, lambda q: [], x
    model: Assembly = system.params
    stressed = eqx.tree_at(lambda model: [group.stress for group in model.beams], model, given, is_leaf=lambda leaf: leaf is None)
    off = lambda q: [(group.resultants(model.frames(q)) - stress).ravel() for group, stress in zip(model.beams, given, strict=True)]
    return system.with_params(stressed), off, x


def _load_with_multipliers(system: System, t: Scalar, start: Vector, newton: Newton) -> Callable:
    """Load steps by displacements and multipliers, which are sought anew in every step."""
    at = _independent(system, t, start)
    supported = constraint_forces(system, t, start, at.spread(_supports(system, t, start, at)))
    out_of_balance = jnp.concatenate([_force(system, t, start) + supported, system.constraints(t, start)])

    def load(q: Vector, guess: Array | None, remaining: Array, alive: Array | bool) -> tuple[Solution, Vector]:
        solution, _ = _saddle(system, t, q, remaining * out_of_balance, newton, alive)
        return solution, q + solution.value[: q.size]

    return load


def _independent(system: System, t: Scalar, q: Vector) -> Split:
    """The constraints that get multipliers: all, unless some are known to be redundant."""
    full = rank(system, q) == constraint_count(system, q)
    return Split.trivial(q) if full or is_large(system, q) else split(system, t, q)


def _supports(system: System, t: Scalar, q: Vector, at: Split) -> Float[Array, " r"]:
    """Multipliers whose forces balance as much as constraints can: without them nothing holds what only hangs."""
    if is_large(system, q):
        return Instant.of(system, t, q, jnp.ones((), q.dtype)).multipliers(-_force(system, t, q))
    G = at.independent(constraint_jacobian(system, t, q))
    return jnp.linalg.solve(G @ G.T, -G @ _force(system, t, q)) if G.shape[0] else jnp.zeros(0, q.dtype)


def _saddle(
    system: System, t: Scalar, q: Vector, remaining: Array, newton: Newton, alive: Array | bool | None = None
) -> tuple[Solution, Split]:
    """Displacements from `q` and multipliers of independent constraints; differentiable unless it may not be `alive`."""
    at = _independent(system, t, q)
    layout = saddle_layout(system, q, at)
    x = jnp.concatenate([jnp.zeros_like(q), _supports(system, t, q, at)])
    given = (_with_multipliers, x, (system, t, q, remaining, at), _scale(q, q.size, layout.multipliers))
    if _is_stiff(system):
        layout = layout._replace(held=(*layout.held, *system.params.branch_rows()))
    else:
        newton = _with_dense(newton)
    return (newton(*given, layout) if alive is None else newton.solve(*given, layout, alive)[0]), at


def _with_multipliers(x: Array, args: tuple) -> Array:
    system, t, start, remaining, at = args
    n = start.size
    q = start + x[:n]
    balance = _force(system, t, q) + constraint_forces(system, t, q, at.spread(x[n:])) - remaining[:n]
    return jnp.concatenate([balance, at.pick(system.constraints(t, q) - remaining[n:])])


def _scale(q: Vector, coordinates: int, multipliers: int) -> Array:
    """The size of unknowns: lengths and angles count, multipliers do not."""
    length = jnp.max(jnp.abs(q))
    return jnp.pad(jnp.full(coordinates, jnp.where(length > 0, length, 1)), (0, multipliers))


def _is_stiff(system: System) -> bool:
    """Whether all bodies are nodes of beams and hang on no loops of joints: eliminated with the joints they hang on, none can float."""
    model = system.params
    if not isinstance(model, Assembly):
        return False
    stiff = {place for group in model.beams for places in group.nodes for place in places}
    return model.closures == 0 and stiff == set(range(len(model.bodies) - 1))


def _with_dense(newton: Newton) -> Newton:
    """The solver with full tangents where it was left to choose: a sparse elimination could meet a part that floats."""
    return eqx.tree_at(lambda newton: newton.linear, newton, Dense()) if isinstance(newton.linear, Auto) else newton
