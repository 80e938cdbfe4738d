"""Tests run in float64 with strict dtype promotion; compilation is kept cheap.

With `JAXMBD_CHECK_TYPES=1` shapes and types of all calls are checked at run time, which takes a fifth longer.
"""

import functools
import gc
import inspect
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads spin
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1",
)

import hypothesis
import jax
import jaxtyping
import pytest

from . import programs

hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")  # `pytest --hypothesis-profile=default` looks for new cases

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")


def only_annotated(*args, check=jaxtyping.jaxtyped, **kwargs):
    """`jaxtyped` for functions with something to check: it takes its time over a function, nested ones each time they are made."""
    if args and inspect.isfunction(args[0]) and not args[0].__annotations__:
        return args[0]
    return check(*args, **kwargs) if args else functools.partial(only_annotated, **kwargs)


if os.environ.get("JAXMBD_CHECK_TYPES") == "1":
    jaxtyping.jaxtyped = only_annotated
    with jaxtyping.install_import_hook("jaxmbd", "beartype.beartype"):
        import jaxmbd  # noqa: F401

gc.freeze()  # tracing makes many objects that live on; looking through all of them again and again takes a tenth of its time
gc.set_threshold(50_000, 50, 50)

# The modules that take longest, in the order in which they start: two workers then end at about the same time.
LONGEST_FIRST = (
    "gradients/test_simulation",
    "properties/test_random_graphs",
    "properties/test_random_dissipation",
    "test_ritz",
    "test_conserving_mechanisms",
    "verification/test_s0_linkage",
    "test_statics",
    "test_large_systems",
    "test_closed_loops",
    "test_finite_volume",
    "test_docs",
    "test_measures",
    "test_drives",
    "test_inverse",
    "test_horizon",
    "test_servo",
    "test_friction",
    "test_schemes",
    "test_formulations",
    "verification/test_s0_swing",
)


# Variants that show with another scheme, formulation or mechanism what a quicker one of the same test shows: for the slow run alone.
TWINS = {
    "gradients/test_simulation.py::test_forward_reverse_and_differences_agree": (
        "multipliers-galerkin 6",
        "null space-galerkin 6",
        "null space-midpoint",
        "implicit chart-midpoint",
    ),
    "test_conserving_mechanisms.py::test_formulations_agree_and_keep_energy": ("chart",),
    "test_formulations.py::test_same_motion": (
        "null space-chain of three-trapezoidal",
        "null space-chain of three-galerkin 4",
        "null space-redundant-galerkin 4",
        "implicit chart-chain of three-trapezoidal",
        "implicit chart-chain of three-galerkin 4",
        "implicit chart-redundant-midpoint",
    ),
    "test_formulations.py::test_a_rank_that_falls_is_reported": ("null space",),
    "test_formulations.py::test_a_rank_that_rises_is_reported": ("implicit chart",),
    "test_own_bodies.py::test_bodies_of_the_users_own_move_as_rigid_bodies_that_joints_hold": ("midpoint",),
    "test_turns.py::test_a_wheel_on_a_spring_passes_half_a_turn": ("conservative-joint multipliers",),
    "test_turns.py::test_fifty_turns_against_the_closed_form": ("energy-momentum-chart",),
    "properties/test_random_dissipation.py::test_energy_balances_with_friction_and_motors": ("arm",),
    "properties/test_random_mechanisms.py::test_random_chains": ("midpoint",),
    "test_resume.py::test_in_pieces_is_the_same_to_the_bit": (
        "Trapezoidal-Multipliers",
        "Galerkin-Multipliers",
        "DirectorEnergyMomentum-Multipliers",
        "Newmark-Multipliers",
        "Midpoint-Reparametrised",
        "Midpoint-JointMultipliers",
    ),
    "test_resume.py::test_controls_go_on_too": ("Midpoint-True", "EnergyMomentum-False"),
    "test_schemes.py::test_discrete_multipliers_converge_with_their_own_order": ("galerkin 6 gauss-orders2",),
    "test_schemes.py::test_flow_on_the_constraint_manifold_is_symplectic": ("trapezoidal", "galerkin 6 gauss"),
    "test_units.py::test_reactions_do_not_depend_on_units": ("GeneralizedAlpha-Multipliers",),
    "test_schemes.py::test_momentum_map_is_exact_and_energy_bounded": (
        "spherical pendulum-trapezoidal",
        "spherical pendulum-galerkin 6 gauss",
    ),
}
TWIN_NAMES = {f"tests/{test}[{variant}]" for test, variants in TWINS.items() for variant in variants}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the twins, and start with the longest modules."""
    for item in items:
        if item.nodeid in TWIN_NAMES:
            item.add_marker(pytest.mark.slow)
    places = {f"tests/{name}.py": place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


@pytest.fixture(autouse=True, scope="module")
def free_compiled_programs():
    """Start every module with room for its programs."""
    yield
    programs.drop_if_many()
