r"""Ordinary differential equations $M \dot v = f$ with constraints: inertia, forces, constraints, and what projects onto them."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..constraints.calculus import constraint_rate, equations_of_motion, mass_matrix
from ..constraints.counts import known_independent, position_count, rank_tolerance
from ..constraints.units import row_size, sizes, within
from ..errors import ModelError
from ..numerics.arguments import checked
from ..numerics.naming import is_parameter
from ..numerics.trial import explained
from ..system import Scalar, System, Vector, arity
from .directions import Directions

Rows = Float[Array, " m"]
Matrix = Float[Array, "n n"]

LARGEST_CUTOFF = 0.1
"""Directions of constraints that differ by more from all others always count."""


class State(eqx.Module):
    """Position, velocity, and states that are no coordinates (`None` without)."""

    q: Vector
    v: Vector
    w: PyTree = None


class Dynamics(eqx.Module):
    r"""$M \dot v = f$ with constraints $\varphi(t, q) = 0$ and $a(t, q, v) = 0$, affine in $v$. Its array leaves are its parameters.

    `system` tells the constraints, and what `functions` does not; `form` leads from coordinates to those of the functions, where they are
    fewer. `independent` says that no constraint ever follows from others (`None`: as far as the system knows), which makes them much
    cheaper; `inexact` that they can only be met as well as possible, in the sense of least squares.
    """

    system: System
    functions: dict[str, Any]
    form: Any = None
    by_mass: bool = eqx.field(static=True, default=False)
    independent: bool | None = eqx.field(static=True, default=None)
    inexact: bool = eqx.field(static=True, default=False)

    @classmethod
    @checked
    def of(
        cls,
        system: System,
        *,
        controls: Callable | None = None,
        states: Callable | None = None,
        weight: Any = "identity",
        independent: bool | None = None,
    ) -> "Dynamics":
        r"""Those of a system: its Lagrangian, forces and constraints.

        **Arguments**

        - `controls`: what forces with a fifth argument receive: a function of time, or of `(t, q, v, w)`.
        - `states(t, q, v, w, params)`: rates of further states `w`, such as those of actuators and controllers.
        - `weight`: how changes of coordinates are compared in projections: `"identity"` in their sizes, `"mass"`, a matrix, its diagonal,
          or a function `(t, q, params)` that returns one of them.
        - `independent`: whether no constraint ever follows from the others; by default as far as `mbd.find_rank` has found.
        """
        if not (system.has("lagrangian") or system.has("kinetic")):
            raise ModelError("a system that is only a discrete Lagrangian has no differential equation: give it a lagrangian too")
        if system.has("friction"):
            raise ModelError(
                "friction with a memory follows no differential equation, for it jumps from sticking to slipping: use simulate, or write a "
                "smooth law into the forces"
            )
        if system.controlled and controls is None:
            raise ModelError("the forces of this system take a control: pass controls, a function of time or of (t, q, v, w)")
        if not system.controlled and controls is not None:
            raise ModelError("controls were given, but the forces of this system take none")
        _check_arities({"controls": (controls, (1, 4)), "states": (states, (5,)), "weight": (weight, (3,))})
        return cls(system, _given(controls=controls, states=states, weight=_weight(weight)), None, _is_mass(weight), independent)

    @classmethod
    @checked
    def from_functions(
        cls,
        mass: Any,
        forces: Callable,
        *,
        constraints: Callable | None = None,
        velocity_constraints: Callable | None = None,
        states: Callable | None = None,
        weight: Any = "identity",
        independent: bool = False,
        params: PyTree = None,
    ) -> "Dynamics":
        r"""From functions of the user's: an ordinary differential equation, and constraints that are added to it.

        **Arguments**

        - `mass(t, q, params)`: $M$, or a matrix, or its diagonal.
        - `forces(t, q, v, w, params)`: all that stands on the other side, $-\dot M v$ and the like among it.
        - `constraints(t, q, params) -> (m,)`: $\varphi = 0$; they may move.
        - `velocity_constraints(t, q, v, params) -> (k,)`: $a = 0$, affine in $v$, such as those of rolling.
        - `states(t, q, v, w, params)`: rates of states `w` that are no coordinates, any pytree.
        - `weight`: as in `Dynamics.of`.
        - `independent`: that no constraint ever follows from the others. Otherwise some may, and ranks may change on the way.
        - `params`: any pytree; its floating leaves become arrays.
        """
        counts = {"mass": (mass, (3,)), "forces": (forces, (5,)), "states": (states, (5,)), "weight": (weight, (3,))}
        _check_arities(counts | {"constraints": (constraints, (3,)), "velocity_constraints": (velocity_constraints, (4,))})
        params = jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, float) else leaf, params)
        functions = _given(mass=_constant_or_function(mass), forces=forces, states=states, weight=_weight(weight))
        kinematics = System(_given(constraints=constraints, velocity_constraints=velocity_constraints), params)
        return cls(kinematics, functions, None, _is_mass(weight), independent)

    @checked
    def reduced(self, X: Any, *, exact: bool = False, independent: bool = False) -> "Dynamics":
        r"""The same by fewer coordinates $r$, with $x = X r$ (23)-(26): Ritz forms, modes, or any map.

        Mass, forces, weight and constraints follow. Constraints that the forms can only nearly meet are met in the sense of least squares.
        A start is one that the projection leaves where it is.

        **Arguments**

        - `X`: a matrix with a column a coordinate, or a function $x(r)$.
        - `exact`: that the forms can meet the constraints. A motion on which they cannot is then an error, like one of all coordinates.
        - `independent`: that in these coordinates no constraint ever follows from the others.
        """
        form = as_pytree(X) if callable(X) else Partial(jnp.matmul, jnp.asarray(X))
        whole = form if self.form is None else Partial(_one_after_the_other, self.form, form)
        return Dynamics(self.system, self.functions, whole, self.by_mass, independent, not exact)

    def astype(self, dtype) -> "Dynamics":
        """The same with every floating leaf in `dtype`."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if is_parameter(leaf) else leaf, self)

    @property
    def of_system(self) -> bool:
        """Whether a system tells everything, in its own coordinates, so that post-processing understands the motion."""
        return "mass" not in self.functions and self.form is None

    def place(self, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        """Position and velocity as the functions take them."""
        return (q, v) if self.form is None else jax.jvp(self.form, (q,), (v,))

    def mass(self, t: Scalar, q: Vector, v: Vector) -> Matrix:
        r"""$M$, of reduced coordinates $X^T M X$."""
        x, u = self.place(q, v)
        return self._within(q, self._mass(t, x, u))

    def forces(self, t: Scalar, q: Vector, v: Vector, w: PyTree = None) -> Vector:
        r"""$f$, of reduced coordinates $X^T (f - M \dot X \dot r)$."""
        if self.form is None:
            return self._forces(t, q, v, w)
        (x, u), (_, bent) = jax.jvp(lambda q: self.place(q, v), (q,), (v,))
        return jax.vjp(self.form, q)[1](self._forces(t, x, u, w) - self._mass(t, x, u) @ bent)[0]

    def states(self, t: Scalar, q: Vector, v: Vector, w: PyTree) -> PyTree:
        """Rates of the states that are no coordinates."""
        if "states" not in self.functions:
            return jax.tree.map(jnp.zeros_like, w)
        rates = self.functions["states"](t, *self.place(q, v), w, self.system.params)
        return jax.tree.map(lambda leaf, rate: jnp.asarray(rate).astype(leaf.dtype), w, rates)

    def weight(self, t: Scalar, q: Vector) -> Matrix | None:
        """How changes of coordinates are compared; `None` for those that are counted in their sizes."""
        x, _ = self.place(q, q)
        if self.by_mass:
            return self._within(q, self._mass(t, x, jnp.zeros_like(x)))
        if "weight" in self.functions:
            return self._within(q, _as_matrix(self.functions["weight"](t, x, self.system.params), x))
        return None if self.form is None else self._within(q, jnp.diag(sizes(self.system, x) ** -2))

    def sizes(self, q: Vector) -> Vector:
        """Changes of coordinates that matter alike."""
        if self.form is None:
            return sizes(self.system, q)
        return jax.lax.stop_gradient(within(jax.jacfwd(self.form)(q), sizes(self.system, self.form(q))))

    def constraints(self, t: Scalar, q: Vector) -> Float[Array, " g"]:
        r"""$\varphi(t, q)$."""
        return self.system.constraints(t, q if self.form is None else self.form(q))

    def rate(self, t: Scalar, q: Vector, v: Vector) -> Rows:
        r"""$A v - b'$: rates of the constraints on positions, and the constraints on velocities."""
        return constraint_rate(self.system, t, *self.place(q, v))

    def curvature(self, t: Scalar, q: Vector, v: Vector) -> Rows:
        r"""$-b''$: what of $\ddot\varphi$ is there without acceleration (6b), by differentiation along the motion."""
        return jax.jvp(self.rate, (t, q, v), (jnp.ones_like(t), v, jnp.zeros_like(v)))[1]

    def count(self, q: Vector) -> int:
        """Number of constraints on positions."""
        return position_count(self.system, q if self.form is None else jax.eval_shape(self.form, q))

    def position_directions(self, t: Scalar, q: Vector) -> Directions:
        """What the constraints on positions forbid."""
        return self._directions(t, q, lambda q: self.constraints(t, q), q)

    def directions(self, t: Scalar, q: Vector, v: Vector) -> Directions:
        r"""What all constraints forbid: $A = \partial\dot\varphi/\partial v$."""
        return self._directions(t, q, lambda v: self.rate(t, q, v), v)

    def _directions(self, t: Scalar, q: Vector, function: Callable, at: Vector) -> Directions:
        count = jax.eval_shape(function, at).size
        jacobian = jax.jacrev if count < at.size else jax.jacfwd
        A = jacobian(function)(at) if count else jnp.zeros((0, at.size), at.dtype)
        return Directions.of(A, self.sizes(q), self._cutoff(t, q, A), self.system.structure.sizes is not None)

    def _cutoff(self, t: Scalar, q: Vector, A: Float[Array, "m n"]) -> Array | None:
        """Singular values that count as zero. Off the manifold redundant constraints look independent by as much as they are violated."""
        independent = known_independent(self.system, q) if self.independent is None else self.independent
        if independent or A.shape[0] == 0:
            return None
        off = jnp.abs(self.constraints(t, q)) / row_size(A[: self.count(q)] * self.sizes(q))
        cutoff = jnp.clip(4 * jnp.max(off, initial=0), rank_tolerance(q.dtype), LARGEST_CUTOFF)
        return jax.lax.stop_gradient(cutoff)

    def _mass(self, t: Scalar, x: Vector, u: Vector) -> Matrix:
        given = self.functions.get("mass")
        return mass_matrix(self.system, t, x, u) if given is None else _as_matrix(given(t, x, self.system.params), x)

    def _forces(self, t: Scalar, x: Vector, u: Vector, w: PyTree) -> Vector:
        if "forces" in self.functions:
            return jnp.asarray(self.functions["forces"](t, x, u, w, self.system.params)).astype(x.dtype)
        return -equations_of_motion(self.system, t, x, u, jnp.zeros_like(x), self._control(t, x, u, w))

    def _control(self, t: Scalar, x: Vector, u: Vector, w: PyTree) -> PyTree:
        controls = self.functions.get("controls")
        if controls is None:
            return None
        with explained("controls"):
            return controls(t) if arity(controls) == 1 else controls(t, x, u, w)

    def _within(self, q: Vector, matrix: Matrix) -> Matrix:
        if self.form is None:
            return matrix
        X = jax.jacfwd(self.form)(q)
        return X.T @ matrix @ X


class _Constant(eqx.Module):
    """A matrix that does not change, in place of a function."""

    matrix: Any

    def __call__(self, t: Scalar, q: Vector, params: PyTree) -> Any:
        return self.matrix


def as_pytree(function: Any) -> Any:
    """A plain function becomes a pytree without leaves; a callable module keeps its leaves as parameters."""
    return function if isinstance(function, eqx.Module | Partial) else Partial(function)


def _given(**functions: Any) -> dict[str, Any]:
    return {name: as_pytree(function) for name, function in functions.items() if function is not None}


def _constant_or_function(value: Any) -> Any:
    return value if callable(value) else _Constant(np.asarray(value, float) if isinstance(value, list | tuple | float | int) else value)


def _weight(weight: Any) -> Any:
    """A weight as a function, `None` where it has a name."""
    if isinstance(weight, str) and weight not in ("identity", "mass"):
        raise ModelError(f"weight must be 'identity', 'mass', a matrix, its diagonal, or a function (t, q, params), not {weight!r}")
    return None if isinstance(weight, str) else _constant_or_function(weight)


def _is_mass(weight: Any) -> bool:
    return isinstance(weight, str) and weight == "mass"


def _as_matrix(value: Any, q: Vector) -> Matrix:
    """A matrix from itself, or from its diagonal."""
    value = jnp.asarray(value).astype(q.dtype)
    return jnp.diag(jnp.broadcast_to(value, q.shape)) if value.ndim < 2 else value


def _one_after_the_other(outer: Callable, inner: Callable, r: Vector) -> Vector:
    return outer(inner(r))


def _check_arities(functions: dict[str, tuple[Any, tuple[int, ...]]]) -> None:
    for name, (function, counts) in functions.items():
        if callable(function) and arity(function) not in counts:
            wanted = " or ".join(map(str, counts))
            raise ModelError(f"{name} takes {arity(function)} positional arguments; it must take {wanted} (see mbd.odes.Dynamics)")
