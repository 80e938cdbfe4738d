"""Dense matrices: derivatives, and batches that never share out the threads of a program among several calls."""

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxmbd as mbd
from jaxmbd.numerics import lapack

from .mechanisms import chain, stretched

LIBRARIES = ("jnp.linalg", "jax.numpy.linalg", "jax.scipy.linalg", "jax.lax.linalg")
HARMLESS = {"norm", "block_diag", "det"}
"""What calls no library routine; determinants only up to three rows, which is all that is asked for."""
SPREAD = 200_000
"""Operations, as jaxlib counts them, from which on it spreads a stack of matrices over threads."""


def matrices(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape)) + 3 * jnp.eye(*shape[-2:])


def stacks(function, *args):
    """Count and operations, at most, of the matrices in every call of a library routine in a compiled function."""
    calls = re.findall(r"custom_call @lapack_(\w+?)_ffi\(.*?\).*?: \((.*?)\) ->", jax.jit(function).lower(*args).as_text())
    assert calls, "no library routine is called"
    for name, operands in calls:
        dims = [[int(dim) for dim in shape.split("x")[:-1]] for shape in re.findall(r"tensor<(.*?)>", operands)]
        count = int(np.prod(dims[0][:-2], dtype=int))
        cube = int(np.prod([dims[0][-2], dims[0][-1], max(dims[0][-2:] + dims[-1][-1:])], dtype=int))
        yield count, count * cube * (1 if name[1:] in ("getrf", "trsm") else 10)


@pytest.mark.parametrize("transform", [lambda f: f, jax.grad, jax.hessian, lambda f: jax.jacfwd(jax.jacfwd(f))])
@pytest.mark.parametrize("batched_first", [True, False])
def test_solutions_and_derivatives_in_a_batch_are_those_of_single_matrices(transform, batched_first):
    A, b = matrices(3, 5, 5), matrices(3, 5, 1)[..., 0]

    def through(solve):
        one = lambda A, b: jnp.sum(jnp.sin(solve(A, b)))
        if batched_first:
            return jax.jit(transform(lambda A, b: jnp.sum(jax.vmap(one)(A, b))))(A, b)
        return jax.jit(jax.vmap(transform(one)))(A, b)

    np.testing.assert_allclose(through(lapack.solve), through(jnp.linalg.solve), rtol=0, atol=3e-14)


@pytest.mark.parametrize("transposed", [False, True])
def test_solutions_do_not_depend_on_units(transposed):
    """Rows as of momenta beside rows as of constraints: without scaling, pivots are taken from the rows with large numbers alone."""
    rng = np.random.default_rng(1)
    A, b = jnp.asarray(rng.normal(size=(8, 8))), jnp.asarray(rng.normal(size=8))
    A = A.at[:4, :4].multiply(1e-13)
    rows, columns = jnp.asarray(10.0 ** rng.integers(-12, 12, 8)), jnp.asarray(10.0 ** rng.integers(-4, 4, 8))
    scaled = lapack.LU.of(rows[:, None] * A * columns)
    x = lapack.LU.of(A).solve(b, transposed)
    in_units = scaled.solve(b * columns, True) * rows if transposed else scaled.solve(b * rows) * columns
    np.testing.assert_allclose(in_units, x, rtol=1e-11)


def test_pseudo_inverse_has_the_derivative_along_matrices_of_its_rank():
    tall, wide = matrices(4, 3), matrices(3, 5, seed=1)
    function = jax.jit(lambda tall, wide: lapack.pinv(tall @ wide, 1e-10))
    np.testing.assert_allclose(function(tall, wide), np.linalg.pinv(tall @ wide, 1e-10), rtol=0, atol=1e-15)
    check_grads(function, (tall, wide), order=2, eps=1e-4)
    check_grads(jax.jit(lambda A: lapack.pinv(A, 1e-10)), (jnp.eye(3, 5),), order=2, eps=1e-4)  # of equal singular values


def test_eigenvalues_of_equal_size_have_finite_derivatives():
    """Two equal oscillators: what their masses do to the frequencies is known, whichever vectors were chosen."""
    squares = lambda masses: jnp.sum(jnp.sin(lapack.generalised_eigh(jnp.diag(jnp.array([2.0, 2.0, 5.0])), jnp.diag(masses))[0]))
    masses = jnp.array([1.0, 1.0, 3.0])
    expected = jnp.cos(jnp.array([2.0, 2.0, 5 / 3])) * -jnp.array([2.0, 2.0, 5 / 9])
    np.testing.assert_allclose(jax.grad(squares)(masses), expected, rtol=0, atol=1e-14)
    vectors = lambda masses: lapack.generalised_eigh(jnp.diag(jnp.array([2.0, 2.0, 5.0])), jnp.diag(masses))[1]
    assert jnp.all(jnp.isfinite(jax.jacrev(vectors)(masses)))


