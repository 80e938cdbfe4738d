"""Library routines for dense matrices that never share out a batch among threads.

Under `jax.vmap` a routine gets a stack of matrices. On CPUs jaxlib spreads a long one over the threads that run the program, and waits for
them: several such calls at once can take all threads and wait for each other forever. Here a batch becomes a loop over blocks too short to
be spread, whatever transformations are around; on other backends it stays a batch.
"""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.lax.linalg import lu, triangular_solve
from jaxtyping import Array, Float, Int

from ..errors import ModelError

SHORT = 100_000
"""Operations of a block; jaxlib spreads a stack from twice as many on."""


def unthreaded(function: Callable, work: int = 10, by_columns: bool = False) -> Callable:
    """A function of vectors and matrices that calls library routines, without derivatives; it may be batched by any `jax.vmap`.

    `work` times the cube of the largest dimension are the operations of one call, at most. `by_columns` tells that columns of the last
    argument do not depend on each other: a batch of that argument alone is more columns.
    """

    def call(*args):
        if any(arg.ndim > 2 for arg in args):
            raise ModelError(
                f"jaxmbd.lapack takes one matrix, but got shapes {[arg.shape for arg in args]}; use jax.vmap for a stack of them"
            )
        operations = work * max(max(arg.shape) for arg in args) ** 3
        return _in_blocks(function, operations, by_columns)(*jax.lax.stop_gradient(args))

    return call


def _in_blocks(function: Callable, operations: int, by_columns: bool = False) -> Callable:
    """The function with a rule for batches, which holds for batches of batches too."""
    single = custom_vmap(function)

    @single.def_vmap
    def batch(size, batched, *args):
        if by_columns and not any(batched[:-1]):
            wide = _in_blocks(function, size * operations, by_columns)
            return _as_columns(functools.partial(wide, *args[:-1]), args[-1]), True
        axes = tuple(0 if varies else None for varies in batched)
        at_once, in_turn = _in_blocks(jax.vmap(function, axes), size * operations), functools.partial(_in_turn, single, axes, operations)
        outcome = at_once(*args) if size * operations <= SHORT else jax.lax.platform_dependent(*args, cpu=in_turn, default=at_once)
        return outcome, jax.tree.map(lambda _: True, outcome)

    return single


def _in_turn(function: Callable, axes: tuple[int | None, ...], operations: int, *args: Array):
    """The function for a batch, block by block."""
    rows, block = [arg for arg, axis in zip(args, axes, strict=True) if axis == 0], SHORT // operations
    merged = lambda row: [next(row) if axis == 0 else arg for arg, axis in zip(args, axes, strict=True)]
    return jax.lax.map(lambda row: function(*merged(iter(row))), rows, batch_size=block if block > 1 else None)


def _as_columns(function: Callable, batch: Float[Array, "batch k c"]) -> Float[Array, "batch k c"]:
    """The function for a batch of matrices, put side by side."""
    beside = jnp.moveaxis(batch, 0, 1)
    return jnp.moveaxis(function(beside.reshape(beside.shape[0], -1)).reshape(beside.shape), 1, 0)


class LU(eqx.Module):
    """The triangular factors of a square matrix, and the order of its rows; derivatives are not followed.

    Rows and columns are first brought to alike sizes, so that the choice of pivots does not depend on units.
    """

    factors: Float[Array, "k k"]
    order: Int[Array, " k"]
    rows: Float[Array, " k"]
    columns: Float[Array, " k"]

    @classmethod
    def of(cls, matrix: Float[Array, "k k"]) -> "LU":
        """Gaussian elimination with partial pivoting."""
        matrix = jax.lax.stop_gradient(matrix)
        rows, columns = _equilibrating(matrix)
        factors, order = _factorise(rows[:, None] * matrix * columns)
        return cls(factors, order, rows, columns)

    def solve(self, rhs: Float[Array, "k *columns"], transposed: bool = False) -> Float[Array, "k *columns"]:
        """Solve with the matrix or its transpose."""
        through, before, after = (_through_transposed, self.columns, self.rows) if transposed else (_through, self.rows, self.columns)
        b = rhs if rhs.ndim == 2 else rhs[:, None]
        return (after[:, None] * through(self.factors, self.order, before[:, None] * b)).reshape(rhs.shape)


