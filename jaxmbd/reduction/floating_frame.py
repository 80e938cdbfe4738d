r"""Beams that deform by a few given forms in a frame that floats with them (S2, section 3.4.2), in place of all their nodes.

The frame has the rows $(\varphi, d_1, d_2, d_3)$, and with the amplitudes $\eta_k$ of the forms node $a$ has the rows
$r_{ac} = \delta_{c0}\,\varphi + (X_{aci} + \eta_k u_{kaci})\,d_i$, its reference and the forms in components of the frame. They are linear
in $z = (\varphi, d_i, \zeta_{ki})$ with $\zeta_{ki} = \eta_k d_i$. These vectors are the coordinates, as directors are of a rigid body: the
kinetic energy is $\frac12 \Theta_{st}\,\dot z_s \cdot \dot z_t$ with a constant matrix, nodes are linear in coordinates, and what ties
$\zeta$ to the frame are constraints on scalar products, $\zeta_{ki} \cdot d_j = \eta_k \delta_{ij}$ without $\eta_k$. So schemes keep
what they keep for rigid bodies. Strains are those of the first order, $\varepsilon = \eta_k \varepsilon_k$.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly import functions as assembly
from ..assembly.groups import JointGroup
from ..assembly.model import Assembly
from ..assembly.parameters import side_by_side
from ..bodies import AbstractBody, RigidBody
from ..bodies.base import Inertia
from ..joints import Free
from ..numerics.arrays import Indices, total
from ..numerics.naming import Named, collect, field
from ..system import Structure, Vector


class Node(AbstractBody):
    """A node that follows a frame and forms: no inertia, and no constraints of its own."""

    size: ClassVar[int] = RigidBody.size
    internal: ClassVar[int] = 0
    twists: ClassVar[tuple[int, ...]] = RigidBody.twists

    lift = staticmethod(RigidBody.lift)
    lower = staticmethod(RigidBody.lower)

    @staticmethod
    def constraint(q: Float[Array, "12"]) -> Float[Array, " 0"]:
        return q[:0]

    @property
    def inertia_matrix(self) -> Inertia:
        return np.zeros((4, 4))


@functools.cache
def products_of_forms(components: tuple[tuple[int, int], ...], forms: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Which combinations of all $\zeta_{ki} \cdot d_j$ are amplitudes, and which are constraints; `components` are the pairs $(k, i)$."""
    read, hold = np.zeros((forms, len(components), 3)), []
    for place, (k, i) in enumerate(components):
        read[k, place, i] = 1 / sum(form == k for form, _ in components)
        for j in range(3):
            row = np.zeros((len(components), 3))
            row[place, j] = 1
            if j == i:  # all that belongs to one form has the same amplitude
                row[place - 1, components[place - 1][1]] = -1
            if j != i or (place and components[place - 1][0] == k):
                hold.append(row)
    return read.reshape(forms, -1), np.reshape(hold, (len(hold), 3 * len(components)))


