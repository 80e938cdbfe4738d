"""From an assembled mechanism to one whose beams deform by a few forms, and back from its motions."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly import functions
from ..assembly.groups import JointGroup, LoadGroup
from ..assembly.model import Assembly, as_assembly
from ..assembly.structure import structure_of
from ..beams.elements import AbstractElements
from ..constraints.calculus import momentum
from ..constraints.counts import constraint_count, matrix_rank
from ..constraints.inputs import as_coordinates
from ..constraints.rank import with_rank_if_cheap
from ..errors import ModelError, UnknownNameError
from ..numerics.arguments import checked, described
from ..numerics.arrays import Indices, alike, known, number, stack
from ..numerics.compile import compiled
from ..numerics.naming import nearest
from ..simulation.trajectory import State, Trajectory
from ..system import System, Vector, VectorLike
from .floating_frame import Node, RitzBeams, proper_joints, with_reduced

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
        model = self.system.params
        owners = [(name, group.flexible) for group in model.groups for name in group.names]
        starts = model.first_coordinates().tolist()
        return {name: slice(start, start + 12) for (name, flexible), start in zip(owners, starts, strict=True) if flexible}

    @checked
    @compiled
    def amplitudes(self, y: Float[Array, "*rows n"]) -> dict[str, Float[Array, "*rows forms"]]:
        """The amplitudes of the forms of each reduced beam."""
        model = self.system.astype(y.dtype).params
        found: dict[str, Array] = {}
        for index, group in enumerate(model.groups):
            if group.flexible:
                read = lambda y, index=index, group=group: group.amplitudes(model.parts(y)[0][index])
                values = jnp.vectorize(read, signature="(n)->(b,k)")(y)
                found |= {name: values[..., i, :] for i, name in enumerate(group.names)}
        return found

    @checked
    def deformed(self, amplitudes: Mapping[str, VectorLike], y: Float[Array, " n"] | None = None) -> Float[Array, " n"]:
        """The position `y` (default: `q0`) with these amplitudes of some beams. Its derivative (`jax.jvp`) leads to velocities."""
        y = self.q0 if y is None else y
        given = self.amplitudes(y) | {name: jnp.asarray(value, y.dtype) for name, value in amplitudes.items()}
        groups, (blocks, gauges) = self.system.params.groups, self.system.params.parts(y)
        for index, group in enumerate(groups):
            if not group.flexible:
                continue
            for name in group.names:
                if given[name].shape != group.modal_strains.shape[1:2]:
                    raise ModelError(f"beam {name!r} has {group.modal_strains.shape[1]} amplitudes, but {given[name].shape} were given")
            blocks[index] = group.deformed(blocks[index], jnp.stack([given.pop(name) for name in group.names]))
        if given:
            raise UnknownNameError(f"amplitudes are given for {', '.join(given)}, but only {', '.join(self.frames)} are reduced")
        return jnp.concatenate([*(block.ravel() for block in blocks), gauges])

    @checked
    @compiled
    def coordinates(self, y: Float[Array, "*rows n"]) -> Float[Array, "*rows full"]:
        """The coordinates of all bodies and nodes, as those of the system `full`."""
        model, order = self.system.astype(y.dtype).params, np.asarray(self.order)

        def lift(y):
            blocks, gauges = model.parts(y)
            pairs = zip(model.groups, blocks, strict=True)
            parts = [(group.nodes(block) if group.flexible else block).ravel() for group, block in pairs]
            return jnp.concatenate([*parts, gauges])[order]

        return jnp.vectorize(lift, signature="(n)->(m)")(y)

    @checked
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
    nodes = [name for group in reduced.system.params.groups if group.flexible for name in group.node_names]
    kept = _without(full.params, _first(full.params, nodes), constraint_count(full, q[0]))
    there = _without(reduced.system.params, [place.start for place in reduced.frames.values()], trajectory.multipliers.shape[1])
    return dataclasses.replace(
        trajectory,
        q=q,
        v=v,
        p=p,
        multipliers=jnp.zeros((q.shape[0], constraint_count(full, q[0])), q.dtype).at[:, kept].set(trajectory.multipliers[:, there]),
        incoming=p,
        reaction=jnp.zeros_like(p),
        stages=None if trajectory.stages is None else reduced.coordinates(trajectory.stages),
        carried=None,
        final=_lifted_state(reduced, trajectory.final, q[-1], p[-1]),
    )


def _lifted_state(reduced: Reduced, state: State, q: Vector, p: Vector) -> State:
    """The last state in all coordinates, linear functions of those of the reduced system; no motion goes on from it."""
    moves: dict[str, Any] = {name: reduced.coordinates(getattr(state, name)) for name in ("displacement", "previous")}
    return dataclasses.replace(state, q=q, incoming=p, carried=None, origin=None, **moves)


def _without(model: Assembly, places: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """The numbers of constraints, of `count` in all, without the internal ones of bodies whose coordinates begin at some places."""
    own = {row for place, row in model.internal_rows() if place in places}
    return np.array([row for row in range(count) if row not in own], int)


@checked
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
    if any(group.flexible for group in as_assembly(system).groups):
        raise ModelError("beams are reduced all at once, of a system from assemble; this one has reduced beams already")
    q0 = as_coordinates(system, q0)
    model = as_assembly(system.astype(q0.dtype))
    there = [name for group in model.beams for name in group.names]
    for name in forms:
        if name not in there:
            raise UnknownNameError(f"forms are given for {name!r}, which is no beam of this mechanism; {nearest(name, there)}")
    made = {name: _reduce(model, name, shapes) for name, shapes in forms.items()}
    alone = [one.arrays for one in made.values()]
    names = [[list(made)[i] for i in indices] for indices in alike(alone, [(one.components, one.points) for one in made.values()])]
    beams = tuple(_stacked(model, {name: made[name] for name in some}) for some in names)
    reduced = with_reduced(model, beams)
    y0, places = _start(model, reduced, q0)
    changed = System.from_functions(
        kinetic=functions.kinetic,
        potential=functions.potential,
        constraints=functions.constraints,
        velocity_constraints=functions.velocity_constraints_of(reduced),
        forces=functions.forces_of(reduced, system.has("forces")),
        structure=structure_of,
        friction=functions.friction if model.frictions else None,
        params=reduced,
    )
    return Reduced(with_rank_if_cheap(changed, y0), y0, system, tuple(np.argsort(places).tolist()))


def _start(model: Assembly, reduced: Assembly, q0: Vector) -> tuple[Float[Array, " reduced"], np.ndarray]:
    """The position of the reduced mechanism, and the numbers of the coordinates of the full one in the order of its groups."""
    y0, places, groups = [], [], cast(tuple[Any, ...], reduced.groups)
    for group in groups:
        names, size = (group.node_names, Node.size) if group.flexible else (group.names, group.size)
        own = (_first(model, names)[:, None] + np.arange(size)).ravel()
        y0.append(_at_rest(q0[own].reshape(group.count, -1, 4, 3), group) if group.flexible else q0[own])
        places.append(own)
    gauges = np.arange(model.size - len(model.gauges), model.size)
    return jnp.concatenate([*y0, q0[gauges]]), np.concatenate([*places, gauges])


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
    return RitzBeams(Node, tuple(made), basis, inertia, strains, lengths, sections, tuple(held), beams[0].components, beams[0].points)


def _forms(name: str, shapes: VectorLike, reference: NodeRows) -> Forms:
    """Forms as rows of nodes; those that no beam can have, or that its frame has already, are refused."""
    try:
        forms, count = jnp.asarray(number(shapes)).astype(reference.dtype), reference.shape[0]
    except (TypeError, ValueError):
        raise ModelError(f"the forms of {name!r} must be rows of numbers, not {described(shapes)}") from None
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


def _at_rest(at: Float[Array, "beams nodes 4 3"], group: RitzBeams) -> Vector:
    """Frames of beams without stress, from the rows of their nodes, and amplitudes of zero."""
    reference = group.basis[..., 1:4]
    directors = jnp.einsum("bci,bcx->bix", reference[:, 0, 1:], at[:, 0, 1:])
    origin = at[:, 0, 0] - jnp.einsum("bi,bix->bx", reference[:, 0, 0], directors)
    frames = jnp.concatenate([origin[:, None], directors], axis=1).reshape(group.count, 12)
    y = jnp.pad(frames, ((0, 0), (0, group.size - 12)))
    off = known(jnp.max(jnp.abs(group.nodes(y) - at), axis=(1, 2, 3)))
    if off is not None and off.max() > np.sqrt(jnp.finfo(at.dtype).eps) * max(1.0, float(jnp.max(jnp.abs(at)))):
        raise ModelError(f"beam {group.names[int(off.argmax())]!r} is not free of stress at q0; reduce it as assemble places it")
    return y.ravel()


def _first(model: Assembly, names: Sequence[str]) -> np.ndarray:
    """Where the coordinates of bodies of the full mechanism begin."""
    return model.first_coordinates()[np.array([model.bodies.index(name) for name in names], int)]
