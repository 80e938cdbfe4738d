"""Programs walked through: every operation of the table, in both uses that are made of it, and programs within programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxmbd.numerics.discrete_gradient import MADE_OF_NUMBERS, discrete_gradient, discrete_jacobian
from jaxmbd.numerics.jaxpr import CALLS, NEWER, OPERATIONS, Flow, walk
from jaxmbd.numerics.linear.sparse import pattern, rules

START, END = jnp.array([0.25, 0.375, 0.625, 0.75]), jnp.array([0.5, 0.125, 0.5, 0.875])  # exact in all floating types
PLACES = np.array([2, 0, 3])
UNARY = """
    neg square sqrt rsqrt cbrt exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh atanh abs sign floor ceil round
    logistic erf erfc erf_inv lgamma digamma
"""
BINARY = "add sub mul div rem pow atan2 max min"


def square(x):
    return x.reshape(2, 2)


EXAMPLES = {
    **{name: getattr(lax, name) for name in UNARY.split()},
    **{name: lambda x, name=name: getattr(lax, name)(x, 1.5 - x) for name in BINARY.split()},
    "acosh": lambda x: lax.acosh(1 + x),
    "integer_pow": lambda x: x**3,
    "clamp": lambda x: lax.clamp(0.3, x, 0.6),
    "add_any": jax.grad(lambda x: jnp.sum(x * jnp.sin(x))),
    "convert_element_type": lambda x: x.astype(jnp.float32),
    "reduce_precision": lambda x: lax.reduce_precision(x, 11, 52),
    "copy": jnp.copy,
    "complex": lambda x: jnp.abs(lax.complex(x, 2 * x)),
    "real": lambda x: lax.real(lax.complex(x, 2 * x)),
    "imag": lambda x: lax.imag(lax.complex(x, 2 * x)),
    "conj": lambda x: lax.real(lax.conj(lax.complex(x, 2 * x))),
    "select_n": lambda x: jnp.where(x > 0.4, x**2, 2 * x),
    "broadcast_in_dim": lambda x: jnp.broadcast_to(x, (2, 4)),
    "reshape": square,
    "transpose": lambda x: square(x).T,
    "squeeze": lambda x: lax.squeeze(x.reshape(4, 1), (1,)),
    "slice": lambda x: x[1:3],
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (1,), (2,)),
    "rev": lambda x: lax.rev(x, (0,)),
    "tile": lambda x: jnp.tile(x, 2),
    "gather": lambda x: x[PLACES],
    "concatenate": lambda x: jnp.concatenate([x, x**2]),
    "stack": lambda x: jnp.stack([x, x**2]),
    "pad": lambda x: jnp.pad(x, 1),
    "split": lambda x: jnp.split(x, 2)[1],
    "unstack": lambda x: jnp.unstack(square(x))[1],
    "dynamic_update_slice": lambda x: lax.dynamic_update_slice(x, x[:2] ** 2, (1,)),
    "scatter": lambda x: x.at[PLACES].set(x[1:] ** 2),
    "scatter-add": lambda x: x.at[PLACES].add(x[1:] ** 2),
    "scatter-sub": lambda x: x.at[PLACES].subtract(x[1:] ** 2),
    "scatter-mul": lambda x: x.at[PLACES].multiply(x[1:] ** 2, unique_indices=True),
    "reduce_sum": jnp.sum,
    "reduce_max": jnp.max,
    "reduce_min": jnp.min,
    "reduce_prod": jnp.prod,
    "cumsum": lax.cumsum,
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
    "cumlogsumexp": lax.cumlogsumexp,
    "dot_general": lambda x: square(x) @ square(x),
    "triangular_solve": lambda x: lax.linalg.triangular_solve(2 + square(x), square(x), lower=True, left_side=True),
    "cholesky": lambda x: jnp.linalg.cholesky(jnp.diag(x[:2]) + 0.1),
    "optimization_barrier": lambda x: lax.optimization_barrier((x, x**2))[1],
}
COMPLEX = {"complex", "real", "imag", "conj"}  # discrete gradients are those of real functions
OF_NUMBERS = [name for name in EXAMPLES if OPERATIONS[name].flow in MADE_OF_NUMBERS]


def inlined(fn):
    """The program of a function without calls of others."""

    def apply(equation, operands):
        found = equation.primitive.bind(*operands, **equation.params)
        return found if equation.primitive.multiple_results else [found]

    return jax.make_jaxpr(lambda x: walk(jax.make_jaxpr(fn)(x), [x], apply))(START)


def joined(names):
    """All examples as one function, so that one program is compiled, and the rows of each in its outcome."""
    sizes = [jax.eval_shape(EXAMPLES[name], START).size for name in names]
    rows = dict(zip(names, np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]), strict=True))
    return lambda x: jnp.concatenate([jnp.ravel(EXAMPLES[name](x)).astype(x.dtype) for name in names]), rows


def test_the_table_is_of_operations_that_there_are():
    assert set(EXAMPLES) == set(OPERATIONS)
    for name, fn in EXAMPLES.items():
        names = {equation.primitive.name for equation in inlined(fn).eqns}
        assert name in names or name in NEWER, f"{name} is not among {names}"


def test_every_class_has_a_rule_for_patterns():
    assert set(Flow) == {operation.flow for operation in OPERATIONS.values()}
    assert set(Flow) == set(rules.RULES) | set(pattern.OF_SEVERAL_OUTCOMES)
    assert not set(rules.RULES) & set(pattern.OF_SEVERAL_OUTCOMES)


def test_patterns_of_all_operations_hold_their_nonzeros():
    fn, rows = joined(list(EXAMPLES))
    found = pattern.jacobian_pattern(lambda x, _: fn(x), START, None).toarray().astype(bool)
    assert not np.any(np.asarray(jax.jit(jax.jacobian(fn))(START) != 0) & ~found)
    for name in OF_NUMBERS:
        np.testing.assert_array_equal(found[rows[name]], np.eye(4, dtype=bool), err_msg=name)


def test_discrete_derivatives_of_all_operations_meet_their_increments():
    fn, rows = joined([name for name in EXAMPLES if name not in COMPLEX])
    matrix = np.asarray(jax.jit(lambda a, b: discrete_jacobian(fn, a, b))(START, END))
    np.testing.assert_allclose(matrix @ (END - START), fn(END) - fn(START), rtol=0, atol=1e-14)
    for name in set(OF_NUMBERS) - COMPLEX:
        np.testing.assert_array_equal(matrix[rows[name]] * (1 - np.eye(4)), 0, err_msg=name)


@pytest.mark.parametrize("change", [0.1, 1.0])
def test_a_place_that_differs_between_the_points_is_met_as_well(change):
    end = START + change * (END - START)
    fn = lambda x: x[jnp.argmin(x)] ** 2 + jnp.sum(x.at[jnp.argmin(x)].set(x[1] * x[2]) ** 2)
    np.testing.assert_allclose(discrete_gradient(fn, START, end) @ (end - START), fn(end) - fn(START), rtol=0, atol=1e-15)


@jax.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, y: (3 * x**2 * y,))

CALLED = {
    "jit": jax.jit(lambda x: jnp.sin(x) * x),
    "remat2": jax.checkpoint(lambda x: jnp.sin(x) * x),
    "composite": lax.composite(lambda x: jnp.sin(x) * x, name="test.example"),
    "custom_jvp_call": jax.nn.relu,
    "custom_vjp_call": cube,
    "for any platform": lambda x: lax.platform_dependent(x, cuda=jnp.sum, default=lambda x: x @ jnp.ones(4)),
    "for two platforms": lambda x: lax.platform_dependent(x, cpu=lambda x: x**2 / 2, cuda=lambda x: 0.5 * x**2),
}


@pytest.mark.parametrize("name", CALLED)
def test_programs_within_programs_are_walked_through(name):
    fn = CALLED[name]
    outside, inside = ({equation.primitive.name for equation in program.eqns} for program in (jax.make_jaxpr(fn)(START), inlined(fn)))
    assert outside & {*CALLS, "cond"} and not inside & {*CALLS, "cond"}
    assert name in outside or name not in CALLS
    np.testing.assert_allclose(jax.core.eval_jaxpr(inlined(fn).jaxpr, inlined(fn).consts, START)[0], fn(START), rtol=1e-15)
    found = pattern.jacobian_pattern(lambda x, _: jnp.ravel(fn(x)), START, None).toarray()
    np.testing.assert_array_equal(found, np.eye(4) if fn(START).ndim else np.ones((1, 4)))
    if name != "composite":  # of which JAX knows no derivative, as it would need for one at the mean
        np.testing.assert_allclose(
            jnp.sum(discrete_gradient(lambda x: jnp.sum(fn(x)), START, END) * (END - START)), jnp.sum(fn(END) - fn(START)), rtol=1e-14
        )
