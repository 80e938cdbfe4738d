"""The model: a Lagrangian, constraints and forces as pure functions, with their parameters as a pytree."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, ArrayLike, Float, PyTree

from .errors import ModelError
from .friction import AbstractFriction, Frictions, OnCoordinates
from .numerics.arguments import checked
from .numerics.arrays import library
from .numerics.naming import Named, Parameters, below, collect, is_parameter, of_tree
from .numerics.signatures import arity, call_with, check_signature

Scalar = Float[Array, ""] | float
Vector = Float[Array, " n"]
VectorLike = ArrayLike | Sequence


class Structure(NamedTuple):
    """What is known of a system beyond its functions, for solvers and messages. Constraints and coordinates are given by number.

    - `parts`: for every coordinate the number of the part that it belongs to.
    - `pivots`: coordinates without inertia, each with a constraint that determines it.
    - `internal`: constraints within one part, each with a coordinate of that part; `held` says that parts have not enough inertia
      without them.
    - `owners`: for every constraint the name of what it belongs to, those on velocities last.
    - `quadratic`: whether the kinetic energy is a quadratic form of the velocities.
    - `leaps(q, move)`: a code for steps that went so far that their equations cannot tell them from wrong ones, otherwise `SUCCESS`.
    - `sizes(q)`: for every coordinate a change that matters as much as those of the others, such as a length of the mechanism beside one
      for directions. Tolerances and nearest vectors are counted in them; without them all coordinates have one unit.
    """

    parts: tuple[int, ...] = ()
    pivots: tuple[tuple[int, int], ...] = ()
    internal: tuple[tuple[int, int], ...] = ()
    held: bool = False
    owners: tuple[str, ...] = ()
    quadratic: bool = False
    leaps: Callable | None = None
    sizes: Callable | None = None


class System(eqx.Module):
    """A mechanical system whose array leaves are its parameters.

    It knows nothing of time steps, states or solvers. Build one with `System.from_functions`; every leaf of `params` can be
    differentiated, batched or fitted.
    """

    functions: dict[str, Any]
    params: PyTree
    rank: int | None = eqx.field(static=True, default=None)
    closures: int | None = eqx.field(static=True, default=None)
    holonomic_rank: int | None = eqx.field(static=True, default=None)

    @classmethod
    @checked
    def from_functions(
        cls,
        lagrangian: Callable | None = None,
        *,
        kinetic: Callable | None = None,
        potential: Callable | None = None,
        discrete_lagrangian: Callable | None = None,
        constraints: Callable | None = None,
        velocity_constraints: Callable | None = None,
        forces: Callable | None = None,
        chart: Callable | None = None,
        null_space: Callable | None = None,
        closures: int | None = None,
        structure: Structure | Callable | None = None,
        friction: Mapping[str, tuple[int | Callable, AbstractFriction]] | Callable | None = None,
        params: PyTree = None,
    ) -> "System":
        r"""A system from pure functions; time comes first, parameters last.

        **Arguments**

        - `lagrangian(t, q, v, params)`: $L$; or `kinetic(t, q, v, params)` with `potential(t, q, params)`.
        - `discrete_lagrangian(t, dt, q0, q1, params)`: $L_d \approx \int_t^{t+dt} L$, instead of or beside $L$. On its own it also
          defines $L(t, q, v) = L_d(t - h/2, h, q - hv/2, q + hv/2)/h$, which starts and reads the motion.
        - `constraints(t, q, params) -> (m,)`: $g(t, q) = 0$.
        - `velocity_constraints(t, q, v, params) -> (k,)`: $a(t, q, v) = A(t, q)\,v + a_0(t, q) = 0$, such as rolling without slip, which
          need not be the rate of anything. They count after those of $g$ wherever constraints have numbers, as in multipliers.
        - `forces(t, q, v, params) -> (n,)`: what no potential gives. A fifth argument receives the control of the step.
        - `chart(u, q) -> q1`: nodal reparametrisation (27) with `chart(0, q) == q`, $u \in R^{n-m}$. It may also take
          `(u, q, params)` or, for moving constraints, `(u, q, params, t0, t1)`. It fulfils $g$ alone: constraints on velocities stay open.
        - `null_space(q) -> (n, n-m)`: columns that span the null space of $G = \partial g/\partial q$, and of $A$, if there is one:
          what all constraints admit. It may also take `(q, params)` or `(q, params, t)`.
        - `closures`: says that the chart fulfils all constraints but the last `closures` ones, that those it fulfils are independent and do
          not move, and that its $u$ has one more component for each that it leaves open. `NullSpace` and `Reparametrised` then
          decompose only the small matrix $G^c P^o$ (96).
        - `structure`: a `Structure`, or a function of `params` that returns one; nothing depends on it but speed, tolerances and messages.
        - `friction`: by name, pairs of a coordinate and a law such as `mbd.friction.Plasticity`. The coordinate is told by its number, or
          by a function `(q, params)` that returns a scalar. What laws remember is part of the state of a motion.
        - `params`: any pytree; its floating leaves become arrays.
        """
        if kinetic is not None or potential is not None:
            if lagrangian is not None:
                raise ModelError("give either lagrangian, or kinetic and potential, not both")
            if kinetic is None:
                raise ModelError("potential was given without kinetic; the Lagrangian needs both (or lagrangian alone)")
        if lagrangian is None and kinetic is None and discrete_lagrangian is None:
            raise ModelError("a system needs a lagrangian, a kinetic energy or a discrete_lagrangian")
        if closures is not None and (chart is None or constraints is None or closures < 0):
            raise ModelError("closures counts the constraints that a chart leaves open: it needs a chart and constraints")
        functions = {
            "lagrangian": (lagrangian, (4,)),
            "kinetic": (kinetic, (4,)),
            "potential": (potential, (3,)),
            "discrete_lagrangian": (discrete_lagrangian, (5,)),
            "constraints": (constraints, (3,)),
            "velocity_constraints": (velocity_constraints, (4,)),
            "forces": (forces, (4, 5)),
            "chart": (chart, (2, 3, 5)),
            "null_space": (null_space, (1, 2, 3)),
            "structure": (_Constant(structure) if isinstance(structure, Structure) else structure, (1,)),
            "friction": ((OnCoordinates.of(friction) if friction else None) if isinstance(friction, Mapping) else friction, (1,)),
        }
        for name, (function, counts) in functions.items():
            if function is not None:
                check_signature(name, function, counts)
        return cls(
            {name: _as_pytree(function) for name, (function, _) in functions.items() if function is not None},
            jax.tree.map(_as_parameter, params),
            None,
            closures,
        )

    def has(self, name: str) -> bool:
        """Whether the user gave the function `name`."""
        return name in self.functions

    @property
    def controlled(self) -> bool:
        """Whether the forces take a control."""
        return self.has("forces") and arity(self.functions["forces"]) == 5

    @property
    def friction(self) -> Frictions | None:
        """The friction on its coordinates, if there is some."""
        return self.functions["friction"](self.params) if self.has("friction") else None

    def memory(self, q: Vector) -> PyTree:
        """What friction remembers where a motion begins in which it holds nothing yet; `None` without friction."""
        friction = self.friction
        return None if friction is None else friction.start(q)

    @property
    def structure(self) -> Structure:
        """What is known beyond the functions."""
        return self.functions["structure"](self.params) if self.has("structure") else Structure()

    def lagrangian(self, t: Scalar, q: Vector, v: Vector) -> Array | float:
        """$L(t, q, v)$. A system given by its discrete Lagrangian alone has one for a given time step (`with_step`)."""
        if self.has("lagrangian"):
            return _cast(self.functions["lagrangian"](t, q, v, self.params), q)
        if not self.has("kinetic"):
            raise ModelError("this system has only a discrete Lagrangian: system.with_step(dt) gives it the Lagrangian of that step")
        potential = self.functions["potential"](t, q, self.params) if self.has("potential") else 0.0
        return _cast(self.functions["kinetic"](t, q, v, self.params) - potential, q)

    def discrete_lagrangian(self, t: Scalar, dt: Scalar, q0: Vector, q1: Vector) -> Array | float:
        """The user's own $L_d(q_0, q_1)$ over the step from `t` to `t + dt`."""
        return _cast(self.functions["discrete_lagrangian"](t, dt, q0, q1, self.params), q0)

    def constraints(self, t: Scalar, q: Vector) -> Array:
        """$g(t, q)$, an empty vector where the system has no constraints."""
        if not self.has("constraints"):
            return jnp.zeros(0, q.dtype)
        return _cast(self.functions["constraints"](t, q, self.params), q)

    def velocity_constraints(self, t: Scalar, q: Vector, v: Vector) -> Array:
        """$a(t, q, v)$, an empty vector where the system has no constraints on velocities."""
        if not self.has("velocity_constraints"):
            return jnp.zeros(0, q.dtype)
        return _cast(self.functions["velocity_constraints"](t, q, v, self.params), q)

    @property
    def constrained(self) -> bool:
        """Whether there are constraints, on positions or on velocities."""
        return self.has("constraints") or self.has("velocity_constraints")

    @property
    def holonomic(self) -> "System":
        """The system without its constraints on velocities: what positions have to fulfil."""
        if not self.has("velocity_constraints"):
            return self
        functions = {name: function for name, function in self.functions.items() if name != "velocity_constraints"}
        return System(functions, self.params, self.holonomic_rank, self.closures)

    def forces(self, t: Scalar, q: Vector, v: Vector, control: PyTree = None) -> Array:
        """Forces that do not come from the Lagrangian."""
        if not self.has("forces"):
            return jnp.zeros_like(q)
        if self.controlled and control is None:
            raise ModelError("the forces of this system take a control, but none was given")
        return _cast(call_with(self.functions["forces"], t, q, v, self.params, control), q)

    def chart(self, u: Float[Array, " d"], q: Vector, t0: Scalar, t1: Scalar) -> Array:
        """The user's nodal reparametrisation $F_d(u, q)$ (27)."""
        return call_with(self.functions["chart"], u, q, self.params, t0, t1)

    def null_space(self, t: Scalar, q: Vector) -> Array:
        """The user's null space matrix $P(q)$ (5)."""
        return call_with(self.functions["null_space"], q, self.params, t)

    def constraint_name(self, row: int) -> str:
        """A constraint in words: its number, and what it belongs to, if that is known."""
        owners = self.structure.owners
        return f"number {row} (of {owners[row]!r})" if owners else f"number {row}"

    def with_step(self, dt: Scalar) -> "System":
        """The system with a Lagrangian: its own, or that which its discrete Lagrangian defines for steps of length `dt`."""
        if self.has("lagrangian") or self.has("kinetic"):
            return self
        defined = {"lagrangian": _OfSteps(self.functions["discrete_lagrangian"], dt)}
        return dataclasses.replace(self, functions=self.functions | defined)

    @property
    def parameters(self) -> Parameters:
        """All parameters by name, with value and shape; prints as a table.

        Those of an assembled system are called by the part that has them, as in `"link.mass"`. Those of functions are called by their
        path in `params`, as in `"rod.length"` or `"masses[2]"`, and the leaves of callable modules by the function that they are in, as in
        `"potential.stiffness"`. Parameters of any class may name themselves by a method `named_parameters()`.
        """
        own = getattr(self.params, "named_parameters", None)
        of_params = _of_params(self.params) if own is None else own()
        of_friction: Callable = getattr(self.functions.get("friction"), "named_parameters", dict)
        others = {name: function for name, function in self.functions.items() if name != "friction"}
        parts = [(lambda s: s.params, of_params), (lambda s: s.functions["friction"], of_friction())]
        return Parameters(self, collect([*parts, *((_function(name), below(name, of_tree(one))) for name, one in others.items())]))

    @checked
    def replace(self, values: Mapping[str, VectorLike]) -> "System":
        """The system with other values of some parameters, given by name as `parameters` lists them.

        Differentiable, batched by `vmap`, and of the same structure, so that nothing is compiled anew. Values have the shape that is
        listed; those inside a transformation are not checked further.
        """
        return self.parameters.replace(values)

    def with_params(self, params: PyTree) -> "System":
        """The same functions with other parameters."""
        return dataclasses.replace(self, params=jax.tree.map(_as_parameter, params))

    def with_rank(self, rank: int | None, holonomic: int | None = None) -> "System":
        """The same system with the rank of its constraints known, and that of those on positions alone, if there are others."""
        return dataclasses.replace(self, rank=rank, holonomic_rank=holonomic)

    def with_chart(self, chart: Callable, null_space: Callable | None = None) -> "System":
        """The same system with a chart of the user's, one increment a degree of freedom, and a null space matrix if given."""
        given = {"chart": (chart, (2, 3, 5))} | ({} if null_space is None else {"null_space": (null_space, (1, 2, 3))})
        for name, (function, counts) in given.items():
            check_signature(name, function, counts)
        kept = {name: function for name, function in self.functions.items() if name != "null_space"}
        functions = kept | {name: _as_pytree(function) for name, (function, _) in given.items()}
        return dataclasses.replace(self, functions=functions, closures=None)

    def astype(self, dtype) -> "System":
        """The same system with every floating leaf in `dtype`."""
        cast = lambda leaf: leaf if isinstance(leaf, Array) and leaf.dtype == dtype else library(leaf).asarray(leaf, dtype)
        return jax.tree.map(lambda leaf: cast(leaf) if is_parameter(leaf) else leaf, self)


