r"""Gauges: quantities of frames that are coordinates of their own, turns counted, and the gears between them.

Frames tell a pair $(x, y)$ of every such quantity. That of an angle is its cosine and sine, times any positive number, and the gauge $c$
fulfils $x \sin c - y \cos c = 0$; that of any other quantity is one and its value, and $x\,c - y = 0$. No angle is taken of the frames, so
that nothing jumps after half a turn; all of it is made of products, and of functions of $c$ alone.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..geometry.frame import Rows
from ..joints.base import read
from ..numerics.arrays import Indices
from .groups import JointGroup

Pairs = Float[Array, "gauges 2"]


class Gauge(NamedTuple):
    """Where a gauge reads: a coordinate of a joint of a group; `increment` is its place in the chart's increments, if it has one."""

    name: str
    group: int
    element: int
    coordinate: int
    angular: bool
    increment: int | None


class Gears(eqx.Module):
    """Fixed ratios between pairs of gauges: the second changes by `ratio` times the change of the first from the `assembled` position.

    `assembled` are the gauges there, those that are first in a gear and those that are second.
    """

    ratio: Any
    assembled: Any
    first: Indices = eqx.field(static=True)
    second: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def pick(self, gauges: Float[Any, " g"]) -> Float[Any, "2 gears"]:
        """The first and the second gauge of each gear."""
        return gauges[np.array([self.first, self.second], int)]

    def off(self, gauges: Float[Array, " g"]) -> Float[Array, " gears"]:
        """Second gauges less what the first ones and the ratios ask for."""
        first, second = self.pick(gauges)
        return second - self.ratio * first - (self.assembled[1] - self.ratio * self.assembled[0])


def pairs_of(gauges: Sequence[Gauge], joints: Sequence[JointGroup], bodies: Rows) -> Pairs:
    """What frames tell of each gauge; the gauges of a group stand side by side."""
    found = [jnp.zeros((0, 2), bodies.dtype)]
    for index, some in itertools.groupby(gauges, lambda gauge: gauge.group):
        places = np.array([(gauge.element, gauge.coordinate) for gauge in some])
        found.append(joints[index].pairs(bodies)[places[:, 0], places[:, 1]])
    return jnp.concatenate(found)


def read_gauges(gauges: Sequence[Gauge], pairs: Pairs) -> Float[Array, " gauges"]:
    """What gauges would show by the frames alone, angles within half a turn."""
    return read(pairs, [gauge.angular for gauge in gauges])


def gauges_off(gauges: Sequence[Gauge], values: Float[Array, " gauges"], pairs: Pairs) -> Float[Array, " gauges"]:
    """Zero where gauges show what frames tell, and for angles at every half turn from there."""
    angular = np.array([gauge.angular for gauge in gauges], bool)
    along, across = jnp.where(angular, jnp.cos(values), 1), jnp.where(angular, jnp.sin(values), values)
    return across * pairs[:, 0] - along * pairs[:, 1]


def angle_between(first: Pairs, second: Pairs) -> Float[Array, " gauges"]:
    """The angle from one pair to another, within half a turn."""
    cosine = first[:, 0] * second[:, 0] + first[:, 1] * second[:, 1]
    return jnp.arctan2(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0], cosine)


def change(gauges: Sequence[Gauge], start: Pairs, end: Pairs) -> Float[Array, " gauges"]:
    """How far gauges are from one position to another, angles within half a turn."""
    angular = np.array([gauge.angular for gauge in gauges], bool)
    return jnp.where(angular, angle_between(start, end), end[:, 1] - start[:, 1])
