r"""The two-node finite-volume beam (S2, appendix): chunks of a beam, each about a node, exchange one force and one moment at mid-span.

Positions are interpolated linearly (34), orientations by $R_1 \exp(N_2 \theta)$ with $\theta = \log R_1^T R_2$ (36), (37). At mid-span,
with the length $l$ of the reference, strains (33) are $R^T (x_2 - x_1)/l$ and $\theta/l$, less those of the reference. The force $f$ and
the moment $m$ there act on both nodes: (31), which is what nodes exert, with its sign turned. Their virtual power is

$$\mathcal P = -f \cdot (\dot x_2 - \dot x_1 - \tfrac12 (\omega_1 + \omega_2) \times (x_2 - x_1)) - m \cdot (\omega_2 - \omega_1),$$

zero for every rigid motion, so that linear and angular momentum are balanced. A potential $\frac l2 \varepsilon \cdot C \varepsilon$ has
the power $-l\,(f, m) \cdot \dot\varepsilon$ instead. With $\varphi = \frac12 |\theta|$, in the axes of the section at mid-span,
$\frac12 (\omega_1 + \omega_2)$ differs from the angular velocity of that section by
$\frac{1 - \cos\varphi}{4 \varphi^2}\,\theta \times \dot\theta$, and $\omega_2 - \omega_1$ from $\dot\theta$ by
$\frac{\varphi - \sin\varphi}{4 \varphi^3}\,\theta \times (\theta \times \dot\theta)$: nothing where $\theta$ keeps its axis, as in a plane,
and else of second order in $l$. The potential goes to the Lagrangian, the difference to the forces of a system, so that what schemes
promise for potentials holds up to the work of the difference. Conservative elements do without the difference.
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..geometry.frame import Rows
from ..geometry.rotation import from_cayley_vector
from .elements import PERMUTATIONS, AbstractLumpedElements

Ends = Float[Array, "2 4 3"]

SPINS = np.array([[(-1 / 4) ** k / (4 * math.factorial(2 * k + n)) for n in (2, 3)] for k in reversed(range(11))])
r"""Power series of both factors in $|\theta|^2 = 4 \varphi^2$, with all terms that matter up to half a turn."""


class AbstractFiniteVolumes(AbstractLumpedElements):
    """Two nodes each, and one point of integration at mid-span."""

    correctable: ClassVar[bool] = True

    def strains(self, rows: Rows) -> Float[Array, "elements 1 6"]:
        reference = jnp.asarray(self.reference, rows.dtype)
        change = jax.vmap(_displacement)(self.at_nodes(rows)) - jax.vmap(_displacement)(reference)
        return (change / self.measures(rows.dtype))[:, None]

    def measures(self, dtype) -> Float[Array, "elements 1"]:
        points = jnp.asarray(self.reference, dtype)[:, :, 0]
        return jnp.sqrt(jnp.sum((points[:, 1] - points[:, 0]) ** 2, axis=1, keepdims=True))


class ConservativeFiniteVolumes(AbstractFiniteVolumes):
    """Elements with the forces of their potential alone."""


class FiniteVolumes(AbstractFiniteVolumes):
    """Elements that balance force and moment of both chunks, by forces beside those of their potential."""

    @property
    def has_power(self) -> bool:
        return True

    def power(self, rows: Rows, virtual: Rows) -> Array:
        stress = self.resultants(rows) if self.stress is None else self.stress
        displacements, rates = jax.jvp(jax.vmap(_displacement), (self.at_nodes(rows),), (self.at_nodes(virtual),))
        return jnp.sum(stress[:, 0] * jax.vmap(_difference)(displacements, rates))


def _displacement(ends: Ends) -> Float[Array, "6"]:
    r"""$R^T (x_2 - x_1)$ and $\theta$ from the rows of two nodes.

    The mean of orthonormal directors has scalar products $\bar D \bar D^T$ with the eigenvalues $1, c^2, c^2$, $c = \cos \frac12 |\theta|$.
    The inverse of their root, $I + (I - \bar D \bar D^T)/(c\,(1 + c))$, turns it into the section half way. For other directors, as in the
    middle of a step, this is a smooth extension; it sees no rigid motion, being made of scalar products of rows.
    """
    mean, change = 0.5 * (ends[0, 1:] + ends[1, 1:]), ends[1] - ends[0]
    products, squares = mean @ change.T, mean @ mean.T
    square = 0.5 * (jnp.trace(squares) - 1)
    cosine = jnp.sqrt(square)
    bent = products[:, 0] - squares @ products[:, 0]
    sines = 0.5 * jnp.einsum("ijk,kj->i", jnp.asarray(PERMUTATIONS, mean.dtype), products[:, 1:])
    return jnp.concatenate([products[:, 0] + bent / (cosine * (1 + cosine)), from_cayley_vector(sines / square)])


def _difference(displacement: Float[Array, "6"], rate: Float[Array, "6"]) -> Float[Array, "6"]:
    """Rates of the displacements of an element, less those with which force and moment at mid-span have their power on both nodes."""
    rod, theta, turning = displacement[:3], displacement[3:], rate[3:]
    cross = lambda a, b: jnp.einsum("ijk,j,k->i", jnp.asarray(PERMUTATIONS, a.dtype), a, b)
    mean, rest = jnp.polyval(jnp.asarray(SPINS, theta.dtype), theta @ theta)
    about = cross(theta, turning)
    return jnp.concatenate([mean * cross(about, rod), -rest * cross(theta, about)])
