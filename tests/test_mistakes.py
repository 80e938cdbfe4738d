"""Mistakes of users name themselves: in functions, with the user's own line."""

import math
import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd
from jaxmbd.numerics.trial import returned

from .mechanisms import pendulum

RUN = {"dt": 0.01, "steps": 2}
KINETIC = {"kinetic": lambda t, q, v, p: 0.5 * v @ v}


def from_functions(params=None, **functions):
    return mbd.System.from_functions(**(functions if "lagrangian" in functions else KINETIC | functions), params=params)


def refused(call, *words, cause=None):
    """Run a call that must end in an error of ours, with some words in its message, from an exception of some kind."""
    with pytest.raises(mbd.ModelError) as failure:
        call()
    message = str(failure.value)
    for one in words:
        assert one in message, message
    if cause is not None:
        assert isinstance(failure.value.__cause__, cause)
    return message


def shows(message, text):
    """Whether a message ends with a line of this file that holds some text."""
    file, number, line = re.search(r"\n  (.*), line (\d+): (.*)$", message).groups()
    with open(__file__) as source:
        assert file == __file__ and source.readlines()[int(number) - 1].strip() == line and text in line


def decides(t, q, p):
    if q[0] > 0:
        return q[0]
    return -q[0]


@jax.jit
def compiled_by_the_user(t, q, p):
    height = q[2]
    return 9.81 * height


IN_FUNCTIONS = {
    "index of a coordinate": ({"potential": lambda t, q, p: q[2]}, "potential reads index 2 of an array of shape (2,)", "q[2]", None),
    "index from the end": ({"potential": lambda t, q, p: q[-3]}, "potential reads index -3 of", "q[-3]", None),
    "list of indices": ({"potential": lambda t, q, p: jnp.sum(q[jnp.array([0, 2])])}, "reads index 2", "jnp.array([0, 2])", None),
    "index of a matrix": ({"potential": lambda t, q, p: q.reshape(1, 2)[1, 0]}, "array of shape (1, 2)", "q.reshape(1, 2)[1, 0]", None),
    "index in a loop": ({"potential": lambda t, q, p: jax.lax.fori_loop(0, 2, lambda i, x: x + q[5], 0.0)}, "reads index 5", "q[5]", None),
    "index in a compiled function": ({"potential": compiled_by_the_user}, "reads index 2", "height = q[2]", None),
    "index that is written": ({"forces": lambda t, q, v, p: q.at[2].set(1.0)}, "forces writes at index 2", "q.at[2]", None),
    "constraints": ({"constraints": lambda t, q, p: q[3:4] + q[4]}, "constraints reads index 4", "q[4]", None),
    "branch": ({"potential": decides}, "jnp.where(condition, a, b) instead of if", "if q[0] > 0:", jax.errors.TracerBoolConversionError),
    "NumPy": (
        {"lagrangian": lambda t, q, v, p: 0.5 * v @ v - np.sin(q[0])},
        "lagrangian asks for the numbers of an array, which JAX does not know when it traces: write jnp.sin instead of np.sin",
        "np.sin(q[0])",
        jax.errors.TracerArrayConversionError,
    ),
    "math": ({"potential": lambda t, q, p: math.cos(q[0])}, "jnp.cos instead of math.cos", "math.cos", jax.errors.ConcretizationTypeError),
    "condition as index": ({"potential": lambda t, q, p: jnp.sum(q[q > 0])}, "jnp.where(condition, x, 0)", "q[q > 0]", IndexError),
    "shapes": ({"potential": lambda t, q, p: q @ jnp.ones(3)}, "potential fails with TypeError", "jnp.ones(3)", TypeError),
    "no params": ({"potential": lambda t, q, p: p["k"]}, "potential reads params, but none were given", 'p["k"]', TypeError),
    "nothing": ({"potential": lambda t, q, p: None}, "potential must return a scalar, but returned None", "returned None", None),
    "nothing constrained": (
        {"constraints": lambda t, q, p: None},
        "constraints must return a vector (m,), but returned None",
        "None",
        None,
    ),
    "a word": ({"potential": lambda t, q, p: "high"}, "potential returned 'high', which is no array", "high", None),
    "vector": ({"potential": lambda t, q, p: q}, "potential must return a scalar, but returned shape (2,)", "must return a scalar", None),
    "kinetic": ({"kinetic": lambda t, q, v, p: v}, "kinetic must return a scalar", "kinetic", None),
    "lagrangian": ({"lagrangian": lambda t, q, v, p: v}, "lagrangian must return a scalar", "lagrangian", None),
    "discrete": ({"discrete_lagrangian": lambda t, dt, a, b, p: a}, "discrete_lagrangian must return a scalar", "discrete", None),
    "scalar": ({"constraints": lambda t, q, p: q @ q - 1}, "returned shape (); wrap it in jnp.array([...])", "q @ q - 1", None),
    "forces": ({"forces": lambda t, q, v, p: v[:1]}, "forces must return a vector of shape (2,), but returned shape (1,)", "v[:1]", None),
    "complex": ({"potential": lambda t, q, p: q[0] + 1j}, "potential must return real numbers", "1j", None),
    "infinite": ({"potential": lambda t, q, p: 1 / q[1]}, "potential is not finite at the start", "1 / q[1]", None),
    "not a number": ({"forces": lambda t, q, v, p: v / jnp.sqrt(v @ v)}, "forces is not finite at the start", "v / jnp.sqrt", None),
    "constraint not a number": ({"constraints": lambda t, q, p: jnp.log(q[1:] - 1)}, "constraints is not finite", "jnp.log", None),
}


