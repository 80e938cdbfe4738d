r"""Servo constraints: targets that a motion has to meet, $b(q) - \gamma(t) = 0$, by inputs that act as they can (S4, (27))."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float, PyTree

from ..errors import ModelError
from ..numerics.arguments import checked, described
from ..numerics.checks import positive, real
from ..numerics.naming import is_parameter
from ..system import Scalar, System, Vector
from .counts import position_count


class AbstractTarget(eqx.Module):
    r"""A part of the motion that is prescribed: what is measured, $b(t, q)$, and what is wanted, $\gamma(t)$."""

    def value(self, system: System, t: Scalar, q: Vector) -> Array:
        """What is measured."""
        raise NotImplementedError

    def wanted(self, t: Scalar) -> Array:
        """What it is to be."""
        raise NotImplementedError

    def residual(self, system: System, t: Scalar, q: Vector) -> Array:
        """Zero where the target is met."""
        return self.value(system, t, q) - self.wanted(t)


class Residual(eqx.Module):
    """A function of the user's, `function(system, t, q)`, that is to vanish."""

    function: Any

    def residual(self, system: System, t: Scalar, q: Vector) -> Array:
        return jnp.asarray(self.function(system, t, q))


class Servo(eqx.Module):
    r"""Targets that hold at the end of every step, $b(t, q) - \gamma(t) = 0$, and the inputs of the step that see to it.

    **Arguments**

    - `targets`: one target, several, or several by name. A target is a pytree with a method `residual(system, t, q)`, or such a function.
    - `inputs`: which entries of the control of a step are unknown: a name or several, for controls that are dictionaries with a number for
      each name; or else a pytree of numbers like the control, or like the part of the dictionary that is unknown. The other
      entries come from `controls=`. How inputs act is up to the forces of the system.
    - `weights`: of more inputs than targets, those with the least sum of $w_i u_i^2$ are taken; by default all weigh one.
    """

    targets: tuple[Any, ...]
    unknown: PyTree
    weights: PyTree
    names: tuple[str, ...] = eqx.field(static=True)

    @checked
    def __init__(self, targets: Any, inputs: Any, weights: Any = None):
        named = targets_by_name(targets)
        self.names, self.targets = tuple(named), tuple(named.values())
        self.unknown = jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), _template("inputs", inputs))
        given: Any = jax.tree.map(np.ones_like, self.unknown) if weights is None else _template("weights", weights)
        structures: list[Any] = [jax.tree.structure(given), jax.tree.structure(self.unknown)]
        if structures[0] != structures[1]:
            raise ModelError("weights of a Servo must be given like its inputs, a number for each")
        self.weights = jax.tree.map(lambda weight, like: positive("weights of a Servo", weight, np.shape(like)), given, self.unknown)

    @property
    def _named(self) -> list[tuple[str, Any]]:
        return list(zip(self.names, self.targets, strict=True))

    @property
    def input_names(self) -> list[str]:
        """A name for every unknown number."""
        leaves, _ = jax.tree_util.tree_flatten_with_path(self.unknown)
        called = lambda path: "/".join(str(getattr(key, "key", getattr(key, "idx", key))) for key in path)
        each: Any = lambda path, leaf: [called(path)] if np.ndim(leaf) == 0 else [f"{called(path)}[{i}]" for i in range(np.size(leaf))]
        return [name or "control" for path, leaf in leaves for name in each(path, leaf)]

    @property
    def size(self) -> int:
        """Number of inputs."""
        return len(self.input_names)

    def rows(self, system: System, q: Vector) -> tuple[str, ...]:
        """The name of the target that each row belongs to."""
        t = jnp.zeros((), q.dtype)
        counts = [jax.eval_shape(lambda each=each: target_rows(each, system, t, q)).size for each in self._named]
        return tuple(name for name, count in zip(self.names, counts, strict=True) for _ in range(count))

    def residual(self, system: System, t: Scalar, q: Vector) -> Float[Array, " r"]:
        """All targets, zero where they are met."""
        return jnp.concatenate([target_rows(each, system, t, q) for each in self._named])

    def inputs(self, u: Float[Array, " k"]) -> PyTree:
        """Inputs by their names from a vector."""
        leaves, structure = jax.tree.flatten(self.unknown)
        parts = jnp.split(u, np.cumsum([np.size(leaf) for leaf in leaves])[:-1])
        return jax.tree.unflatten(structure, [part.reshape(np.shape(leaf)) for part, leaf in zip(parts, leaves, strict=True)])

    def control(self, given: PyTree, inputs: PyTree) -> PyTree:
        """The control of a step: what is given, completed by the inputs."""
        return completed(given, inputs)

    def astype(self, dtype) -> "Servo":
        """The same with every number in `dtype`."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if is_parameter(leaf) else leaf, self)


def target_rows(named: tuple[str, Any], system: System, t: Scalar, q: Vector) -> Float[Array, " k"]:
    """The residual of a target as a vector in the dtype of the coordinates; errors in it begin with its name."""
    name, target = named
    try:
        return jnp.ravel(jnp.asarray(target.residual(system, t, q))).astype(q.dtype)
    except ModelError as error:
        raise type(error)(f"target {name!r}: {error}") from error


def completed(given: PyTree, inputs: PyTree) -> PyTree:
    """Controls that are given, completed by inputs that are not."""
    if given is None:
        return inputs
    if not isinstance(given, Mapping) or not isinstance(inputs, Mapping):
        raise ModelError("controls beside unknown inputs must be a dictionary of the entries that are not unknown; the inputs too")
    twice = [name for name in given if name in inputs]
    if twice:
        raise ModelError(f"controls give {', '.join(map(repr, twice))}, which the inputs that are to be found name too: leave out either")
    return {**given, **inputs}


def with_targets(system: System, servo: Servo, q: Vector) -> System:
    """The system whose constraints on positions are its own and then the targets, by which starts are judged and found."""
    names = servo.rows(system, q)
    functions = {
        name: system.functions[name] for name in ("lagrangian", "kinetic", "potential", "velocity_constraints") if system.has(name)
    }
    functions |= {"constraints": _Constraints(system.functions.get("constraints"), servo)}
    if system.has("structure"):
        functions["structure"] = _Structure(system.functions["structure"], names, position_count(system, q))
    return System(functions, system.params)


class _Constraints(eqx.Module):
    own: Any
    servo: Servo

    def __call__(self, t: Scalar, q: Vector, params: PyTree) -> Array:
        system = System({} if self.own is None else {"constraints": self.own}, params)
        return jnp.concatenate([system.constraints(t, q), self.servo.residual(system, t, q)])


class _Structure(eqx.Module):
    own: Any
    names: tuple[str, ...] = eqx.field(static=True)
    before: int = eqx.field(static=True)

    def __call__(self, params: PyTree) -> Any:
        told = self.own(params)
        owners = told.owners and (*told.owners[: self.before], *self.names, *told.owners[self.before :])
        return told._replace(owners=owners, pivots=(), internal=(), held=False)


def targets_by_name(targets: Any) -> dict[str, Any]:
    """Targets by name; those without are called by their number."""
    if not isinstance(targets, Mapping):
        several = targets if isinstance(targets, list | tuple) else [targets]
        targets = {f"target {i}": target for i, target in enumerate(several)}
    if not targets:
        raise ModelError("what is wanted of a motion needs a target at least")
    return {str(name): jax.tree.map(_as_pytree, _as_target(name, target)) for name, target in targets.items()}


def _as_target(name: Any, target: Any) -> Any:
    """What has a method `residual`, as it is; a function becomes one."""
    if not isinstance(target, type) and callable(getattr(target, "residual", None)):
        return target
    if isinstance(target, type) or not callable(target):
        raise ModelError(f"target {name!r} must have a method residual(system, t, q), or be such a function; not {described(target)}")
    return Residual(target)


def _as_pytree(leaf: Any) -> Any:
    """A plain function in a target is no leaf of it."""
    return Partial(leaf) if callable(leaf) else leaf


def _template(called: str, inputs: Any) -> PyTree:
    """Unknown entries of a control, or weights of them, from names or from numbers like them."""
    if isinstance(inputs, str):
        inputs = [inputs]
    if isinstance(inputs, list | tuple) and inputs and all(isinstance(name, str) for name in inputs):
        inputs = dict.fromkeys(inputs, 0.0)
    if not jax.tree.leaves(inputs):
        raise ModelError(f"a Servo needs {called}: names of entries of the control, or numbers like it")
    return jax.tree.map(lambda leaf: real(f"{called} of a Servo", leaf, (), (None,), (None, None)), inputs)