class _OfSteps(eqx.Module):
    r"""$L(t, q, v) = L_d(t - h/2, h, q - hv/2, q + hv/2)/h$."""

    discrete: Callable
    dt: Scalar

    def __call__(self, t: Scalar, q: Vector, v: Vector, params: PyTree) -> Array | float:
        half = 0.5 * self.dt * v
        return self.discrete(t - 0.5 * self.dt, self.dt, q - half, q + half, params) / self.dt


class _Constant(eqx.Module):
    """A structure that does not depend on parameters."""

    structure: Structure = eqx.field(static=True)

    def __call__(self, params: PyTree) -> Structure:
        return self.structure


def _cast(value: Any, q: Vector) -> Array:
    """What a user's function returned, in the dtype of the coordinates."""
    return jnp.asarray(value).astype(q.dtype)


def _as_pytree(function: Callable) -> Any:
    """A plain function becomes a pytree without leaves; a callable module keeps its leaves as parameters."""
    return function if isinstance(function, eqx.Module | Partial) else Partial(function)


def _of_params(params: PyTree) -> Named:
    """Leaves by their paths; those that have none, or only a number, are called `params`."""
    whole = lambda path: not path or path.startswith("[")
    return {f"params{path}" if whole(path) else path: parameter for path, parameter in of_tree(params).items()}


def _function(name: str) -> Callable:
    return lambda system: system.functions[name]


def _as_parameter(leaf: Any) -> Any:
    """Numbers become NumPy arrays, so that they keep their digits until the dtype of the coordinates is known."""
    return np.asarray(leaf) if isinstance(leaf, float | np.floating) else leaf
