r"""A mechanism in numbers: all bodies, joints and loads stacked by kind, as a pytree whose leaves are the parameters of a system.

Coordinates are those of all bodies, kind by kind, and then the gauges: joint coordinates that count all turns (coordinate augmentation),
kept for joints on which a load or a gear acts. Constraints are, in this order, the internal ones, those of the joints and gauges in
the spanning tree, and those that close loops. The chart moves every body by the product of the motions on its path from the ground.
"""

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..beams.galerkin import AbstractBeamGroup
from ..bodies import AbstractBody
from ..errors import ModelError
from ..geometry.frame import Motion, Rows
from ..numerics.arrays import Indices, total
from ..system import System, Vector
from .groups import JointGroup, JointLoadGroup, LoadGroup, ShapeGroup


class Gauge(NamedTuple):
    """Where a gauge reads: a coordinate of a joint of a group; `increment` is its place in the chart's increments."""

    name: str
    group: int
    element: int
    coordinate: int
    angular: bool
    increment: int


class Gears(eqx.Module):
    """Fixed ratios between pairs of gauges: the second is `ratio` times the first, and `offset`."""

    ratio: Any
    offset: Any
    first: Indices = eqx.field(static=True)
    second: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def off(self, gauges: Float[Array, " g"]) -> Float[Array, " gears"]:
        """Second gauges less what the first ones and the ratios ask for; the offset is not counted."""
        return gauges[np.asarray(self.second, int)] - self.ratio * gauges[np.asarray(self.first, int)]


