"""Laws of friction, stacked by kind, on coordinates of a system; what they remember, and the forces that follow."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..errors import ModelError
from ..numerics.arrays import Indices, alike, stack, total
from ..numerics.discrete_gradient import discrete_vjp
from ..numerics.naming import Named, below, collect, of_tree
from .base import AbstractFriction

Values = Float[Array, " sliding"]


class Memory(eqx.Module):
    """What laws of one kind remember: their states, the forces of the last step, and all the energy that they have dissipated."""

    state: PyTree
    force: Float[Array, " laws"]
    dissipated: Float[Array, " laws"]


class FrictionGroup(eqx.Module):
    """Laws of one kind; `places` are those of their coordinates among all on which friction acts."""

    law: AbstractFriction
    places: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def pick(self, values: Values) -> Float[Array, " laws"]:
        """The coordinates of the group."""
        return values[np.asarray(self.places, int)]

    def start(self, values: Values) -> Memory:
        """The memory of coordinates that rest without friction."""
        at = self.pick(values)
        return Memory(jax.vmap(lambda law, c: law.start(c))(self.law, at), jnp.zeros_like(at), jnp.zeros_like(at))

    def slide(self, memory: Memory, start: Values, end: Values, dt: Array) -> Memory:
        """The memory after a step."""
        move = lambda law, state, c0, c1: law.slide(state, c0, c1, dt)
        slip = jax.vmap(move)(self.law, memory.state, self.pick(start), self.pick(end))
        return Memory(slip.state, slip.force, memory.dissipated + slip.dissipated)

    def each_stored(self, memory: Memory, values: Values) -> Float[Array, " laws"]:
        """The energies in the memory of each law."""
        return jax.vmap(lambda law, state, c: law.stored(state, c))(self.law, memory.state, self.pick(values))

    def slipped(self, memory: Memory, values: Values) -> Float[Array, " laws"]:
        """How far each coordinate has slipped."""
        return jax.vmap(lambda law, state, c: law.slipped(state, c))(self.law, memory.state, self.pick(values))

    def force(self, memory: Memory, values: Values, rates: Values) -> Float[Array, " laws"]:
        """The forces at one instant."""
        at = lambda law, state, c, rate: law.force(state, c, rate)
        return jax.vmap(at)(self.law, memory.state, self.pick(values), self.pick(rates))

    def named_parameters(self) -> Named:
        """The numbers of each law, below its name."""
        fields = {key: one.within(lambda group: group.law) for key, one in of_tree(self.law).items()}
        found: Named = {}
        for place, name in enumerate(self.names):
            found |= below(name, {key: one.at(place) for key, one in fields.items()})
        return found


Memories = tuple[Memory, ...]


class Frictions(eqx.Module):
    """All friction of a system: groups of laws, and `read`, which tells the coordinates on which they act from those of the system."""

    groups: tuple[FrictionGroup, ...]
    read: Callable

    def start(self, q: Float[Array, " n"]) -> Memories:
        """The memory of a system in which nothing is held by friction yet."""
        values = self.read(q)
        return tuple(group.start(values) for group in self.groups)

    def act(self, memory: Memories, q0: Float[Array, " n"], q1: Float[Array, " n"], dt: Array) -> tuple[Float[Array, " n"], Memories]:
        r"""The mean generalised force of a step, $-\bar D c^T F$ with the discrete derivative of the coordinates, and the memory after it.

        Its work is $-F \cdot (c_1 - c_0)$ to rounding, whatever functions of the system's coordinates $c$ are.
        """
        start, end, pull = discrete_vjp(self.read, q0, q1)
        after = tuple(group.slide(one, start, end, dt) for group, one in zip(self.groups, memory, strict=True))
        return -pull(self._together([one.force for one in after], start)), after

    def stored(self, memory: Memories, q: Float[Array, " n"]) -> Array:
        """The energy in the memory."""
        values = self.read(q)
        return total(list(zip(self.groups, memory, strict=True)), lambda pair: jnp.sum(pair[0].each_stored(pair[1], values)), q)

    def force(self, memory: Memories, q: Float[Array, " n"], v: Float[Array, " n"]) -> Float[Array, " n"]:
        """The generalised force at one instant."""
        values, rates = jax.jvp(self.read, (q,), (v,))
        forces = [group.force(one, values, rates) for group, one in zip(self.groups, memory, strict=True)]
        return -jax.vjp(self.read, q)[1](self._together(forces, values))[0]

    def _together(self, forces: Sequence[Array], like: Values) -> Values:
        """Forces of all groups, in the order of the coordinates."""
        whole = jnp.zeros_like(like)
        for group, part in zip(self.groups, forces, strict=True):
            whole = whole.at[np.asarray(group.places, int)].add(part)
        return whole


class OnCoordinates(eqx.Module):
    """Friction on coordinates that are told by number, or as functions of all of them and of parameters."""

    groups: tuple[FrictionGroup, ...]
    coordinates: dict[str, Any]

    @classmethod
    def of(cls, friction: Mapping[str, tuple[int | Callable, AbstractFriction]]) -> "OnCoordinates":
        """Friction as the user gives it: by name, pairs of a coordinate and a law."""
        for name, pair in friction.items():
            on, law = pair if isinstance(pair, tuple) and len(pair) == 2 else (None, None)
            if isinstance(on, bool) or not (isinstance(on, int) or callable(on)) or not isinstance(law, AbstractFriction):
                raise ModelError(
                    f"friction {name!r} must be a pair of a coordinate, by number or as a function (q, params), and a law such as "
                    f"mbd.friction.Plasticity(stiffness, limit), but {pair!r} was given"
                )
        plain = lambda on: callable(on) and not isinstance(on, eqx.Module | Partial)
        coordinates = {name: Partial(on) if plain(on) else on for name, (on, _) in friction.items()}
        return cls(stacked([law for _, law in friction.values()], list(friction), range(len(friction))), coordinates)

    def __call__(self, params: PyTree) -> Frictions:
        """The friction of a system with these parameters."""
        return Frictions(self.groups, Partial(_read, tuple(self.coordinates.values()), params))

    def named_parameters(self) -> Named:
        """The numbers of all laws, by name."""
        where: Callable = lambda place: lambda on: on.groups[place]
        return collect((where(place), group.named_parameters()) for place, group in enumerate(self.groups))


def _read(coordinates: tuple[Any, ...], params: PyTree, q: Float[Array, " n"]) -> Values:
    one = lambda c: q[c] if isinstance(c, int) else jnp.asarray(c(q, params)).astype(q.dtype)
    return jnp.stack([one(coordinate) for coordinate in coordinates])


def stacked(laws: Sequence[AbstractFriction], names: Sequence[str], places: Sequence[int]) -> tuple[FrictionGroup, ...]:
    """Laws by kind."""
    group = lambda some: FrictionGroup(stack([laws[i] for i in some]), tuple(places[i] for i in some), tuple(names[i] for i in some))
    return tuple(map(group, alike(laws)))
