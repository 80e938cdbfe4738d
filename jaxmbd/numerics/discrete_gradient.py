r"""Discrete automatic differentiation: gradients between two points that meet the increment of a function exactly.

A discrete gradient fulfils $\bar\nabla f(x_0, x_1) \cdot (x_1 - x_0) = f(x_1) - f(x_0)$ and is the gradient where the points meet. It
follows from the operations that a function is made of, as the gradient does, because discrete gradients obey the chain rule. Each
operation is evaluated at both points and pulled back by its own discrete gradient:

- linear and bilinear ones (sums, products, dot products, gathers) by the derivative at the mean of their arguments, which is exact;
- functions of single numbers (roots, angles, powers) by a divided difference of each number;
- anything else by the midpoint derivative with the smallest correction that makes it exact.

A quadratic function gets its gradient at the midpoint. A function of scalar products, as potentials of springs and constraints of
joints are, gets one that is as invariant under rotations as the function itself, so that angular momentum is kept with the energy.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .jaxpr import OPERATIONS, Flow, walk
from .polynomials import gauss

MADE_OF_NUMBERS = (Flow.ELEMENTWISE, Flow.PRODUCT, Flow.CHOICE)
"""Operations whose outcomes are functions of single numbers."""

AT_ROUNDING = 4
"""Units of rounding up to which the rest of an increment is not told from rounding errors, so that it is not divided by a tiny change."""

POINTS, WEIGHTS = gauss(3)
"""Where between the two points the mean derivative of a function of single numbers is taken."""


class Two:
    """A number or array at both points, on the way from arguments to results."""

    def __init__(self, start: Any, end: Any):
        self.start, self.end = start, end

    @property
    def mean(self) -> Array:
        return 0.5 * (self.start + self.end)

    @property
    def change(self) -> Array:
        return self.end - self.start

    def between(self, fraction: float) -> Array:
        return self.start + jnp.asarray(fraction, self.start.dtype) * self.change

    def spread(self, shape: tuple[int, ...]) -> "Two":
        """One number for each of an operation's results; operations under `vmap` may take one number for several."""
        return Two(jnp.broadcast_to(self.start, shape), jnp.broadcast_to(self.end, shape))

    @property
    def smooth(self) -> bool:
        return jnp.issubdtype(jnp.result_type(self.start), jnp.floating)


def discrete_vjp(function: Callable, start: PyTree, end: PyTree) -> tuple[PyTree, PyTree, Callable]:
    r"""Both values of a function, and the pullback $\bar y \mapsto \bar x$ of its discrete derivative.

    $\bar x \cdot (x_1 - x_0) = \bar y \cdot (f(x_1) - f(x_0))$ to rounding. Differentiable, like any other JAX code.
    """
    program, shape = jax.make_jaxpr(function, return_shape=True)(start)
    leaves, structure = jax.tree.flatten(start)
    arguments = [Two(a, b) for a, b in zip(leaves, jax.tree.leaves(end), strict=True)]
    tape: list[tuple[Callable, list[Two], list[Any]]] = []
    results = walk(program, arguments, lambda equation, inputs: _apply(equation.primitive, equation.params, inputs, tape))
    outline = jax.tree.structure(shape)
    values = [jax.tree.unflatten(outline, [_at(result, side) for result in results]) for side in ("start", "end")]

    def pullback(cotangent: PyTree) -> PyTree:
        found: dict[int, Array] = {}
        _collect(found, results, jax.tree.leaves(cotangent))
        for pull, inputs, outputs in reversed(tape):
            weights = [found.get(id(output)) for output in outputs]
            if any(weight is not None for weight in weights):
                filled = [jnp.zeros_like(_at(y, "start")) if w is None else w for w, y in zip(weights, outputs, strict=True)]
                _collect(found, inputs, pull(filled))
        return jax.tree.unflatten(structure, [found.get(id(x), jnp.zeros_like(x.start)) for x in arguments])

    return values[0], values[1], pullback


def discrete_gradient(function: Callable, start: PyTree, end: PyTree) -> PyTree:
    """The discrete gradient of a scalar function."""
    value, _, pullback = discrete_vjp(function, start, end)
    return pullback(jnp.ones_like(value))


def discrete_jacobian(function: Callable, start: Array, end: Array) -> Array:
    """The discrete derivative of a vector function as a matrix."""
    value, _, pullback = discrete_vjp(function, start, end)
    return jax.vmap(pullback)(jnp.eye(value.size, dtype=value.dtype))


def _collect(found: dict[int, Array], values: Sequence[Any], cotangents: Sequence[Any]) -> None:
    for value, cotangent in zip(values, cotangents, strict=True):
        if isinstance(value, Two) and value.smooth:
            found[id(value)] = found[id(value)] + cotangent if id(value) in found else cotangent


def _at(value: Any, side: str) -> Any:
    return getattr(value, side) if isinstance(value, Two) else value