def _equilibrating(matrix: Float[Array, "k k"], sweeps: int = 2) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Factors of rows and columns that bring the largest number of each towards one (Ruiz 2001): powers of two, which do not round."""
    sizes, rows, columns = jnp.abs(matrix), jnp.ones(len(matrix), matrix.dtype), jnp.ones(len(matrix), matrix.dtype)
    shrink = lambda largest: jnp.exp2(-jnp.round(0.5 * jnp.log2(jnp.where(largest > 0, largest, 1))))
    for _ in range(sweeps):
        now = rows[:, None] * sizes * columns
        rows, columns = rows * shrink(jnp.max(now, axis=1)), columns * shrink(jnp.max(now, axis=0))
    return rows, columns


def solve(matrix: Float[Array, "k k"], rhs: Float[Array, "k *columns"]) -> Float[Array, "k *columns"]:
    """The solution of a linear system, with derivatives of any order; of none, nothing."""
    if matrix.shape[0] == 0:
        return rhs
    factors = LU.of(matrix)
    forward, backward = lambda _, b: factors.solve(b), lambda _, b: factors.solve(b, transposed=True)
    return jax.lax.custom_linear_solve(lambda x: matrix @ x, rhs, forward, backward)


def inverse(matrix: Float[Array, "k k"]) -> Float[Array, "k k"]:
    """The inverse, with derivatives of any order."""
    return solve(matrix, jnp.eye(matrix.shape[0], dtype=matrix.dtype))


def pinv(matrix: Float[Array, "m k"], rcond: Float[Array, ""] | float | None = None) -> Float[Array, "k m"]:
    """The pseudo-inverse; its derivative is that along matrices of the same rank.

    Singular values that are not larger than `rcond` times the largest one count as zero.
    """
    if matrix.size == 0:
        return matrix.T
    cutoff = 10 * max(matrix.shape) * float(jnp.finfo(matrix.dtype).eps) if rcond is None else rcond
    return _pinv(matrix, jnp.asarray(cutoff, matrix.dtype))


@jax.custom_jvp
def _pinv(matrix: Float[Array, "m k"], rcond: Float[Array, ""]) -> Float[Array, "k m"]:
    U, values, Vt = thin_svd(matrix)
    kept = values > rcond * values[0]
    return (Vt.T * jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)) @ U.T


@_pinv.defjvp
def _pinv_jvp(primals, tangents):
    (A, rcond), (dA, _) = primals, tangents
    P = _pinv(A, rcond)
    beside_range, beside_kernel = dA.T - (dA.T @ A) @ P, dA.T - P @ (A @ dA.T)
    return P, P @ (P.T @ beside_range) + (beside_kernel @ P.T) @ P - P @ dA @ P


@jax.custom_jvp
def generalised_eigh(K: Float[Array, "d d"], M: Float[Array, "d d"]) -> tuple[Float[Array, " d"], Float[Array, "d d"]]:
    r"""Eigenvalues and vectors of $K \phi = \omega^2 M \phi$, with $\phi^T M \phi = 1$, of symmetric matrices."""
    return _all_pairs(K, M)


@generalised_eigh.defjvp
def _eigh_jvp(primals, tangents):
    """Vectors change by shares of each other; those of one eigenvalue share only what keeps them orthogonal."""
    squares, vectors = generalised_eigh(*primals)
    stiffness, mass = (vectors.T @ tangent @ vectors for tangent in tangents)
    change, apart = stiffness - squares * mass, squares - squares[:, None]
    shares = jnp.where(apart == 0, -0.5 * mass, change / jnp.where(apart == 0, 1, apart))
    return (squares, vectors), (jnp.diagonal(change), vectors @ shares)


qr = unthreaded(lambda A: jnp.linalg.qr(A, mode="complete"))
svd = unthreaded(lambda A: jnp.linalg.svd(A))
thin_svd = unthreaded(lambda A: jnp.linalg.svd(A, full_matrices=False), work=30)
singular_values = unthreaded(lambda A: jnp.linalg.svd(A, compute_uv=False))


@functools.partial(unthreaded, work=1)
def _factorise(matrix):
    factors, _, order = lu(matrix)
    return factors, order


_lower = functools.partial(triangular_solve, left_side=True, lower=True, unit_diagonal=True)
_upper = functools.partial(triangular_solve, left_side=True)


@functools.partial(unthreaded, work=1, by_columns=True)
def _through(factors, order, rhs):
    return _upper(factors, _lower(factors, rhs[order]))


@functools.partial(unthreaded, work=1, by_columns=True)
def _through_transposed(factors, order, rhs):
    return jnp.zeros_like(rhs).at[order].set(_lower(factors, _upper(factors, rhs, transpose_a=True), transpose_a=True))


@unthreaded
def _all_pairs(K, M):
    L = jnp.linalg.cholesky(M)
    solve = lambda B: jax.scipy.linalg.solve_triangular(L, B, lower=True)
    squares, vectors = jnp.linalg.eigh(solve(solve(K).T))
    return squares, jax.scipy.linalg.solve_triangular(L, vectors, lower=True, trans=1)
