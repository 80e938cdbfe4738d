"""Mistakes of users name themselves: in the arguments of calls, in names, and in what belongs to another system."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd import gallery, post
from jaxmbd.post.along import ByName

from .mechanisms import chain, pendulum
from .test_mistakes import RUN, from_functions, refused

SYSTEM = pendulum()


@pytest.fixture(scope="module")
def motion():
    return mbd.simulate(SYSTEM, [1.0, 0.0], **RUN)


MECHANISM = gallery.four_bar()[0]
IN_CALLS = {
    "class of a scheme": ({"scheme": mbd.Midpoint}, "scheme must be a scheme", "not the class Midpoint: write Midpoint()"),
    "name of a scheme": ({"scheme": "midpoint"}, "scheme must be a scheme", "did you mean 'Midpoint()'"),
    "formulation for a scheme": ({"scheme": mbd.NullSpace()}, "scheme must be a scheme", "not a NullSpace"),
    "class of a formulation": ({"formulation": mbd.NullSpace}, "formulation must be a formulation", "write NullSpace()"),
    "name of a formulation": ({"formulation": "Nullspace"}, "did you mean 'NullSpace()'"),
    "class of Newton": ({"newton": mbd.Newton}, "newton must be a Newton, not the class Newton: write Newton()"),
    "no system": ({"system": "pendulum"}, "system must be a System, not 'pendulum'"),
    "linear solver": ({"newton": mbd.linear.Dense()}, "newton must be a Newton, not a Dense"),
    "mechanism": ({"system": MECHANISM}, "system must be a System, not a Mechanism", "mbd.assemble(mechanism)"),
    "pair": ({"system": (SYSTEM, np.zeros(2))}, "system must be a System, not a tuple: take it out of the tuple"),
    "words for q0": ({"q0": "here"}, "q0 must be an array of real numbers, not 'here'"),
    "words in q0": ({"q0": ["1", "0"]}, "q0 must be an array of real numbers, not a list"),
    "complex q0": ({"q0": np.ones(2, complex)}, "q0 must be an array of real numbers, not an array of complex128"),
    "dictionary": ({"v0": {"x": 1.0}}, "v0 must be an array of real numbers, not a dict"),
    "steps of time": ({"dt": [0.1, 0.2]}, "dt must be a real number, not a list"),
    "word for a time": ({"t0": "now"}, "t0 must be a real number, not 'now'"),
    "part of a step": ({"steps": 2.5}, "steps must be a whole number, not 2.5"),
    "truth of steps": ({"steps": True}, "steps must be a whole number, not True"),
    "throw": ({"throw": "no"}, "throw must be True or False, not 'no'"),
    "save": ({"save": [1]}, "save must be a Save or a whole number or 'end', not a list"),
    "start": ({"start": np.zeros(2)}, "start must be a State, not an array of float64"),
}


@pytest.mark.parametrize("change, words", [(change, words) for change, *words in IN_CALLS.values()], ids=IN_CALLS)
def test_arguments_of_simulate_are_named(change, words):
    given = {"system": SYSTEM, "q0": [1.0, 0.0], **RUN} | change
    refused(lambda: mbd.simulate(**given), "simulate: ", *words)


OTHER_CALLS = {
    "project": (lambda: mbd.project(MECHANISM, [1.0, 0.0]), "project: system must be a System, not a Mechanism"),
    "project with a class": (lambda: mbd.project(SYSTEM, [1.0, 0.0], newton=mbd.Newton), "project: newton"),
    "find_rank": (lambda: mbd.find_rank(SYSTEM, "q"), "find_rank: q must be an array of real numbers"),
    "find_rank at times": (lambda: mbd.find_rank(SYSTEM, [1.0, 0.0], [0.0, 1.0]), "find_rank: t must be a real number"),
    "assemble": (lambda: mbd.assemble(SYSTEM), "assemble: mechanism must be a Mechanism, not a System"),
    "assemble a placement": (lambda: mbd.assemble(MECHANISM, [1.0]), "assemble: placement must be a dictionary"),
    "joint_velocities": (lambda: mbd.joint_velocities(SYSTEM, [1.0, 0.0], 3.0), "joint_velocities: rates must be a dictionary, not 3.0"),
    "equilibrium": (lambda: mbd.equilibrium(SYSTEM, [1.0, 0.0], newton="Newton"), "equilibrium: newton", "did you mean 'Newton()'?"),
    "equilibrium steps": (lambda: mbd.equilibrium(SYSTEM, [1.0, 0.0], steps=1.5), "equilibrium: steps must be a whole number"),
    "path": (lambda: mbd.statics.equilibrium_path(SYSTEM, [1.0, 0.0], steps=2, first="a"), "first must be a real number"),
    "modes": (lambda: mbd.modes(SYSTEM, [1.0, 0.0], count="all"), "modes: count must be a whole number, not 'all'"),
    "no modes": (lambda: mbd.modes(SYSTEM, [1.0, 0.0], count=0), "count must be a positive number of modes"),
    "ritz": (lambda: mbd.reduction.ritz(SYSTEM, [1.0, 0.0], [1.0]), "ritz: forms must be a dictionary"),
    "step": (lambda: mbd.simulation.step(SYSTEM, [1.0, 0.0], 0.1), "step: state must be a State, not a list"),
    "sparsity": (lambda: mbd.simulation.sparsity(SYSTEM, [1.0, 0.0], scheme=mbd.Midpoint), "sparsity: scheme", "write Midpoint()"),
    "functions": (lambda: mbd.System.from_functions(3.0), "from_functions: lagrangian must be a function, not 3.0"),
    "replace": (lambda: SYSTEM.replace([1.0]), "replace: values must be a dictionary"),
    "order": (lambda: post.order([0.1], [0.2]), "positive time steps and as many positive errors"),
    "shapes": (lambda: post.shapes(MECHANISM), "shapes: system must be a System"),
}


@pytest.mark.parametrize("call, words", [(call, words) for call, *words in OTHER_CALLS.values()], ids=OTHER_CALLS)
def test_arguments_of_calls_are_named(call, words):
    refused(call, *words)


def test_every_function_of_post_names_its_arguments(motion):
    for name, function in vars(post).items():
        if callable(function) and not isinstance(function, type) and name not in ("order", "convergence", "shapes"):
            refused(lambda f=function: f(MECHANISM, motion, *("crank",) * (f is post.point)), f"{name}: system must be a System")
            refused(lambda f=function: f(SYSTEM, motion.q, *("crank",) * (f is post.point)), f"{name}: trajectory must be a Trajectory")
    refused(lambda: post.momentum(SYSTEM, motion, "constraint"), "kind must be 'constrained' or", "did you mean 'constrained'?")
    refused(lambda: post.reduced_momentum(SYSTEM, motion, "QR"), "source must be", "did you mean 'qr'?")
    refused(lambda: post.energy(SYSTEM, motion, motion.p[1:]), "p must have the shape (3, 2) of the coordinates, not (2, 2)")
    refused(lambda: post.condition_number(SYSTEM, motion, mbd.Multipliers), "write Multipliers()")
    refused(lambda: post.momentum_map(SYSTEM, motion, lambda s, q: s), "action must return coordinates of shape (2,)")
    refused(lambda: post.multipliers(SYSTEM, motion, 3.0), "controls must be a function, not 3.0")
    refused(lambda: post.convergence(lambda dt: motion, [0.1, 0.2], motion, ["momentum"]), "'momentum' is no column of a trajectory")


def test_trajectories_of_other_systems_are_refused(motion):
    heavier, other = SYSTEM.replace({"m": 2.0}), chain(2)
    refused(lambda: post.energy(heavier, motion), "energy: trajectory is that of another system: their parameters differ")
    refused(lambda: post.constraint_residuals(other, motion), "constraint_residuals: trajectory is that of another system")
    refused(lambda: post.energy(from_functions(), motion), "another system: it has 1 constraints, not 0")
    refused(lambda: mbd.simulation.step(other, motion.final, 0.01), "lagrangian fails", "cannot reshape")
    np.testing.assert_allclose(post.energy(SYSTEM, motion), 0.0, atol=1e-7)


def test_trajectories_of_replaced_systems_and_batches_are_read(motion):
    run = lambda m: mbd.simulate(SYSTEM.replace({"m": m}), [1.0, 0.0], **RUN, throw=False)
    batch = jax.vmap(run)(jnp.array([1.0, 2.0]))
    energies = jax.vmap(lambda m, one: post.energy(SYSTEM.replace({"m": m}), one))(jnp.array([1.0, 2.0]), batch)
    np.testing.assert_allclose(energies, 0.0, atol=1e-7)
    second = jax.tree.map(lambda leaf: leaf[1], batch)
    np.testing.assert_allclose(post.energy(SYSTEM.replace({"m": 2.0}), second), 0.0, atol=1e-7)
    refused(lambda: post.energy(SYSTEM, second), "their parameters differ")
    slope = jax.grad(lambda m: post.energy(SYSTEM.replace({"m": m}), motion)[-1])(1.0)
    assert np.isfinite(slope)


def test_results_by_name():
    results = ByName({"beam[0]": jnp.zeros(1), "beam[1]": jnp.ones(1), "hub": jnp.ones(1)}, "poses")
    assert results["beam[-1]"] is results["beam[1]"] and results["beam[-2]"] is results["beam[0]"]
    doubled = jax.jit(lambda tree: jax.tree.map(lambda leaf: 2 * leaf, tree))(results)
    assert list(doubled) == list(results) and float(doubled["beam[-1]"][0]) == 2.0
    assert "beam[-1]" not in results and results.get("rotor") is None
    with pytest.raises(KeyError) as failure:
        results["beam[-3]"]
    assert isinstance(failure.value, mbd.ModelError)
    assert str(failure.value) == "poses has no 'beam[-3]'; did you mean 'beam[1]', 'beam[0]'?"
    refused(lambda: results["rotor"], "there are 'beam[0]', 'beam[1]', 'hub'")


def test_names_of_rates_are_suggested():
    system, q0 = mbd.assemble(*gallery.chain(1))
    refused(lambda: mbd.joint_velocities(system, q0, {"joint0": 1.0}), "rates name 'joint0'", "did you mean 'joint 0'?")
    refused(
        lambda: mbd.joint_velocities(system, q0, {"joint 0": "fast"}),
        "the rate of 'joint 0' must be numbers",
    )
    refused(lambda: mbd.simulate(system, q0[:-1], **RUN), "q0 has 11 coordinates, but this system has 12")


WITHOUT_X64 = """
import warnings
import numpy as np, jaxmbd as mbd
system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * v @ v)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("default")
    for _ in range(2):
        mbd.project(system, np.zeros(2))
    mbd.project(system, np.zeros(2, np.float32))
    mbd.project(system, [0.0, 0.0])
