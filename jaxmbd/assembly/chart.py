"""The chart of a mechanism: every body moves by the product of the motions on its path from the ground."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..geometry.frame import Motion, Rows
from ..numerics.arrays import Indices
from ..system import Vector
from .gauges import change, pairs_of
from .model import Assembly


@jax.jit
def chart(u: Float[Array, " k"], q: Vector, model: Assembly) -> Vector:
    r"""The nodal reparametrisation of the tree: body $i$ moves by $M_1(u_1) \cdots M_i(u_i)$, the motions on its path (93)."""
    bodies, gauges = model.frames(q), model.parts(q)[1]
    moved = _carry(model, _branch_motions(model, u, bodies), bodies)
    return model.coordinates(moved, gauges + _changes(model, u, bodies, moved))


def _changes(model: Assembly, u: Float[Array, " k"], bodies: Rows, moved: Rows) -> Float[Array, " g"]:
    """Changes of the gauges: increments of joints, and for measured quantities what the frames tell, angles within half a turn."""
    begin, end = model.measured.start, model.measured.stop
    own, measured, closing = model.gauges[:begin], model.gauges[begin:end], model.gauges[end:]
    given = lambda gauges: u[np.array([gauge.increment for gauge in gauges], int)]
    found = change(measured, *(pairs_of(measured, model.joints, rows) for rows in (bodies, moved)))
    return jnp.concatenate([given(own), found, given(closing)])


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
    rounds = ancestors(model.parents)
    compose = jax.vmap(lambda outer, inner: outer @ inner)

    def jump(motions, ancestor):
        return compose(jax.tree.map(lambda leaf: leaf[ancestor], motions), motions), None

    motions, _ = jax.lax.scan(jump, motions, rounds) if len(rounds) else (motions, None)
    turned = jnp.einsum("nij,naj->nai", motions.rotation, bodies)
    return turned + jnp.pad(motions.shift[:, None], ((0, 0), (0, 3), (0, 0)))


def ancestors(parents: Indices) -> np.ndarray:
    """For each round, the body up to which motions are composed already; bodies that rest are their own ancestors."""
    current = np.asarray(parents)
    rounds: list[np.ndarray] = []
    while not (rounds and np.array_equal(rounds[-1], current)):
        rounds.append(current)
        current = current[current]
    return np.array(rounds[:-1])
