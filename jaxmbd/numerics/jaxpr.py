"""Programs that JAX has traced: a walk through their operations, and a table of what these are.

Discrete gradients and patterns of Jacobians both follow from the operations that a function is made of. Each brings its own rules, one for
every class of the table; the walk, and what it means to call a program from another, are here.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal


class Flow(enum.Enum):
    """Which elements of its operands an element of an outcome is made of."""

    ELEMENTWISE = "those in its place"
    PRODUCT = "those in its place, unless one is zero"
    CHOICE = "the one in its place that the first operand names"
    MOVE = "one of the first operand, elsewhere"
    MERGE = "one of any operand, elsewhere"
    CUT = "one of the operand, which is cut into several outcomes"
    OVERWRITE = "one of the first operand, or of the second that replaces a block of it"
    SCATTER = "one of the first operand, and those of the third that come to its place"
    REDUCTION = "all along some axes"
    ACCUMULATION = "all before it along an axis"
    CONTRACTION = "those whose products are summed in its place"
    MATRICES = "all of the matrices in its place of a stack"
    PASS = "the one in its place of the operand with its number"


class Operation(NamedTuple):
    """The class of an operation; `quadratic` if it is a polynomial of second degree, or less, in operands that are not whole numbers."""

    flow: Flow
    quadratic: bool


_QUADRATIC = {
    Flow.ELEMENTWISE: "neg add sub add_any square convert_element_type reduce_precision copy complex real imag conj",
    Flow.PRODUCT: "mul",
    Flow.MOVE: "broadcast_in_dim reshape transpose squeeze slice dynamic_slice rev tile gather",
    Flow.MERGE: "concatenate stack pad",
    Flow.CUT: "split unstack",
    Flow.OVERWRITE: "dynamic_update_slice",
    Flow.SCATTER: "scatter scatter-add scatter-sub",
    Flow.REDUCTION: "reduce_sum",
    Flow.ACCUMULATION: "cumsum",
    Flow.CONTRACTION: "dot_general",
    Flow.PASS: "optimization_barrier",
}
_OTHER = {
    Flow.ELEMENTWISE: """
        div rem pow integer_pow sqrt rsqrt cbrt exp exp2 expm1 log log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
        abs sign max min clamp floor ceil round logistic erf erfc erf_inv lgamma digamma
    """,
    Flow.CHOICE: "select_n",
    Flow.SCATTER: "scatter-mul",
    Flow.REDUCTION: "reduce_max reduce_min reduce_prod",
    Flow.ACCUMULATION: "cumprod cummax cummin cumlogsumexp",
    Flow.MATRICES: "triangular_solve cholesky",
}
OPERATIONS: dict[str, Operation] = {
    name: Operation(flow, quadratic)
    for quadratic, names in ((True, _QUADRATIC), (False, _OTHER))
    for flow, text in names.items()
    for name in text.split()
}
"""The operations that there are rules for, by the names of their primitives."""

CALLS = {
    **dict.fromkeys(("jit", "remat2", "composite"), "jaxpr"),
    **dict.fromkeys(("call", "closed_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
}
"""Operations that do nothing but run another program, and the parameter that holds it."""

NEWER = frozenset(("tile", "stack", "unstack"))
"""Those of them that the oldest version of JAX that this library works with does not have."""


def walk(program: ClosedJaxpr, inputs: Sequence[Any], apply: Callable, constant: Callable = lambda value: value) -> list[Any]:
    """The outcomes of a program whose operations are carried out by `apply(equation, operands)`, on whatever stands for arrays.

    Programs that it calls are walked through in their turn. `constant` makes what stands for an array that is known.
    """
    graph = program.jaxpr
    values = dict(zip([*graph.constvars, *graph.invars], [*map(constant, program.consts), *inputs], strict=True))
    read = lambda atom: constant(atom.val) if isinstance(atom, Literal) else values[atom]
    for equation in graph.eqns:
        operands = [read(atom) for atom in equation.invars]
        called = called_by(equation)
        if called is None:
            outcomes = apply(equation, operands)
        else:  # its inputs are the last operands: a choice by platform has the number of the platform before them
            outcomes = walk(called, operands[len(operands) - len(called.jaxpr.invars) :], apply, constant)
        values.update(zip(equation.outvars, outcomes, strict=True))
    return [read(atom) for atom in graph.outvars]


def called_by(equation: Any) -> ClosedJaxpr | None:
    """What a call runs; of code for several platforms that for any of them, since all compute the same."""
    params = equation.params
    if platforms := params.get("branches_platforms"):
        return params["branches"][platforms.index(None) if None in platforms else 0]
    graph = params[CALLS[equation.primitive.name]] if equation.primitive.name in CALLS else None
    return ClosedJaxpr(graph, ()) if isinstance(graph, Jaxpr) else graph