def test_derivatives_of_eigenvectors():
    @jax.jit
    def function(K, M):
        squares, vectors = lapack.generalised_eigh(K + K.T, M @ M.T)
        return squares, vectors**2

    check_grads(function, (matrices(4, 4), matrices(4, 4, seed=1)), order=2, eps=1e-4)


ROUTINES = {
    "solve": lambda A: lapack.solve(A, A[:, 0]),
    "inverse": lapack.inverse,
    "pinv": lapack.pinv,
    "qr": lambda A: lapack.qr(A[:, : A.shape[1] // 2 + 1]),
    "svd": lapack.svd,
    "singular values": lapack.singular_values,
    "eigh": lambda A: lapack.generalised_eigh(A + A.T, A @ A.T),
    "derivatives": jax.jacrev(jax.jacfwd(lambda A: lapack.solve(A, A[:, 0]))),
}


@pytest.mark.parametrize("shape", [(500, 3), (3, 200, 6), (2, 3, 40), (7, 3, 5, 8)], ids=str)
@pytest.mark.parametrize("name", ROUTINES)
def test_no_stack_is_long_enough_to_be_spread_over_threads(name, shape):
    function = ROUTINES[name]
    for _ in shape[:-1]:
        function = jax.vmap(function)
    found = list(stacks(function, jax.ShapeDtypeStruct((*shape, shape[-1]), jnp.float64)))
    assert all(count == 1 or operations < SPREAD for count, operations in found), found


def test_a_stack_in_place_of_a_matrix_is_an_error():
    with pytest.raises(mbd.ModelError, match=r"one matrix, but got shapes \[\(3, 5, 5\)\]; use jax.vmap"):
        lapack.singular_values(matrices(3, 5, 5))


def test_short_stacks_are_one_call():
    assert [count for count, _ in stacks(jax.vmap(lapack.inverse), matrices(50, 5, 5))] == [50, 50, 50]


@pytest.mark.parametrize("name", ["solve", "inverse", "qr", "svd"])
def test_blocks_give_what_single_matrices_give(name):
    """A batch of batches that ends in the middle of a block."""
    A = matrices(3, 37, 16, 16)
    together = jax.tree.leaves(jax.vmap(jax.vmap(ROUTINES[name]))(A))
    alone = zip(*(jax.tree.leaves(ROUTINES[name](one)) for one in A.reshape(-1, 16, 16)), strict=True)
    for found, expected in zip(together, alone, strict=True):
        np.testing.assert_allclose(found.reshape(-1, *expected[0].shape), expected, rtol=0, atol=1e-14)


def test_other_backends_keep_batches():
    args = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((40, 30, 30), (40, 30))]
    program = jax.export.export(jax.jit(jax.vmap(lapack.solve)), platforms=["cuda"])(*args).mlir_module()
    assert "tensor<40x30x30xf64>" in program and "while" not in program


CASES = [(mbd.Multipliers(), mbd.linear.Dense()), (mbd.NullSpace(), mbd.linear.Sparse()), (mbd.Reparametrised(), mbd.linear.Dense())]


@pytest.mark.parametrize(("formulation", "linear"), CASES, ids=lambda one: type(one).__name__)
def test_a_batch_of_motions_calls_no_routine_with_a_long_stack(formulation, linear):
    options = {"formulation": formulation, "newton": mbd.Newton(linear=linear), "save": "end", "dt": 1e-2, "steps": 2}
    end = lambda v0: jnp.sum(mbd.simulate(chain(12), stretched(12), v0 * jnp.ones(24), **options).q[-1])
    found = list(stacks(jax.vmap(jax.value_and_grad(end)), jnp.zeros(30)))
    assert all(count == 1 or operations < SPREAD for count, operations in found), found


def test_only_one_module_calls_routines_that_jax_would_batch():
    for path in Path(mbd.__file__).parent.rglob("*.py"):
        if path.name != "lapack.py":
            nodes = list(ast.walk(ast.parse(path.read_text())))
            used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and ast.unparse(node.value) in LIBRARIES}
            imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
            assert used <= HARMLESS and not imported & set(LIBRARIES), f"{path.name} calls routines that can stand still under vmap"


def test_many_batches_at_once_come_to_an_end():
    """In a process of its own, which can be ended: with stacks shared out among threads it stands still within a second."""
    program = """
        import jax, jax.numpy as jnp
        from jaxmbd.numerics import lapack

        step = lambda _, now: [A + 1e-3 * jax.vmap(lapack.inverse)(A) for A in now]
        run = jax.jit(lambda now: jax.lax.fori_loop(0, 1000, step, now))
        print(float(jnp.max(run(6 * [jnp.eye(60) + 0.1 * jnp.ones((3, 60, 60))])[0])))
    """
    environment = {"PATH": "", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=true"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=300, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert np.isfinite(float(done.stdout))
