r"""Cross-sections of beams: stiffness and inertia of a unit of length.

Strains are $\Gamma_i = d_i \cdot \varphi'$ less its value in the reference, and
$\kappa_1 = \frac12 (d_3 \cdot d_2' - d_2 \cdot d_3')$ and so on, likewise: shear along $d_1$ and $d_2$, stretch along $d_3$, bending about
$d_1$ and $d_2$, torsion about $d_3$.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.base import moments
from ..errors import ModelError
from ..numerics.arrays import known, library
from ..numerics.checks import not_negative, positive, real
from ..numerics.compile import compiled
from ..numerics.lapack import inverse


class Section(eqx.Module):
    r"""A cross-section in the plane of $d_1$ and $d_2$.

    **Arguments**

    - `stiffness`: the matrix from $(\Gamma_1, \Gamma_2, \Gamma_3, \kappa_1, \kappa_2, \kappa_3)$ to forces and moments along the directors,
      symmetric (6, 6), or its diagonal $(GA_1, GA_2, EA, EI_1, EI_2, GJ)$.
    - `mass`: of a unit of length, $A_\rho$ (114).
    - `second`: $M^1_\rho = \int \rho X_1^2\,dA$ and $M^2_\rho = \int \rho X_2^2\,dA$, or a matrix (2, 2) with their product.
    - `first`: $\int \rho X_1\,dA$ and $\int \rho X_2\,dA$, where the line of the beam is not that of its mass.
    """

    stiffness: Any
    mass: Any
    second: Any
    first: Any

    def __init__(self, stiffness, mass, second, first=(0.0, 0.0)):
        self.stiffness = _as_matrix(real("stiffness of a Section", stiffness, (6,), (6, 6)))
        self.second = _as_matrix(real("second moment of mass of a Section", second, (2,), (2, 2)))
        self.mass, self.first = positive("mass of a Section", mass), real("first moment of mass of a Section", first, (2,))
        _check(known(self.stiffness), known(self.second))

    @property
    def inertia_matrix(self) -> Any:
        r"""$\Theta$ of a unit of length: nothing falls on $d_3$, so that it is singular."""
        pad = lambda part: library(part).pad(part, (0, 1))
        return moments(self.mass, pad(self.first), pad(self.second))

    @classmethod
    def rectangle(cls, width, height, E, density, nu=0.3) -> "Section":
        r"""A rectangle with `width` along $d_1$ and `height` along $d_2$; its shear factor is $10 (1 + \nu)/(12 + 11 \nu)$."""
        width, height = positive("width of a section", width), positive("height of a section", height)
        nu = _poisson(nu)
        area, bending = width * height, (width * height**3 / 12, height * width**3 / 12)
        torsion, shear = _torsion_of_rectangle(width, height), 10 * (1 + nu) / (12 + 11 * nu)
        return cls._isotropic("width and height", area, bending, torsion, shear, E, density, nu)

    @classmethod
    def circle(cls, radius, E, density, nu=0.3) -> "Section":
        """A full circle."""
        return cls.tube(positive("radius of a section", radius), 0.0, E, density, nu)

    @classmethod
    def tube(cls, outer, inner, E, density, nu=0.3) -> "Section":
        """A circular tube with these radii; its shear factor is Cowper's."""
        outer, inner = positive("outer radius of a section", outer), not_negative("inner radius of a section", inner)
        if _seen(inner >= outer):
            raise ModelError(f"inner radius of a section, {inner}, must be smaller than the outer one, {outer}")
        nu = _poisson(nu)
        area, bending = np.pi * (outer**2 - inner**2), np.pi / 4 * (outer**4 - inner**4)
        square, thickness = (1 + (inner / outer) ** 2) ** 2, (inner / outer) ** 2
        shear = 6 * (1 + nu) * square / ((7 + 6 * nu) * square + (20 + 12 * nu) * thickness)
        return cls._isotropic("outer and inner radius", area, (bending, bending), 2 * bending, shear, E, density, nu)

    @classmethod
    def _isotropic(cls, sizes: str, area, bending, torsion, shear, E, density, nu) -> "Section":
        """From moments of area; powers of sizes that are too small or too large for a number are told by what they came from."""
        E, density = positive("E of a section", E), positive("density of a section", density)
        G = E / (2 * (1 + nu))
        stiffness = [shear * G * area, shear * G * area, E * area, E * bending[0], E * bending[1], G * torsion]
        told = f"of a Section, from its {sizes}, E, density and nu,"
        second = positive(f"second moment of mass {told}", _stacked([density * bending[1], density * bending[0]]), (2,))
        return cls(positive(f"stiffness {told}", _stacked(stiffness), (6,)), positive(f"mass {told}", density * area), second)


@compiled
def with_residual_bending(stiffness: Any, points: Float[Any, "nodes 3"]) -> Float[Array, "elements 6 6"]:
    r"""The stiffness of two-node elements between points that bend also by the moment that their own force has on the way along them.

    Force and moment at mid-span are $(f, m)$, at a distance $s$ from it the moment is $m - s\,d_3 \times f$. With $S = C^{-1}$ the energy
    of the element, $\frac12 \int \sigma \cdot S \sigma\,ds$, is then that of a compliance for $f$ increased by
    $\frac{l^2}{12} \hat d_3^T S_{mm} \hat d_3$: of a section with principal stiffness $1/GA^* = 1/GA + l^2/(12\,EI)$.
    """
    stiffness = jnp.asarray(stiffness)
    lengths = jnp.linalg.norm(jnp.diff(points, axis=0), axis=1)
    compliance = jax.vmap(inverse)(stiffness)
    arm = jnp.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]], stiffness.dtype)
    bending = jnp.einsum("e,ki,ekl,lj->eij", lengths.astype(stiffness.dtype) ** 2 / 12, arm, compliance[:, 3:, 3:], arm)
    corrected = jax.vmap(inverse)(compliance.at[:, :3, :3].add(bending))
    return 0.5 * (corrected + jnp.swapaxes(corrected, 1, 2))


def _torsion_of_rectangle(width: Any, height: Any) -> Any:
    """The torsion constant of a rectangle after Saint-Venant."""
    xp = library(width, height)
    long, short = xp.maximum(width, height), xp.minimum(width, height)
    odd = np.arange(1, 40, 2)
    series = xp.sum(xp.tanh(odd * np.pi * long / (2 * short)) / odd**5.0)
    return long * short**3 * (1 / 3 - 64 / np.pi**5 * short / long * series)


def _stacked(values: list) -> Any:
    return jnp.stack(values) if library(*values) is jnp else np.array(values, float)


def _as_matrix(value: Any) -> Any:
    """A diagonal as a matrix."""
    return value[:, None] * np.eye(value.shape[0], dtype=value.dtype) if value.ndim == 1 else value


def _poisson(nu: Any) -> Any:
    return real("nu of a section", nu, holds=lambda nu: (nu > -1) & (nu <= 0.5), what="above -1 and at most 0.5")


def _seen(truth: Any) -> bool:
    """Whether something holds, and is not hidden."""
    return bool(known(truth))


def _check(stiffness: np.ndarray | None, second: np.ndarray | None) -> None:
    for name, matrix in (("stiffness", stiffness), ("second moment of mass", second)):
        if matrix is None:
            continue
        if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0):
            raise ModelError(f"the {name} of a section must be symmetric, not {matrix.tolist()}")
        if np.linalg.eigvalsh(matrix)[0] <= 0:
            raise ModelError(f"the {name} of a section must be positive definite, not {matrix.tolist()}")
