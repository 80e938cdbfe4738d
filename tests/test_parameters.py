"""Parameters by name: what is listed, what a replaced one does, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import jaxmbd as mbd

from .mechanisms import pendulum

LINK = (0.1, 0.1, 1.0)


def arm(mass=1.0, com=(0.0, 0.0, 0.1), inertia=(0.1, 0.2, 0.15), elbow=(0, 0, -1), axis=(0, 1, 0), stiffness=30.0, gravity=(0, 0, -9.81)):
    """Two links, of which the second is drawn back by a spring, and a motor."""
    bodies = {"link1": mbd.RigidBody.box(1.0, LINK), "link2": mbd.RigidBody(mass, inertia, com)}
    joints = {
        "shoulder": mbd.Joint(mbd.Revolute((1, 0, 0)), "ground", "link1", at=(0, 0, 0)),
        "elbow": mbd.Joint(mbd.Revolute(axis), "link1", "link2", at=elbow),
    }
    loads = [
        mbd.Gravity(gravity),
        mbd.Spring("ground", "link2", stiffness=stiffness, rest=0.5, at_a=(1, 0.5, -1)),
        mbd.JointSpring("elbow", stiffness=2.0, damping=0.1),
    ]
    return mbd.Mechanism(bodies, joints, loads)


PLACEMENT = {"link1": ((0, 0, -0.5), (0.0, 0.0, 0.3)), "link2": ((0, 0.2, -1.5), (0.2, 0.0, 0.0))}
SYSTEM, Q0 = mbd.assemble(arm(), PLACEMENT)
NOMINAL = SYSTEM.parameters


def end(system, q0=Q0):
    """All coordinates after a short motion."""
    return mbd.simulate(system, q0, dt=0.02, steps=10, save="end", throw=False).q[-1]


END = jax.jit(end)


def gallery(name):
    return mbd.assemble(*getattr(mbd.gallery, name)())


def largest_difference(first, second):
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0)) for a, b in leaves)


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


# %% What a replaced parameter does


@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "three_bar_swing", "six_body_linkage"])
def test_listed_values_put_back_change_nothing(name):
    system, _ = gallery(name)
    parameters = system.parameters
    for one, value in parameters.items():
        again = system.replace({one: value})
        assert largest_difference(again, system) <= 1e-15, one
        assert again.rank == system.rank
    whole = system.replace(dict(parameters))
    assert largest_difference(whole, system) <= 2e-15
    assert jax.tree.structure(whole) == jax.tree.structure(system)


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("link2.mass", 1.7, {"mass": 1.7}),
        ("link2.com", (0.02, -0.1, 0.3), {"com": (0.02, -0.1, 0.3)}),
        ("link2.inertia", np.diag([0.3, 0.2, 0.4]), {"inertia": (0.3, 0.2, 0.4)}),
        ("spring.stiffness", 77.0, {"stiffness": 77.0}),
        ("gravity.acceleration", (1.0, 0.0, -5.0), {"gravity": (1.0, 0.0, -5.0)}),
    ],
)
def test_equals_a_mechanism_made_with_that_number(name, value, given):
    assert largest_difference(SYSTEM.replace({name: value}), mbd.assemble(arm(**given), PLACEMENT)[0]) <= 1e-15


def test_a_joint_is_moved_and_turned_on_both_bodies():
    point, axis = np.array([0.05, -0.1, -0.9]), np.array([0.2, 1.0, -0.3])
    frame = mbd.rotation.exp(jnp.array(PLACEMENT["link1"][1]))
    anew, q0 = mbd.assemble(arm(elbow=point, axis=axis), PLACEMENT)
    moved = SYSTEM.replace({"elbow.position": frame.T @ (point - np.array([0, 0, -0.5])), "elbow.axis": frame.T @ axis})
    for own in ("on_a", "on_b"):
        np.testing.assert_allclose(moved.parameters[f"elbow.{own}"], anew.parameters[f"elbow.{own}"], atol=1e-15)
    np.testing.assert_allclose(moved.constraints(0.0, Q0), 0, atol=1e-15)  # so that the position in which it was assembled stays one
    rate = mbd.joint_velocities(anew, q0, {"elbow": 1.0})
    np.testing.assert_allclose(mbd.joint_velocities(moved, Q0, {"elbow": 1.0}), rate, atol=1e-13)
    back = moved.replace({"elbow.axis": -frame.T @ axis}).parameters["elbow.axis"]
    np.testing.assert_allclose(back, -frame.T @ axis / np.linalg.norm(axis), atol=1e-14)


def test_axes_of_a_universal_joint():
    body, joint = {"body": mbd.RigidBody.box(1.0, LINK)}, mbd.Joint(mbd.Universal((0, 0, 1), (1, 0, 0)), "ground", "body", at=(0, 0, 0))
    system, _ = mbd.assemble(mbd.Mechanism(body, {"cross": joint}))
    first, second = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    names = {"cross.second": second, "cross.axis": first}
    group, again = (system.replace(dict(items)).params.tree[0] for items in (names.items(), reversed(names.items())))
    np.testing.assert_allclose(group.on_a.rotation[0], np.stack([second, np.cross(first, second), first], axis=1), atol=1e-15)
    np.testing.assert_allclose(group.on_b.rotation, group.on_a.rotation, atol=1e-15)
    assert largest_difference(group, again) == 0


def test_several_at_once_in_any_order():
    values = {"link2.com": (0.0, 0.1, 0.2), "link2.mass": 3.0, "link2.inertia[0, 0]": 0.25, "spring.rest": 0.1}
    anew, _ = mbd.assemble(arm(mass=3.0, com=(0.0, 0.1, 0.2), inertia=(0.25, 0.2, 0.15)), PLACEMENT)
    one, other = SYSTEM.replace(values), SYSTEM.replace(dict(reversed(values.items())))
    assert largest_difference(one, other) == 0
    np.testing.assert_allclose(one.params.inertia, anew.params.inertia, atol=2e-16)
    assert one.parameters["spring.rest"] == 0.1
    elements = {"gravity.acceleration[2]": -1.0, "gravity.acceleration": (1.0, 2.0, 3.0)}  # elements after the whole
    np.testing.assert_array_equal(SYSTEM.replace(elements).parameters["gravity.acceleration"], [1.0, 2.0, -1.0])


def difference(function, values, name, h=1e-4):
    """The derivative by a parameter, of the fourth order."""
    at = lambda x: function(values | {name: values[name] + x})
    return (8 * (at(h) - at(-h)) - at(2 * h) + at(-2 * h)) / (12 * h)


def test_gradients_against_differences():
    """The position in which the mechanism was assembled stays one while joints are moved and turned as a whole."""
    names = ("link2.mass", "link2.com[2]", "elbow.position[0]", "elbow.axis[2]", "spring.stiffness", "gravity.acceleration[2]")
    values = {name: float(NOMINAL[name]) + 0.03 for name in names}
    weights = jnp.zeros(Q0.size).at[12:15].set(jnp.array([1.0, 0.7, 0.4]))
    slopes = jax.jit(jax.grad(lambda values: weights @ end(SYSTEM.replace(values))))(values)
    for name in names:
        found = difference(lambda values: float(weights @ END(SYSTEM.replace(values))), values, name)
        np.testing.assert_allclose(slopes[name], found, rtol=1e-6, err_msg=name)


def test_gradient_of_a_start_that_follows_a_point_of_one_body():
    """A point moved on one body alone leaves the start: one that is consistent is found near it."""

    def start(values):
        return mbd.project(SYSTEM.replace(values), Q0)[0]

    name, values = "elbow.on_b[2]", {"elbow.on_b[2]": float(NOMINAL["elbow.on_b[2]"]) + 0.05}
    slope = jax.jit(jax.jacfwd(start))(values)[name]
    found = difference(jax.jit(start), values, name)
    assert np.abs(found).max() > 0.1
    np.testing.assert_allclose(slope, found, rtol=1e-6, atol=1e-9)


def test_a_batch_equals_a_loop():
    names = ("link2.mass", "elbow.position", "gravity.acceleration")
    scale = jnp.array([0.8, 1.0, 1.3])[:, None]
    batch = {name: scale.reshape(3, *[1] * NOMINAL[name].ndim) * NOMINAL[name] for name in names}
    together = jax.jit(jax.vmap(lambda values: end(SYSTEM.replace(values))))(batch)
    for i in range(3):
        np.testing.assert_allclose(together[i], END(SYSTEM.replace({name: batch[name][i] for name in names})), rtol=1e-12, atol=1e-13)
    assert np.ptp(together[:, 14]) > 1e-3


def test_other_numbers_compile_nothing():
    values = [{"link2.mass": 1.2}, {"link2.mass": jnp.array(1.3), "elbow.position": (0.0, 0.1, -0.4)}, {"spring.rest": 2}]
    traced = []
    use = jax.jit(lambda system: traced.append(None) or system.constraints(0.0, Q0))
    use(SYSTEM)
    for one in values:
        changed = SYSTEM.replace(one)
        assert jax.tree.structure(changed) == jax.tree.structure(SYSTEM) and changed.rank == SYSTEM.rank is not None
        use(changed)
    assert len(traced) == 1


def test_digits_and_dtypes_are_kept():
    assert isinstance(SYSTEM.replace({"link2.mass": 1.2}).params.inertia, np.ndarray)
    single = SYSTEM.astype(jnp.float32)
    for value in (1.2, jnp.array(1.2), np.float64(1.2)):
        changed = single.replace({"link2.mass": value, "elbow.axis": (0.0, 1.0, 0.1), "spring.rest": value, "elbow.position": (0, 0, 1)})
        assert {leaf.dtype for leaf in jax.tree.leaves(changed)} == {np.dtype(np.float32)}
        np.testing.assert_allclose(changed.parameters["link2.mass"], 1.2, rtol=1e-7)
        assert changed.parameters["link2.mass"].dtype == np.float32
    held = SYSTEM.replace({"link2.mass": jnp.float32(1.5)})
    assert held.parameters["link2.mass"].dtype == np.float64 and held.parameters["link2.mass"] == 1.5


# %% Systems of functions


class Rod(eqx.Module):
    length: float
    label: str = eqx.field(static=True, default="rod")


def test_users_parameters_by_path():
    params = {"m": 1.0, "rod": Rod(2.0), "masses": [1.0, 2.0, np.array([3.0, 4.0])], "count": 3}
    system = mbd.System.from_functions(lambda t, q, v, p: 0.5 * p["m"] * v @ v, params=params)
    assert list(system.parameters) == ["m", "masses[0]", "masses[1]", "masses[2]", "rod.length"]
    changed = system.replace({"rod.length": 3.0, "masses[2][1]": 5.0, "masses[0]": 0.5})
    assert changed.params["rod"].length == 3.0 and changed.params["masses"][0] == 0.5 and changed.params["count"] == 3
    np.testing.assert_array_equal(changed.params["masses"][2], [3.0, 5.0])


def test_parameters_without_a_path_and_of_callable_modules():
    class Well(eqx.Module):
        depth: jax.Array

        def __call__(self, t, q, p):
            return self.depth * q @ q

    kinetic = lambda t, q, v, p: 0.5 * v @ v
    system = mbd.System.from_functions(kinetic=kinetic, potential=Well(jnp.array(2.0)), params=3.0)
    assert dict(system.parameters) == {"params": 3.0, "potential.depth": 2.0}
    assert system.replace({"potential.depth": 4.0}).lagrangian(0.0, jnp.ones(1), jnp.zeros(1)) == -4.0
    assert system.replace({"params": 4.0}).params == 4.0
    several = mbd.System.from_functions(kinetic=kinetic, params=(1.0, {"a": 2.0}))
    assert dict(several.parameters) == {"params[0]": 1.0, "params[1].a": 2.0}


def test_a_system_of_functions_is_differentiated_by_name():
    system = pendulum()
    move = jax.jit(lambda x: mbd.simulate(system.replace({"l": x}), jnp.array([1.0, 0.0]) * x, dt=0.02, steps=10, save="end").q[-1, 0])
    np.testing.assert_allclose(jax.grad(move)(1.0), (move(1.0 + 1e-5) - move(1.0 - 1e-5)) / 2e-5, rtol=1e-8)


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