@pytest.mark.parametrize("functions, words, text, cause", IN_FUNCTIONS.values(), ids=IN_FUNCTIONS)
def test_mistakes_in_functions_show_their_line(functions, words, text, cause):
    system = from_functions(**functions)
    shows(refused(lambda: mbd.simulate(system, [1.0, 0.0], **RUN), words, cause=cause), text)


def test_a_parameter_that_is_not_there_is_named_with_its_neighbours():
    system = from_functions(potential=lambda t, q, p: p["stifness"] * q @ q, params={"stiffness": 2.0, "mass": 1.0})
    words = ("potential asks for the parameter 'stifness'", "did you mean 'stiffness'?")
    shows(refused(lambda: mbd.simulate(system, [1.0, 0.0], **RUN), *words, cause=KeyError), "stifness")


def test_too_few_coordinates_are_found_everywhere_and_inside_jit():
    system, q = pendulum(), jnp.ones(1)
    for call in (
        lambda: mbd.simulate(system, q, **RUN),
        lambda: jax.jit(lambda q: mbd.simulate(system, q, **RUN))(q),
        lambda: jax.vmap(lambda q: mbd.simulate(system, q, **RUN))(q[None]),
        lambda: jax.grad(lambda q: mbd.simulate(system, q, **RUN).q[-1, 0])(q),
        lambda: mbd.project(system, q),
        lambda: mbd.find_rank(system, q),
        lambda: mbd.equilibrium(system, q),
        lambda: mbd.modes(system, q),
        lambda: mbd.simulation.sparsity(system, q),
    ):
        refused(call, "reads index 1 of an array of shape (1,)")


def test_indices_that_are_right_or_left_out_on_purpose_are_not_refused():
    right = {
        "slice": lambda q: q[1:5],
        "clipped": lambda q: q.at[7].get(mode="clip"),
        "filled": lambda q: q.at[7].get(mode="fill", fill_value=0.0),
        "found": lambda q: jnp.interp(q, jnp.arange(3.0), jnp.ones(3)),
        "some dropped": lambda q: jax.ops.segment_sum(q, jnp.array([0, 9]), 2),
        "by value": lambda q: q[jnp.argmax(q)],
        "from arrays": lambda q: q[jnp.arange(6) % 2],
    }
    for name, function in right.items():
        assert returned(name, function, (jnp.ones(2),)) is not None
    edges = lambda q, p: q[p["edges"]]
    assert returned("edges", edges, (jnp.ones(2), {"edges": jnp.array([0, 1])})).shape == (2,)
    refused(lambda: returned("edges", edges, (jnp.ones(2), {"edges": jnp.array([0, 2])})), "edges reads index 2")


def test_functions_are_tried_once():
    count = []

    def potential(t, q, p):
        count.append(None)
        return 0.5 * q @ q

    system = from_functions(potential=potential)
    mbd.simulate(system, [1.0, 0.0], **RUN)
    first = len(count)
    mbd.simulate(system, [2.0, 0.0], [1.0, 0.0], **RUN)
    assert len(count) == first


