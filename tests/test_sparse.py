"""Sparse tangents: patterns found from operations, elimination by levels, and the choice of a solver."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.numerics.linear import Layout, analyse
from jaxmbd.numerics.linear.sparse.pattern import jacobian_pattern

SIZE = 12
NEIGHBOURS = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])


def rows(x):
    return x.reshape(-1, 3)


FUNCTIONS = {
    "differences": lambda x: jnp.diff(x, prepend=0.0) ** 2,
    "roll and concatenate": lambda x: jnp.concatenate([jnp.roll(x, 2)[:5] * x[:5], jnp.sin(x[::-1][5:])]),
    "gather": lambda x: x * x[NEIGHBOURS],
    "scatter": lambda x: jnp.zeros_like(x).at[NEIGHBOURS].add(x**2) - x.at[3].set(0.0).at[4].subtract(x[0]),
    "gather beyond the end": lambda x: x.at[NEIGHBOURS + 5].get(mode="fill", fill_value=0.0) + x.at[NEIGHBOURS + 6].get(mode="clip"),
    "slices of rows": lambda x: jax.vmap(lambda r, k: jax.lax.dynamic_slice(r, (k,), (2,)))(rows(x), jnp.array([0, 1, 5, 0])).ravel(),
    "rows added, one nowhere": lambda x: jnp.zeros((6, 3)).at[jnp.array([4, 0, 9, 4])].add(rows(x) ** 2, mode="drop").ravel(),
    "rows written over": lambda x: jax.vmap(lambda r, k: jax.lax.dynamic_update_slice(r, r[:2] ** 2, (k,)))(
        rows(x), jnp.array([1, 0, 1, 7])
    ).ravel(),
    "columns and rows": lambda x: rows(x)[jnp.array([[2], [0]]), jnp.array([[1, 0, 2]])].ravel() * rows(x)[:2, ::-1].ravel(),
    "blocks": lambda x: jax.vmap(lambda r: jnp.cross(r, r[::-1]) * jnp.linalg.norm(r))(rows(x)).ravel(),
    "stack and unstack": lambda x: jnp.stack([a * b for a, b in zip(jnp.unstack(x), jnp.unstack(x[NEIGHBOURS]), strict=True)]),
    "constant matrix": lambda x: jnp.asarray(np.tril(np.ones((SIZE, SIZE)), -9)) @ x + x,
    "products of matrices": lambda x: jnp.einsum("ij,kj->ik", rows(x), rows(x)[:3]).ravel(),
    "cumulative sum": lambda x: jax.lax.cumsum(x[:6] ** 2, reverse=True),
    "constant choice": lambda x: jnp.where(np.arange(SIZE) % 2 == 0, x**2, jnp.zeros_like(x)),
    "known branch": lambda x: jax.lax.cond(True, lambda x: x**2, lambda x: x[NEIGHBOURS], x),
    "loop": lambda x: jax.lax.scan(lambda c, r: (r.sum(), c * r), jnp.ones(()), rows(x))[1].ravel(),
    "diagonal and trace": lambda x: jnp.append(jnp.diagonal(rows(x)[:3]), jnp.trace(rows(x)[1:])),
    "repeated": lambda x: jnp.tile(x, 2) * jnp.repeat(x, 2),
    "derivative": jax.grad(lambda x: jnp.sum(jnp.diff(x) ** 4)),
    "blocks factorised": lambda x: jnp.linalg.cholesky(jnp.stack([jnp.diag(2 + r**2) for r in rows(x)])).ravel(),
    "unknown operation": lambda x: jnp.append(jnp.sort(x[:4]), x[4:] ** 2),
}
ROUGH = {"unknown operation", "blocks factorised"}  # patterns may have more than the true nonzeros here
CLIPPED = {"slices of rows", "rows written over"}  # windows beyond the end are moved back inside, which not all libraries know


@pytest.mark.parametrize("name", FUNCTIONS)
def test_patterns_hold_all_nonzeros_and_hardly_more(name):
    fn = FUNCTIONS[name]
    pattern = jacobian_pattern(lambda x, _: fn(x), jnp.zeros(SIZE), None).toarray().astype(bool)
    points = jax.random.uniform(jax.random.key(0), (3, SIZE), minval=0.5, maxval=1.5)
    true = np.any(np.asarray(jax.vmap(jax.jacobian(fn))(points)) != 0, axis=0)
    assert not np.any(true & ~pattern)
    if name not in ROUGH:
        np.testing.assert_array_equal(pattern, true)


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - ROUGH - CLIPPED))
def test_patterns_are_those_of_another_library(name):
    asdex = pytest.importorskip("asdex", reason="a comparison with asdex, where it is installed")
    fn = FUNCTIONS[name]
    try:
        other = asdex.jacobian_sparsity(fn, jnp.zeros(SIZE)).todense().astype(bool)
    except NotImplementedError as reason:
        pytest.skip(f"asdex does not know an operation: {reason}")
    pattern = jacobian_pattern(lambda x, _: fn(x), jnp.zeros(SIZE), None).toarray().astype(bool)
    assert not np.any(pattern & ~other)  # never more entries


def test_patterns_do_not_depend_on_the_values_of_arguments():
    """A mass of zero in the arguments is not structure."""
    pattern = jacobian_pattern(lambda x, m: m * x * x[NEIGHBOURS], jnp.zeros(SIZE), jnp.zeros(()))
    assert pattern.nnz == SIZE + np.count_nonzero(np.arange(SIZE) != NEIGHBOURS)


def saddle(links, dtype=float):
    """Equations of a bar of springs with a constraint between every other pair of neighbours, and their layout."""

    def fn(x, args):
        shift, softness = args
        q, multipliers = x[:links], x[links:]
        gaps = lambda q: jnp.diff(q)[::2]
        _, forces = jax.vjp(gaps, q)
        stretch = jnp.diff(q, prepend=0.0)
        tension = stretch + softness * stretch**3
        return jnp.concatenate([tension - jnp.append(tension[1:], 0.0) - forces(multipliers)[0] - shift, gaps(q) - 0.1])

    pairs = links // 2
    x = jax.random.normal(jax.random.key(1), (links + pairs,), dtype)
    return fn, x, (jnp.linspace(0.1, 0.5, links, dtype=dtype), jnp.asarray(0.3, dtype)), Layout(1, links, pairs)


@pytest.fixture(scope="module")
def tangents():
    fn, x, args, layout = saddle(60)
    return fn, x, args, layout, mbd.linear.Sparse().tangent(fn, x, args, layout), jax.jacobian(fn)(x, args)


def assert_solves(found, matrix, rhs):
    """The residual is rounding of the terms that cancel in it."""
    terms = np.abs(matrix) @ np.abs(np.asarray(found, float)) + np.abs(rhs)
    assert np.max(np.abs(matrix @ np.asarray(found, float) - rhs) / terms) < 16 * jnp.finfo(found.dtype).eps


def test_a_sparse_solve_is_that_of_the_matrix(tangents):
    _, x, _, _, tangent, matrix = tangents
    assert_solves(tangent.solve(x), np.asarray(matrix), np.asarray(x))
    assert_solves(jax.linear_transpose(tangent.solve, x)(x)[0], np.asarray(matrix).T, np.asarray(x))
    np.testing.assert_allclose(tangent.magnitude(jnp.abs(x)), np.abs(matrix) @ np.abs(x), rtol=1e-13)


def test_sparse_solves_in_batches_and_their_derivatives(tangents):
    fn, x, (shift, _), layout, _, _ = tangents

    def end(softness, linear):
        return jnp.sum(linear.tangent(fn, x, (shift, softness), layout).solve(x) ** 2)

    values = jnp.array([0.1, 0.3, 1.0])
    sparse, dense = (
        jax.vmap(jax.value_and_grad(lambda s, linear=linear: end(s, linear)))(values)
        for linear in (mbd.linear.Sparse(), mbd.linear.Dense())
    )
    np.testing.assert_allclose(sparse, dense, rtol=1e-10)


def test_redundant_constraints_of_a_long_structure_are_solved():
    """Points in a row, their distances held twice: the smallest compliance is below what constraints of short structures are soft by."""
    count = 16_000

    def fn(x, loads):
        points, forces = x[:count], x[count:]
        pull = lambda force: force - jnp.append(force[1:], 0)
        twice = jnp.tile(jnp.diff(points, prepend=0), 2)
        return jnp.concatenate([points + pull(forces[:count]) + pull(forces[count:]) - loads, twice])

    x, loads = jnp.zeros(3 * count), jax.random.normal(jax.random.key(0), (count,))
    solve = jax.jit(lambda rhs: mbd.linear.Sparse().tangent(fn, x, loads, Layout(1, count, 2 * count, dependent=True)).solve(rhs))
    found = solve(jnp.pad(loads, (0, 2 * count)))
    assert jnp.max(jnp.abs(fn(found, loads))) < 1e-12
    np.testing.assert_allclose(found[count : 2 * count], found[2 * count :], rtol=5e-6)  # equal shares


def test_sparse_solves_follow_the_dtype():
    fn, x, args, layout = saddle(60, jnp.float32)
    found = mbd.linear.Sparse().tangent(fn, x, args, layout).solve(x)
    assert found.dtype == jnp.float32
    assert_solves(found, np.asarray(jax.jacobian(fn)(x, args), float), np.asarray(x, float))


def test_the_tangent_of_a_failed_solve_is_the_identity(tangents):
    fn, x, args, layout, _, _ = tangents
    np.testing.assert_array_equal(mbd.linear.Sparse().tangent(fn, x, args, layout, jnp.array(False)).solve(x), x)


@pytest.mark.parametrize("linear", [mbd.linear.Dense(), mbd.linear.Sparse()], ids=lambda linear: type(linear).__name__)
def test_condition_numbers_are_estimated_from_below(tangents, linear):
    fn, x, args, layout, _, matrix = tangents
    estimate, true = float(linear.tangent(fn, x, args, layout).condition(x.size)), np.linalg.cond(matrix, np.inf)
    assert 0.3 * true < estimate < (1 + 1e-9) * true


def test_newton_with_each_solver_finds_the_same_root():
    fn, x, args, layout = saddle(4)
    roots = [
        mbd.Newton(linear=linear)(fn, x, args, layout=layout).value
        for linear in (mbd.linear.Small(), mbd.linear.Dense(), mbd.linear.Sparse(), mbd.linear.Auto())
    ]
    for root in roots[1:]:
        np.testing.assert_allclose(root, roots[0], rtol=0, atol=1e-13)


def test_the_choice_goes_by_size_and_pattern():
    choose = lambda fn, x, args, layout: type(mbd.linear.Auto().choice(fn, x, args, layout))
    assert choose(*saddle(4)) is mbd.linear.Small
    assert choose(*saddle(40)) is mbd.linear.Dense
    fn, x, args, layout = saddle(200)
    assert choose(fn, x, args, layout) is mbd.linear.Sparse
    assert choose(fn, x, args, None) is mbd.linear.Dense  # nothing is known of the unknowns, not even that pivots are safe
    everything = lambda x, args: x * jnp.sum(x)
    assert choose(everything, x, None, Layout.plain(x.size)) is mbd.linear.Dense


def test_a_dense_pattern_with_too_many_entries_is_refused():
    x = jnp.ones(8000)
    with pytest.raises(mbd.ModelError, match="dense"):
        mbd.linear.Sparse().tangent(lambda x, _: x * jnp.sum(x), x)


@pytest.mark.parametrize(("size", "loops"), [(60, 2), (20_000, 1)])
def test_the_last_unknowns_go_at_once_where_that_is_worth_its_compilation(size, loops):
    """In small systems they save levels; a large one goes through its levels in one loop anyway."""
    fn = lambda x, _: 3 * x - jnp.diff(jnp.diff(x, prepend=0.0, append=0.0) ** 3)
    x = jnp.cos(jnp.arange(float(size)))
    segments = analyse(fn, x, None, Layout.plain(size)).plan.segments
    assert len(segments) == loops
    last = segments[-1].batch
    assert (last.boundary.shape[-1] == 0) == (loops == 2)
    found = mbd.linear.Sparse().tangent(fn, x).solve(x)
    np.testing.assert_allclose(jax.jvp(lambda x: fn(x, None), (x,), (found,))[1], x, rtol=0, atol=1e-14)


def test_a_structure_tells_itself_in_a_line():
    """A chain of points is halved by every level, until two are left: cyclic reduction."""
    fn = lambda x, _: jnp.diff(jnp.diff(x, prepend=0.0, append=0.0) ** 3)
    structure = analyse(fn, jnp.zeros(64), None, Layout.plain(64))
    told = "64 unknowns, 190 nonzeros (4.64%), 3 colours, bandwidth 1, eliminated in 6 levels with fronts of up to 3"
    assert str(structure) == told


def test_structures_are_found_once():
    fn, x, args, layout = saddle(60)
    assert analyse(fn, x, args, layout) is analyse(fn, x + 1, args, layout)


def test_a_tangent_is_lowered_for_other_devices():
    fn, x, args, layout = saddle(60)
    solve = lambda x: mbd.linear.Sparse().tangent(fn, x, args, layout).solve(x)
    assert jax.export.export(jax.jit(solve), platforms=["cuda"])(x).platforms == ("cuda",)
