"""What a motion means for beams: strains, forces and moments, strain energy along them; by name."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..assembly.model import Assembly, as_assembly
from ..numerics.arrays import Indices
from ..simulation.trajectory import Trajectory
from ..system import System
from .directors import along_mechanism

Strains = Float[Array, "elements points 6"]
Sections = Float[Array, "elements 6 6"]


class AlongBeam(eqx.Module):
    """Values at the points of integration of a beam, `s` being their distance along the reference curve from its start."""

    s: Float[Array, " points"]
    values: Float[Array, "rows points ..."]


@along_mechanism("q")
def strains(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear along the first and second director, stretch, bending about both, torsion: six values at every point.

    Those of beams reduced with `ritz` are of the first order in the amplitudes, as their energy is.
    """
    return along_beams(as_assembly(system), trajectory.q, lambda stiffness, strains: strains)


@along_mechanism("q")
def stress_resultants(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Shear forces, axial force, bending moments and torque, along the directors: six values at every point."""
    return along_beams(as_assembly(system), trajectory.q, resultants)


@along_mechanism("q")
def strain_energy(system: System, trajectory: Trajectory) -> dict[str, AlongBeam]:
    """Strain energy of a unit of length."""
    return along_beams(as_assembly(system), trajectory.q, energy_density)


def resultants(stiffness: Sections, strains: Strains) -> Strains:
    """Forces and moments along the directors."""
    return jnp.einsum("eij,egj->egi", stiffness, strains)


def energy_density(stiffness: Sections, strains: Strains) -> Float[Array, "elements points"]:
    """Strain energy of a unit of length at the points of integration."""
    return 0.5 * jnp.sum(strains * resultants(stiffness, strains), axis=-1)


def along_beams(model: Assembly, q: Float[Array, "rows n"], read: Callable) -> dict[str, AlongBeam]:
    """A function of the stiffness and the strains of elements in some positions, by the names of beams."""
    found = {}
    for group, place in _elements(model):
        values = jax.vmap(lambda q, group=group, place=place: read(jnp.asarray(group.stiffness), group.strains(place(q))))(q)
        cuts = np.cumsum(group.counts)[:-1]
        places = jnp.split(distances(group.measures(q.dtype), group.counts, group.points), cuts)
        for name, s, along in zip(group.names, places, jnp.split(values, cuts, axis=1), strict=True):
            found[name] = AlongBeam(s.ravel(), along.reshape(along.shape[0], -1, *along.shape[3:]))
    return found


def distances(measures: Float[Array, "elements points"], counts: Indices, fractions: np.ndarray) -> Float[Array, "elements places"]:
    """Distances of places from the start of their beam, at these fractions of elements, which are taken as evenly parametrised."""
    lengths = jnp.sum(measures, axis=1)
    begin = jnp.cumsum(lengths) - lengths
    first = np.repeat(np.cumsum([0, *counts[:-1]]), counts)
    return (begin - begin[first])[:, None] + lengths[:, None] * jnp.asarray(fractions, lengths.dtype)


def _elements(model: Assembly) -> list[tuple[Any, Callable]]:
    """The elements of all beams, whether they are reduced or not, and what their strains are functions of."""
    reduced = [(group, lambda q, i=i: model.parts(q)[0][i]) for i, group in enumerate(model.groups) if group.flexible]
    return [*((group, model.frames) for group in model.beams), *reduced]
