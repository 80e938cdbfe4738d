"""What a motion means for beams: strains, forces and moments, strain energy along them; by name."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly import as_assembly
from ..floating import RitzModel
from ..groups import Indices
from ..system import System
from ..trajectory import Trajectory
from .along import along_trajectory

Strains = Float[Array, "elements points 6"]
Sections = Float[Array, "elements 6 6"]


class AlongBeam(eqx.Module):
    """Values at the points of integration of a beam, `s` being their distance along the reference curve from its start."""

    s: Float[Array, " points"]
    values: Float[Array, "rows points ..."]


@along_trajectory
def strains(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear along the first and second director, stretch, bending about both, torsion: six values at every point.

    Those of beams reduced with `ritz` are of the first order in the amplitudes, as their energy is.
    """
    return _along(system, trajectory, lambda stiffness, strains: strains)


@along_trajectory
def stress_resultants(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear forces, axial force, bending moments and torque, along the directors: six values at every point."""
    return _along(system, trajectory, _resultants)


@along_trajectory
def strain_energy(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Strain energy of a unit of length."""
    return _along(system, trajectory, lambda stiffness, strains: 0.5 * jnp.sum(strains * _resultants(stiffness, strains), axis=-1))


def _resultants(stiffness: Sections, strains: Strains) -> Strains:
    return jnp.einsum("eij,egj->egi", stiffness, strains)


class _Elements(NamedTuple):
    """Elements of beams one after the other, `counts` of each, and how their strains follow from coordinates."""

    names: tuple[str, ...]
    counts: Indices
    lengths: Float[Array, "elements points"]
    stiffness: Sections
    strains: Callable


def _elements(system: System, dtype) -> list[_Elements]:
    """The elements of all beams, whether they are reduced or not."""
    reduced = isinstance(system.params, RitzModel)
    model = system.params.rest if reduced else as_assembly(system)
    frames = lambda q: model.frames(system.params.coordinates(q) if reduced else q)
    found = [
        _Elements(
            group.names, group.counts, group.measures(dtype), jnp.asarray(group.stiffness), lambda q, group=group: group.strains(frames(q))
        )
        for group in model.beams
    ]
    for index, group in enumerate(system.params.beams if reduced else ()):
        lengths, sections = (part.reshape(-1, *part.shape[2:]) for part in (group.lengths, group.sections))
        at = lambda q, index=index, group=group: group.strains_at(system.params.parts(q)[1][index])
        found.append(_Elements(group.names, (group.lengths.shape[1],) * group.count, lengths, sections, at))
    return found


def _along(system: System, trajectory: Trajectory, read: Callable) -> dict[str, AlongBeam]:
    found = {}
    for part in _elements(system, trajectory.q.dtype):
        values = jax.vmap(lambda q, part=part: read(part.stiffness, part.strains(q)))(trajectory.q)
        cuts = np.cumsum(part.counts)[:-1]
        places = jnp.split(_distances(part), cuts)
        for name, s, along in zip(part.names, places, jnp.split(values, cuts, axis=1), strict=True):
            found[name] = AlongBeam(s.ravel(), along.reshape(along.shape[0], -1, *along.shape[3:]))
    return found


def _distances(part: _Elements) -> Float[Array, "elements points"]:
    """Distances of the points of integration from the start of their beam; elements are taken as evenly parametrised."""
    lengths = jnp.sum(part.lengths, axis=1)
    begin = jnp.cumsum(lengths) - lengths
    first = np.repeat(np.cumsum([0, *part.counts[:-1]]), part.counts)
    fractions = 0.5 * (np.polynomial.legendre.leggauss(part.lengths.shape[1])[0] + 1)
    return (begin - begin[first])[:, None] + lengths[:, None] * jnp.asarray(fractions, lengths.dtype)
