"""From an assembled mechanism to one whose beams deform by a few forms, and back from its motions."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly.groups import JointGroup, LoadGroup
from ..assembly.model import Assembly, as_assembly
from ..beams.elements import AbstractElements
from ..constraints.calculus import momentum
from ..constraints.counts import constraint_count, matrix_rank
from ..constraints.inputs import as_coordinates
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError
from ..geometry.frame import Rows
from ..numerics.arrays import Indices, alike, known, number, stack
from ..numerics.compile import compiled
from ..simulation.trajectory import Trajectory
from ..system import System, Vector, VectorLike
from . import floating_frame as floating
from .floating_frame import RitzBeams, RitzModel, all_nodes, proper_joints, rest_of

NodeRows = Float[Array, "nodes 4 3"]
Forms = Float[Array, "forms nodes 4 3"]

NOISE = 1e-5
"""What is smaller than this, beside the largest component of a form, is rounding of modes and left out."""


class Reduced(eqx.Module):
    """A `system` some of whose beams move by a frame and the amplitudes of forms, its position `q0`, and the way back to the system `full`.

    Coordinates of a reduced beam are the twelve of its frame, and for each form its amplitude times the directors along which it moves.
    """

    system: System
    q0: Float[Array, " n"]
    full: System
    order: Indices = eqx.field(static=True)

    @property
    def frames(self) -> dict[str, slice]:
        """Where the twelve coordinates of the frame of each reduced beam stand."""
        groups = [(name, group.size) for group in self.system.params.beams for name in group.names]
        begin = self.q0.size - sum(size for _, size in groups)
        starts = np.cumsum([begin, *(size for _, size in groups)]).tolist()
        return {name: slice(start, start + 12) for (name, _), start in zip(groups, starts[:-1], strict=True)}

    def amplitudes(self, y: Float[Array, "*rows n"]) -> dict[str, Float[Array, "*rows forms"]]:
        """The amplitudes of the forms of each reduced beam."""
        model = self.system.astype(y.dtype).params
        found: dict[str, Array] = {}
        for index, group in enumerate(model.beams):
            read = lambda y, index=index, group=group: group.amplitudes(model.parts(y)[1][index])
            values = jnp.vectorize(read, signature="(n)->(b,k)")(y)
            found |= {name: values[..., i, :] for i, name in enumerate(group.names)}
        return found

    def deformed(self, amplitudes: Mapping[str, VectorLike], y: Float[Array, " n"] | None = None) -> Float[Array, " n"]:
        """The position `y` (default: `q0`) with these amplitudes of some beams. Its derivative (`jax.jvp`) leads to velocities."""
        y = self.q0 if y is None else y
        given = self.amplitudes(y) | {name: jnp.asarray(value, y.dtype) for name, value in amplitudes.items()}
        kept, blocks = self.system.params.parts(y)
        for index, group in enumerate(self.system.params.beams):
            for name in group.names:
                if given[name].shape != group.strains.shape[1:2]:
                    raise ModelError(f"beam {name!r} has {group.strains.shape[1]} amplitudes, but {given[name].shape} were given")
            blocks[index] = group.deformed(blocks[index], jnp.stack([given.pop(name) for name in group.names]))
        if given:
            raise ModelError(f"amplitudes are given for {', '.join(given)}, but only {', '.join(self.frames)} are reduced")
        return jnp.concatenate([kept, *(block.ravel() for block in blocks)])

    def coordinates(self, y: Float[Array, "*rows n"]) -> Float[Array, "*rows full"]:
        """The coordinates of all bodies and nodes, as those of the system `full`."""
        model, order = self.system.astype(y.dtype).params, np.asarray(self.order)

        def lift(y):
            kept, blocks = model.parts(y)
            nodes = [group.rows(block).ravel() for group, block in zip(model.beams, blocks, strict=True)]
            return jnp.concatenate([kept, *nodes])[order]

        return jnp.vectorize(lift, signature="(n)->(m)")(y)

    def lift(self, trajectory: Trajectory) -> Trajectory:
        """The motion of all bodies and nodes, to be read with the system `full`: poses, joints and their reactions, pictures.

        The constraints of nodes have no multipliers there, and what else constraints do is left out. Strains and energies are read from
        the motion that was not lifted, with the reduced system.
        """
        return _lift(self, trajectory)


@compiled
def _lift(reduced: Reduced, trajectory: Trajectory) -> Trajectory:
    full = reduced.full.astype(trajectory.q.dtype)
    q, v = jax.vmap(lambda y, rate: jax.jvp(reduced.coordinates, (y,), (rate,)))(trajectory.q, trajectory.v)
    p = jax.vmap(lambda t, q, v: momentum(full, t, q, v))(trajectory.t, q, v)
    nodes = set(_coordinates(full.params, all_nodes(reduced.system.params.beams)).tolist())
    of_nodes = {row for place, row in full.params.internal_rows() if place in nodes}
    kept = np.array([row for row in range(constraint_count(full, q[0])) if row not in of_nodes], int)
    there = trajectory.multipliers[:, trajectory.multipliers.shape[1] - kept.size :]
    return dataclasses.replace(
        trajectory,
        q=q,
        v=v,
        p=p,
        multipliers=jnp.zeros((q.shape[0], kept.size + len(of_nodes)), q.dtype).at[:, kept].set(there),
        incoming=p,
        reaction=jnp.zeros_like(p),
        stages=reduced.coordinates(trajectory.stages),
        carried=None,
    )


def ritz(system: System, q0: VectorLike, forms: Mapping[str, VectorLike]) -> Reduced:
    r"""The system with beams that deform by given forms alone (S2, section 3.4.2), each in a frame that floats with it.

    **Arguments**

    - `system`, `q0`: as `assemble` returns them, with beams free of stress.
    - `forms`: by the name of a beam, changes of the coordinates of its nodes, one row a form. Take some of the `shapes` that `modes` finds
      for a mechanism of the beam alone, not placed elsewhere than it was made, held by joints as it suits the frame; or any others.

    Forms keep the directors of nodes orthonormal to the first order, and are independent of each other and of rigid motions: those are
    the frame's. Where they vanish the beam moves as the frame does. They do not change when parameters do; differentiated are
    the matrices that `ritz` forms with them.
    """
    as_assembly(system)
    q0 = as_coordinates(system, q0)
    model = as_assembly(system.astype(q0.dtype))
    there = [name for group in model.beams for name in group.names]
    for name in forms:
        if name not in there:
            raise ModelError(f"forms are given for {name!r}, which is no beam of this mechanism; beams are {', '.join(there) or 'none'}")
    made = {name: _reduce(model, name, shapes) for name, shapes in forms.items()}
    alone = [one.arrays for one in made.values()]
    names = [[list(made)[i] for i in indices] for indices in alike(alone, [(one.components, one.points) for one in made.values()])]
    beams = tuple(_stacked(model, {name: made[name] for name in some}) for some in names)
    nodes = _coordinates(model, all_nodes(beams))
    kept = np.setdiff1d(np.arange(q0.size), nodes)
    y0 = jnp.concatenate([q0[kept], *(_at_rest(model.frames(q0), group) for group in beams)])
    reduced = System.from_functions(
        kinetic=floating.kinetic,
        potential=floating.potential,
        constraints=floating.constraints,
        forces=floating.forces if system.has("forces") else None,
        structure=floating.structure_of,
        params=RitzModel(rest_of(model, beams), beams),
    )
    return Reduced(with_rank_if_cheap(reduced, y0), y0, system, tuple(np.argsort(np.concatenate([kept, nodes])).tolist()))


class _Made(NamedTuple):
    """A reduced beam ready to be stacked."""

    arrays: tuple[Array, ...]
    nodes: Indices
    components: tuple[tuple[int, int], ...]
    points: tuple[float, ...]


def _reduce(model: Assembly, name: str, shapes: VectorLike) -> _Made:
    """One beam with its forms."""
    group = next(group for group in model.beams if name in group.names).only([name])
    places = tuple(group.along(np.transpose(group.nodes)).tolist())
    reference = jnp.asarray(group.along(group.reference))
    forms = _forms(name, shapes, reference)
    components = _components(forms)
    points = tuple(group.points.tolist())
    return _Made(_matrices(model, group, forms, reference, places, components), places, components, points)


def _components(forms: Forms) -> tuple[tuple[int, int], ...]:
    """The directors along which each form moves something; all of them where numbers are hidden."""
    sizes = known(jnp.max(jnp.abs(forms), axis=(1, 2), initial=0))
    there = np.ones((forms.shape[0], 3), bool)
    if sizes is not None:
        there = sizes > NOISE * sizes.max(axis=1, keepdims=True, initial=0)
    return tuple((int(k), int(i)) for k, i in np.argwhere(there))


@compiled
def _matrices(
    model: Assembly, group: AbstractElements, forms: Forms, reference: NodeRows, places: Indices, components: tuple[tuple[int, int], ...]
) -> tuple[Array, ...]:
    """Basis, inertia, strains, lengths and sections, as derivatives of what the nodes have."""
    origin = jnp.zeros_like(reference[..., :1]).at[:, 0].set(1)
    k, i = np.array(components, int).reshape(-1, 2).T
    basis = jnp.concatenate([origin, reference, jnp.moveaxis(forms[k, :, :, i], 0, -1)], axis=-1)
    alone = lambda rows: jnp.zeros((len(model.bodies), 4, 3), rows.dtype).at[np.asarray(places)].set(rows)

    def half_square(z):
        rows = alone(jnp.pad((basis @ z)[..., None], ((0, 0), (0, 0), (0, 2))))
        return 0.5 * model.inertia_form(rows, rows)

    inertia = jax.hessian(half_square)(jnp.zeros(basis.shape[-1], basis.dtype))
    strains = jax.vmap(lambda form: jax.jvp(group.strains, (alone(reference),), (alone(form),))[1])(forms)
    return basis, inertia, strains, group.measures(basis.dtype), jnp.asarray(group.stiffness)


def _stacked(model: Assembly, made: Mapping[str, _Made]) -> RitzBeams:
    """Beams side by side, and which of their nodes something acts on."""
    acting: list[JointGroup | LoadGroup] = [*proper_joints(model), *model.loads]
    used = {place for group in acting for place in (*group.a, *group.b)}
    beams = list(made.values())
    held = sorted({i for beam in beams for i, place in enumerate(beam.nodes) if place in used})
    basis, inertia, strains, lengths, sections = stack([beam.arrays for beam in beams])
    nodes = tuple(beam.nodes for beam in beams)
    return RitzBeams(basis, inertia, strains, lengths, sections, nodes, tuple(made), tuple(held), beams[0].components, beams[0].points)


def _forms(name: str, shapes: VectorLike, reference: NodeRows) -> Forms:
    """Forms as rows of nodes; those that no beam can have, or that its frame has already, are refused."""
    forms, count = jnp.asarray(number(shapes)).astype(reference.dtype), reference.shape[0]
    if forms.shape[1:] not in ((12 * count,), (count, 4, 3)):
        raise ModelError(
            f"the forms of {name!r} have shape {forms.shape}; they are rows of {12 * count} changes of coordinates, twelve for each of its "
            f"{count} nodes, as mbd.modes finds them for a mechanism of this beam alone"
        )
    forms = forms.reshape(-1, count, 4, 3)
    stretched = jnp.einsum("kaix,ajx->kaij", forms[:, :, 1:], reference[:, 1:])
    off, size = (known(jnp.max(jnp.abs(x), initial=0)) for x in (stretched + jnp.swapaxes(stretched, 2, 3), forms))
    if off is not None and size is not None and not off <= max(NOISE, np.sqrt(jnp.finfo(forms.dtype).eps)) * size:
        raise ModelError(f"the forms of {name!r} stretch or shear its directors (or lie along other axes than those the beam was made in)")
    rank = known(_independent(forms, reference))
    if rank is not None and rank < 6 + forms.shape[0]:
        raise ModelError(
            f"the {forms.shape[0]} forms of {name!r} are not independent of each other and of the rigid motions of its frame: leave out "
            "those that repeat others, and modes without stiffness"
        )
    return forms


@compiled
def _independent(forms: Forms, reference: NodeRows) -> Array:
    """How many motions are independent among the forms and those of a frame."""
    around = reference.at[:, 0].add(-jnp.mean(reference[:, 0], axis=0))
    axes = jnp.eye(3, dtype=reference.dtype)
    moves = jnp.zeros((3, *reference.shape), reference.dtype).at[:, :, 0].set(axes[:, None])
    turns = jax.vmap(lambda axis: jnp.cross(axis, around))(axes)
    motions = jnp.concatenate([moves, turns, forms])
    scaled = motions.at[:, :, 0].divide(jnp.max(jnp.abs(around[:, 0])))
    return matrix_rank(scaled.reshape(motions.shape[0], -1))


def _at_rest(rows: Rows, group: RitzBeams) -> Vector:
    """Frames of beams without stress, and amplitudes of zero."""
    at, reference = rows[np.asarray(group.nodes)], group.basis[..., 1:4]
    directors = jnp.einsum("bci,bcx->bix", reference[:, 0, 1:], at[:, 0, 1:])
    origin = at[:, 0, 0] - jnp.einsum("bi,bix->bx", reference[:, 0, 0], directors)
    frames = jnp.concatenate([origin[:, None], directors], axis=1).reshape(group.count, 12)
    y = jnp.pad(frames, ((0, 0), (0, group.size - 12)))
    off = known(jnp.max(jnp.abs(group.rows(y) - at), axis=(1, 2, 3)))
    if off is not None and off.max() > np.sqrt(jnp.finfo(at.dtype).eps) * max(1.0, float(jnp.max(jnp.abs(at)))):
        raise ModelError(f"beam {group.names[int(off.argmax())]!r} is not free of stress at q0; reduce it as assemble places it")
    return y.ravel()


def _coordinates(model: Assembly, nodes: np.ndarray) -> np.ndarray:
    """The coordinates of nodes."""
    return (np.searchsorted(model.parts_of_coordinates(), nodes)[:, None] + np.arange(12)).ravel()
