"""Parameters by name: what is listed, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmbd as mbd

from .arms import LINK, NOMINAL, SYSTEM, largest_difference
from .mechanisms import pendulum


def gallery(name):
    return mbd.assemble(*getattr(mbd.gallery, name)())


# %% What is listed


def test_names_values_and_shapes():
    assert list(NOMINAL) == [
        *(f"{body}.{own}" for body in ("link1", "link2") for own in ("mass", "inertia", "com")),
        *(f"{joint}.{own}" for joint in ("shoulder", "elbow") for own in ("position", "on_a", "on_b", "axis")),
        *(f"spring.{own}" for own in ("stiffness", "rest", "at_a", "at_b")),
        *(f"joint spring.{own}" for own in ("stiffness", "rest", "damping")),
        "gravity.acceleration",
    ]
    assert NOMINAL["link2.mass"] == 1.0 and NOMINAL["link2.mass"].shape == ()
    np.testing.assert_allclose(NOMINAL["link2.inertia"], np.diag([0.1, 0.2, 0.15]), atol=1e-16)
    np.testing.assert_allclose(NOMINAL["link2.com"], [0, 0, 0.1], atol=1e-16)
    np.testing.assert_allclose(NOMINAL["elbow.position"], [0, 0, -0.5], atol=1e-15)
    np.testing.assert_allclose(NOMINAL["shoulder.axis"], [1, 0, 0], atol=1e-15)
    assert NOMINAL["spring.at_a[1]"] == 0.5
    assert "elbow.position" in NOMINAL and "elbow.place" not in NOMINAL and len(NOMINAL) == 22


def test_prints_as_a_table():
    lines = str(NOMINAL).splitlines()
    assert lines[0].split() == ["name", "shape", "value"] and len(lines) == 1 + len(NOMINAL)
    column = lines[0].index("shape")
    assert {line[column - 2 : column] for line in lines} == {"  "} and {line[column] for line in lines[1:]} == {"("}
    assert lines[-1].split(None, 2)[2].endswith("[0, 0, -9.81]")


def test_beams_by_element_and_nodes_without_mass_not_at_all():
    system, _ = gallery("three_bar_swing")
    parameters = system.parameters
    assert {name.split(".")[0] for name in parameters if name.startswith("beam")} == {"beam", "beam[10]"}
    assert parameters["beam.stiffness"].shape == (20, 6, 6) and parameters["beam.inertia"].shape == (20, 4, 4)
    assert parameters["beam[10].mass"] == 5.0
    softer = system.replace({"beam.stiffness[3]": 0.5 * parameters["beam.stiffness[3]"], "beam.stiffness[-2:, 3, 3]": [1.0, 2.0]})
    change = softer.parameters["beam.stiffness"] / np.where(parameters["beam.stiffness"], parameters["beam.stiffness"], 1)
    np.testing.assert_allclose(np.diagonal(change[3]), 0.5)
    np.testing.assert_allclose(softer.parameters["beam.stiffness[18:, 3, 3]"], [1.0, 2.0])
    assert largest_difference(softer.parameters["beam.stiffness[4:18]"], parameters["beam.stiffness[4:18]"]) == 0


def test_two_beams_of_one_stack_keep_apart():
    section = mbd.Section.circle(0.01, 1e9, 1000.0)
    beams = {name: mbd.Beam.line((0, i, 0), (1, i, 0), section, 2 + i) for i, name in enumerate(("first", "second"))}
    system, _ = mbd.assemble(mbd.Mechanism(beams))
    changed = system.replace({"second.stiffness[0, 2, 2]": 7.0}).parameters
    assert changed["first.stiffness"].shape == (2, 6, 6) and changed["second.stiffness"].shape == (3, 6, 6)
    assert changed["second.stiffness[0, 2, 2]"] == 7.0
    assert largest_difference(changed["first.stiffness"], system.parameters["first.stiffness"]) == 0


def test_bodies_in_the_plane_mass_points_gears_and_rods():
    bodies = {"wheel": mbd.PlanarBody(2.0, 0.3, (0.1, 0.2)), "other": mbd.PlanarBody.disc(1.0, 0.5), "bob": mbd.Particle(0.7)}
    joints = {
        "axle": mbd.Joint(mbd.Revolute(), "ground", "wheel", at=(0, 0, 0)),
        "bearing": mbd.Joint(mbd.Revolute(), "ground", "other", at=(1, 0, 0)),
        "gear": mbd.Gear("axle", "bearing", -2.0),
        "rod": mbd.Joint(mbd.Distance(), "wheel", "bob", on_a=(0.1, 0, 0)),
    }
    placement = {"wheel": (0, 0, 0), "other": (1, 0, 0), "bob": (0.1, -1.0, 0), "axle": 0.4}
    make = lambda ratio: mbd.assemble(mbd.Mechanism(bodies, joints | {"gear": mbd.Gear("axle", "bearing", ratio)}), placement)
    system, q0 = make(-2.0)
    parameters = system.parameters
    np.testing.assert_allclose(parameters["wheel.com"], [0.1, 0.2], rtol=1e-15)
    np.testing.assert_allclose(parameters["wheel.inertia"], 0.3, rtol=1e-14)
    assert parameters["bob.mass"] == 0.7 and parameters["gear.ratio"] == -2.0
    assert [name for name in parameters if name.startswith(("bob", "rod"))] == ["bob.mass", "rod.length", "rod.on_a"]
    other, changed = make(-3.0)[0], system.replace({"gear.ratio": -3.0})
    np.testing.assert_allclose(changed.constraints(0.0, q0), 0, atol=1e-14)  # ratios are of changes from the assembled position
    turned = q0 + 0.01 * jnp.arange(float(q0.size))
    np.testing.assert_allclose(changed.constraints(0.0, turned), other.constraints(0.0, turned), atol=1e-14)
    with pytest.raises(mbd.ModelError, match="'axle' is between bodies in the plane"):
        system.replace({"axle.axis": (0.0, 0.6, 0.8)})


def test_leaves_of_kinds_functions_and_parameters_of_users():
    class Ramp(eqx.Module):
        slope: float

        def __call__(self, t):
            return self.slope * t * jnp.ones(3)

    pull = lambda t, frame, v, w, p: (p["k"] * p["way"][1], jnp.zeros(3))
    loads = {
        "ramp": mbd.Force("body", Ramp(2.0)),
        "pulse": mbd.Force("body", Partial(lambda size, t, width: size * jnp.ones(3), np.array(3.0), width=0.1)),
        "tip": mbd.UserForce(pull, "body", params={"k": 5.0, "way": (1.0, jnp.arange(3.0)), "count": 2}),
    }
    joint = mbd.Joint(mbd.UserJoint(lambda a, b, p: p["n"] @ (b.origin - a.origin)[None, :].T, {"n": jnp.eye(3)[0]}), "ground", "nut")
    bodies = {"body": mbd.RigidBody.box(1.0, LINK), "nut": mbd.RigidBody.box(1.0, LINK)}
    screw = mbd.Joint(mbd.Screw(0.1), "ground", "body", at=(0, 0, 0))
    system, _ = mbd.assemble(mbd.Mechanism(bodies, {"screw": screw, "guide": joint}, loads))
    values = {
        "ramp.force.slope": 2.0,
        "pulse.force[0]": 3.0,
        "pulse.force.width": 0.1,
        "tip.params.k": 5.0,
        "tip.params.way[0]": 1.0,
        "screw.pitch": 0.1,
        "guide.params.n[0]": 1.0,
    }
    for name, value in values.items():
        assert system.parameters[name] == value
        assert system.replace({name: 2 * value}).parameters[name] == 2 * value
    assert not any("count" in name for name in system.parameters)


def test_loads_are_named_by_kind_unless_they_have_a_name():
    body = {"spring": mbd.RigidBody.box(1.0, LINK)}
    spring = lambda: mbd.Spring("ground", "spring", 1.0)
    mechanism = mbd.Mechanism(body, {}, [mbd.Gravity(), spring(), ("spring 3", spring()), spring()])
    assert list(mechanism.loads) == ["gravity", "spring 2", "spring 3", "spring 4"]
    system, _ = mbd.assemble(mbd.Mechanism(body, {}, {"weight": mbd.Gravity((0, 0, -1.6)), "band": spring()}))
    assert {"weight.acceleration", "band.stiffness"} < set(system.parameters)
    with pytest.raises(mbd.ModelError, match="both called 'spring'"):
        mbd.Mechanism(body, {}, {"spring": spring()})
    with pytest.raises(mbd.ModelError, match="two parts are called 'band'"):
        mbd.Mechanism(body, {}, [("band", spring()), ("band", spring())])
    with pytest.raises(mbd.ModelError, match="load 'pull' is 1"):
        mbd.Mechanism(body, {}, {"pull": 1.0})


def test_a_reduced_beam():
    section = mbd.Section.circle(0.01, 1e9, 1000.0)
    clamp = {"clamp": mbd.Joint(mbd.Fixed(), "ground", "beam[0]", at=(0, 0, 0))}
    system, q0 = mbd.assemble(mbd.Mechanism({"beam": mbd.Beam.line((0, 0, 0), (1, 0, 0), section, 4)}, clamp, [mbd.Gravity((0, 0, 0))]))
    shapes = mbd.modes(system, q0, count=2).shapes
    reduced = mbd.reduction.ritz(system, q0, {"beam": shapes})
    assert [name for name in reduced.system.parameters if name.startswith("beam.")] == ["beam.stiffness", "beam.inertia"]
    values = {"beam.stiffness[2]": 3 * system.parameters["beam.stiffness[2]"], "gravity.acceleration": (1.0, 2.0, 3.0)}
    anew = mbd.reduction.ritz(system.replace(values), q0, {"beam": shapes})
    y = anew.deformed({"beam": (0.1, -0.2)})
    energy = lambda system: system.functions["potential"](0.0, y, system.params)
    np.testing.assert_allclose(energy(reduced.system.replace(values)), energy(anew.system), rtol=1e-13)


# %% What is refused


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("link2.mas", "did you mean 'link2.mass'"),
        ("Link2.mass", "'link2.mass'"),
        ("link2", "did you mean 'link2.mass', 'link2.inertia', 'link2.com'"),
        ("elbow.postion[1]", "'elbow.position'"),
        ("spring.stiffness[a]", "'spring.stiffness'"),
        ("gravity.acceleration[::::]", "'gravity.acceleration'"),
        ("xyzzy", "print the parameters"),
    ],
)
def test_unknown_names_suggest_the_nearest(name, advice):
    with pytest.raises(mbd.ModelError) as found:
        SYSTEM.replace({name: 1.0})
    assert f"no parameter {name!r}" in str(found.value) and advice in str(found.value)
    with pytest.raises(mbd.ModelError, match="there is no parameter"):
        NOMINAL[name]


def test_few_names_are_all_told():
    with pytest.raises(mbd.ModelError, match="there are 'g', 'l', 'm'"):
        pendulum().replace({"xyzzy": 1.0})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("link2.com", (1.0, 2.0), r"'link2.com' has shape \(3,\), but a value of shape \(2,\)"),
        ("link2.mass", np.ones(1), r"'link2.mass' has shape \(\), but a value of shape \(1,\)"),
        ("link2.inertia[1]", 1.0, r"'link2.inertia\[1\]' has shape \(3,\), but a value of shape \(\)"),
        ("link2.com[3]", 1.0, r"'link2.com\[3\]' does not exist: the array has shape \(3,\)"),
        ("link2.mass[0]", 1.0, r"'link2.mass\[0\]' does not exist: the array has shape \(\)"),
        ("link2.com", (np.nan, 0.0, 0.0), "'link2.com' must be finite"),
        ("spring.rest", jnp.inf, "'spring.rest' must be finite"),
        ("spring.rest", "long", "'spring.rest' takes numbers"),
        ("link2.mass", -1.0, "'link2' has mass -1.0; it must be a positive number"),
        ("link2.inertia[0, 1]", 1.0, "not symmetric"),
        ("elbow.axis", (0.0, 0.0, 0.0), "'elbow' has the axis"),
    ],
)
def test_values_that_cannot_be(name, value, told):
    with pytest.raises(mbd.ModelError, match=told):
        SYSTEM.replace({name: value})


def test_shapes_are_checked_inside_transformations():
    with pytest.raises(mbd.ModelError, match=r"'link2.mass' has shape \(\), but a value of shape \(3,\)"):
        jax.jit(lambda x: SYSTEM.replace({"link2.mass": x}))(jnp.ones(3))
