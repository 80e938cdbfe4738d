r"""A mechanism in numbers: all bodies, joints and loads stacked by kind, as a pytree whose leaves are the parameters of a system.

Coordinates are those of all bodies, group by group, and then the gauges: joint coordinates that count all turns, and measured quantities
(coordinate augmentation), as far as a load or a gear needs them. Constraints are, in this order, the internal ones, those of the joints and
gauges in the spanning tree, gauges of measured quantities, and those that close loops; behind them, those of joints on velocities.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..beams.elements import AbstractElements
from ..bodies import AbstractBody
from ..errors import ModelError
from ..friction import FrictionGroup
from ..geometry.frame import Rows
from ..numerics.arrays import Indices, total
from ..numerics.naming import Named, Where, collect, field
from ..system import System, Vector
from .abstract_model import AbstractModel, require_model
from .body_groups import AbstractBodyGroup
from .drives import ControllerGroup, MotorGroup
from .gauges import Gauge, Gears, gauges_off, pairs_of, read_gauges
from .groups import JointGroup, JointLoadGroup, LoadGroup, ShapeGroup
from .parameters import of_beams, of_bodies, of_gears, of_joints, of_loads


class Position(NamedTuple):
    """What constraints see: coordinates of bodies group by group, the frames of all bodies, and the gauges."""

    coordinates: list[Float[Array, "_ _"]]
    bodies: Rows
    gauges: Float[Array, " g"]


class ConstraintBlock(NamedTuple):
    """Constraints that stand side by side, `each` of them for every owner in turn; the chart fulfils all but those that `close` loops."""

    what: Literal["body", "joint", "gauge", "gear"]
    owners: Sequence[str]
    each: int
    closes: bool
    values: Callable[[Position], Float[Array, " rows"]]

    @property
    def size(self) -> int:
        """Number of constraints."""
        return self.each * len(self.owners)


class Assembly(AbstractModel):
    """Stacked parts, and how they hang together. Joints and loads see frames; most bodies have one each.

    `inertia` is that of all frames; `parents` tells for every frame the one it hangs on in the tree. `shapes` are for pictures: no function
    of time sees them.
    """

    groups: tuple[AbstractBodyGroup, ...]
    inertia: Float[Array, "frames 4 4"] | Float[np.ndarray, "frames 4 4"]
    gravity: Float[Array, "3"] | Float[np.ndarray, "3"]
    tree: tuple[JointGroup, ...]
    measures: tuple[JointGroup, ...]
    closing: tuple[JointGroup, ...]
    gears: Gears
    frictions: tuple[FrictionGroup, ...]
    loads: tuple[LoadGroup, ...]
    joint_loads: tuple[JointLoadGroup, ...]
    beams: tuple[AbstractElements, ...]
    gauges: tuple[Gauge, ...] = eqx.field(static=True)
    parents: Indices = eqx.field(static=True)
    gravity_name: str = eqx.field(static=True, default="gravity")
    shapes: tuple[ShapeGroup, ...] = ()
    motors: tuple[MotorGroup, ...] = ()
    controllers: tuple[ControllerGroup, ...] = ()

    @property
    def assembly(self) -> "Assembly":
        return self

    def position(self, q: Vector) -> Vector:
        return q

    @property
    def bodies(self) -> tuple[str, ...]:
        """The names of all frames: of bodies, or of nodes of those that have several."""
        return tuple(name for group in self.groups for name in group.frame_names)

    @property
    def kinds(self) -> tuple[tuple[type[AbstractBody], int], ...]:
        """The kinds of all frames in their order, and how many there are of each."""
        return tuple((group.kind, len(group.frame_names)) for group in self.groups)

    @property
    def joints(self) -> tuple[JointGroup, ...]:
        """All groups of joints and measured quantities, those of the tree first."""
        return self.tree + self.measures + self.closing

    @property
    def measured(self) -> slice:
        """Which of the gauges are measured quantities: those after the gauges of the tree, and before those of joints that close loops."""
        before = lambda groups: sum(gauge.group < groups for gauge in self.gauges)
        return slice(before(len(self.tree)), before(len(self.tree + self.measures)))

    @property
    def motor_names(self) -> tuple[str, ...]:
        """The names of all motors, whose forces are controls."""
        return tuple(name for group in self.motors for name in group.names)

    @property
    def size(self) -> int:
        return sum(group.size * group.count for group in self.groups) + len(self.gauges)

    @property
    def increments(self) -> int:
        """Number of increments of the chart."""
        return sum(group.count * len(group.columns) for group in self.tree) + len(self.gauges[self.measured.stop :])

    @property
    def closures(self) -> int:
        """Number of constraints that the chart does not fulfil."""
        return sum(block.size for block in self.constraint_blocks() if block.closes)

    def parts(self, q: Vector) -> tuple[list[Float[Array, "_ _"]], Float[Array, " g"]]:
        """Coordinates group by group, and the gauges."""
        blocks, begin = [], 0
        for group in self.groups:
            end = begin + group.size * group.count
            blocks.append(q[begin:end].reshape(group.count, group.size))
            begin = end
        return blocks, q[begin:]

    def frames(self, q: Vector) -> Rows:
        """The rows of all frames, an affine function of the coordinates."""
        blocks, _ = self.parts(q)
        return jnp.concatenate([group.frames(block) for group, block in zip(self.groups, blocks, strict=True)])

    def coordinates(self, rows: Rows, gauges: Float[Array, " g"]) -> Vector:
        """The coordinates of frames that the bodies can take."""
        blocks, begin = [], 0
        for group in self.groups:
            end = begin + len(group.frame_names)
            blocks.append(group.coordinates(rows[begin:end]).ravel())
            begin = end
        return jnp.concatenate([*blocks, gauges])

    def flexible(self, q: Vector) -> list[tuple[AbstractBodyGroup, Float[Array, "_ _"]]]:
        """Groups of bodies that deform, with their coordinates."""
        return [(group, block) for group, block in zip(self.groups, self.parts(q)[0], strict=True) if group.flexible]

    def momenta(self, q: Vector, v: Vector) -> list[tuple[Float[Array, "_ _ 3"], Float[Array, "_ _ 3"]]]:
        """Points and directions, of frames and of bodies that deform, with the momenta that belong to them."""
        rows, rates = jax.jvp(self.frames, (q,), (v,))
        momenta = [group.vectors(jax.grad(group.kinetic)(rate)) for group, rate in self.flexible(v)]
        vectors = [group.vectors(at) for group, at in self.flexible(q)]
        return [(rows, jax.grad(self.inertia_form)(rows, rates)), *zip(vectors, momenta, strict=True)]

    def inertia_form(self, a: Rows, b: Rows) -> Array:
        r"""$\sum \Theta_{cd}\,a_c \cdot b_d$ over all bodies and beams: twice the kinetic energy for rates of frames, and for frames and a
        direction in space a first moment of mass.

        Products of thousands of 4x4 matrices are written out: calls of a library routine would take longer than its work.
        """
        on_bodies = sum(self.inertia[:, :, d, None] * b[:, None, d] for d in range(4))
        return jnp.sum(a * on_bodies) + total(self.beams, lambda group: group.inertia_form(a, b), a)

    def constraint_blocks(self) -> list[ConstraintBlock]:
        """All constraints in their order, which nothing else knows."""
        first = self.measured.stop
        return [
            *self._internal_blocks(),
            *(_joint_block(group, closes=False) for group in self.tree + self.measures),
            self._gauge_block(range(first), closes=False),
            *(_joint_block(group, closes=True) for group in self.closing),
            self._gauge_block(range(first, len(self.gauges)), closes=True),
            ConstraintBlock("gear", self.gears.names, 1, True, lambda at: self.gears.off(at.gauges)),
        ]

    def _internal_blocks(self) -> list[ConstraintBlock]:
        values: Callable = lambda index: lambda at: self.groups[index].constraints(at.coordinates[index]).ravel()
        return [ConstraintBlock("body", group.names, group.internal, False, values(i)) for i, group in enumerate(self.groups)]

    def _gauge_block(self, places: range, closes: bool) -> ConstraintBlock:
        some = slice(places.start, places.stop)
        gauges = self.gauges[some]
        values = lambda at: gauges_off(gauges, at.gauges[some], pairs_of(gauges, self.joints, at.bodies))
        return ConstraintBlock("gauge", [gauge.name for gauge in gauges], 1, closes, values)

    def _placed(self, what: str) -> list[tuple[ConstraintBlock, range]]:
        """Some of the blocks, and where their constraints stand among all."""
        blocks = self.constraint_blocks()
        ends = itertools.accumulate(block.size for block in blocks)
        return [(block, range(end - block.size, end)) for block, end in zip(blocks, ends, strict=True) if block.what == what]

    def joint_rows(self) -> list[tuple[JointGroup, range]]:
        """Where the constraints of each group of joints stand among all."""
        return [(group, rows) for group, (_, rows) in zip(self.joints, self._placed("joint"), strict=True)]

    def parts_of_coordinates(self) -> Indices:
        """For every coordinate the number of the body or gauge that it belongs to."""
        sizes = [*self.sizes_of_bodies(), *(1 for _ in self.gauges)]
        return tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())

    def internal_rows(self) -> list[tuple[int, int]]:
        """The first coordinate of the body of each internal constraint, and the number of the constraint."""
        each = [block.each for block, _ in self._placed("body") for _ in block.owners]
        numbers = [row for _, rows in self._placed("body") for row in rows]
        return list(zip(np.repeat(self.first_coordinates(), each).tolist(), numbers, strict=True))

    def branch_rows(self) -> list[tuple[int, int]]:
        """The first coordinate of the body that hangs on each joint of the tree, and the numbers of the constraints of the joint."""
        frames = [len(group.frame_names) // group.count for group in self.groups for _ in group.names]
        first = np.repeat(self.first_coordinates(), frames)
        held: list[tuple[int, int]] = []
        for group, rows in self.joint_rows()[: len(self.tree)]:
            held += zip(np.repeat(first[np.asarray(group.children)], len(group.kept)).tolist(), rows, strict=True)
        return held

    def first_coordinates(self) -> np.ndarray:
        """Where the coordinates of each body begin."""
        return np.cumsum([0, *self.sizes_of_bodies()])[:-1]

    def sizes_of_bodies(self) -> list[int]:
        """Number of coordinates of each body."""
        return [group.size for group in self.groups for _ in group.names]

    def gauge_rows(self) -> list[tuple[int, int]]:
        """The coordinate of every gauge, and the constraint that determines it."""
        numbers = [row for _, rows in self._placed("gauge") for row in rows]
        return list(enumerate(numbers, self.size - len(self.gauges)))

    def slip_rows(self) -> list[tuple[JointGroup, range]]:
        """Groups of joints that hold velocities, and where those constraints stand among all: behind those on positions."""
        groups = [group for group in self.joints if group.slips]
        sizes = [sum(block.size for block in self.constraint_blocks()), *(group.count * len(group.slips) for group in groups)]
        return [(group, range(*ends)) for group, ends in zip(groups, itertools.pairwise(itertools.accumulate(sizes)), strict=True)]

    def owners(self) -> list[str]:
        """The name of the body, joint or gear that each constraint belongs to, those on velocities last."""
        on_positions = [name for block in self.constraint_blocks() for name in block.owners for _ in range(block.each)]
        return on_positions + [name for group, _ in self.slip_rows() for name in group.names for _ in group.slips]

    def readings(self, bodies: Rows) -> Float[Array, " g"]:
        """What the gauges would show by the frames alone, angles within half a turn."""
        return read_gauges(self.gauges, pairs_of(self.gauges, self.joints, bodies))

    def named_parameters(self) -> Named:
        classes = [kind for kind, count in self.kinds for _ in range(count)]
        joints: Callable = lambda group: {} if group.names[0] in self.bodies else of_joints(group, classes)  # some are free bodies

        def each(part: str, names: Callable) -> list[tuple[Where, Named]]:
            where = lambda i: lambda model: getattr(model, part)[i]
            return [(where(i), names(group)) for i, group in enumerate(getattr(self, part))]

        return collect(
            [
                (lambda model: model.inertia, of_bodies(self.inertia, self.bodies, classes)),
                *each("tree", joints),
                *each("measures", joints),
                *each("closing", joints),
                (lambda model: model.gears, of_gears(self.gears.names)),
                *each("loads", of_loads),
                *each("joint_loads", of_loads),
                *each("motors", of_loads),
                *each("controllers", of_loads),
                *each("frictions", lambda group: group.named_parameters()),
                (lambda model: model, {f"{self.gravity_name}.acceleration": field("gravity")}),
                *each("beams", of_beams),
                *each("groups", lambda group: group.named_parameters()),
            ]
        )


def assembly_in(system: System) -> Assembly | None:
    """The parts of a system, if it was assembled from parts and has the coordinates of their directors."""
    return system.params if isinstance(system.params, Assembly) else None


def _joint_block(group: JointGroup, closes: bool) -> ConstraintBlock:
    return ConstraintBlock("joint", group.names, len(group.kept), closes, lambda at: group.constraints(at.bodies))


def as_assembly(system: System) -> Assembly:
    """The parts of an assembled system that has the coordinates of their directors."""
    model = assembly_in(system)
    if model is None:
        require_model(system)
        raise ModelError("this needs the coordinates of directors: assemble the mechanism without coordinates='joints'")
    return model
