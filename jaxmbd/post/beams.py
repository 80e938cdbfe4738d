"""What a motion means for beams: strains, forces and moments, strain energy along them; by name."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly import as_assembly
from ..beams import AbstractBeamGroup
from ..groups import Rows
from ..system import System
from ..trajectory import Trajectory
from .along import along_trajectory


class AlongBeam(eqx.Module):
    """Values at the points of integration of a beam, `s` being their distance along the reference curve from its start."""

    s: Float[Array, " points"]
    values: Float[Array, "rows points ..."]


@along_trajectory
def strains(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear along the first and second director, stretch, bending about both, torsion: six values at every point."""
    return _along(system, trajectory, lambda group, rows: group.strains(rows))


@along_trajectory
def stress_resultants(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear forces, axial force, bending moments and torque, along the directors: six values at every point."""
    return _along(system, trajectory, lambda group, rows: group.resultants(rows))


@along_trajectory
def strain_energy(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Strain energy of a unit of length."""

    def density(group: AbstractBeamGroup, rows: Rows) -> Array:
        return 0.5 * jnp.sum(group.strains(rows) * group.resultants(rows), axis=-1)

    return _along(system, trajectory, density)


def _along(system: System, trajectory: Trajectory, read: Callable) -> dict[str, AlongBeam]:
    model = as_assembly(system)
    found = {}
    for group in model.beams:
        values = jax.vmap(lambda q, group=group: read(group, model.frames(q)))(trajectory.q)
        cuts = np.cumsum(group.counts)[:-1]
        places = jnp.split(_distances(group, values.dtype), cuts)
        for name, s, part in zip(group.names, places, jnp.split(values, cuts, axis=1), strict=True):
            found[name] = AlongBeam(s.ravel(), part.reshape(part.shape[0], -1, *part.shape[3:]))
    return found


def _distances(group: AbstractBeamGroup, dtype) -> Float[Array, "elements points"]:
    """Distances of the points of integration from the start of their beam; elements are taken as evenly parametrised."""
    lengths = jnp.sum(group.measures(dtype), axis=1)
    begin = jnp.cumsum(lengths) - lengths
    first = np.repeat(np.cumsum([0, *group.counts[:-1]]), group.counts)
    fractions = 0.5 * (np.polynomial.legendre.leggauss(group.order)[0] + 1)
    return (begin - begin[first])[:, None] + lengths[:, None] * jnp.asarray(fractions, dtype)
