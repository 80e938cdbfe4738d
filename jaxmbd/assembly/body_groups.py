"""Bodies of one kind, stacked: coordinates, constraints, and the frames that joints and loads see of them."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..bodies import AbstractBody
from ..geometry.frame import Rows
from ..numerics.naming import Named

Coordinates = Float[Array, "count size"]


class AbstractBodyGroup(eqx.Module):
    """Bodies by `names`, each with the same number of coordinates, constraints, and frames, all of one `kind`.

    The inertia of frames is with that of all frames of a mechanism. Bodies that are `flexible` have energies beside theirs.
    """

    kind: type[AbstractBody] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    flexible: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """Number of bodies."""
        return len(self.names)

    @property
    @abc.abstractmethod
    def frame_names(self) -> tuple[str, ...]:
        """The names of the frames, body after body."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of coordinates of a body."""

    @property
    @abc.abstractmethod
    def internal(self) -> int:
        """Number of constraints of a body by itself."""

    @abc.abstractmethod
    def frames(self, q: Coordinates) -> Rows:
        """The rows of the frames, body after body: an affine function of the coordinates."""

    @abc.abstractmethod
    def coordinates(self, rows: Rows) -> Coordinates:
        """The coordinates of frames that the bodies can take."""

    @abc.abstractmethod
    def constraints(self, q: Coordinates) -> Float[Array, "count internal"]:
        """Internal constraints."""

    @property
    def length(self) -> Array | float:
        """How far the nodes of a body reach, if it has several."""
        return 0.0

    def sizes(self, length: Array) -> Float[Array, "count size"]:
        """Changes of the coordinates that matter alike: of those that are lengths by `length`, of directors by one."""
        marked = jnp.abs(self.kind.lower(jnp.ones((4, 3), length.dtype).at[0].set(length)))
        return jnp.broadcast_to(jnp.where(marked > 0, marked, 1), (self.count, self.size))

    def named_parameters(self) -> Named:
        """Parameters beside those of the frames, by name."""
        return {}

    def kinetic(self, v: Coordinates) -> Array:
        """Kinetic energy beside that of the frames."""
        return jnp.zeros((), v.dtype)

    def potential(self, q: Coordinates, gravity: Float[Array, "3"]) -> Array:
        """Strain energy, and weight beside that of the frames."""
        return jnp.zeros((), q.dtype)

    def vectors(self, q: Coordinates) -> Float[Array, "count s 3"]:
        """A point of each flexible body and directions, of which it is made linearly; or their rates, or forces on them."""
        return jnp.zeros((0, 1, 3), q.dtype)


class BodyGroup(AbstractBodyGroup):
    """Bodies with one frame each, and no energy beside its own."""

    @property
    def frame_names(self) -> tuple[str, ...]:
        return self.names

    @property
    def size(self) -> int:
        return self.kind.size

    @property
    def internal(self) -> int:
        return self.kind.internal

    def frames(self, q: Coordinates) -> Rows:
        return jax.vmap(self.kind.lift)(q)

    def coordinates(self, rows: Rows) -> Coordinates:
        return jax.vmap(self.kind.lower)(rows)

    def constraints(self, q: Coordinates) -> Float[Array, "count internal"]:
        return jax.vmap(self.kind.constraint)(q)
