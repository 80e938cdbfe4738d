"""How the library compiles: one place for the options of each backend."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

# XLA's newer code generator for CPU takes almost twice as long over the many small operations of a step, and its code is not faster.
OPTIONS: dict[str, dict[str, Any]] = {"cpu": {"xla_cpu_use_fusion_emitters": False}}

KEPT = 64
"""Programs of one function that are kept, each of some megabytes: for other functions of users, structures, shapes, or static arguments."""


def compiled(function: Callable) -> Callable:
    """`eqx.filter_jit` with the options of the backend; inside another transformation the outermost `jit` decides on them.

    Programs hold on to the functions they were made from, so that none would ever be freed while systems are built anew again and again.
    When there are too many, all are dropped, and those still in use are compiled again.
    """
    plain = eqx.filter_jit(function)
    with_options: Any = eqx.filter_jit
    for_backend = {name: with_options(function, compiler_options=options) for name, options in OPTIONS.items()}

    @functools.wraps(function)
    def call(*args, **kwargs):
        if _traced((args, kwargs)):
            return plain(*args, **kwargs)
        program = for_backend.get(jax.default_backend(), plain)
        _drop_if_many(program)
        return program(*args, **kwargs)

    return call


def _drop_if_many(program: Any) -> None:
    """Forget the programs of a function when there are too many; with a version of Equinox or JAX that has no such call, keep them."""
    programs: Any = getattr(program, "_cached", None)
    if hasattr(programs, "_cache_size") and hasattr(programs, "clear_cache") and programs._cache_size() >= KEPT:
        programs.clear_cache()


def inside_jit() -> bool:
    """Whether a program is being written, so that all numbers are hidden."""
    return isinstance(jnp.zeros(()), jax.core.Tracer)


def _traced(arguments: Any) -> bool:
    """Whether a transformation is under way: in the arguments, or around the call."""
    return inside_jit() or any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(arguments))