class Assembly(eqx.Module):
    """Stacked parts, and how they hang together. `parents` names for every body the one it hangs on in the tree. `shapes`
    are for pictures: no function of time sees them.
    """

    inertia: Float[Array, "bodies 4 4"] | Float[np.ndarray, "bodies 4 4"]
    gravity: Float[Array, "3"] | Float[np.ndarray, "3"]
    tree: tuple[JointGroup, ...]
    closing: tuple[JointGroup, ...]
    gears: Gears
    loads: tuple[LoadGroup, ...]
    joint_loads: tuple[JointLoadGroup, ...]
    beams: tuple[AbstractBeamGroup, ...]
    gauges: tuple[Gauge, ...] = eqx.field(static=True)
    kinds: tuple[tuple[type[AbstractBody], int], ...] = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    parents: Indices = eqx.field(static=True)
    shapes: tuple[ShapeGroup, ...] = ()

    @property
    def joints(self) -> tuple[JointGroup, ...]:
        """All groups of joints, those of the tree first."""
        return self.tree + self.closing

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(kind.size * count for kind, count in self.kinds) + len(self.gauges)

    @property
    def increments(self) -> int:
        """Number of increments of the chart."""
        extra = sum(gauge.group >= len(self.tree) for gauge in self.gauges)
        return sum(group.count * len(group.columns) for group in self.tree) + extra

    @property
    def closures(self) -> int:
        """Number of constraints that the chart does not fulfil."""
        extra = sum(gauge.group >= len(self.tree) for gauge in self.gauges)
        return sum(group.count * len(group.rows) for group in self.closing) + extra + len(self.gears.names)

    def parts(self, q: Vector) -> tuple[list[tuple[type[AbstractBody], Float[Array, "count k"]]], Float[Array, " g"]]:
        """Coordinates kind by kind, and the gauges."""
        blocks, begin = [], 0
        for kind, count in self.kinds:
            end = begin + kind.size * count
            blocks.append((kind, q[begin:end].reshape(count, kind.size)))
            begin = end
        return blocks, q[begin:]

    def frames(self, q: Vector) -> Rows:
        """The rows of the frames of all bodies, an affine function of the coordinates."""
        return jnp.concatenate([jax.vmap(kind.lift)(block) for kind, block in self.parts(q)[0]])

    def coordinates(self, rows: Rows, gauges: Float[Array, " g"]) -> Vector:
        """The coordinates of frames that the bodies can take."""
        blocks, begin = [], 0
        for kind, count in self.kinds:
            blocks.append(jax.vmap(kind.lower)(rows[begin : begin + count]).ravel())
            begin += count
        return jnp.concatenate([*blocks, gauges])

    def inertia_form(self, a: Rows, b: Rows) -> Array:
        r"""$\sum \Theta_{cd}\,a_c \cdot b_d$ over all bodies and beams: twice the kinetic energy for rates of frames, and for frames and a
        direction in space a first moment of mass.

        Products of thousands of 4x4 matrices are written out: calls of a library routine would take longer than its work.
        """
        on_bodies = sum(self.inertia[:, :, d, None] * b[:, None, d] for d in range(4))
        return jnp.sum(a * on_bodies) + total(self.beams, lambda group: group.inertia_form(a, b), a)

    def joint_rows(self) -> list[tuple[JointGroup, range]]:
        """Where the constraints of each group of joints stand among all."""
        begin = sum(kind.internal * count for kind, count in self.kinds)
        gauges = sum(gauge.group < len(self.tree) for gauge in self.gauges)
        places = []
        for index, group in enumerate(self.joints):
            begin += gauges if index == len(self.tree) else 0
            places.append((group, range(begin, begin + group.count * len(group.rows))))
            begin = places[-1][1].stop
        return places

    def parts_of_coordinates(self) -> Indices:
        """For every coordinate the number of the body or gauge that it belongs to."""
        sizes = [kind.size for kind, count in self.kinds for _ in range(count)] + [1] * len(self.gauges)
        return tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())

    def internal_rows(self) -> list[tuple[int, int]]:
        """The first coordinate of the body of each internal constraint, and the number of the constraint."""
        places = np.repeat(self._first_coordinates(), [kind.internal for kind, count in self.kinds for _ in range(count)]).tolist()
        return list(zip(places, range(len(places)), strict=True))

    def branch_rows(self) -> list[tuple[int, int]]:
        """The first coordinate of the body that hangs on each joint of the tree, and the numbers of the constraints of the joint."""
        first = self._first_coordinates()
        held: list[tuple[int, int]] = []
        for group, rows in self.joint_rows()[: len(self.tree)]:
            held += zip(np.repeat(first[np.asarray(group.children)], len(group.rows)).tolist(), rows, strict=True)
        return held

    def _first_coordinates(self) -> np.ndarray:
        """Where the coordinates of each body begin."""
        return np.cumsum([0, *(kind.size for kind, count in self.kinds for _ in range(count))])[:-1]

    def gauge_rows(self) -> list[tuple[int, int]]:
        """The coordinate of every gauge, and the constraint that determines it."""
        places = [i for i, name in enumerate(self._constraint_kinds()) if name == "gauge"]
        first = self.size - len(self.gauges)
        return [(first + i, place) for i, place in enumerate(places)]

    def _constraint_kinds(self) -> list[str]:
        """What every constraint belongs to, in their order."""
        internal = sum(kind.internal * count for kind, count in self.kinds)
        in_tree = sum(gauge.group < len(self.tree) for gauge in self.gauges)
        tree, closing = (sum(group.count * len(group.rows) for group in groups) for groups in (self.tree, self.closing))
        counts = (internal + tree, in_tree, closing, len(self.gauges) - in_tree, len(self.gears.names))
        return [kind for kind, count in zip(("body", "gauge", "joint", "gauge", "gear"), counts, strict=True) for _ in range(count)]

    def owners(self) -> list[str]:
        """The name of the body, joint or gear that each constraint belongs to."""
        kinds = [kind for kind, count in self.kinds for _ in range(count)]
        internal = [name for name, kind in zip(self.bodies, kinds, strict=True) for _ in range(kind.internal)]
        tree, closing = ([name for group in groups for name in group.names for _ in group.rows] for groups in (self.tree, self.closing))
        on_tree, on_closing = ([g.name for g in self.gauges if (g.group < len(self.tree)) == first] for first in (True, False))
        return [*internal, *tree, *on_tree, *closing, *on_closing, *self.gears.names]

    def readings(self, bodies: Rows) -> Float[Array, " g"]:
        """What the gauges would show by the frames alone, angles within half a turn."""
        values = [jnp.zeros(0, bodies.dtype)]
        for index, gauges in itertools.groupby(self.gauges, lambda gauge: gauge.group):
            places = np.array([(gauge.element, gauge.coordinate) for gauge in gauges])
            values.append(self.joints[index].coordinates(bodies)[places[:, 0], places[:, 1]])
        return jnp.concatenate(values)


def as_assembly(system: System) -> Assembly:
    """The parts of an assembled system."""
    if not isinstance(system.params, Assembly):
        raise ModelError("this needs a system from assemble; one from functions has no bodies and joints")
    return system.params


@jax.jit
def kinetic(t: Array, q: Vector, v: Vector, model: Assembly) -> Array:
    r"""$\frac12 \sum \Theta_{ab}\,\dot r_a \cdot \dot r_b$ over all bodies and beams."""
    rates = jax.jvp(model.frames, (q,), (v,))[1]
    return 0.5 * model.inertia_form(rates, rates)


