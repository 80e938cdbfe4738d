"""Friction that grows with speed, and holds nothing."""

from typing import Any

from jaxtyping import Array, PyTree

from ..numerics.checks import not_negative
from .base import AbstractFriction, Slip


class Viscous(AbstractFriction):
    r"""$F = d\,\dot c$ with the `damping` $d$."""

    damping: Any

    def __init__(self, damping: Any):
        self.damping = not_negative("damping of a Viscous", damping)

    def slide(self, state: PyTree, c0: Array, c1: Array, dt: Array) -> Slip:
        force = self.damping * (c1 - c0) / dt
        return Slip(force, state, force * (c1 - c0))

    def force(self, state: PyTree, c: Array, rate: Array) -> Array:
        return self.damping * rate
