"""From what the steps left to a trajectory: velocities, momenta and multipliers at the saved nodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..constraints.instant import Instant, acceleration
from ..constraints.saddle import least_multipliers
from ..constraints.splitting import is_large, least_norm_multipliers
from ..numerics.arrays import over_rows
from ..schemes import AbstractScheme, StepInput
from ..system import Scalar, System, Vector
from .trajectory import State, Trajectory


class Departure(eqx.Module):
    """What is kept of a step: the state it left, its control, and its displacements, from which the constraint forces follow."""

    t: Array
    q: Vector
    incoming: Vector
    moves: Float[Array, "s n"]
    control: PyTree
    carried: PyTree

    def step(self, system: System, dt: Scalar) -> StepInput:
        """What was known before the step."""
        return StepInput(system, self.t, dt, self.q, self.incoming, self.control, self.carried)


def read_trajectory(
    system: System,
    final: State,
    leaving: Departure,
    arriving: Departure | None,
    outcome: list[Array],
    dt: Array,
    scheme: AbstractScheme,
    stride: int,
) -> Trajectory:
    """The trajectory through the steps that leave each row, with those that arrive at the rows after the first."""
    t, q, incoming = _append(leaving.t, final.t), _append(leaving.q, final.q), _append(leaving.incoming, final.incoming)
    carried = jax.tree.map(_append, leaving.carried, final.carried)
    ahead = leaving.moves[:, 0] / (scheme.fractions[1] * dt)
    guess = jax.lax.stop_gradient(_append(ahead, -final.previous / dt))

    impulses = _append(_impulses(system, scheme, dt, leaving), jnp.zeros_like(final.q))
    last = jnp.arange(t.size) == t.size - 1

    def read(t, q, p, carried, guess, impulse, last):
        instant = Instant.of(system, t, q, dt)
        v, momentum = scheme.read(StepInput(system, t, dt, q, p, None, carried), instant, guess)
        if arriving is not None:
            return v, momentum, jnp.zeros_like(q), jnp.zeros(0, q.dtype)
        reaction = jnp.where(last, p - momentum, impulse)
        return v, momentum, reaction, instant.multipliers(reaction)

    v, p, reaction, multipliers = over_rows(read, t, q, incoming, carried, guess, impulses, last)
    if arriving is None:
        multipliers = multipliers / (dt * _shares(scheme, t)[:, None])
    else:
        multipliers = _step_multipliers(system, scheme, dt, leaving, arriving, v[0])
    results, newton_steps, residuals = outcome
    return Trajectory(
        t=t,
        q=q,
        v=v,
        p=p,
        multipliers=multipliers,
        results=results,
        newton_steps=newton_steps,
        residuals=residuals,
        incoming=incoming,
        reaction=reaction,
        stages=_append(leaving.q[:, None] + leaving.moves[:, :-1], jnp.broadcast_to(final.q, (scheme.stages - 1, final.q.size))),
        carried=carried,
        dt=dt,
        final=final,
        scheme=scheme,
        stride=stride,
        rank=system.rank,
    )


def _append(many: Array, one: Array) -> Array:
    return jnp.concatenate([many, one[None]])


def _impulses(system: System, scheme: AbstractScheme, dt: Scalar, leaving: Departure) -> Float[Array, "rows n"]:
    """Impulses of the constraint forces at the nodes that steps leave."""
    if scheme.acting != "start":
        return jnp.zeros_like(leaving.q)
    return jax.vmap(lambda left: scheme.balance(left.moves, left.step(system, dt))[0])(leaving)


def _shares(scheme: AbstractScheme, t: Float[Array, " rows"]) -> Float[Array, " rows"]:
    """The parts of a time step during which the impulses at the nodes act: of one side only at both ends."""
    before, after = scheme.weights[-1], scheme.weights[0]
    return jnp.full(t.shape, before + after, t.dtype).at[0].set(after).at[-1].set(before)


def _pull(multipliers, args):
    scheme, moves, step = args
    return scheme.constraint_forces(moves, multipliers[None], step)[0]


def _step_multipliers(system: System, scheme: AbstractScheme, dt: Scalar, leaving: Departure, arriving: Departure, v0: Vector) -> Array:
    """Multipliers at the nodes from those of steps: where they act over intervals, the mean of the intervals on both sides."""

    def of_step(left):
        step = left.step(system, dt)
        forces = scheme.balance(left.moves, step)[0] / dt
        if is_large(system, step.q0):
            return least_multipliers(system, Partial(_pull), (scheme, left.moves, step), forces)
        return least_norm_multipliers(system, step.t0, step.q0, forces, scheme.directions(left.moves, step)[0])

    before = over_rows(of_step, arriving)
    if scheme.acting == "end":
        first = jax.tree.map(lambda leaf: leaf[0], leaving)
        return jnp.concatenate([acceleration(system, first.t, first.q, v0, dt, first.control)[1][None], before])
    after = over_rows(of_step, leaving)
    return jnp.concatenate([after[:1], 0.5 * (before[:-1] + after[1:]), before[-1:]])
