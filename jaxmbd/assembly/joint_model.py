"""A mechanism in the coordinates of the joints of its spanning tree; loops are closed by constraints.

Everything is pulled back from directors. Coordinates are those of the joints, then those of bodies that keep their own (nodes of beams),
then the gauges that are no joint of the tree. Constraints are, in this order, those of unit quaternions, and those of the mechanism in
directors that joints do not fulfil by themselves.
"""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies import Ground
from ..geometry.frame import Frame, Rows, identity
from ..numerics.arrays import Indices, take
from ..numerics.naming import Named
from ..system import Vector
from .abstract_model import AbstractModel
from .chart import ancestors
from .joint_blocks import QUATERNION, Block, blocks_of, periodic, read_coordinates, relative_frames
from .model import Assembly, Position

FEW = 40
"""Bodies up to which frames are composed one by one: more of them compile too long."""


class JointModel(AbstractModel):
    """The parts of a mechanism, whose bodies hang on joints; those `apart`, given by number, keep their own coordinates."""

    stacked: Assembly
    apart: Indices = eqx.field(static=True, default=())

    @property
    def assembly(self) -> Assembly:
        return self.stacked

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The coordinates of joints."""
        return blocks_of(self.assembly.tree, frozenset(self.apart))

    @property
    def jointed(self) -> int:
        """Number of coordinates of joints."""
        return sum(block.size for block in self.blocks)

    @property
    def gauge_places(self) -> list[int | None]:
        """For every gauge the joint coordinate that it is, `None` for one that is a coordinate of its own."""
        found: list[int | None] = []
        for gauge in self.assembly.gauges:
            blocks = [block for block in self.blocks if block.group == gauge.group and gauge.element in block.members]
            held = [block for block in blocks if gauge.coordinate in block.steps]
            found.append(held[0].place(gauge.element, held[0].steps.index(gauge.coordinate)) if held else None)
        return found

    @property
    def own_gauges(self) -> list[int]:
        """Gauges that are coordinates of their own."""
        return [i for i, place in enumerate(self.gauge_places) if place is None]

    @property
    def own_coordinates(self) -> np.ndarray:
        """Which coordinates of directors the bodies apart have."""
        first, sizes = self.assembly.first_coordinates(), self.assembly.sizes_of_bodies()
        return np.concatenate([np.zeros(0, int), *(first[place] + np.arange(sizes[place]) for place in self.apart)])

    @property
    def size(self) -> int:
        return self.jointed + self.own_coordinates.size + len(self.own_gauges)

    @property
    def quaternions(self) -> np.ndarray:
        """The places of all quaternions, a row each."""
        ends = [block.begin + block.width * (1 + np.arange(len(block.members))) for block in self.blocks if block.balls]
        return np.concatenate([np.zeros(0, int), *ends])[:, None] + np.arange(-QUATERNION, 0)

    def position(self, q: Vector) -> Vector:
        bodies = self.bodies_at(q)
        directors = self.assembly.coordinates(bodies, self.gauges_at(q))
        return directors.at[self.own_coordinates].set(self._apart(q)) if self.apart else directors

    def _apart(self, q: Vector) -> Vector:
        return q[self.jointed : q.size - len(self.own_gauges)]

    def gauges_at(self, q: Vector) -> Float[Array, " g"]:
        """All gauges."""
        own = itertools.count(q.size - len(self.own_gauges))
        return q[np.array([next(own) if place is None else place for place in self.gauge_places], int)]

    def bodies_at(self, q: Vector) -> Rows:
        """The rows of all frames: joints composed along the tree."""
        seen = self._on_parents(q)
        compose = one_by_one if len(self._carriers) <= FEW else by_doubling
        found = compose(seen, self._carriers)
        return jnp.concatenate([found.origin[:, None], jnp.swapaxes(found.rotation, 1, 2)], axis=1)[:-1]

    @property
    def _carriers(self) -> Indices:
        """For every body the one whose frame it is seen from, and last space itself, from which bodies on the ground are seen as well."""
        count, kinds = len(self.assembly.bodies), [kind for kind, many in self.assembly.kinds for _ in range(many)]
        in_space = lambda body: body in self.apart or kinds[body].size == 0
        on_space = lambda body: in_space(body) or kinds[self.assembly.parents[body]] is Ground
        return (*(count if on_space(body) else self.assembly.parents[body] for body in range(count)), count)

    def _on_parents(self, q: Vector) -> Frame:
        """Every body as seen from the one that it hangs on; last space itself."""
        unmoved = jax.tree.map(lambda leaf: jnp.asarray(leaf, q.dtype)[None], identity())
        frames, order = [self._resting(q), unmoved], np.arange(len(self.assembly.bodies) + 1)
        for block in self.blocks:
            group = self.assembly.tree[block.group]
            seen = relative_frames(group, block, q)
            order[np.array(group.children)[list(block.members)]] = sum(len(part.origin) for part in frames) + np.arange(len(block.members))
            frames.append(jax.vmap(Frame.inverse)(seen) if group.reverse else seen)
        return jax.tree.map(lambda *leaves: take(jnp.concatenate(leaves), tuple(order.tolist())), *frames)

    def _resting(self, q: Vector) -> Frame:
        """The frames of bodies that keep their own coordinates or have none; those of others mean nothing."""
        directors = jnp.zeros(self.assembly.size, q.dtype).at[self.own_coordinates].set(self._apart(q))
        rows = self.assembly.frames(directors)
        return Frame(rows[:, 0], jnp.swapaxes(rows[:, 1:], 1, 2))

    def lowered(self, directors: Vector, near: Vector) -> Vector:
        """The coordinates of a position that is told by those of directors: angles and quaternions nearest to some others."""
        gauges = self.assembly.parts(directors)[1]
        bodies, own = self.assembly.frames(directors), np.array(self.own_gauges, int)
        joints = [read_coordinates(self.assembly.tree[block.group], block, bodies).ravel() for block in self.blocks]
        q = jnp.concatenate([jnp.zeros(0, directors.dtype), *joints, directors[self.own_coordinates], gauges[own]])
        turns = jnp.round((near - jax.lax.stop_gradient(q)) / (2 * np.pi))
        q = q + jnp.where(self._periodic, 2 * np.pi * turns, 0)
        places = self.quaternions
        flipped = jnp.sum(q[places] * near[places], axis=1, keepdims=True) < 0
        return q.at[places].set(jnp.where(flipped, -q[places], q[places]))

    def asked_for(self, wanted: Mapping[str, Any]) -> Vector:
        """Coordinates near which those of an assembled position are read: as joints were asked for, turns included, others near zero."""
        near = jnp.zeros(self.size)
        for block in self.blocks:
            for element, name in zip(block.members, self._names(block), strict=True):
                if name in wanted and self.assembly.tree[block.group].kind.additive:
                    begin = block.place(element, 0)
                    near = near.at[begin : begin + len(block.steps)].set(jnp.asarray(wanted[name])[np.array(block.steps, int)])
        return near

    @property
    def _periodic(self) -> np.ndarray:
        """Coordinates of joints that return after a turn."""
        marks = np.zeros(self.size, bool)
        for block in self.blocks:
            marks[block.begin : block.end] = np.tile(periodic(self.assembly.tree[block.group], block), len(block.members))
        return marks

    @property
    def kept(self) -> np.ndarray:
        """Constraints of the mechanism in directors, those on positions, that coordinates do not fulfil by themselves."""
        jointed = {name for block in self.blocks for name in self._names(block)}
        shown = iter(place is None for place in self.gauge_places)
        keeps: dict[str, Callable[[str], bool]] = {
            "body": self._apart_names.__contains__,
            "joint": lambda name: name not in jointed,
            "gauge": lambda name: next(shown),
            "gear": lambda name: True,
        }
        blocks = self.assembly.constraint_blocks()
        return np.array([keep for block in blocks for name in block.owners for keep in [keeps[block.what](name)] * block.each], bool)

    def _names(self, block: Block) -> list[str]:
        names = self.assembly.tree[block.group].names
        return [names[i] for i in block.members]

    @property
    def _apart_names(self) -> set[str]:
        return {self.assembly.bodies[place] for place in self.apart}

    def constraints(self, q: Vector) -> Float[Array, " m"]:
        """Quaternions have the length one; loops are closed, bodies apart are what they are, gauges show what they measure."""
        quaternions = q[self.quaternions]
        return jnp.concatenate([0.5 * (jnp.sum(quaternions * quaternions, axis=1) - 1), self._pulled_back(q)])

    def _pulled_back(self, q: Vector) -> Float[Array, " kept"]:
        """Constraints of the mechanism in directors that are kept; of the others nothing is computed."""
        kept, begin, values = self.kept, 0, [jnp.zeros(0, q.dtype)]
        if not kept.any():
            return values[0]
        directors = self.position(q)
        at = Position(self.assembly.parts(directors)[0], self.assembly.frames(directors), self.gauges_at(q))
        for block in self.assembly.constraint_blocks():
            own = np.flatnonzero(kept[begin : begin + block.size])
            begin += block.size
            if own.size:
                values.append(block.values(at) if own.size == block.size else block.values(at)[own])
        return jnp.concatenate(values)

    def owners(self) -> list[str]:
        """The name of what each constraint belongs to, those on velocities last."""
        balls = [name for block in self.blocks if block.balls for name in self._names(block)]
        owners = self.assembly.owners()
        return [*balls, *(owners[row] for row in np.flatnonzero(self.kept)), *owners[self.kept.size :]]

    def named_parameters(self) -> Named:
        return {name: parameter.within(lambda model: model.stacked) for name, parameter in self.assembly.named_parameters().items()}


def one_by_one(seen: Frame, carriers: Indices) -> Frame:
    """Frames in space from frames as seen from their carriers, body after body: a few are composed fastest without gathers."""
    parts: list[Any] = [jax.tree.map(lambda leaf, i=i: leaf[i], seen) for i in range(len(carriers))]
    found: dict[int, Frame] = {len(carriers) - 1: parts[-1]}

    def place(body: int) -> Frame:
        if body not in found:
            carrier = carriers[body]
            found[body] = parts[body] if carrier == len(carriers) - 1 else place(carrier) @ parts[body]
        return found[body]

    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *(place(body) for body in range(len(carriers))))


def by_doubling(seen: Frame, carriers: Indices) -> Frame:
    """The same of many bodies side by side, in as many rounds as the depth of the tree has binary digits."""
    for before in ancestors(carriers):
        outer = jax.tree.map(lambda leaf, at=before: take(leaf, at), seen)
        seen = jax.vmap(lambda outer, inner: outer @ inner)(outer, seen)
    return seen