@jax.jit
def potential(t: Array, q: Vector, model: Assembly) -> Array:
    """Gravity, beams, and all loads that have a potential."""
    bodies, gauges = model.frames(q), model.parts(q)[1]
    weight = model.inertia_form(bodies, jnp.zeros_like(bodies).at[:, 0].set(model.gravity))
    strain = total(model.beams, lambda group: jnp.sum(group.energies(bodies)), q)
    springs = total(model.loads, lambda group: group.potential(t, bodies), q)
    return total(model.joint_loads, lambda group: group.potential(t, gauges), q) + springs + strain - weight


@jax.jit
def forces(t: Array, q: Vector, v: Vector, model: Assembly) -> Vector:
    """Generalised forces: the derivative of virtual power by virtual velocities."""
    motion = lambda w: (jax.jvp(model.frames, (q,), (w,))[1], model.parts(w)[1])
    (bodies, gauges), (rates, gauge_rates) = (model.frames(q), model.parts(q)[1]), motion(v)

    def power(w):
        virtual, gauge_virtual = motion(w)
        on_bodies = total(model.loads, lambda group: group.power(t, bodies, rates, virtual), q)
        on_bodies = on_bodies + total(model.beams, lambda group: group.power(bodies, virtual), q)
        return on_bodies + total(model.joint_loads, lambda group: group.power(t, gauges, gauge_rates, gauge_virtual), q)

    return jax.grad(power)(jnp.zeros_like(q))


@jax.jit
def constraints(t: Array, q: Vector, model: Assembly) -> Float[Array, " m"]:
    """Internal constraints, joints and gauges of the tree, and then all that closes loops."""
    bodies, (blocks, gauges) = model.frames(q), model.parts(q)
    internal = [jax.vmap(kind.constraint)(block).ravel() for kind, block in blocks if kind.internal]
    measured = _gauge_rows(model, bodies, gauges)
    in_tree = sum(gauge.group < len(model.tree) for gauge in model.gauges)
    tree, closing = ([group.constraints(bodies) for group in groups] for groups in (model.tree, model.closing))
    return jnp.concatenate(
        [*internal, *tree, measured[:in_tree], *closing, measured[in_tree:], model.gears.off(gauges) - model.gears.offset]
    )


def _gauge_rows(model: Assembly, bodies: Rows, gauges: Float[Array, " g"]) -> Float[Array, " g"]:
    """Zero where gauges show what the joints do; the sine of a difference of angles does not mind full turns."""
    angular = np.array([gauge.angular for gauge in model.gauges], bool)
    off = gauges - model.readings(bodies)
    return jnp.where(angular, jnp.sin(off), off)


@jax.jit
def chart(u: Float[Array, " k"], q: Vector, model: Assembly) -> Vector:
    r"""The nodal reparametrisation of the tree: body $i$ moves by $M_1(u_1) \cdots M_i(u_i)$, the motions on its path (93)."""
    bodies, gauges = model.frames(q), model.parts(q)[1]
    moved = _carry(model, _branch_motions(model, u, bodies), bodies)
    places = np.array([gauge.increment for gauge in model.gauges], int)
    return model.coordinates(moved, gauges + u[places])


def _branch_motions(model: Assembly, u: Float[Array, " k"], bodies: Rows) -> Motion:
    """The motion of every body relative to the one that it hangs on; none for bodies that rest."""
    motions, order, begin = [jax.vmap(Motion.move)(jnp.zeros((1, 3), u.dtype))], np.zeros(len(model.bodies), int), 0
    for group in model.tree:
        end = begin + group.count * len(group.columns)
        order[np.asarray(group.children)] = sum(len(part.shift) for part in motions) + np.arange(group.count)
        motions.append(group.motions(u[begin:end].reshape(group.count, len(group.columns)), bodies))
        begin = end
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[order], *motions)


def _carry(model: Assembly, motions: Motion, bodies: Rows) -> Rows:
    """Compose the motions along the tree by pointer jumping, in as many rounds as the depth has binary digits."""
    ancestors = _ancestors(model.parents)
    compose = jax.vmap(lambda outer, inner: outer @ inner)

    def jump(motions, ancestor):
        return compose(jax.tree.map(lambda leaf: leaf[ancestor], motions), motions), None

    motions, _ = jax.lax.scan(jump, motions, ancestors) if len(ancestors) else (motions, None)
    turned = jnp.einsum("nij,naj->nai", motions.rotation, bodies)
    return turned + jnp.pad(motions.shift[:, None], ((0, 0), (0, 3), (0, 0)))


def _ancestors(parents: Indices) -> np.ndarray:
    """For each round, the body up to which motions are composed already; bodies that rest are their own ancestors."""
    current = np.asarray(parents)
    rounds: list[np.ndarray] = []
    while not (rounds and np.array_equal(rounds[-1], current)):
        rounds.append(current)
        current = current[current]
    return np.array(rounds[:-1])
