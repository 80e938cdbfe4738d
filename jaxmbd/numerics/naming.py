"""Numbers inside trees by name: how they are listed, read, and replaced."""

import difflib
import functools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import DictKey, GetAttrKey, Partial, tree_flatten_with_path
from jaxtyping import PyTree

from ..errors import ModelError, UnknownNameError
from .arrays import known, library, number

Index = tuple[int | slice, ...]


Where = Callable[[Any], Any]


class Parameter(NamedTuple):
    """A number or an array in a tree: how it is got from a part of it, how the part with another one is made, the way to the part."""

    get: Callable[[Any], Any]
    set: Callable[[Any, Any], Any]
    way: tuple[Where, ...] = ()

    def within(self, where: Where) -> "Parameter":
        """The same in a larger tree, in which `where` finds the smaller one."""
        return Parameter(self.get, self.set, (where, *self.way))

    def at(self, index: Any) -> "Parameter":
        """Some of its elements."""
        change = lambda part, value: self.set(part, put(self.get(part), index, value))
        return Parameter(lambda part: self.get(part)[index], change, self.way)

    def read(self, tree: PyTree) -> Any:
        """Its value in a tree."""
        return self.get(self._part(tree))

    def write(self, tree: PyTree, value: Any) -> PyTree:
        """A tree with another value."""
        part = self.set(self._part(tree), value)
        return eqx.tree_at(self._part, tree, part) if self.way else part

    def _part(self, tree: PyTree) -> Any:
        return functools.reduce(lambda part, where: where(part), self.way, tree)


Named = dict[str, Parameter]