WITH_CONTROLS = {"forces": lambda t, q, v, p, control: control}


def test_charts_null_spaces_controls_and_reductions_are_tried():
    circle = {"constraints": lambda t, q, p: jnp.array([0.5 * (q @ q - 1)])}
    start = {"q0": [1.0, 0.0], **RUN}
    chart = from_functions(**circle, chart=lambda u, q: q + u[1])
    shows(refused(lambda: mbd.simulate(chart, **start), "chart reads index 1 of an array of shape (1,)"), "u[1]")
    rows = from_functions(**circle, null_space=lambda q: np.array([-q[1], q[0]]))
    shows(refused(lambda: mbd.simulate(rows, **start), "null_space asks for", "jnp.array instead of np.array"), "np.array")
    driven = from_functions(**WITH_CONTROLS)
    shows(refused(lambda: mbd.simulate(driven, **start, controls=lambda t: t), "forces must return a vector of shape (2,)"), "forces")
    shows(refused(lambda: mbd.simulate(driven, **start, controls=lambda t: np.sin(t)), "controls asks", "write jnp.sin"), "np.sin")
    refused(lambda: mbd.simulate(driven, **start, controls=lambda t: None), "controls must return numbers", "returned None")
    save = lambda reduce, initial: mbd.simulate(from_functions(), **start, save=mbd.Save(reduce=reduce, initial=initial))
    shows(refused(lambda: save(lambda total, row: total + row.q[2], 0.0), "reduce reads index 2"), "row.q[2]")
    refused(lambda: save(lambda total, row: total + row.q, 0.0), "reduce must return a total like initial", "shape (2,)")
    refused(lambda: save(lambda total, row: total + row.q[0], 0), "begin with 0.0 instead of 0")
    refused(lambda: save(lambda total, row: None, 0.0), "reduce must return", "returned None")


def force(t, frame, velocity, angular_velocity, params):
    return -params["damping"] * velocity, angular_velocity


IN_PARTS = {
    "scalar force": (mbd.Force("a", lambda t: jnp.sin(t)), "load 'force' must return a vector of shape (3,), but returned shape ()"),
    "vector on a joint": (mbd.JointForce("hinge", lambda t: jnp.ones(3)), "load 'joint force' must return a scalar"),
    "torque with NumPy": (mbd.Torque("a", lambda t: np.array([np.sin(t), 0.0, 0.0])), "load 'torque' asks for the numbers of an array"),
    "force without torque": (mbd.UserForce(lambda t, frame, v, w, p: -v, "a"), "load 'user force' must return a pair of a force (3,)"),
    "missing parameter": (mbd.UserForce(force, "a", {"drag": 1.0}), "asks for the parameter 'damping', which is not in params"),
    "potential": (mbd.Potential(lambda t, a, b, p: a.origin, "a"), "load 'potential' must return a scalar, but returned shape (3,)"),
    "joint": (mbd.Joint(lambda a, b, p: a.origin[3], "ground", "a"), "joint 'mine' reads index 3 of an array of shape (3,)"),
    "scalar joint": (mbd.Joint(lambda a, b, p: a.origin[0] - b.origin[0], "ground", "a"), "joint 'mine' must return a vector (m,)"),
}


@pytest.mark.parametrize("part, words", IN_PARTS.values(), ids=IN_PARTS)
def test_functions_of_parts_are_tried_under_their_name(part, words):
    hinge = {"hinge": mbd.Joint(mbd.Revolute((0.0, 0.0, 1.0)), "ground", "a", at=(0.0, 0.0, 0.0))}
    joints, loads = (hinge | {"mine": part}, []) if isinstance(part, mbd.Joint) else (hinge, [part])
    mechanism = mbd.Mechanism({"a": mbd.RigidBody.box(1.0, (1.0, 1.0, 1.0))}, joints, loads)
    shows(refused(lambda: mbd.assemble(mechanism), words), "")


def test_systems_whose_functions_are_modules_are_tried_too():
    class Weight(eqx.Module):
        gravity: jax.Array

        def __call__(self, t, q, p):
            return self.gravity * q[4]

    system = from_functions(potential=Weight(jnp.array(9.81)))
    shows(refused(lambda: mbd.simulate(system, [1.0, 0.0], **RUN), "potential reads index 4"), "self.gravity * q[4]")
