"""What a motion means for beams: strains, forces and moments, strain energy along them; by name."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly.model import Assembly, as_assembly
from ..numerics.arrays import Indices
from ..reduction.floating_frame import RitzModel
from ..simulation.trajectory import Trajectory
from ..system import System
from .along import along_trajectory

Strains = Float[Array, "elements points 6"]
Sections = Float[Array, "elements 6 6"]


class AlongBeam(eqx.Module):
    """Values at the points of integration of a beam, `s` being their distance along the reference curve from its start."""

    s: Float[Array, " points"]
    values: Float[Array, "rows points ..."]


@along_trajectory("q")
def strains(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear along the first and second director, stretch, bending about both, torsion: six values at every point.

    Those of beams reduced with `ritz` are of the first order in the amplitudes, as their energy is.
    """
    return along_beams(_model(system), trajectory.q, lambda stiffness, strains: strains)


@along_trajectory("q")
def stress_resultants(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear forces, axial force, bending moments and torque, along the directors: six values at every point."""
    return along_beams(_model(system), trajectory.q, resultants)


@along_trajectory("q")
def strain_energy(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Strain energy of a unit of length."""
    return along_beams(_model(system), trajectory.q, energy_density)


def resultants(stiffness: Sections, strains: Strains) -> Strains:
    """Forces and moments along the directors."""
    return jnp.einsum("eij,egj->egi", stiffness, strains)


def energy_density(stiffness: Sections, strains: Strains) -> Float[Array, "elements points"]:
    """Strain energy of a unit of length at the points of integration."""
    return 0.5 * jnp.sum(strains * resultants(stiffness, strains), axis=-1)


def along_beams(model: Assembly | RitzModel, q: Float[Array, "rows n"], read: Callable) -> dict[str, AlongBeam]:
    """A function of the stiffness and the strains of elements in some positions, by the names of beams."""
    found = {}
    for part in _elements(model, q.dtype):
        values = jax.vmap(lambda q, part=part: read(part.stiffness, part.strains(q)))(q)
        cuts = np.cumsum(part.counts)[:-1]
        places = jnp.split(distances(part.measures, part.counts, part.points), cuts)
        for name, s, along in zip(part.names, places, jnp.split(values, cuts, axis=1), strict=True):
            found[name] = AlongBeam(s.ravel(), along.reshape(along.shape[0], -1, *along.shape[3:]))
    return found


def distances(measures: Float[Array, "elements points"], counts: Indices, fractions: np.ndarray) -> Float[Array, "elements places"]:
    """Distances of places from the start of their beam, at these fractions of elements, which are taken as evenly parametrised."""
    lengths = jnp.sum(measures, axis=1)
    begin = jnp.cumsum(lengths) - lengths
    first = np.repeat(np.cumsum([0, *counts[:-1]]), counts)
    return (begin - begin[first])[:, None] + lengths[:, None] * jnp.asarray(fractions, lengths.dtype)


class _Elements(NamedTuple):
    """Elements of beams one after the other, `counts` of each, and how their strains follow from coordinates."""

    names: tuple[str, ...]
    counts: Indices
    points: Float[np.ndarray, " points"]
    measures: Float[Array, "elements points"]
    stiffness: Sections
    strains: Callable


def _elements(model: Assembly | RitzModel, dtype) -> list[_Elements]:
    """The elements of all beams, whether they are reduced or not."""
    if isinstance(model, Assembly):
        return _full(model, lambda q: q, dtype)
    found = _full(model.rest, model.coordinates, dtype)
    for index, group in enumerate(model.beams):
        lengths, sections = (part.reshape(-1, *part.shape[2:]) for part in (group.lengths, group.sections))
        read = lambda q, index=index, group=group: group.strains_at(model.parts(q)[1][index])
        counts = (group.lengths.shape[1],) * group.count
        found.append(_Elements(group.names, counts, np.array(group.points), lengths, sections, read))
    return found


def _full(model: Assembly, coordinates: Callable, dtype) -> list[_Elements]:
    found = []
    for group in model.beams:
        read = lambda q, group=group: group.strains(model.frames(coordinates(q)))
        stiffness = jnp.asarray(group.stiffness)
        found.append(_Elements(group.names, group.counts, group.points, group.measures(dtype), stiffness, read))
    return found


def _model(system: System) -> Assembly | RitzModel:
    return system.params if isinstance(system.params, RitzModel) else as_assembly(system)
