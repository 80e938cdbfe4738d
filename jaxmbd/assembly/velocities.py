"""Consistent velocities of a mechanism from the rates of its joints."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..constraints.counts import fulfilled, rank_tolerance
from ..constraints.inputs import as_coordinates
from ..errors import ModelError, UnknownNameError
from ..geometry.frame import Frame, Rows, twist
from ..geometry.rotation import skew
from ..joints import Free
from ..numerics.arguments import checked
from ..numerics.arrays import known
from ..numerics.checks import named, real
from ..numerics.compile import compiled
from ..numerics.lapack import pinv
from ..numerics.naming import nearest
from ..system import System, Vector, VectorLike
from .chart import chart
from .director_system import director_system
from .following import Following, Pairs, following
from .functions import velocity_constraints
from .groups import JointGroup
from .joint_model import JointModel
from .model import Assembly, as_assembly

Equation = tuple[Float[Array, "_ _"], Float[Array, " _"]]


@checked
def joint_velocities(system: System, q: VectorLike, rates: Mapping[str, Any]) -> Vector:
    """The velocity at `q` with these rates of joints and bodies, by name. Nothing else moves more than it has to.

    A rate of a joint is a number or one for each increment: velocities along, and angular velocities about, the directors of its first
    frame (of `Universal`, the second is about the axis in the second body). A body, or a node of a beam, takes six: velocity of its origin
    and angular velocity in space (three in the plane, and for mass points). Rates that no motion has are an error.

    Whatever hangs on something goes along with it. Beams move as rigid, unless rates of nodes or of what holds them make that impossible:
    then neighbouring nodes move against each other as little as they can. After that joints move as little as the loops ask for.
    """
    q = as_coordinates(system, q, "q")
    system = system.astype(q.dtype)
    if isinstance(system.params, JointModel):
        return _of_joints(system, q, rates)
    if any(group.flexible for group in as_assembly(system).groups):
        raise ModelError("rates of joints need the chart of a system from assemble; reduced beams have no chart")
    if not rates:
        return jnp.zeros_like(q)
    wanted = {named("each key of rates", name): real(f"the rate of {name!r}", value, (), (None,)) for name, value in rates.items()}
    v, off = _velocity(system, q, {name: jnp.atleast_1d(jnp.asarray(value, q.dtype)) for name, value in wanted.items()})
    far = known(off)
    if far is not None and far.max() > np.sqrt(jnp.finfo(q.dtype).eps):
        raise ModelError(f"no motion has these rates of {', '.join(rates)}: {_coupling(system, far)} (off by {far.max():.3g})")
    return v


def _of_joints(system: System, q: Vector, rates: Mapping[str, Any]) -> Vector:
    """The same in coordinates of joints: rates of those that the directors have."""
    model = system.params
    at = model.position(q)
    rate = joint_velocities(director_system(model.assembly, powered=False), at, rates)
    return _read_rates(model, q, at, rate)


@compiled
def _read_rates(model: JointModel, q: Vector, at: Vector, rate: Vector) -> Vector:
    return jax.jvp(lambda at: model.lowered(at, q), (at,), (rate,))[1]


def _coupling(system: System, far: np.ndarray) -> str:
    """What stands against the rates: the joints that keep loops closed and bodies from slipping, as far as they are off."""
    model = as_assembly(system)
    held = [name for block in model.constraint_blocks() if block.closes for name in block.owners for _ in range(block.each)]
    held += [name for group, _ in model.slip_rows() for name in group.names for _ in group.slips]
    off = dict.fromkeys(name for name, one in zip(held, far, strict=False) if one > np.sqrt(np.finfo(far.dtype).eps))
    return f"the joints of the mechanism couple them, namely {', '.join(off)}" if off else "they contradict each other"


@compiled
def _velocity(system: System, q: Vector, rates: dict[str, Array]) -> tuple[Vector, Array]:
    """The velocity, and how far each equation for it is off, those of joints first, by the largest of the rates."""
    model = as_assembly(system)
    at = following(model, [index for index, name in enumerate(model.bodies) if name in rates])
    move = lambda u: chart(u, q, at.model)
    increments, off = _solve(at, q, move, [*_held(system, q, move), *_given(model, q, rates, move)])
    return jax.jvp(move, (jnp.zeros_like(increments),), (increments,))[1], off


def _given(model: Assembly, q: Vector, rates: dict[str, Array], move: Callable) -> Iterator[Equation]:
    """Rows for the rates that are given: increments of the tree, coordinates of a joint that closes a loop or of what
    is measured, or the motion of a body.
    """
    none, begin = jnp.zeros(model.increments, q.dtype), 0
    branches: dict[str, tuple[JointGroup, np.ndarray]] = {}
    for group in model.tree:
        width = len(group.columns)
        branches |= {name: (group, begin + i * width + np.arange(width)) for i, name in enumerate(group.names)}
        begin += group.count * width
    closing = {name: (group, i) for group in model.measures + model.closing for i, name in enumerate(group.names)}
    kinds = dict(zip(model.bodies, (kind for kind, count in model.kinds for _ in range(count)), strict=True))
    for name, value in rates.items():
        if name in branches:
            group, columns = branches[name]
            yield jax.nn.one_hot(columns, none.size, dtype=q.dtype), _rates(name, value, group.columns, isinstance(group.kind, Free))
        elif name in closing:
            group, index = closing[name]
            row = jax.jacrev(lambda u, group=group, i=index: group.coordinates(model.frames(move(u)))[i])(none)
            yield row, _rates(name, value, tuple(range(row.shape[0])), False)
        elif name in kinds:
            turned = lambda w, place=model.bodies.index(name): jnp.concatenate(_twists(model, q, move, w)(place))
            row = jax.jacrev(turned)(none)[np.array(kinds[name].twists, int)]
            yield row, _rates(name, value, kinds[name].twists, True)
        else:
            every = [*branches, *closing, *model.bodies]
            raise UnknownNameError(f"rates name {name!r}, but there is no such joint, nor a body of that name; {nearest(name, every)}")


def _rates(name: str, value: Float[Array, " rates"], columns: tuple[int, ...], body: bool) -> Array:
    """The rates of a joint or a body; a body may be given all six, of which those count that move it."""
    if body and value.shape == (6,):
        return value[np.array(columns, int)]
    if value.shape != (len(columns),):
        raise ModelError(f"{name!r} takes {len(columns)} rates, but {value.size} were given")
    return value


def _held(system: System, q: Vector, move: Callable) -> Iterator[Equation]:
    """Rows that keep loops closed, and bodies from slipping."""
    model, zero = as_assembly(system), jnp.zeros((), q.dtype)
    none = jnp.zeros(model.increments, q.dtype)
    if model.closures:
        open_ones = lambda u: system.constraints(zero, move(u))[fulfilled(system, q) :]
        yield jax.jacrev(open_ones)(none), jnp.zeros(model.closures, q.dtype)
    if model.slip_rows():
        slips = lambda u: velocity_constraints(zero, q, jax.jvp(move, (none,), (u,))[1], model)
        row = jax.jacrev(slips)(none)
        yield row, jnp.zeros(row.shape[0], q.dtype)


def _twists(model: Assembly, q: Vector, move: Callable, w: Float[Array, " k"]) -> Callable:
    """Velocities and angular velocities of bodies by number, for rates of the increments."""
    rows, rates = jax.jvp(lambda u: model.frames(move(u)), (jnp.zeros_like(w),), (w,))
    pair = lambda row, rate: twist(Frame.from_rows(row), Frame.from_rows(rate))
    return lambda places: pair(rows[places], rates[places]) if np.ndim(places) == 0 else jax.vmap(pair)(rows[places], rates[places])


def _solve(at: Following, q: Vector, move: Callable, equations: list[Equation]) -> tuple[Float[Array, " k"], Array]:
    r"""Increments $u$ with $A u = b$: of all of them those with the least strain $x$ of links, and of these the least others $y$.

    With $A u = A_1 x + A_2 y$ and the projector $N = I - A_2 A_2^+$ these are $x = (N A_1)^+ N b$ and $y = A_2^+ (b - A_1 x)$: few
    equations, however many nodes there are. Beside the increments: how far each equation is off, by the largest rate.
    """
    model, rows = at.model, at.model.frames(q)
    along = _increments_of(model, [far for _, far in at.along])
    others = np.setdiff1d(np.arange(model.increments), along.ravel())
    A, b = (jnp.concatenate(part) for part in zip(*map(_scaled, equations), *_across(at, q, move), strict=True))
    strained = jnp.einsum("rni,nij->rnj", A[:, along], _from_strains(rows, at.along)).reshape(b.size, -1)
    slack = jnp.eye(b.size, dtype=q.dtype)[:, b.size - 6 * len(at.across) :]
    parts = jnp.concatenate([strained, -slack, A[:, others]], axis=1)
    A1, A2 = jnp.split(parts, [parts.shape[1] - others.size], axis=1)
    inverse = _pinv(A2)
    project = lambda part: part - A2 @ (inverse @ part)
    x = _pinv(project(A1)) @ project(b)
    y = inverse @ (b - A1 @ x)
    off, largest = jnp.abs(A1 @ x + A2 @ y - b), jnp.max(jnp.abs(b))
    links = jnp.einsum("nij,nj->ni", _from_strains(rows, at.along), x[: along.size].reshape(-1, 6))
    return jnp.zeros(model.increments, q.dtype).at[others].set(y).at[along].set(links), off / jnp.where(largest > 0, largest, 1)


def _scaled(equation: Equation) -> Equation:
    """Rows of unit length, so that units do not matter; those that are rounding, as redundant closures can be, are zero."""
    rows, wanted = equation
    length = jnp.linalg.norm(jax.lax.stop_gradient(rows), axis=1)
    counts = length > rank_tolerance(rows.dtype) * jnp.max(length, initial=0)
    size = jnp.where(counts, length, 1)
    return jnp.where(counts[:, None], rows, 0) / size[:, None], wanted / size


def _increments_of(model: Assembly, bodies: list[int]) -> np.ndarray:
    """The places of the six increments of free bodies."""
    places, begin = np.zeros((len(model.bodies), 6), int), 0
    for group in model.tree:
        if isinstance(group.kind, Free) and len(group.columns) == 6:
            places[list(group.children)] = begin + np.arange(6 * group.count).reshape(-1, 6)
        begin += group.count * len(group.columns)
    return places[np.array(bodies, int)]


def _from_strains(rows: Rows, pairs: Pairs) -> Float[Array, "pairs 6 6"]:
    r"""Increments of the second of two nodes against the first, at a distance $d$, from the strain of the link between them.

    The strain is the velocity against each other as seen half way, by the distance, and the angular velocity: $(|d|\,\dot\Gamma, \omega)$.
    """
    near, far = np.array(pairs, int).reshape(-1, 2).T
    link = rows[far, 0] - rows[near, 0]
    unit, none = jnp.eye(3, dtype=rows.dtype), jnp.zeros((3, 3), rows.dtype)
    return jax.vmap(lambda d: jnp.block([[jnp.sqrt(d @ d) * unit, -0.5 * skew(d)], [none, unit]]))(link)


def _across(at: Following, q: Vector, move: Callable) -> Iterator[Equation]:
    """Rows that read the strains of links across which no increment counts."""
    if not at.across:
        return
    (near, far), rows = np.array(at.across).T, at.model.frames(q)
    link = rows[far, 0] - rows[near, 0]

    def strains(w):
        turned = _twists(at.model, q, move, w)
        (v, spin), (v_far, spin_far) = turned(near), turned(far)
        apart = v_far - v - 0.5 * jnp.cross(spin + spin_far, link)
        return jnp.concatenate([apart / jnp.linalg.norm(link, axis=1)[:, None], spin_far - spin], axis=1).ravel()

    read = jax.jacrev(strains)(jnp.zeros(at.model.increments, q.dtype))
    yield read, jnp.zeros(read.shape[0], q.dtype)


def _pinv(matrix: Float[Array, "r k"]) -> Float[Array, "k r"]:
    """The pseudo-inverse of rows of unit length or shorter; what is small beside one counts as zero."""
    beside_one = jax.scipy.linalg.block_diag(matrix, jnp.ones((1, 1), matrix.dtype))
    return pinv(beside_one, rank_tolerance(matrix.dtype))[:-1, :-1]