def _apply(primitive: Any, params: dict[str, Any], inputs: list[Any], tape: list) -> list[Any]:
    """Run an operation at both points, and keep how to pull back through it; one that does not depend on the point runs once."""

    def run(*values):
        out = primitive.bind(*values, **params)
        return list(out) if primitive.multiple_results else [out]

    if not any(isinstance(value, Two) for value in inputs):
        return run(*inputs)
    ends = [run(*(_at(value, side) for value in inputs)) for side in ("start", "end")]
    outputs = [Two(*pair) for pair in zip(*ends, strict=True)]
    places = [i for i, value in enumerate(inputs) if isinstance(value, Two) and value.smooth]
    active = [inputs[i] for i in places]

    def smooth(*values):
        """The operation as a function of what varies smoothly; whole numbers and choices as they are at the start."""
        filled = [_at(value, "start") for value in inputs]
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        return run(*filled)

    if active and any(output.smooth for output in outputs):
        tape.append((_rule(primitive.name, params, inputs, smooth, active, outputs), active, outputs))
    return outputs


def _rule(name: str, params: dict, inputs: list[Any], smooth: Callable, active: list[Two], outputs: list[Two]) -> Callable:
    kind = OPERATIONS.get(name)
    if kind is not None and _is_quadratic(name, params, inputs):
        return lambda weights: jax.vjp(smooth, *(x.mean for x in active))[1](weights)
    if kind is not None and kind.flow in MADE_OF_NUMBERS:
        slopes = _divided_difference(smooth, [x.spread(outputs[0].start.shape) for x in active], outputs[0])
        return lambda weights: [_gathered(weights[0] * slope, x.start.shape) for slope, x in zip(slopes, active, strict=True)]
    return lambda weights: _corrected(smooth, active, outputs, weights)


def _is_quadratic(name: str, params: dict, inputs: list[Any]) -> bool:
    """Whether an operation is linear or quadratic in all that differs between the points, so no place or choice may differ."""
    if any(isinstance(value, Two) and not value.smooth for value in inputs):
        return False
    numerator_alone = name == "div" and not isinstance(inputs[1], Two)
    return OPERATIONS[name].quadratic or numerator_alone or (name == "integer_pow" and params["y"] == 2)


def _gathered(weights: Array, shape: tuple[int, ...]) -> Array:
    """The sum of weights over all results that one number serves."""
    return jax.linear_transpose(lambda x: jnp.broadcast_to(x, weights.shape), jax.ShapeDtypeStruct(shape, weights.dtype))(weights)[0]


def _divided_difference(smooth: Callable, active: list[Two], output: Two) -> list[Array]:
    """Slopes of an elementwise function between two points: the mean derivative, and the rest along the change of its arguments."""
    slopes = [jnp.zeros_like(output.start) for _ in active]
    for point, weight in zip(POINTS, WEIGHTS, strict=True):
        one = [jnp.ones_like(output.start)]
        derivatives = jax.vjp(smooth, *(x.between(point) for x in active))[1](one)
        slopes = [slope + jnp.asarray(weight, slope.dtype) * d for slope, d in zip(slopes, derivatives, strict=True)]
    change = sum(slope * x.change for slope, x in zip(slopes, active, strict=True))
    size = sum(jnp.abs(slope) * jnp.abs(x.mean) for slope, x in zip(slopes, active, strict=True)) + jnp.abs(output.end)
    rest = _above_rounding(output.change - change, size)
    square = sum(x.change**2 for x in active)
    share = rest / jnp.where(square > 0, square, 1)
    return [slope + share * x.change for slope, x in zip(slopes, active, strict=True)]


def _corrected(smooth: Callable, active: list[Two], outputs: list[Two], weights: list[Array]) -> list[Array]:
    """The midpoint derivative, corrected along the change of all arguments."""
    total = lambda pairs: sum((jnp.sum(a * b) for a, b in pairs), jnp.zeros((), active[0].start.dtype))
    means = [x.mean for x in active]
    gradients = jax.vjp(smooth, *means)[1](weights)
    increment = total((w, y.change) for w, y in zip(weights, outputs, strict=True) if y.smooth)
    size = total((jnp.abs(w), jnp.abs(y.end)) for w, y in zip(weights, outputs, strict=True) if y.smooth)
    rest = _above_rounding(increment - total((g, x.change) for g, x in zip(gradients, active, strict=True)), size)
    square = total((x.change, x.change) for x in active)
    share = rest / jnp.where(square > 0, square, 1)
    return [g + share * x.change for g, x in zip(gradients, active, strict=True)]


def _above_rounding(rest: Array, size: Array) -> Array:
    """What is left of an increment, or zero where it cannot be told from rounding errors of terms of that size."""
    return jnp.where(jnp.abs(rest) > AT_ROUNDING * jnp.finfo(rest.dtype).eps * size, rest, 0)
