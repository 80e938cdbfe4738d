"""Public calls with wrong kinds, shapes and values, in every argument: each is refused by an error of our own that names the argument."""

import math
import re

import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import jaxmbd as mbd
from jaxmbd import post

from ..mechanisms import pendulum

SYSTEM = pendulum()
Q, V = np.array([1.0, 0.0]), np.array([0.0, 1.0])
BODIES = {"bar": mbd.RigidBody.box(1.0, (1.0, 0.1, 0.1))}
HINGE = mbd.Joint(mbd.Revolute((0, 0, 1)), "ground", "bar", at=(0, 0, 0))
MECHANISM = mbd.Mechanism(BODIES, {"hinge": HINGE}, [mbd.Gravity((0, -9.81, 0))])
ASSEMBLED, Q0 = mbd.assemble(MECHANISM, {"bar": (0.5, 0, 0)})
MOTION = mbd.simulate(ASSEMBLED, Q0, dt=0.1, steps=2)
METHOD = {"scheme": mbd.Midpoint(), "formulation": mbd.Multipliers(), "newton": mbd.Newton()}

KINDS = {
    "a string": "nonsense",
    "an object": object(),
    "a class": mbd.Midpoint,
    "another class": mbd.Newton,
    "a dictionary": {"a": 1.0},
    "a complex number": 1j,
    "a module": math,
    "a set": {1.0, 2.0},
    "an exception": ValueError("no"),
}
NUMBERS = KINDS | {
    "nan": math.nan,
    "inf": -math.inf,
    "a matrix": np.ones((2, 2)),
    "a list of words": ["a", "b"],
    "true": True,
    "a function": math.sin,
}
SCALARS = NUMBERS | {"a vector": np.ones(2), "a list": [0.1]}
VECTORS = NUMBERS | {
    "empty": [],
    "too long": np.ones(17),
    "not finite": np.array([1.0, math.nan]),
    "ragged": [[1.0], 2.0],
    "one number": 3.0,
}
POSITIVE = SCALARS | {"zero": 0.0, "negative": -0.1}
COUNTS = SCALARS | {"zero": 0, "negative": -2, "a fraction": 2.5, "a float": 2.0}
INSTANCES = KINDS | {"a number": 3.0, "a list": [], "a function": math.sin, "true": True}
SYSTEMS = INSTANCES | {"a mechanism": MECHANISM, "none": None}
SCHEMES = INSTANCES | {"a formulation": mbd.NullSpace(), "in a list": [mbd.Midpoint()]}
FORMULATIONS = INSTANCES | {"a scheme": mbd.Midpoint(), "none": None}
NEWTONS = INSTANCES | {"a solver": mbd.linear.Dense(), "none": None}
FLAGS = KINDS | {"a number": 2.0, "none": None}
SAVES = {name: value for name, value in INSTANCES.items() if name != "true"} | {"zero": 0, "another word": "all", "no divisor": 3}
RATES = {name: value for name, value in INSTANCES.items() if name != "a dictionary"} | {
    "unknown": {"hing": 1.0},
    "two": {"hinge": [1.0, 2.0]},
}
MOTIONS = INSTANCES | {"none": None, "a state": MOTION.final, "another": mbd.simulate(SYSTEM, Q, dt=0.1, steps=2)}

MADE_OF_METHOD = {"scheme": SCHEMES, "formulation": FORMULATIONS, "newton": NEWTONS}
CALLS = {
    "simulate": (
        mbd.simulate,
        {"system": SYSTEM, "q0": Q, "v0": V, "dt": 0.1, "steps": 2, "t0": 0.0, "save": 1, "throw": True} | METHOD,
        {"system": SYSTEMS, "q0": VECTORS, "v0": VECTORS, "dt": POSITIVE, "steps": COUNTS, "t0": SCALARS, "save": SAVES, "throw": FLAGS}
        | MADE_OF_METHOD,
    ),
    "step": (
        mbd.simulation.step,
        {"system": ASSEMBLED, "state": MOTION.final, "dt": jnp.array(0.1)} | METHOD,
        {"system": SYSTEMS, "state": INSTANCES | {"none": None, "a motion": MOTION}, "dt": POSITIVE} | MADE_OF_METHOD,
    ),
    "project": (
        mbd.project,
        {"system": SYSTEM, "q": Q, "v": V, "t": 0.0, "newton": mbd.Newton()},
        {"system": SYSTEMS, "q": VECTORS, "v": VECTORS, "t": SCALARS, "newton": NEWTONS},
    ),
    "find_rank": (mbd.find_rank, {"system": ASSEMBLED, "q": Q0, "t": 0.0}, {"system": SYSTEMS, "q": VECTORS, "t": SCALARS}),
    "joint_velocities": (
        mbd.joint_velocities,
        {"system": ASSEMBLED, "q": Q0, "rates": {"hinge": 1.0}},
        {"system": SYSTEMS | {"of functions": SYSTEM}, "q": VECTORS, "rates": RATES},
    ),
    "equilibrium": (mbd.equilibrium, {"system": ASSEMBLED, "q": Q0, "steps": 2}, {"system": SYSTEMS, "q": VECTORS, "steps": COUNTS}),
    "modes": (mbd.modes, {"system": ASSEMBLED, "q": Q0, "count": 1}, {"system": SYSTEMS, "q": VECTORS, "count": COUNTS}),
    "assemble": (
        mbd.assemble,
        {"mechanism": MECHANISM, "placement": {"bar": (0.5, 0, 0)}, "solve": False},
        {
            "mechanism": INSTANCES | {"none": None, "a system": SYSTEM},
            "placement": {name: value for name, value in INSTANCES.items() if name != "a dictionary"} | {"unknown": {"ba": (0, 0, 0)}},
            "solve": FLAGS,
        },
    ),
    **{
        name: (
            getattr(post, name),
            {"system": ASSEMBLED, "trajectory": MOTION},
            {"system": SYSTEMS | {"another": SYSTEM}, "trajectory": MOTIONS},
        )
        for name in ("energy", "poses", "reactions", "joint_coordinates", "linear_momentum", "constraint_residuals", "summary")
    },
}
CASES = [(call, argument, what) for call, (_, _, wrong) in CALLS.items() for argument, values in wrong.items() for what in values]


def told(call, replaced):
    """The error of a call in which some arguments are wrong."""
    function, right, wrong = CALLS[call]
    with pytest.raises(mbd.ModelError) as found:
        function(**right | {argument: wrong[argument][what] for argument, what in replaced.items()})
    return str(found.value)


def names(message, argument):
    """Whether an argument is named as a word."""
    return re.search(rf"\b{argument}\b", message) is not None


@pytest.mark.parametrize("call", CALLS)
def test_wrong_arguments_are_named(call):
    for name, argument, what in CASES:
        if name == call:
            assert names(told(call, {argument: what}), argument), f"{what} as {argument} of {call}"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(case=st.sampled_from(CASES), other=st.data())
def test_two_wrong_arguments_are_no_better(case, other):
    call, argument, what = case
    second = other.draw(st.sampled_from([(a, w) for c, a, w in CASES if c == call]))
    message = told(call, {argument: what} | dict([second]))
    assert names(message, argument) or names(message, second[0])
