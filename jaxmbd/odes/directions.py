r"""What linear constraints $A x = b$ forbid and admit at one instant, by Moore-Penrose inverses: redundant ones are welcome.

Coordinates are counted in sizes $S$ of their own and constraints in the lengths $D$ of the rows of $A S$, so that nothing depends on units:
$\tilde A = D^{-1} A S$ has rows of unit length, and all follows from one matrix $\tilde A^+$.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..constraints.units import row_size
from ..numerics.lapack import pinv, solve
from ..system import Vector

Matrix = Float[Array, "n n"]


class Directions(eqx.Module):
    r"""$\tilde A = D^{-1} A S$ and its Moore-Penrose inverse; rows that differ by less than `cutoff` count as one, none does without."""

    rows: Float[Array, "m n"]
    inverse: Float[Array, "n m"]
    size: Vector
    length: Float[Array, " m"]
    cutoff: Float[Array, ""] | None
    shared: bool = eqx.field(static=True)

    @classmethod
    def of(cls, A: Float[Array, "m n"], size: Vector, cutoff: Float[Array, ""] | None, by_work: bool = True) -> "Directions":
        """Those of the rows of a matrix; `cutoff` is the relative size of singular values that count as zero, `None` for independent rows.

        Redundant rows share what they hold so that multipliers are small `by_work`, times the length of their row, or as numbers.
        """
        length = row_size(A * size)
        rows = A * size / length[:, None]
        inverse = solve(rows @ rows.T, rows).T if cutoff is None else pinv(rows, cutoff)
        return cls(rows, inverse, size, length, cutoff, cutoff is not None and not by_work)

    def correction(self, residual: Float[Array, " m"], W: Matrix | None = None) -> tuple[Vector, Float[Array, " m"]]:
        r"""The smallest change $c$ with $A c = -r$, and the multipliers in $W c + A^T \mu = 0$: those of (14a), (16), (17).

        Small is what $c^T W c$ says, without a weight $|S^{-1} c|^2$.
        """
        if W is not None:
            return self.constrained(W, jnp.zeros_like(self.size), -residual)
        change = -self.inverse @ (residual / self.length)
        return self.size * change, self._multipliers(-change)

    def met(self, residual: Float[Array, " m"], v: Vector, change: Vector) -> Bool[Array, ""]:
        """Whether a correction takes the residual of a velocity away, up to rounding of its terms: it does unless rows contradict."""
        if self.cutoff is None:
            return jnp.array(True)
        rates, before, moved = residual / self.length, v / self.size, change / self.size
        speed = jnp.max(jnp.maximum(jnp.abs(before), jnp.abs(before + moved)))
        terms = speed + jnp.abs(rates - self.rows @ before)
        return jnp.all(jnp.abs(rates + self.rows @ moved) <= (jnp.finfo(v.dtype).eps ** 0.5 + self.cutoff) * terms)

    def constrained(self, M: Matrix, f: Vector, b: Float[Array, " m"]) -> tuple[Vector, Float[Array, " m"]]:
        r"""$M a + A^T \lambda = f$ with $A a = b$, of which the multipliers are the smallest ones: (11b), (14b).

        $M$ may be singular where the constraints determine the rest: it is only inverted on what they admit.
        """
        M, f, given = self.size[:, None] * M * self.size, self.size * f, self.inverse @ (b / self.length)
        admitted = lambda x: x - self.inverse @ (self.rows @ x)
        Q = admitted(jnp.eye(self.size.size, dtype=f.dtype))
        inertia = jax.lax.stop_gradient(jnp.max(jnp.abs(jnp.diagonal(M))))
        reduced = Q.T @ M @ Q + jnp.where(inertia > 0, inertia, 1) * (jnp.eye(self.size.size, dtype=f.dtype) - Q)
        a = given + admitted(solve(reduced, Q.T @ (f - M @ given)))
        return self.size * a, self._multipliers(f - M @ a)

    def _multipliers(self, reaction: Vector) -> Float[Array, " m"]:
        r"""The smallest $\lambda$ with $S A^T \lambda$ = `reaction`."""
        works = self.inverse.T @ reaction
        if not self.shared:
            return works / self.length
        one = jnp.eye(self.length.size, dtype=reaction.dtype)
        idle, number = one - self.rows @ self.inverse, (jnp.min(self.length) / self.length) ** 2
        works = works - idle @ solve(idle @ (number[:, None] * idle) + one - idle, idle @ (number * works))
        return works / self.length

    def inverse_for(self, W: Matrix | None) -> Float[Array, "n m"]:
        r"""$W^{-1} A^T (A W^{-1} A^T)^+$: what corrects residuals of the constraints with the weight $W$."""
        count = self.length.size
        return -jax.vmap(lambda r: self.correction(r, W)[0], out_axes=1)(jnp.eye(count, dtype=self.size.dtype))