class Parameters(Mapping[str, Any]):
    """The parameters of a tree by name: names are iterated over, `parameters[name]` is a value, and printing gives a table.

    Elements of arrays are named by an index behind the name, as in `"beam.stiffness[3]"` or `"beam.stiffness[:, 3, 3]"`.
    """

    def __init__(self, tree: PyTree, named: Named):
        self._tree, self._named = tree, named

    def __getitem__(self, name: str) -> Any:
        base, index = self._find(name)
        return _elements(name, self._named[base].read(self._tree), index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __contains__(self, name: object) -> bool:
        return name in self._named

    def replace(self, values: Mapping[str, Any]) -> PyTree:
        """The tree with other values. They are written in the order of the table, elements after the array that they are of."""
        tree, place = self._tree, {name: i for i, name in enumerate(self._named)}
        found = [(*self._find(name), name) for name in values]
        for base, index, name in sorted(found, key=lambda one: (place[one[0]], one[1] != (), one[2])):
            parameter = self._named[base].at(index) if index else self._named[base]
            shape = np.shape(_elements(name, self._named[base].read(tree), index))
            tree = parameter.write(tree, _checked(name, values[name], shape))
        return tree

    def _find(self, name: str) -> tuple[str, Index]:
        """A name of the table, and an index if elements are asked for."""
        if name in self._named:
            return name, ()
        match = re.fullmatch(r"(.*)\[([-\d:, ]+)\]", name, re.DOTALL)
        index = _as_index(match[2]) if match else None
        if match is None or index is None or match[1] not in self._named:
            advice = nearest(match[1] if match else name, self._named) or "print the parameters to see their names"
            raise UnknownNameError(f"there is no parameter {name!r}; {advice}")
        return match[1], index

    def __str__(self) -> str:
        rows = [("name", "shape", "value")]
        for name, parameter in self._named.items():
            value = parameter.read(self._tree)
            rows.append((name, str(np.shape(value)), _shown(known(value))))
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        return "\n".join(f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {value}" for name, shape, value in rows)

    __repr__ = __str__


MOST_NAMES = 12
"""So many names are listed where none is near to the one that was given."""


def nearest(name: Any, names: Iterable[str], few: int = MOST_NAMES) -> str:
    """The names that may have been meant: those that begin with this one, near ones, or all if they are few."""
    names = list(names)
    small = {other.lower(): other for other in names}
    near = [small[other] for other in difflib.get_close_matches(str(name).lower(), small, 3)]
    below = [other for other in names if other.startswith((f"{name}.", f"{name}["))]
    if below or near:
        return f"did you mean {', '.join(map(repr, below[:6] or near))}?"
    return f"there are {', '.join(map(repr, names))}" if 0 < len(names) <= few else ""


def look_up(name: str, names: Iterable[str], missing: str) -> str:
    """A name among others; of numbered ones, such as the nodes `"beam[0]"`, `"beam[1]"`, the last is also `"beam[-1]"`.

    `missing` begins the sentence that says that there is no such name.
    """
    names = list(names)
    if name in names:
        return name
    match = re.fullmatch(r"(.*)\[(-\d+)\]", name, re.DOTALL) if isinstance(name, str) else None
    count = sum(other.startswith(f"{match[1]}[") for other in names) if match else 0
    counted = f"{match[1]}[{count + int(match[2])}]" if match else name
    if counted in names:
        return counted
    raise UnknownNameError(f"{missing} {name!r}; {nearest(name, names)}".removesuffix("; "))


def is_parameter(leaf: Any) -> bool:
    """Whether a leaf is a floating number or array."""
    return isinstance(leaf, float) or (isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating))


def of_tree(tree: PyTree) -> Named:
    """The floating leaves of a tree by their paths, such as `"rod.length"` or `"masses[2]"`; arguments of a `Partial` are below it."""
    leaves = jax.tree.leaves(tree)
    return {name.removeprefix("."): _leaf(i) for i, name in enumerate(_paths(tree)) if is_parameter(leaves[i])}


def field(name: str) -> Parameter:
    """A field of a module, or one of its fields' fields, such as `"on_a.origin"`."""
    where = operator.attrgetter(name)
    return Parameter(where, lambda part, value: eqx.tree_at(where, part, put(where(part), ..., value)))


def below(name: str, parameters: Named) -> Named:
    """Parameters with the name of what has them before their own."""
    return {_joined(name, own): parameter for own, parameter in parameters.items()}


def collect(parts: Iterable[tuple[Where, Named]]) -> Named:
    """The parameters of a tree from those of its parts, and where these are."""
    found: Named = {}
    for where, parameters in parts:
        for name, parameter in parameters.items():
            if name in found:
                raise ModelError(f"two parameters are called {name!r}; give one of the parts that they belong to another name")
            found[name] = parameter.within(where)
    return found


def put(whole: Any, index: Any, value: Any) -> Any:
    """An array with other elements at an index, in its own dtype; NumPy stays NumPy unless JAX holds or traces the new ones."""
    if library(whole, value) is np:
        changed = np.array(whole)
        changed[index] = value
        return changed
    whole = jnp.asarray(whole)
    return whole.at[index].set(jnp.asarray(value, whole.dtype))


def _leaf(index: int) -> Parameter:
    """A leaf by its number."""

    def write(tree, value):
        leaves, structure = jax.tree.flatten(tree)
        leaves[index] = put(leaves[index], ..., value)
        return jax.tree.unflatten(structure, leaves)

    return Parameter(lambda tree: jax.tree.leaves(tree)[index], write)


def _paths(tree: PyTree) -> list[str]:
    """The path of every leaf."""
    if isinstance(tree, Partial):
        return _paths(tree.args) + _paths(tree.keywords)
    found = tree_flatten_with_path(tree, is_leaf=lambda node: isinstance(node, Partial))[0]
    deeper = lambda node: _paths(node) if isinstance(node, Partial) else [""]
    return ["".join(map(_step, keys)) + path for keys, node in found for path in deeper(node)]


def _step(key: Any) -> str:
    """One step of a path: a field or a key by its name, an element by its number."""
    if isinstance(key, GetAttrKey):
        return f".{key.name}"
    if isinstance(key, DictKey) and isinstance(key.key, str):
        return f".{key.key}"
    return f"[{getattr(key, 'idx', getattr(key, 'key', key))}]"


def _joined(name: str, own: str) -> str:
    return f"{name}{own}" if not own or own.startswith("[") else f"{name}.{own}"


def _as_index(text: str) -> Index | None:
    """Numbers and ranges between brackets, or `None` where they are none."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"-?\d+|(-?\d+)?:(-?\d+)?(:(-?\d+)?)?", part) for part in parts):
        return None
    bounds = lambda part: slice(*(int(bound) if bound else None for bound in part.split(":")))
    return tuple(bounds(part) if ":" in part else int(part) for part in parts)


def _elements(name: str, value: Any, index: Index) -> Any:
    """The elements that a name asks for; an index outside the array is an error."""
    try:
        np.broadcast_to(0, np.shape(value))[index]
    except (IndexError, ValueError):
        raise ModelError(f"parameter {name!r} does not exist: the array has shape {np.shape(value)}") from None
    return value[index] if index else value


def _checked(name: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A value as a parameter; what is no number, has another shape or is not finite is an error."""
    try:
        value = number(value)
    except (TypeError, ValueError):
        raise ModelError(f"parameter {name!r} takes numbers of shape {shape}, not {value!r}") from None
    if np.shape(value) != shape:
        raise ModelError(f"parameter {name!r} has shape {shape}, but a value of shape {np.shape(value)} was given")
    numbers = known(value)
    if numbers is not None and not np.isfinite(numbers).all():
        raise ModelError(f"parameter {name!r} must be finite, but {numbers.tolist()} was given")
    return value


def _shown(value: np.ndarray | None) -> str:
    """A value in a table: its numbers if they are few."""
    if value is None:
        return "hidden"
    if value.size > 9:
        return f"{value.min():.6g} to {value.max():.6g}"
    rounding = 1e-14 * np.max(np.abs(value), initial=0)
    return _digits(np.where(np.abs(value) > rounding, value, 0.0).tolist())


def _digits(value: float | list) -> str:
    return f"[{', '.join(map(_digits, value))}]" if isinstance(value, list) else f"{value:.6g}"