assert [one.lineno for one in seen] == [8], [str(one.message) for one in seen]
assert "jax_enable_x64" in str(seen[0].message) and seen[0].filename == "<string>"
for make, words in [
    (lambda: mbd.Save(fields=3), "Save: fields must be a string or a sequence, not 3"),
    (lambda: mbd.Galerkin(4, "Gauss"), "Galerkin: quadrature must be 'lobatto' or 'gauss', not 'Gauss'; did you mean 'gauss'?"),
    (lambda: mbd.Galerkin("4"), "Galerkin: order must be a whole number, not '4'"),
    (lambda: mbd.NullSpace("QR"), "NullSpace: source must be 'auto' or 'user' or 'chart' or 'qr', not 'QR'; did you mean 'qr'?"),
    (lambda: mbd.Newton(linear=mbd.linear.Dense), "Newton: linear must be a linear, one of"),
    (lambda: mbd.Newton(max_steps=2.5), "Newton: max_steps must be a whole number, not 2.5"),
    (lambda: mbd.schemes.GeneralizedAlpha("0.8"), "GeneralizedAlpha: rho must be a real number, not '0.8'"),
]:
    try:
        make()
    except mbd.ModelError as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)
"""


def test_float64_that_is_lost_is_told_once_and_choices_check_their_fields():
    """In a process without float64 and without checks of types."""
    subprocess.run([sys.executable, "-c", WITHOUT_X64], check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