class RitzBeams(eqx.Module):
    r"""Beams with the same numbers of nodes, elements and forms, stacked.

    `basis` leads from $z$ to the rows of nodes, `inertia` is $\Theta$. `strains` are $\varepsilon_k$ at `points` of integration that stand
    for `lengths`, `sections` the stiffness of the elements. `nodes` are their numbers in the full mechanism; joints and loads act on those
    that are `held`, counted along the beams. `components` are the pairs $(k, i)$ of which there is a $\zeta_{ki}$: those that form $k$ has.
    """

    basis: Float[Array, "beams nodes 4 s"]
    inertia: Float[Array, "beams s s"]
    strains: Float[Array, "beams forms elements points 6"]
    lengths: Float[Array, "beams elements points"]
    sections: Float[Array, "beams elements 6 6"]
    nodes: tuple[Indices, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    held: Indices = eqx.field(static=True)
    components: tuple[tuple[int, int], ...] = eqx.field(static=True)
    points: tuple[float, ...] = eqx.field(static=True)

    @property
    def count(self) -> int:
        """Number of beams."""
        return len(self.names)

    @property
    def size(self) -> int:
        """Number of coordinates of a beam."""
        return 3 * self.basis.shape[-1]

    @property
    def internal(self) -> int:
        """Number of constraints of a beam: those of its frame, and those that tie its forms to the frame."""
        return RigidBody.internal + self._products[1].shape[0]

    def named_parameters(self) -> Named:
        """The stiffness of the elements of each beam, and the inertia of its forms."""
        fields = {"stiffness": field("sections"), "inertia": field("inertia")}
        return side_by_side(self.names, fields, range(self.count))

    @property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        return products_of_forms(self.components, self.strains.shape[1])

    @property
    def stiffness(self) -> Float[Array, "beams forms forms"]:
        r"""$\int \varepsilon_k \cdot C \varepsilon_l\,ds$: the second derivative of the strain energy at the reference, along the forms."""
        stresses = jnp.einsum("beij,beg,blegj->blegi", self.sections, self.lengths, self.strains)
        return jnp.einsum("bkegi,blegi->bkl", self.strains, stresses)

    def deformed(self, y: Float[Array, "beams n"], amplitudes: Float[Array, "beams forms"]) -> Float[Array, "beams n"]:
        """The beams with their frames and these amplitudes."""
        k, i = np.array(self.components, int).reshape(-1, 2).T
        bent = amplitudes[:, k, None] * y[:, 3:12].reshape(-1, 3, 3)[:, i]
        return jnp.concatenate([y[:, :12], bent.reshape(self.count, -1)], axis=1)

    def amplitudes(self, y: Float[Array, "beams n"]) -> Float[Array, "beams forms"]:
        r"""$\eta$."""
        return self._scalar_products(y) @ jnp.asarray(self._products[0].T, y.dtype)

    def constraints(self, y: Float[Array, "beams n"]) -> Float[Array, "beams m"]:
        """Directors of the frames are orthonormal, and forms follow them."""
        forms = self._scalar_products(y) @ jnp.asarray(self._products[1].T, y.dtype)
        return jnp.concatenate([jax.vmap(RigidBody.constraint)(y[:, :12]), forms], axis=1)

    def _scalar_products(self, y: Float[Array, "beams n"]) -> Float[Array, "beams p"]:
        z = y.reshape(self.count, -1, 3)
        return jnp.einsum("bsx,bjx->bsj", z[:, 4:], z[:, 1:4]).reshape(self.count, -1)

    def rows(self, y: Float[Array, "beams n"]) -> Float[Array, "beams nodes 4 3"]:
        """The rows of all nodes."""
        return jnp.einsum("bncs,bsx->bncx", self.basis, y.reshape(self.count, -1, 3))

    def held_rows(self, y: Float[Array, "beams n"]) -> Float[Array, "beams held 4 3"]:
        """The rows of the nodes that something acts on."""
        return jnp.einsum("bncs,bsx->bncx", self.basis[:, np.asarray(self.held, int)], y.reshape(self.count, -1, 3))

    def kinetic(self, v: Float[Array, "beams n"]) -> Array:
        """Kinetic energy."""
        rates = v.reshape(self.count, -1, 3)
        return 0.5 * jnp.einsum("bst,bsx,btx->", self.inertia, rates, rates)

    def potential(self, y: Float[Array, "beams n"], gravity: Float[Array, "3"]) -> Array:
        """Strain energy and weight."""
        amplitudes = self.amplitudes(y)
        strain = 0.5 * jnp.einsum("bk,bkl,bl->", amplitudes, self.stiffness, amplitudes)
        return strain - jnp.einsum("bs,bsx,x->", self.inertia[:, 0], y.reshape(self.count, -1, 3), gravity)

    def strains_at(self, y: Float[Array, "beams n"]) -> Float[Array, "elements points 6"]:
        """Strains at the points of integration, beam after beam."""
        strains = jnp.einsum("bk,bkegi->begi", self.amplitudes(y), self.strains)
        return strains.reshape(-1, *strains.shape[2:])


class RitzModel(eqx.Module):
    r"""A mechanism some of whose beams are reduced. Coordinates are those of all other bodies, the gauges, and then $z$ of each beam.

    `rest` is the mechanism without them, except for the nodes that are held: those come last of its bodies and are a `Node` each.
    """

    rest: Assembly
    beams: tuple[RitzBeams, ...]

    def parts(self, y: Vector) -> tuple[Float[Array, " kept"], list[Float[Array, "beams k"]]]:
        """Coordinates of what is not reduced, and those of each stack of beams."""
        begin = y.size - sum(group.count * group.size for group in self.beams)
        kept, blocks = y[:begin], []
        for group in self.beams:
            end = begin + group.count * group.size
            blocks.append(y[begin:end].reshape(group.count, group.size))
            begin = end
        return kept, blocks

    def coordinates(self, y: Vector) -> Float[Array, " rest"]:
        """The coordinates of `rest`."""
        kept, blocks = self.parts(y)
        nodes = [group.held_rows(block).ravel() for group, block in zip(self.beams, blocks, strict=True)]
        bodies = kept.size - len(self.rest.gauges)
        return jnp.concatenate([kept[:bodies], *nodes, kept[bodies:]])

    def named_parameters(self) -> Named:
        """Those of the rest, and of each reduced beam the stiffness of its elements and the inertia of its forms."""
        groups = [(lambda model, i=i: model.beams[i], group.named_parameters()) for i, group in enumerate(self.beams)]
        return collect([(lambda model: model.rest, self.rest.named_parameters()), *groups])

    def owners(self) -> list[str]:
        """The name of the beam, body, joint or gear that each constraint belongs to."""
        return [*(name for group in self.beams for name in group.names for _ in range(group.internal)), *self.rest.owners()]


def proper_joints(model: Assembly) -> list[JointGroup]:
    """Groups of joints without those that only tell of free bodies, which come first."""
    return [group for group in model.joints if not isinstance(group.kind, Free)]


def rest_of(model: Assembly, beams: tuple[RitzBeams, ...]) -> Assembly:
    """The mechanism without the beams; of their nodes those are left, without inertia and constraints, that something acts on."""
    gone, names = set(all_nodes(beams).tolist()), {name for group in beams for name in group.names}
    held = [places[i] for group in beams for places in group.nodes for i in group.held]
    bodies = [*(place for place in range(len(model.bodies)) if place not in gone), *held]
    kinds = [kind for kind, count in model.kinds for _ in range(count)]
    number = {place: i for i, place in enumerate(bodies)}
    renumber: Callable = lambda group: dataclasses.replace(group, **{end: tuple(number[i] for i in getattr(group, end)) for end in "ab"})
    others = [(group, [name for name in group.names if name not in names]) for group in model.beams]
    left = [group.only(some) for group, some in others if some]
    free = len(model.joints) - len(proper_joints(model))
    tree = len(model.tree) - free
    joints = tuple(renumber(group) for group in proper_joints(model))
    return Assembly(
        inertia=jnp.asarray(model.inertia)[np.array(bodies)].at[len(bodies) - len(held) :].set(0),
        gravity=model.gravity,
        tree=joints[:tree],
        closing=joints[tree:],
        gears=model.gears,
        loads=tuple(renumber(group) for group in model.loads),
        joint_loads=model.joint_loads,
        beams=tuple(dataclasses.replace(g, nodes=tuple(tuple(number[i] for i in places) for places in g.nodes)) for g in left),
        gauges=tuple(gauge._replace(group=gauge.group - free) for gauge in model.gauges),
        kinds=tuple((kind, len(list(some))) for kind, some in itertools.groupby(Node if i in gone else kinds[i] for i in bodies)),
        bodies=tuple(model.bodies[place] for place in bodies),
        parents=tuple(range(len(bodies))),
        gravity_name=model.gravity_name,
    )


def all_nodes(beams: tuple[RitzBeams, ...]) -> np.ndarray:
    """The numbers of the nodes of all reduced beams, in the order of their coordinates."""
    return np.concatenate([np.zeros(0, int), *(np.ravel(group.nodes) for group in beams)])


def structure_of(model: RitzModel) -> Structure:
    """The names of what constraints belong to."""
    return Structure(owners=tuple(model.owners()))


@jax.jit
def kinetic(t: Array, y: Vector, v: Vector, model: RitzModel) -> Array:
    """That of the rest, and of the beams."""
    beams = list(zip(model.beams, model.parts(v)[1], strict=True))
    q, rates = jax.jvp(model.coordinates, (y,), (v,))
    return assembly.kinetic(t, q, rates, model.rest) + total(beams, lambda one: one[0].kinetic(one[1]), y)


@jax.jit
def potential(t: Array, y: Vector, model: RitzModel) -> Array:
    """That of the rest, and of the beams."""
    gravity = jnp.asarray(model.rest.gravity, y.dtype)
    beams = list(zip(model.beams, model.parts(y)[1], strict=True))
    return assembly.potential(t, model.coordinates(y), model.rest) + total(beams, lambda one: one[0].potential(one[1], gravity), y)


@jax.jit
def forces(t: Array, y: Vector, v: Vector, model: RitzModel) -> Vector:
    """Those on bodies and nodes, pulled back."""
    q, rates = jax.jvp(model.coordinates, (y,), (v,))
    return jax.vjp(model.coordinates, y)[1](assembly.forces(t, q, rates, model.rest))[0]


@jax.jit
def constraints(t: Array, y: Vector, model: RitzModel) -> Float[Array, " m"]:
    """Those of frames and forms, and then all constraints of the rest, joints at nodes among them."""
    beams = [group.constraints(block).ravel() for group, block in zip(model.beams, model.parts(y)[1], strict=True)]
    return jnp.concatenate([*beams, assembly.constraints(t, model.coordinates(y), model.rest)])
