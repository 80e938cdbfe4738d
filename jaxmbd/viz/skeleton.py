"""What is drawn of a mechanism, as points in space: curves of beams, solids and lines of other bodies, joints."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from ..assembly.abstract_model import AbstractModel, require_model
from ..assembly.director_system import director_system
from ..assembly.groups import JointGroup
from ..assembly.model import Assembly, as_assembly, assembly_in
from ..joints import AbstractMeasure, Fixed
from ..numerics.compile import compiled
from ..numerics.polynomials import lagrange
from ..post.beams import AlongBeam, along_beams, distances
from ..post.mechanisms import shapes
from ..reduction.floating_frame import proper_joints
from ..system import System
from .solids import Solid, solid, together

SAMPLES = 8
"""Lines in which an element is drawn."""

Points = Float[np.ndarray, "rows points 3"]


class Curve(NamedTuple):
    """The line of a beam: its points, and their distances along the reference curve; `nodes` are those of its nodes."""

    points: Points
    s: Float[np.ndarray, " points"]
    nodes: Float[np.ndarray, " nodes"]


class Skeleton(NamedTuple):
    """Curves of beams, solids and points of other bodies, by name, and joints.

    Bodies with a shape are `solids`, those that rest `scenery`. Any other body reaches to its joints, and to the centre of its mass if it
    has less than two; it is one point if these coincide. `weights` are masses on nodes of beams, `hinges` joints on the ground that move
    and `clamps` those that do not, `pins` joints between bodies that move, and where one rolls or glides on another. Joints whose two
    points part, as those of guides and rods do, are `bridges`, each a pair of points.
    """

    curves: dict[str, Curve]
    solids: dict[str, Solid]
    scenery: dict[str, Solid]
    bodies: dict[str, Points]
    weights: Points
    hinges: Points
    clamps: Points
    pins: Points
    bridges: list[Points]

    @property
    def points(self) -> Points:
        """All points together."""
        curves = [curve.points for curve in self.curves.values()]
        solids = [solid.points for solid in (*self.solids.values(), *self.scenery.values())]
        joints = [self.hinges, self.clamps, self.pins, *self.bridges]
        return np.concatenate([*curves, *solids, *self.bodies.values(), self.weights, *joints], axis=1)


class _Place(NamedTuple):
    """A joint between two bodies, given by index, and its points on both; it `wanders` over them where one rolls on the other."""

    a: int
    b: int
    moves: bool
    wanders: bool
    on_a: Float[np.ndarray, "rows 3"]
    on_b: Float[np.ndarray, "rows 3"]


def skeleton(system: System, q: Float[Array, "rows n"]) -> Skeleton:
    """The lines and points of a mechanism in some positions; they are linear in coordinates of directors."""
    system, q = in_directors(system, q)
    model = as_assembly(system)
    frames, origins = jax.tree.map(np.asarray, _positions(model, q))
    places = list(_places(model, origins))
    centres = _centres(model, frames)
    on_beams = {i for group in model.beams for nodes in group.nodes for i in nodes}
    chunks = {i for group in model.beams if group.lumped for nodes in group.nodes for i in nodes}
    at_rest = set(range(sum(count for kind, count in model.kinds if kind.size), len(model.bodies)))
    solids = dict(_solids(system, model.bodies, frames))
    shown = {i for i, name in enumerate(model.bodies) if name in solids}
    size = np.ptp(centres.reshape(-1, 3), axis=0).max()
    lines = [i for i in range(len(model.bodies)) if i not in on_beams | at_rest | shown]
    parted = [np.abs(place.on_a - place.on_b).max() > 1e-6 * size for place in places]

    def picked(wanted: Callable[[_Place, bool], bool]) -> Points:
        """Points of joints that meet, those that stay in place on the ground if they are on it."""
        meeting = [place for place, apart in zip(places, parted, strict=True) if not apart]
        points = [place.on_b for place in meeting if wanted(place, bool({place.a, place.b} & at_rest) and not place.wanders)]
        return np.stack(points, axis=1) if points else np.zeros((frames.shape[0], 0, 3))

    return Skeleton(
        curves=dict(_curves(model, frames)),
        solids={model.bodies[i]: solids[model.bodies[i]] for i in sorted(shown - at_rest)},
        scenery={model.bodies[i]: solids[model.bodies[i]] for i in sorted(shown & at_rest)},
        bodies={model.bodies[i]: _reach(i, places, centres[:, i], 1e-6 * size) for i in lines},
        weights=centres[:, sorted(i for i in on_beams - chunks - shown if model.inertia[i, 0, 0] > 0)],
        hinges=picked(lambda place, grounded: grounded and place.moves),
        clamps=picked(lambda place, grounded: grounded and not place.moves),
        pins=picked(lambda place, grounded: not grounded and place.moves),
        bridges=[np.stack([place.on_a, place.on_b], axis=1) for place, apart in zip(places, parted, strict=True) if apart],
    )


@compiled
def read_along(model: Assembly, q: Float[Array, "rows n"], read: Callable) -> dict[str, AlongBeam]:
    """A function of the stiffness and the strains of elements along all beams."""
    return along_beams(model, q, read)


def in_directors(system: System, q: Float[Array, "rows n"]) -> tuple[System, Float[Array, "rows n"]]:
    """A mechanism in the coordinates of directors, whatever its own are."""
    if assembly_in(system) is not None:
        return system, q
    model = require_model(system)
    return director_system(model.assembly, system.has("forces")), _directors(model, q)


@compiled
def _directors(model: AbstractModel, q: Float[Array, "rows n"]) -> Float[Array, "rows m"]:
    return jax.vmap(model.position)(q)


@compiled
def _positions(model: Assembly, q: Float[Array, "rows n"]) -> tuple[Array, list[tuple[Array, Array]]]:
    """The frames of all bodies, and the two points of all joints, group by group."""
    frames = jax.vmap(model.frames)(q)
    return frames, [jax.vmap(lambda rows, group=group: group.points(rows))(frames) for group in _drawn(model)]


def _drawn(model: Assembly) -> list[JointGroup]:
    """Groups of joints that hold bodies together."""
    return [group for group in proper_joints(model) if not isinstance(group.kind, AbstractMeasure)]


def _places(model: Assembly, origins: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[_Place]:
    for group, (on_a, on_b) in zip(_drawn(model), origins, strict=True):
        for i in range(group.count):
            yield _Place(group.a[i], group.b[i], not isinstance(group.kind, Fixed), bool(group.slips), on_a[:, i], on_b[:, i])


def _centres(model: Assembly, frames: Float[np.ndarray, "rows bodies 4 3"]) -> Points:
    """Centres of mass of all bodies; the origins of those without mass."""
    inertia = np.asarray(model.inertia)
    mass = inertia[:, 0, 0]
    local = inertia[:, 0, 1:] / np.where(mass > 0, mass, 1)[:, None]
    return frames[:, :, 0] + np.einsum("bi,rbix->rbx", local, frames[:, :, 1:])


def _reach(body: int, places: list[_Place], centre: Float[np.ndarray, "rows 3"], small: float) -> Points:
    """Where a body reaches to."""
    ends = [on for place in places for on, index in ((place.on_a, place.a), (place.on_b, place.b)) if index == body]
    points = np.stack(ends if len(ends) > 1 else [*ends, centre], axis=1)
    return points[:, :1] if np.ptp(points, axis=1).max() <= small else points


def _solids(system: System, names: tuple[str, ...], frames: Float[np.ndarray, "rows bodies 4 3"]) -> Iterator[tuple[str, Solid]]:
    """The surfaces of all bodies that have one."""
    for name, own in shapes(system).items():
        surface = together([shape.surface() for shape in own])
        rows = frames[:, names.index(name)]
        if len(surface.faces):
            yield name, solid(surface, rows[:, :1] + surface.vertices @ rows[:, 1:])


def _curves(model: Assembly, frames: Float[np.ndarray, "rows bodies 4 3"]) -> Iterator[tuple[str, Curve]]:
    """The lines of all beams, by the shape functions of their elements."""
    x = np.linspace(0, 1, SAMPLES + 1)
    for group in model.beams:
        nodal = np.stack([frames[:, list(nodes), 0] for nodes in group.nodes], axis=2)
        points = np.einsum("ga,reax->regx", lagrange(group.order, x)[0], nodal)
        cuts = np.cumsum(group.counts)[:-1]
        s, nodes = (np.asarray(distances(group.measures(frames.dtype), group.counts, at)) for at in (x, np.linspace(0, 1, group.order + 1)))
        parts = (np.split(points, cuts, axis=1), np.split(s, cuts), np.split(nodes, cuts))
        for name, line, along, at in zip(group.names, *parts, strict=True):
            joined = np.concatenate([line[:, :1, 0], line[:, :, 1:].reshape(line.shape[0], -1, 3)], axis=1)
            yield name, Curve(joined, _joined(along), _joined(at))


def _joined(parts: Float[np.ndarray, "elements points"]) -> Float[np.ndarray, " all"]:
    """Numbers along elements one after the other; where two elements meet, once."""
    return np.concatenate([parts[0, :1], parts[:, 1:].ravel()])
