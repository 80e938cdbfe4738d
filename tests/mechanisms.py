"""Mechanisms written as functions, shared by the tests. Each is made once, so that programs compiled for it serve all tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxmbd as mbd


def rotate(angle, q):
    """Rotation of a plane vector."""
    return jnp.array([jnp.cos(angle) * q[0] - jnp.sin(angle) * q[1], jnp.sin(angle) * q[0] + jnp.cos(angle) * q[1]])


@functools.cache
def _pendulum():
    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * p["m"] * v @ v - p["m"] * p["g"] * q[1],
        constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - p["l"] ** 2)]),
        chart=lambda u, q: rotate(u[0], q),
        null_space=lambda q: jnp.array([[-q[1]], [q[0]]]),
        params={"m": 1.0, "l": 1.0, "g": 9.81},
    )


def pendulum(gravity=9.81, length=1.0, mass=1.0):
    """Plane mathematical pendulum (48), (49), with its chart and its null space."""
    return _pendulum().with_params({"m": mass, "l": length, "g": gravity})


@functools.cache
def spherical_pendulum(gravity=9.81):
    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * v @ v - p * q[2],
        constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - 1)]),
        params=gravity,
    )


@functools.cache
def kepler():
    """Plane Kepler problem: no constraints, a potential with a pole."""
    return mbd.System.from_functions(
        kinetic=lambda t, q, v, p: 0.5 * v @ v,
        potential=lambda t, q, p: -p / jnp.sqrt(q @ q),
        params=1.0,
    )


@functools.cache
def bead_on_moving_wire():
    """A bead on a vertical hoop that turns about its diameter at the given rate: a moving (rheonomic) constraint."""

    def constraints(t, q, p):
        normal = jnp.array([-jnp.sin(p["rate"] * t), jnp.cos(p["rate"] * t), 0.0])
        return jnp.array([0.5 * (q @ q - p["radius"] ** 2), normal @ q])

    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[2],
        constraints=constraints,
        params={"rate": 3.0, "radius": 1.0},
    )


@functools.cache
def charged_particle():
    """A charge in the uniform magnetic field B e_z and a weak trap: the Lagrangian is linear in velocity besides its kinetic energy."""

    def lagrangian(t, q, v, p):
        potential = 0.5 * p["B"] * jnp.array([-q[1], q[0], 0.0])
        return 0.5 * v @ v + v @ potential - 0.5 * p["k"] * q @ q

    return mbd.System.from_functions(lagrangian, params={"B": 5.0, "k": 0.3})


@functools.cache
def chain(links, dimension=2, gravity=9.81):
    """N-pendulum in Cartesian coordinates: masses on massless links of length one; gravity along the last axis."""

    def lagrangian(t, q, v, p):
        weight = p["m"] @ q.reshape(links, dimension)[:, -1] * p["g"]
        return 0.5 * p["m"] @ jnp.sum(v.reshape(links, dimension) ** 2, axis=1) - weight

    def constraints(t, q, p):
        points = jnp.vstack([jnp.zeros((1, dimension), q.dtype), q.reshape(links, dimension)])
        return 0.5 * (jnp.sum(jnp.diff(points, axis=0) ** 2, axis=1) - p["l"] ** 2)

    params = {"m": np.linspace(1.0, 2.0, links), "l": np.ones(links), "g": gravity}
    return mbd.System.from_functions(lagrangian, constraints=constraints, params=params)


def stretched(links, dimension=2):
    """The chain stretched along its first axis."""
    return jnp.zeros((links, dimension)).at[:, 0].set(jnp.arange(1, links + 1.0)).ravel()


@functools.cache
def redundant_pendulum():
    """A spherical pendulum in the plane y = 0 whose length is prescribed twice, in different units."""
    return mbd.System.from_functions(
        lagrangian=lambda t, q, v, p: 0.5 * v @ v - 9.81 * q[2],
        constraints=lambda t, q, p: jnp.array([0.5 * (q @ q - 1), q[1], 100 * (jnp.sqrt(q @ q) - 1) + 3 * q[1]]),
    )


@functools.cache
def chaplygin_sleigh():
    """A blade at (x, y) that does not slip across its heading, with the centre of mass at the distance a ahead of it."""

    def lagrangian(t, q, v, p):
        x, y = v[0] - p["a"] * jnp.sin(q[2]) * v[2], v[1] + p["a"] * jnp.cos(q[2]) * v[2]
        return 0.5 * p["m"] * (x * x + y * y) + 0.5 * p["I"] * v[2] ** 2

    return mbd.System.from_functions(
        lagrangian,
        velocity_constraints=lambda t, q, v, p: jnp.array([v[1] * jnp.cos(q[2]) - v[0] * jnp.sin(q[2])]),
        params={"m": 1.2, "I": 0.2, "a": 0.3},
    )


@functools.cache
def inclined_knife_edge():
    """A blade on a plane that falls along x."""
    return mbd.System.from_functions(
        lambda t, q, v, p: 0.5 * v[:2] @ v[:2] + 0.5 * p["I"] * v[2] ** 2 + p["g"] * q[0],
        velocity_constraints=lambda t, q, v, p: jnp.array([v[0] * jnp.sin(q[2]) - v[1] * jnp.cos(q[2])]),
        params={"I": 0.3, "g": 1.5},
    )


@functools.cache
def inclined_coin():
    """A vertical coin, (x, y) with the angles of rolling and heading, that rolls without slip on a plane that falls along x."""

    def rolling(t, q, v, p):
        return jnp.array([v[0] - p["R"] * v[2] * jnp.cos(q[3]), v[1] - p["R"] * v[2] * jnp.sin(q[3])])

    def lagrangian(t, q, v, p):
        return 0.5 * p["m"] * v[:2] @ v[:2] + 0.5 * p["I"] * v[2] ** 2 + 0.5 * p["J"] * v[3] ** 2 + p["m"] * p["g"] * q[0]

    params = {"m": 1.3, "I": 0.04, "J": 0.02, "R": 0.25, "g": 0.8}
    return mbd.System.from_functions(lagrangian, velocity_constraints=rolling, params=params)


def optimised(run):
    """The result of a long run, by a program that is optimised, unlike those of all other tests, which would wait longer than they gain."""
    return jax.jit(run, compiler_options={"xla_backend_optimization_level": 3})()


def errors_after(duration, counts, run, expected, read):
    """Largest errors of `read(trajectory)`, a list of columns, after so many steps for the same duration, one row a column.

    All runs `run(dt, steps)` take as many steps as the longest, so that one program serves them all.
    """
    columns = [read(run(duration / count, max(counts))) for count in counts]
    largest = lambda column, row, value: np.max(np.abs(np.asarray(column[row]) - np.asarray(value)))
    return [[largest(one[i], count, value) for one, count in zip(columns, counts, strict=True)] for i, value in enumerate(expected)]
