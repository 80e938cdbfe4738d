r"""Beams: a curve of frames in space, cut into elements, each of whose nodes is a body of its own.

A node carries the twelve coordinates of a rigid body. Elements give it stiffness; they give it inertia too, and it has none of its own but
masses put on it, or it is a rigid body with the inertia of the chunk of the beam about it, as the kind of the elements has it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..bodies.rigid import RigidBody
from ..errors import ModelError
from ..geometry.frame import Frame
from ..numerics.arrays import known, library, stack
from ..numerics.checks import direction, flag, function, real, whole
from ..numerics.compile import compiled
from .elements import AbstractElements
from .finite_volume import ConservativeFiniteVolumes, FiniteVolumes
from .galerkin import GalerkinElements
from .section import Section, with_residual_bending

GALERKIN = "galerkin"
KINDS: dict[str, type[AbstractElements]] = {
    GALERKIN: GalerkinElements,
    "finite volume": FiniteVolumes,
    "conservative finite volume": ConservativeFiniteVolumes,
}


class Beam(eqx.Module):
    r"""A geometrically exact beam, a special Cosserat rod (112): its reference curve is free of stress.

    Mechanisms know its nodes by the names `"beam[0]"`, `"beam[1]"` and so on, from the end also `"beam[-1]"`, where `"beam"` is the name of
    the beam: joints, loads and springs act on nodes as on any other body. A pose in the placement moves the whole beam.

    Build one with `line` or `curve`. `masses` puts numbers (mass points) or rigid bodies on nodes. `kind` is that of the elements:

    - `"galerkin"`: `order` is that of the Lagrange polynomials between the nodes of an element (113), strains are integrated with as many
      points (reduced integration).
    - `"finite volume"`: two nodes, of which each keeps the balance of its chunk of the beam (S2, appendix); order 1 alone. With `corrected`
      the stiffness to shear is that of an element in which the moment varies, so that few elements bend as much as many do.
    - `"conservative finite volume"`: the same strains, with the forces of their potential.
    - a class of your own, derived from `AbstractElements`.
    """

    nodes: Float[Array, "nodes 4 3"] | Float[np.ndarray, "nodes 4 3"]
    stiffness: Float[Array, "elements 6 6"] | Float[np.ndarray, "elements 6 6"]
    inertia: Float[Array, "elements 4 4"] | Float[np.ndarray, "elements 4 4"]
    masses: dict[int, RigidBody]
    order: int = eqx.field(static=True)
    kind: type[AbstractElements] = eqx.field(static=True)

    @classmethod
    def line(
        cls,
        start: Any,
        end: Any,
        section: Any,
        elements: Any,
        order: Any = 1,
        normal: Any = None,
        masses: Any = None,
        kind: Any = GALERKIN,
        corrected: Any = False,
    ) -> "Beam":
        r"""A straight beam from one point to another; $d_1$ is as near to `normal` as it can be (default: any direction)."""
        start, end = (real(f"{name} of a Beam", point, (3,)) for name, point in (("start", start), ("end", end)))
        rotation = _triad(end - start, normal)
        return cls.curve(lambda x: (start + x * (end - start), rotation), section, elements, order, masses, kind, corrected)

    @classmethod
    def curve(
        cls,
        curve: Any,
        section: Any,
        elements: Any,
        order: Any = 1,
        masses: Any = None,
        kind: Any = GALERKIN,
        corrected: Any = False,
    ) -> "Beam":
        r"""A beam along `curve(x) -> (position, rotation)` for $x$ from 0 to 1; the columns of the rotation are the directors.

        $d_3$ is tangent to a curve without initial shear. `section` is one `Section`, a function of $x$, taken in the middle of each
        element, or a list with one for each element.
        """
        chosen, corrected = _kind(kind), flag("corrected", corrected)
        order, elements = whole("order of a Beam", order, 1), whole("elements of a Beam", elements, 1)
        if order not in chosen.orders:
            orders = " or ".join(", ".join(map(str, chosen.orders)).rsplit(", ", 1))
            name = kind if isinstance(kind, str) else chosen.__name__
            raise ModelError(f"a beam of kind {name!r} has elements of order {orders}, not {elements} of order {order}")
        if corrected and not chosen.correctable:
            usual = ", ".join(repr(name) for name, one in KINDS.items() if one.correctable)
            raise ModelError(f"corrected is for beams of kind {usual}; those of kind {kind!r} gain nothing from it")
        rows = stack([_frame_of(function("curve of a Beam", curve), x).rows for x in np.linspace(0, 1, elements * order + 1)])
        _check_curve(known(rows))
        sections = _sections(section, elements)
        stiffness, inertia = (stack([getattr(one, name) for one in sections]) for name in ("stiffness", "inertia_matrix"))
        if corrected:
            stiffness = with_residual_bending(stiffness, rows[:, 0])
        return cls(rows, stiffness, inertia, _masses({} if masses is None else masses, rows.shape[0]), order, chosen)

    @property
    def bodies(self) -> list[RigidBody]:
        """The bodies of all nodes; most of them without mass, unless elements are lumped."""
        places = range(self.nodes.shape[0])
        if not self.kind.lumped:
            return [self.masses.get(i, RigidBody(0.0, np.zeros(3))) for i in places]
        found = _chunks(self.nodes, self.inertia)
        chunks = found if known(found) is None else np.asarray(found)
        put_on = {i: (chunks[i] + body.inertia_matrix, body.shape) for i, body in self.masses.items()}
        return [RigidBody.from_inertia_matrix(*put_on.get(i, (chunks[i], None))) for i in places]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.stiffness.shape[0]


def _frame_of(curve: Callable, x: float) -> Frame:
    """What the curve of a beam returns."""
    found = curve(x)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise ModelError(f"curve of a Beam must return a position (3,) and a rotation (3, 3), but returned {found!r}")
    return Frame(real("position on the curve of a Beam", found[0], (3,)), real("rotation on the curve of a Beam", found[1], (3, 3)))


def _kind(kind: Any) -> type[AbstractElements]:
    """A class of elements, which may be given by its name."""
    if isinstance(kind, type) and issubclass(kind, AbstractElements):
        return kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"the kind of a beam is one of {', '.join(KINDS)}, or a class derived from AbstractElements, not {kind!r}")
    return KINDS[kind]


@compiled
def _chunks(nodes: Any, inertia: Any) -> Float[Array, "nodes 4 4"]:
    r"""$\Theta$ of the chunks about all nodes in their axes: straight pieces from node to mid-span, exactly integrated.

    On the way from the node a section moves by $u a$ with $u$ from 0 to 1; $\int_0^1 (X + u a)(X + u a)^T du$ follows from its moments.
    """
    inertia = jnp.asarray(inertia)
    rows = jnp.asarray(nodes, inertia.dtype)
    halves = 0.5 * jnp.diff(rows[:, 0], axis=0)
    lengths = jnp.sqrt(jnp.sum(halves**2, axis=1))

    def piece(rows, halves):
        arms = jnp.pad(jnp.einsum("nix,nx->ni", rows[:, 1:], halves), ((0, 0), (1, 0)))
        mixed = 0.5 * jnp.einsum("na,nb->nab", inertia[:, 0], arms)
        square = jnp.einsum("n,na,nb->nab", inertia[:, 0, 0] / 3, arms, arms)
        return lengths[:, None, None] * (inertia + mixed + jnp.swapaxes(mixed, 1, 2) + square)

    empty = jnp.zeros((rows.shape[0], 4, 4), rows.dtype)
    return empty.at[:-1].add(piece(rows[:-1], halves)).at[1:].add(piece(rows[1:], -halves))


def node_name(beam: str, index: int) -> str:
    """What a node is called."""
    return f"{beam}[{index}]"


def _triad(tangent: Any, normal: Any) -> Any:
    """Directors with the third along a tangent and the first near a normal."""
    hint = None if normal is None else direction("normal of a Beam", normal)
    xp = library(tangent, hint)
    length = xp.linalg.norm(tangent)
    numbers = known(length)
    if numbers is not None and not numbers > 0:
        raise ModelError("a beam has no length: its two ends coincide")
    third = tangent / length
    hint = xp.eye(3, dtype=third.dtype)[xp.argmin(xp.abs(third))] if hint is None else hint
    first = hint - (hint @ third) * third
    size = xp.linalg.norm(first)
    numbers = known(size)
    if numbers is not None and not numbers > 1e-6 * np.linalg.norm(np.asarray(hint)):
        raise ModelError("the normal of a beam lies along it; give another direction for its first director")
    first = first / size
    return xp.stack([first, xp.cross(third, first), third], axis=1)


def _sections(section: Any, elements: int) -> list[Section]:
    if isinstance(section, Section):
        return [section] * elements
    listed = list(section) if isinstance(section, Iterable) else []
    found = [section((i + 0.5) / elements) for i in range(elements)] if callable(section) and not isinstance(section, type) else listed
    if len(found) != elements or not all(isinstance(one, Section) for one in found):
        raise ModelError(
            f"section of a Beam of {elements} elements must be one Section, a function that returns one, or a list with one for each"
        )
    return found


def _masses(masses: Any, nodes: int) -> dict[int, RigidBody]:
    """Rigid bodies on nodes, counted from the start."""
    found = {}
    if not isinstance(masses, Mapping):
        raise ModelError(f"masses of a Beam are given by nodes, as in {{-1: 0.5}}, not as {masses!r}")
    for index, value in masses.items():
        index = whole("node of masses of a Beam", index, -nodes)
        if not -nodes <= index < nodes:
            raise ModelError(f"masses of a Beam sit on node {index} of a beam whose nodes are 0 to {nodes - 1}")
        body = value if isinstance(value, RigidBody) else RigidBody(real("masses of a Beam, a number or a RigidBody,", value), np.zeros(3))
        body.check(f"on node {index} of a beam")
        found[index % nodes] = body
    return found


def _check_curve(rows: np.ndarray | None) -> None:
    """Refuse curves that stand still or whose directors are not orthonormal."""
    if rows is None:
        return
    points, directors = rows[:, 0], rows[:, 1:]
    if not np.isfinite(rows).all() or np.min(np.linalg.norm(np.diff(points, axis=0), axis=1)) == 0:
        raise ModelError("the curve of a beam must be finite and must not stand still between two nodes")
    if not np.allclose(directors @ np.swapaxes(directors, 1, 2), np.eye(3), atol=1e-6) or np.min(np.linalg.det(directors)) < 0:
        raise ModelError("the directors of a beam must be the columns of a rotation matrix at every node")
