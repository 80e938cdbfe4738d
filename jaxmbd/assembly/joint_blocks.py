r"""Coordinates of the joints of a spanning tree, group by group, and where bodies are for them.

A joint has the coordinates of its kind, in which increments add up; three that turn a body freely about a point become a quaternion
$(w, x)$ with the constraint $\frac12 (w^2 + x \cdot x - 1) = 0$. For one of any length the directors have the length $w^2 + x \cdot x$:
they are quadratic in it, so that nothing is divided, and inertia along it is that of a body that grows.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..geometry import rotation
from ..geometry.frame import Frame, Motion, Rows
from ..joints import AbstractJoint
from ..numerics.arrays import Indices, library
from .groups import JointGroup

QUATERNION = 4
"""Components of a quaternion, the scalar first."""


class Block(NamedTuple):
    """The coordinates of some joints of a group, `members`, side by side; `begin` is where they begin among all.

    Each joint has one for every increment among its `steps`, which add up, and a quaternion behind them if it is one of `balls`.
    """

    group: int
    members: Indices
    begin: int
    steps: Indices
    balls: bool

    @property
    def width(self) -> int:
        """Number of coordinates of a joint."""
        return len(self.steps) + QUATERNION * self.balls

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.width * len(self.members)

    @property
    def end(self) -> int:
        """Where the next ones begin."""
        return self.begin + self.size

    def place(self, element: int, column: int) -> int:
        """The place of a column of a joint among all coordinates."""
        return self.begin + self.members.index(element) * self.width + column

    def of(self, q: Float[Array, " n"]) -> Float[Array, "members width"]:
        """Its part of all coordinates, joint by joint."""
        return q[self.begin : self.end].reshape(len(self.members), self.width)


def blocks_of(tree: tuple[JointGroup, ...], apart: frozenset[int]) -> tuple[Block, ...]:
    """The coordinates of all joints of a tree but those that bodies `apart` hang on."""
    found, begin = [], 0
    for index, group in enumerate(tree):
        members = tuple(i for i, child in enumerate(group.children) if child not in apart)
        balls = turns_freely(group)
        block = Block(index, members, begin, group.columns[: group.kind.ball] if balls else group.columns, balls)
        if members:
            found.append(block)
            begin = block.end
    return tuple(found)


def turns_freely(group: JointGroup) -> bool:
    """Whether all three increments of a ball move the children, so that they are one rotation."""
    return group.kind.ball is not None and set(range(group.kind.ball, group.kind.ball + 3)) <= set(group.columns)


def turning(group: JointGroup, block: Block) -> list[bool]:
    """Which of the coordinates of a joint are angles or components of a quaternion, and which are lengths."""
    return _marked(group.kind, block.steps, group.kind.angles or group.kind.angular) + [True] * (block.width - len(block.steps))


def periodic(group: JointGroup, block: Block) -> list[bool]:
    """Which of them return after a turn."""
    return _marked(group.kind, block.steps, group.kind.angular) + [False] * (block.width - len(block.steps))


def _marked(kind: AbstractJoint, steps: Indices, marks: tuple[bool, ...]) -> list[bool]:
    """What is said of the coordinates of a kind, or nothing, for some increments; those of a ball are angles."""
    free = kind.freedom if kind.ball is None else kind.ball
    whole = (marks[:free] or (False,) * free) + (True,) * (kind.freedom - free)
    return [whole[step] for step in steps]


def of_members(group: JointGroup, block: Block) -> tuple[AbstractJoint, Frame, Frame]:
    """The joints of a block, and their frames in body axes."""
    places = np.array(block.members)
    return jax.tree.map(lambda leaf: leaf[places], (group.kind, group.on_a, group.on_b))


def relative_frames(group: JointGroup, block: Block, q: Float[Array, " n"]) -> Frame:
    """The second bodies of the joints of a block as seen from the first ones."""
    columns, freedom = np.array(block.steps, int), group.kind.freedom

    def one(kind, on_a, on_b, own):
        rest = on_a @ jax.tree.map(lambda leaf: library(leaf).asarray(leaf, q.dtype), kind.rest())
        body, steps = rest @ on_b.inverse(), jnp.zeros(freedom, q.dtype).at[columns].set(own[: columns.size])
        moved = kind.motion(steps, on_a, rest) if columns.size else Motion.move(jnp.zeros(3, q.dtype))
        if block.balls:
            turn = on_a.rotation @ turned(own[columns.size :]) @ on_a.rotation.T
            moved = moved @ Motion(turn, rest.origin - turn @ rest.origin)
        return moved(body)

    return jax.vmap(one)(*of_members(group, block), block.of(q))


def read_coordinates(group: JointGroup, block: Block, bodies: Rows) -> Float[Array, "members width"]:
    """The coordinates of the joints of a block from the frames of all bodies; angles within half a turn."""
    places, columns = np.array(block.members), np.array(block.steps, int)
    first, second = (jax.tree.map(lambda leaf: leaf[places], frame) for frame in group.frames(bodies))

    def one(kind, a, b):
        steps = kind.steps(a, b)
        if kind.ball is None:
            return steps[columns]
        turn = a.rotation.T @ b.rotation @ jnp.asarray(kind.rest().rotation, bodies.dtype).T
        if block.balls:
            return jnp.concatenate([steps[columns], rotation.to_quaternion(turn)])
        return jnp.concatenate([steps, rotation.log(turn)])[columns]

    return jax.vmap(one)(of_members(group, block)[0], first, second)


def turned(quaternion: Float[Array, "4"]) -> rotation.Matrix3:
    r"""$(w^2 + x \cdot x)$ times the rotation of a quaternion: $(w^2 - x \cdot x) I + 2 x x^T + 2 w \hat x$."""
    w, x = quaternion[0], quaternion[1:]
    return (w * w - x @ x) * jnp.eye(3, dtype=x.dtype) + 2 * (x[:, None] * x + w * rotation.skew(x))
