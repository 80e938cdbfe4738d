"""What a motion means for beams: strains, forces and moments, strain energy along them; by name."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly import Assembly, as_assembly
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
    return along_beams(as_assembly(system), trajectory.q, lambda group, rows: group.strains(rows))


@along_trajectory
def stress_resultants(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear forces, axial force, bending moments and torque, along the directors: six values at every point."""
    return along_beams(as_assembly(system), trajectory.q, lambda group, rows: group.resultants(rows))


@along_trajectory
def strain_energy(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Strain energy of a unit of length."""
    return along_beams(as_assembly(system), trajectory.q, energy_density)


def energy_density(group: AbstractBeamGroup, rows: Rows) -> Float[Array, "elements points"]:
    """Strain energy of a unit of length at the points of integration."""
    return 0.5 * jnp.sum(group.strains(rows) * group.resultants(rows), axis=-1)


def along_beams(model: Assembly, q: Float[Array, "rows n"], read: Callable) -> dict[str, AlongBeam]:
    """A function of elements and frames in some positions, by the names of beams."""
    found = {}
    for group in model.beams:
        values = jax.vmap(lambda q, group=group: read(group, model.frames(q)))(q)
        cuts = np.cumsum(group.counts)[:-1]
        points = np.polynomial.legendre.leggauss(group.order)[0]
        places = jnp.split(distances(group, 0.5 * (points + 1), values.dtype), cuts)
        for name, s, part in zip(group.names, places, jnp.split(values, cuts, axis=1), strict=True):
            found[name] = AlongBeam(s.ravel(), part.reshape(part.shape[0], -1, *part.shape[3:]))
    return found


def distances(group: AbstractBeamGroup, fractions: np.ndarray, dtype) -> Float[Array, "elements points"]:
    """Distances of points from the start of their beam, at these fractions of elements, which are taken as evenly parametrised."""
    lengths = jnp.sum(group.measures(dtype), axis=1)
    begin = jnp.cumsum(lengths) - lengths
    first = np.repeat(np.cumsum([0, *group.counts[:-1]]), group.counts)
    return (begin - begin[first])[:, None] + lengths[:, None] * jnp.asarray(fractions, dtype)
