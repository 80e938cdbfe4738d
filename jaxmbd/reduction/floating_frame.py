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
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly.body_groups import AbstractBodyGroup, BodyGroup
from ..assembly.groups import JointGroup
from ..assembly.model import Assembly
from ..assembly.parameters import side_by_side
from ..beams.beam import node_name
from ..bodies import AbstractBody, RigidBody
from ..bodies.base import Inertia
from ..errors import ModelError
from ..geometry.frame import Rows
from ..joints import Free
from ..numerics.arrays import Indices
from ..numerics.naming import Named, field


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


class RitzBeams(AbstractBodyGroup):
    r"""Beams with the same numbers of nodes, elements and forms, stacked. Their frames are the nodes that joints and loads act on.

    `basis` leads from $z$ to the rows of nodes, `inertia` is $\Theta$. `modal_strains` are $\varepsilon_k$ at points of
    integration, `fractions` of elements, that stand for `lengths`; `sections` is the stiffness of the elements. `held` are
    the nodes that are frames, counted along the beams. `components` are the pairs $(k, i)$ of which there is a
    $\zeta_{ki}$: those that form $k$ has.
    """

    basis: Float[Array, "beams nodes 4 s"]
    inertia: Float[Array, "beams s s"]
    modal_strains: Float[Array, "beams forms elements points 6"]
    lengths: Float[Array, "beams elements points"]
    sections: Float[Array, "beams elements 6 6"]
    held: Indices = eqx.field(static=True)
    components: tuple[tuple[int, int], ...] = eqx.field(static=True)
    fractions: tuple[float, ...] = eqx.field(static=True)

    flexible: ClassVar[bool] = True

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of all nodes, beam after beam."""
        return tuple(node_name(name, i) for name in self.names for i in range(self.basis.shape[1]))

    @property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(node_name(name, i) for name in self.names for i in self.held)

    @property
    def size(self) -> int:
        return 3 * self.basis.shape[-1]

    @property
    def internal(self) -> int:
        return RigidBody.internal + self._products[1].shape[0]

    @property
    def length(self) -> Array:
        return jnp.max(jnp.abs(self.basis[:, :, 0, 1:4]))

    def sizes(self, length: Array) -> Float[Array, "beams n"]:
        """Those of the frames, and amplitudes by which nodes move as far as `length`, or turn by one."""
        moved = jnp.max(jnp.abs(self.basis).at[:, :, 0].divide(length), axis=(1, 2))
        of_frames = jnp.broadcast_to(jnp.ones(4, length.dtype).at[0].set(length), (self.count, 4))
        return jnp.repeat(jnp.concatenate([of_frames, 1 / jnp.where(moved > 0, moved, 1)[:, 4:]], axis=1), 3, axis=1)

    def named_parameters(self) -> Named:
        """The stiffness of the elements of each beam, and the inertia of its forms."""
        fields = {"stiffness": field("sections"), "inertia": field("inertia")}
        return side_by_side(self.names, fields, range(self.count))

    @property
    def _products(self) -> tuple[np.ndarray, np.ndarray]:
        return products_of_forms(self.components, self.modal_strains.shape[1])

    @property
    def modal_stiffness(self) -> Float[Array, "beams forms forms"]:
        r"""$\int \varepsilon_k \cdot C \varepsilon_l\,ds$: the second derivative of the strain energy at the reference, along the forms."""
        stresses = jnp.einsum("beij,beg,blegj->blegi", self.sections, self.lengths, self.modal_strains)
        return jnp.einsum("bkegi,blegi->bkl", self.modal_strains, stresses)

    def deformed(self, y: Float[Array, "beams n"], amplitudes: Float[Array, "beams forms"]) -> Float[Array, "beams n"]:
        """The beams with their frames and these amplitudes."""
        k, i = np.array(self.components, int).reshape(-1, 2).T
        bent = amplitudes[:, k, None] * y[:, 3:12].reshape(-1, 3, 3)[:, i]
        return jnp.concatenate([y[:, :12], bent.reshape(self.count, -1)], axis=1)

    def amplitudes(self, y: Float[Array, "beams n"]) -> Float[Array, "beams forms"]:
        r"""$\eta$."""
        return self._scalar_products(y) @ jnp.asarray(self._products[0].T, y.dtype)

    def constraints(self, y: Float[Array, "beams n"]) -> Float[Array, "beams m"]:
        """Directors of the floating frames are orthonormal, and forms follow them."""
        forms = self._scalar_products(y) @ jnp.asarray(self._products[1].T, y.dtype)
        return jnp.concatenate([jax.vmap(RigidBody.constraint)(y[:, :12]), forms], axis=1)

    def _scalar_products(self, y: Float[Array, "beams n"]) -> Float[Array, "beams p"]:
        z = self.vectors(y)
        return jnp.einsum("bsx,bjx->bsj", z[:, 4:], z[:, 1:4]).reshape(self.count, -1)

    def vectors(self, y: Float[Array, "beams n"]) -> Float[Array, "beams s 3"]:
        return y.reshape(self.count, -1, 3)

    def nodes(self, y: Float[Array, "beams n"]) -> Float[Array, "beams nodes 4 3"]:
        """The rows of all nodes."""
        return jnp.einsum("bncs,bsx->bncx", self.basis, self.vectors(y))

    def frames(self, y: Float[Array, "beams n"]) -> Rows:
        held = self.basis[:, np.asarray(self.held, int)]
        return jnp.einsum("bncs,bsx->bncx", held, self.vectors(y)).reshape(-1, 4, 3)

    def coordinates(self, rows: Rows) -> Float[Array, "beams n"]:
        raise ModelError(f"beams that deform ({', '.join(self.names)}) are not told by the frames of some nodes")

    def kinetic(self, v: Float[Array, "beams n"]) -> Array:
        rates = self.vectors(v)
        return 0.5 * jnp.einsum("bst,bsx,btx->", self.inertia, rates, rates)

    def potential(self, y: Float[Array, "beams n"], gravity: Float[Array, "3"]) -> Array:
        amplitudes = self.amplitudes(y)
        strain = 0.5 * jnp.einsum("bk,bkl,bl->", amplitudes, self.modal_stiffness, amplitudes)
        return strain - jnp.einsum("bs,bsx,x->", self.inertia[:, 0], self.vectors(y), gravity)

    @property
    def counts(self) -> Indices:
        """Number of elements of each beam."""
        return (self.lengths.shape[1],) * self.count

    @property
    def points(self) -> Float[np.ndarray, " points"]:
        """Where in an element strains are taken, as fractions of it."""
        return np.array(self.fractions)

    @property
    def stiffness(self) -> Float[Array, "elements 6 6"]:
        """That of the sections, beam after beam."""
        return self.sections.reshape(-1, 6, 6)

    def measures(self, dtype) -> Float[Array, "elements points"]:
        """The length that each point of integration stands for, beam after beam."""
        return self.lengths.reshape(-1, len(self.fractions)).astype(dtype)

    def strains(self, y: Float[Array, "beams n"]) -> Float[Array, "elements points 6"]:
        """Strains at the points of integration, beam after beam."""
        strains = jnp.einsum("bk,bkegi->begi", self.amplitudes(y), self.modal_strains)
        return strains.reshape(-1, *strains.shape[2:])


def proper_joints(model: Assembly) -> list[JointGroup]:
    """Groups of joints without those that only tell of free bodies, which come first."""
    return [group for group in model.joints if not isinstance(group.kind, Free)]


def with_reduced(model: Assembly, beams: tuple[RitzBeams, ...]) -> Assembly:
    """The mechanism with reduced beams in place of their nodes. No chart goes with it."""
    gone, names = {node for group in beams for node in group.node_names}, {name for group in beams for name in group.names}
    left = [BodyGroup(group.kind, tuple(name for name in group.names if name not in gone)) for group in model.groups]
    order = lambda group: group.size == 0  # what is fixed in space stays last
    groups: tuple[AbstractBodyGroup, ...] = tuple(sorted([*(group for group in left if group.names), *beams], key=order))
    frames = [model.bodies.index(name) for group in groups for name in group.frame_names]
    heavy = np.repeat([not group.flexible for group in groups], [len(group.frame_names) for group in groups])
    number = {place: i for i, place in enumerate(frames)}
    renumber: Callable = lambda group: dataclasses.replace(group, **{end: tuple(number[i] for i in getattr(group, end)) for end in "ab"})
    others = [(group, [name for name in group.names if name not in names]) for group in model.beams]
    elements = [group.only(some) for group, some in others if some]
    free = len(model.joints) - len(proper_joints(model))
    return dataclasses.replace(
        model,
        groups=groups,
        inertia=jnp.where(heavy[:, None, None], jnp.asarray(model.inertia)[np.array(frames)], 0),
        tree=tuple(map(renumber, model.tree[free:])),
        measures=tuple(map(renumber, model.measures)),
        closing=tuple(map(renumber, model.closing)),
        loads=tuple(map(renumber, model.loads)),
        beams=tuple(dataclasses.replace(g, nodes=tuple(tuple(number[i] for i in places) for places in g.nodes)) for g in elements),
        gauges=tuple(gauge._replace(group=gauge.group - free) for gauge in model.gauges),
        parents=tuple(range(len(frames))),
        shapes=tuple(group.renumbered(number) for group in model.shapes),
    )
