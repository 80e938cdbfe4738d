"""Systems that are built anew again and again do not fill the memory."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import jax
    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import jaxmbd as mbd
    from jaxmbd.numerics import compile

    compile.KEPT = 2

    def held():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096 / 1e6

    def build(length):
        system = mbd.System.from_functions(
            lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[1], constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - length**2)])
        )
        return mbd.simulate(system, [length, 0.0], dt=0.01, steps=2, save="end").q

    sizes = []
    for i in range(8):
        build(1.0 + i)
        sizes.append(held())
    print(sizes[2] - sizes[0], sizes[-1] - sizes[2])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of a process from /proc")
def test_a_loop_over_new_systems_is_bounded():
    """Eight systems whose functions are new: when as many programs as are kept were made, nothing more is held.

    Programs are compiled without optimisation to be quick, which makes them no smaller.
    """
    options = {"XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"}
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | options)
    first, later = map(float, done.stdout.split())
    assert first > 10 and later < 0.5 * first, (first, later)  # five more systems would take two and a half times as much
