"""From what the steps left to a trajectory: velocities, momenta and multipliers at the saved nodes, as far as they are asked for."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..constraints.manifold import AbstractManifold, manifold_at
from ..numerics.arrays import over_rows
from ..schemes import AbstractScheme, StepInput
from ..system import Scalar, System, Vector
from .save import Save
from .trajectory import State


class Node(eqx.Module):
    """What is kept of a state: its position, and (or else `None`) what velocity and momentum there follow from."""

    t: Array
    q: Vector
    incoming: Any = None
    previous: Any = None
    carried: PyTree = None
    memory: PyTree = None

    @classmethod
    def of(cls, state: State) -> "Node":
        """That of a state."""
        return cls(state.t, state.q, state.incoming, state.previous, state.carried, state.memory)


class Departure(eqx.Module):
    """What is kept of a step: the node it left, its control, and its displacements, from which the constraint forces follow."""

    node: Node
    moves: Any
    control: PyTree


class Reader(NamedTuple):
    """What all rows of a motion share, and the control at the first of them."""

    system: System
    scheme: AbstractScheme
    dt: Scalar
    control: PyTree = None

    def input(self, node: Node, control: PyTree = None) -> StepInput:
        """What was known before the step that left a node."""
        return StepInput(self.system, node.t, self.dt, node.q, node.incoming, control, node.carried, node.memory)

    def manifold(self, node: Node) -> AbstractManifold:
        """The constraint manifold about a node."""
        return manifold_at(self.system, node.t, node.q)

    def motion(self, node: Node, manifold: AbstractManifold) -> tuple[Vector, Vector]:
        """Velocity and momentum at a node."""
        return self.scheme.read(self.input(node), manifold, jax.lax.stop_gradient(-node.previous / self.dt))

    def impulse(self, left: Departure) -> Vector:
        """What the constraint forces have to balance in the first balance of a step."""
        return self.scheme.balanced(left.moves, self.input(left.node, left.control))[0]

    def step_multipliers(self, left: Departure) -> Float[Array, " m"]:
        """Multipliers of a scheme whose constraint forces act over a step or at its end."""
        pull = Partial(_pull, self.scheme, left.moves, self.input(left.node, left.control))
        return self.manifold(left.node).multipliers(self.impulse(left) / self.dt, pull)


class Row:
    """What a reduction sees of a state; velocity and momentum are worked out if they are looked at."""

    def __init__(self, reader: Reader, state: State):
        self._reader, self._node = reader, Node.of(state)
        self.t, self.q = state.t, state.q

    @property
    def v(self) -> Vector:
        """Velocity."""
        return self._reader.motion(self._node, self._reader.manifold(self._node))[0]

    @property
    def p(self) -> Vector:
        """Momentum."""
        return self._reader.motion(self._node, self._reader.manifold(self._node))[1]


def read_columns(
    reader: Reader, save: Save, nodes: Node, leaving: Departure | None, arriving: Departure | None, first_step: Array
) -> dict[str, PyTree]:
    """The columns that are asked for, at saved nodes: the last one, and those before it, which the steps `leaving` left.

    Of schemes whose constraint forces act at the start, multipliers at a node follow from the impulse there, of one side alone at the
    start of a motion and at the last node. Of others, they follow from the steps that `arriving` at the nodes and `leaving` them.
    """
    columns: dict[str, PyTree] = {"q": nodes.q, "incoming": nodes.incoming, "carried": nodes.carried, "memory": nodes.memory}
    if save.asks("stages"):
        columns["stages"] = _stages(reader.scheme, nodes, leaving)
    at_nodes = reader.scheme.acting == "start"
    reacting = at_nodes and save.asks("multipliers", "reaction")
    columns["reaction"] = _impulses(reader, nodes, leaving) if reacting else jnp.zeros_like(nodes.q)
    if save.asks("v", "p") or reacting:
        last = jnp.arange(nodes.t.size) == nodes.t.size - 1

        def read(node, impulse, last):
            manifold = reader.manifold(node).sharing()
            v, p = reader.motion(node, manifold)
            reaction = jnp.where(last, node.incoming - p, impulse) if reacting else impulse
            return v, p, reaction, manifold.multipliers(reaction) if reacting and save.asks("multipliers") else None

        columns["v"], columns["p"], columns["reaction"], multipliers = over_rows(read, nodes, columns["reaction"], last)
        if multipliers is not None:
            columns["multipliers"] = multipliers / (reader.dt * _shares(reader.scheme, nodes.t, first_step)[:, None])
    if not at_nodes and save.asks("multipliers"):
        columns["multipliers"] = _means(reader, nodes, leaving, arriving)
    return {name: column for name, column in columns.items() if name in save.fields}


def append(many: Array, one: Array) -> Array:
    """Rows and one more."""
    return jnp.concatenate([many, one[None]])


def _stages(scheme: AbstractScheme, nodes: Node, leaving: Departure | None) -> Float[Array, "rows inside n"]:
    """Nodes inside the steps that leave the rows; of the last row, which none leaves, its own position."""
    own = jnp.broadcast_to(nodes.q[-1], (scheme.stages - 1, nodes.q.shape[-1]))
    return own[None] if leaving is None else append(leaving.node.q[:, None] + leaving.moves[:, :-1], own)


def _impulses(reader: Reader, nodes: Node, leaving: Departure | None) -> Float[Array, "rows n"]:
    """Impulses of the constraint forces at the nodes that steps leave."""
    last = jnp.zeros_like(nodes.q[-1])
    return last[None] if leaving is None else append(jax.vmap(reader.impulse)(leaving), last)


def _shares(scheme: AbstractScheme, t: Float[Array, " rows"], first_step: Array) -> Float[Array, " rows"]:
    """The parts of a time step during which the impulses at the nodes act: of one side only where a motion begins, and at its last node."""
    before, after = scheme.weights[-1], scheme.weights[0]
    whole = jnp.full(t.shape, before + after, t.dtype)
    return whole.at[0].set(jnp.where(first_step == 0, after, before + after)).at[-1].set(before)


def _pull(scheme, moves, step, multipliers):
    return scheme.constraint_forces(moves, multipliers[None], step)[0]


def _means(reader: Reader, nodes: Node, leaving: Departure | None, arriving: Departure | None) -> Float[Array, "rows m"]:
    """Multipliers at the nodes from those of steps: where they act over intervals, the mean of the intervals on both sides."""
    before = over_rows(reader.step_multipliers, arriving)
    if leaving is None:
        return before[-1:]
    if reader.scheme.acting == "end":
        first = jax.tree.map(lambda leaf: leaf[0], leaving)
        v, _ = reader.motion(first.node, reader.manifold(first.node))
        return jnp.concatenate([reader.manifold(first.node).acceleration(v, reader.control)[1][None], before])
    after = before if arriving is leaving else over_rows(reader.step_multipliers, leaving)
    return jnp.concatenate([after[:1], 0.5 * (before[:-1] + after[1:]), before[-1:]])
