"""What follows from a Lagrangian and constraints by differentiation: momenta, mass, Jacobians, null spaces, velocities."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .errors import Result
from .newton import Newton
from .system import Scalar, System, Vector


def momentum(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Vector:
    r"""Continuous Legendre transform $p = \partial L/\partial v$."""
    return jax.grad(system.lagrangian, 2)(t, q, v, dt)


def mass_matrix(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Float[Array, "n n"]:
    r"""$M = \partial^2 L/\partial v^2$."""
    return jax.hessian(system.lagrangian, 2)(t, q, v, dt)


def energy(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar) -> Scalar:
    r"""$p \cdot v - L$, the Hamiltonian in terms of velocities."""
    return momentum(system, t, q, v, dt) @ v - system.lagrangian(t, q, v, dt)


def constraint_jacobian(system: System, t: Scalar, q: Vector) -> Float[Array, "m n"]:
    r"""$G = \partial g/\partial q$, by whichever mode is cheaper for its shape."""
    if not system.has("constraints"):
        return jnp.zeros((0, q.size), q.dtype)
    rows = jax.eval_shape(system.constraints, t, q).size
    jacobian = jax.jacrev if rows < q.size else jax.jacfwd
    return jacobian(system.constraints, 1)(t, q)


def constraint_rate(system: System, t: Scalar, q: Vector, v: Vector) -> Float[Array, " m"]:
    r"""$\dot g = G v + \partial g/\partial t$, zero for admissible velocities."""
    return jax.jvp(system.constraints, (t, q), (jnp.ones_like(t), v))[1]


class Frame(eqx.Module):
    r"""An orthonormal split of $R^n$ at one configuration, constant under differentiation.

    `rows` $B$ picks independent combinations of the constraints (`None`: all are independent), `normal` spans the
    range of $G^T$ and `tangent` its complement. `regular` says whether $G$ has the rank that was asked for.
    """

    rows: Float[Array, "r m"] | None
    normal: Float[Array, "n r"]
    tangent: Float[Array, "n d"]
    regular: Array

    @classmethod
    def trivial(cls, q: Vector) -> "Frame":
        """The frame of a formulation that needs none: all constraints count, and no directions are known."""
        none = jnp.zeros((q.size, 0), q.dtype)
        return cls(None, none, none, jnp.array(True))

    def independent(self, G: Float[Array, "m n"]) -> Float[Array, "r n"]:
        """The independent combinations of the rows of a constraint Jacobian."""
        return G if self.rows is None else self.rows @ G

    def pick(self, values: Float[Array, "... m"]) -> Float[Array, "... r"]:
        """The independent combinations of constraint values."""
        return values if self.rows is None else values @ self.rows.T


def rank_tolerance(dtype) -> float:
    """Relative size below which a singular value of the row-normalised $G$ counts as zero."""
    return float(jnp.finfo(dtype).eps) ** (2 / 3)


def numerical_rank(system: System, t: Scalar, q: Vector) -> Array:
    """Rank of the constraint Jacobian, its rows brought to unit length so that units do not matter."""
    G = constraint_jacobian(system, t, q)
    if G.size == 0:
        return jnp.array(0)
    size = jnp.linalg.norm(G, axis=1, keepdims=True)
    values = jnp.linalg.svd(G / jnp.where(size > 0, size, 1), compute_uv=False)
    return jnp.sum(values > rank_tolerance(q.dtype) * values[0])


def frame(system: System, t: Scalar, q: Vector) -> Frame:
    """Split $R^n$ at `q`: a QR decomposition (9), or for redundant constraints a singular value decomposition."""
    G = jax.lax.stop_gradient(constraint_jacobian(system, t, q))
    m, n = G.shape
    rank = m if system.rank is None else system.rank
    if rank == 0:
        rows = jnp.zeros((0, m), q.dtype) if m else None
        return Frame(rows, jnp.zeros((n, 0), q.dtype), jnp.eye(n, dtype=q.dtype), jnp.array(True))
    size = jnp.linalg.norm(G, axis=1)
    size = jnp.where(size > 0, size, 1)
    if rank == m:
        Q, R = jnp.linalg.qr((G / size[:, None]).T, mode="complete")
        return Frame(None, Q[:, :m], Q[:, m:], jnp.abs(jnp.diagonal(R)).min() > rank_tolerance(q.dtype))
    U, values, Vt = jnp.linalg.svd(G / size[:, None])
    found = jnp.sum(values > rank_tolerance(q.dtype) * values[0])
    return Frame((U[:, :rank] / size[:, None]).T, Vt[:rank].T, Vt[rank:].T, found == rank)


def correct_null_space(G: Float[Array, "r n"], N0: Float[Array, "n d"]) -> Float[Array, "n d"]:
    r"""$N = N_0 - G^T (G G^T)^{-1} G N_0$: a basis near `N0`, exactly in the null space of $G$ and smooth in $G$."""
    if G.shape[0] == 0:
        return N0
    return N0 - G.T @ jnp.linalg.solve(G @ G.T, G @ N0)


def null_space(system: System, t: Scalar, q: Vector, source: str, at: Frame) -> Float[Array, "n d"]:
    r"""A matrix $P(q)$ with $G P = 0$ (5): the user's, the chart's Jacobian at $u = 0$, or a corrected orthonormal basis."""
    if source == "user":
        return system.null_space(t, q)
    if source == "chart":
        u = jnp.zeros(chart_size(system, t, q), q.dtype)
        return jax.jacfwd(system.chart)(u, q, t, t)
    G = constraint_jacobian(system, t, q)
    return correct_null_space(at.independent(G), at.tangent)


def chart_size(system: System, t: Scalar, q: Vector) -> int:
    """Number of degrees of freedom: coordinates less independent constraints."""
    m = jax.eval_shape(system.constraints, t, q).size
    return q.size - (m if system.rank is None else system.rank)


def least_norm_multipliers(system: System, t: Scalar, q: Vector, reaction: Vector) -> Float[Array, " m"]:
    r"""The smallest $\Lambda$ with $G^T \Lambda$ = `reaction` (36)-(38).

    Redundant constraints are written as $G = C \hat G$ with independent rows $\hat G = B G$, so that
    $(G^T)^+ = C (C^T C)^{-1} (\hat G \hat G^T)^{-1} \hat G$ is smooth where the rank is constant.
    """
    G = constraint_jacobian(system, t, q)
    if G.shape[0] == 0:
        return jnp.zeros(0, q.dtype)
    if system.rank in (None, G.shape[0]):
        return jnp.linalg.solve(G @ G.T, G @ reaction)
    if system.rank == 0:
        return jnp.zeros(G.shape[0], q.dtype)
    independent = frame(system, t, q).independent(G)
    square = independent @ independent.T
    C = jnp.linalg.solve(square, independent @ G.T).T
    return C @ jnp.linalg.solve(C.T @ C, jnp.linalg.solve(square, independent @ reaction))


def velocity(system: System, t: Scalar, q: Vector, p: Vector, dt: Scalar, guess: Vector) -> Vector:
    r"""The admissible velocity of a momentum: $\partial L/\partial v + G^T \mu = p$ with $G v + \partial g/\partial t = 0$.

    Its own momentum is the projection $Q p$ (16). The mass matrix may be singular if it is regular on the null space of $G$.
    Not a number where no such velocity is found from the guess.
    """
    split = frame(system, t, q)
    start = jnp.concatenate([guess, jnp.zeros(split.normal.shape[1], q.dtype)])
    solution = Newton(line_search=True)(_legendre, start, (system, t, q, p, dt, split))
    return jnp.where(solution.result == Result.SUCCESS, solution.value[: q.size], jnp.nan)


def _legendre(x, args):
    system, t, q, p, dt, split = args
    v, mu = x[: q.size], x[q.size :]
    balance = momentum(system, t, q, v, dt) - p
    if mu.size == 0:
        return balance
    rows = split.independent(constraint_jacobian(system, t, q))
    return jnp.concatenate([balance + rows.T @ mu, split.pick(constraint_rate(system, t, q, v))])


def acceleration(system: System, t: Scalar, q: Vector, v: Vector, dt: Scalar, control: PyTree = None) -> tuple[Vector, Float[Array, " m"]]:
    r"""Acceleration and multipliers of the continuous motion (3), with the constraints differentiated twice.

    $\frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} + G^T \lambda = f$ and $\ddot g = 0$ are affine in
    $a$ and $\lambda$, so that Newton's method ends after one step; redundant constraints get their smallest multipliers.
    """
    split = frame(system, t, q)
    r = split.normal.shape[1]
    x = Newton()(_euler_lagrange, jnp.zeros(q.size + r, q.dtype), (system, t, q, v, dt, control, split)).value
    G = constraint_jacobian(system, t, q)
    rows = split.independent(G)
    return x[: q.size], least_norm_multipliers(system, t, q, rows.T @ x[q.size :])


def _euler_lagrange(x, args):
    system, t, q, v, dt, control, split = args
    a, mu = x[: q.size], x[q.size :]
    along = (jnp.ones_like(t), v, a)
    rate = jax.jvp(lambda t, q, v: momentum(system, t, q, v, dt), (t, q, v), along)[1]
    balance = rate - jax.grad(system.lagrangian, 1)(t, q, v, dt) - system.forces(t, q, v, control)
    if mu.size == 0:
        return balance
    rows = split.independent(constraint_jacobian(system, t, q))
    curvature = jax.jvp(lambda t, q, v: constraint_rate(system, t, q, v), (t, q, v), along)[1]
    return jnp.concatenate([balance + rows.T @ mu, split.pick(curvature)])
