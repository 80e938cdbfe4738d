"""Elements of one kind, stacked: what is written for two frames runs for all joints or loads of a kind at once."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies import AbstractShape
from ..geometry.frame import Frame, Motion, Rows, identity
from ..joints import AbstractJoint
from ..loads import AbstractJointLoad, AbstractLoad
from ..numerics.arrays import Indices, take


def gather(rows: Rows, indices: Indices) -> Frame:
    """The frames of some bodies, stacked."""
    picked = take(rows, indices)
    return Frame(picked[:, 0], jnp.swapaxes(picked[:, 1:], 1, 2))


class JointGroup(eqx.Module):
    """Joints of one kind in one role.

    `on_a`, `on_b` are their frames in body axes; `kept` the constraints that count, `slips` those on velocities, and `columns` the
    increments that move the child (bodies in a plane and mass points need not all); `reverse` says that the first bodies hang on the
    second ones in the tree.
    """

    kind: AbstractJoint
    on_a: Frame
    on_b: Frame
    a: Indices = eqx.field(static=True)
    b: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    kept: Indices = eqx.field(static=True)
    slips: Indices = eqx.field(static=True)
    columns: Indices = eqx.field(static=True)
    reverse: bool = eqx.field(static=True, default=False)

    @property
    def count(self) -> int:
        """Number of joints."""
        return len(self.names)

    @property
    def counts(self) -> tuple[int, int]:
        """Number of constraints of a joint of this kind in space, on positions and on velocities."""
        first = jax.tree.map(lambda leaf: leaf[0], self.kind)
        rows = jax.eval_shape(lambda a, b: (first.constraint(a, b), first.slip(a, b, a, b)), identity(), identity())
        return rows[0].size, rows[1].size

    @property
    def children(self) -> Indices:
        """Bodies that hang on the joints, if they are branches of the tree."""
        return self.a if self.reverse else self.b

    def frames(self, bodies: Rows) -> tuple[Frame, Frame]:
        """The two frames of each joint."""
        place = jax.vmap(lambda body, local: body @ local)
        return place(gather(bodies, self.a), self.on_a), place(gather(bodies, self.b), self.on_b)

    def constraints(self, bodies: Rows) -> Float[Array, " m"]:
        """All constraints of the joints, joint after joint."""
        if not self.kept:
            return jnp.zeros(0, bodies.dtype)
        values = jax.vmap(lambda kind, a, b: kind.constraint(a, b))(self.kind, *self.frames(bodies))
        return take(values.T, self.kept).T.ravel()

    def velocity_constraints(self, bodies: Rows, rates: Rows) -> Float[Array, " k"]:
        """All velocities that vanish, joint after joint."""
        values = jax.vmap(lambda kind, *frames: kind.slip(*frames))(self.kind, *self.frames(bodies), *self.frames(rates))
        return take(values.T, self.slips).T.ravel()

    def points(self, bodies: Rows) -> tuple[Float[Array, "count 3"], Float[Array, "count 3"]]:
        """Where pictures show each joint on either body."""
        return jax.vmap(lambda kind, a, b: kind.points(a, b))(self.kind, *self.frames(bodies))

    def coordinates(self, bodies: Rows) -> Float[Array, "count c"]:
        """The coordinates of each joint."""
        return jax.vmap(lambda kind, a, b: kind.coordinate(a, b))(self.kind, *self.frames(bodies))

    def pairs(self, bodies: Rows) -> Float[Array, "count c 2"]:
        """What the coordinates of each joint are read from."""
        return jax.vmap(lambda kind, a, b: kind.pairs(a, b))(self.kind, *self.frames(bodies))

    def motions(self, u: Float[Array, "count columns"], bodies: Rows) -> Motion:
        """How each child moves relative to its parent."""
        held = len(self.columns)  # the place of a zero, for increments that do not move the child
        places = [self.columns.index(i) if i in self.columns else held for i in range(self.kind.freedom)]
        increments = jnp.pad(u, ((0, 0), (0, 1)))[:, np.asarray(places, int)]
        move = lambda kind, *given: kind.backward(*given) if self.reverse else kind.motion(*given)
        return jax.vmap(move)(self.kind, increments, *self.frames(bodies))


class LoadGroup(eqx.Module):
    """Loads of one kind between pairs of bodies."""

    load: AbstractLoad
    a: Indices = eqx.field(static=True)
    b: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def potential(self, t: Array, bodies: Rows) -> Array:
        """Their potential energy."""
        at = (gather(bodies, self.a), gather(bodies, self.b))
        return jnp.sum(jax.vmap(lambda load, a, b: load.potential(t, a, b))(self.load, *at))

    def power(self, t: Array, bodies: Rows, rates: Rows, virtual: Rows) -> Array:
        """The virtual power of their forces."""
        pairs = [(gather(rows, self.a), gather(rows, self.b)) for rows in (bodies, rates, virtual)]
        return jnp.sum(jax.vmap(lambda load, *pairs: load.power(t, *pairs))(self.load, *pairs))


class ShapeGroup(eqx.Module):
    """Shapes of one kind, and the bodies that they belong to."""

    shape: AbstractShape
    bodies: Indices = eqx.field(static=True)

    def renumbered(self, number: Mapping[int, int]) -> "ShapeGroup":
        """The shapes of those bodies that have a new number."""
        kept = np.array([i for i, body in enumerate(self.bodies) if body in number], int)
        return ShapeGroup(jax.tree.map(lambda leaf: leaf[kept], self.shape), tuple(number[self.bodies[i]] for i in kept))


class JointLoadGroup(eqx.Module):
    """Loads of one kind on gauges."""

    load: AbstractJointLoad
    gauges: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def potential(self, t: Array, gauges: Float[Array, " g"]) -> Array:
        """Their potential energy."""
        return jnp.sum(jax.vmap(lambda load, c: load.potential(t, c))(self.load, gauges[np.asarray(self.gauges)]))

    def power(self, t: Array, *gauges: Float[Array, " g"]) -> Array:
        """The virtual power of their forces, from coordinates, rates and virtual rates."""
        values = [part[np.asarray(self.gauges)] for part in gauges]
        return jnp.sum(jax.vmap(lambda load, *values: load.power(t, *values))(self.load, *values))

    def forces(self, t: Array, gauges: Float[Array, " g"], rates: Float[Array, " g"]) -> Float[Array, " count"]:
        """Their forces on the coordinates, with and without a potential."""

        def one(load, c, rate):
            return jax.grad(lambda virtual: load.power(t, c, rate, virtual))(jnp.zeros_like(c)) - jax.grad(load.potential, 1)(t, c)

        places = np.asarray(self.gauges)
        return jax.vmap(one)(self.load, gauges[places], rates[places])
