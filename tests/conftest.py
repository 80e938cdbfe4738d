"""Tests run in float64 with strict dtype promotion and run-time type checks; compilation is kept cheap."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0")

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

with install_import_hook("jaxmbd", "beartype.beartype"):
    import jaxmbd  # noqa: F401


@pytest.fixture(autouse=True, scope="module")
def free_compiled_programs():
    """Each compiled program holds memory maps, of which a process has only so many."""
    yield
    jax.clear_caches()
