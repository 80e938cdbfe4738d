"""Parameters by name: what a replaced one does."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbd as mbd

from .arms import LINK, NOMINAL, PLACEMENT, Q0, SYSTEM, arm, largest_difference
from .mechanisms import pendulum


def end(system, q0=Q0):
    """All coordinates after a short motion."""
    return mbd.simulate(system, q0, dt=0.02, steps=10, save="end", throw=False).q[-1]


END = jax.jit(end)


def gallery(name):
    return mbd.assemble(*getattr(mbd.gallery, name)())


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
