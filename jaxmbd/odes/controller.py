"""A step-size controller that remembers why steps were refused."""

from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Refusal(NamedTuple):
    """The first of the steps that were refused last: its length (zero without any), and whether its error was no number.

    `over` tells that a step has been taken since. Of all whose errors were no numbers, `without` is how many they were, and `far` how far
    the furthest would have led from the time that is reached.
    """

    dt: Float[Array, ""]
    without_number: Bool[Array, ""]
    over: Bool[Array, ""]
    without: Int[Array, ""]
    far: Float[Array, ""]

    @classmethod
    def none(cls, dt: Float[Array, ""]) -> "Refusal":
        """Before the first step; as it stays for steps of one length, which are only refused where there is no number."""
        return cls(dt, dt > 0, dt == 0, jnp.int32(0), dt)

    def and_then(self, kept: Bool[Array, ""], dt: Float[Array, ""], finite: Bool[Array, ""]) -> "Refusal":
        """After another step."""
        first, numberless = self.over & ~kept, ~kept & ~finite
        either = lambda new, old: jnp.where(first, new, old)
        far = jnp.maximum(self.far - jnp.where(kept, dt, 0), jnp.where(numberless, dt, 0))
        return Refusal(either(dt, self.dt), either(~finite, self.without_number), kept, self.without + jnp.int32(numberless), far)


class Watched(diffrax.AbstractAdaptiveStepSizeController):
    """Another controller, with the `Refusal` that the motion may end with as a part of its state."""

    controller: diffrax.AbstractAdaptiveStepSizeController

    @property
    def rtol(self):
        """Relative tolerance."""
        return self.controller.rtol

    @property
    def atol(self):
        """Absolute tolerance."""
        return self.controller.atol

    @property
    def norm(self):
        """What measures errors."""
        return self.controller.norm

    def wrap(self, direction):
        return Watched(self.controller.wrap(direction))

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        first, state = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        return first, (state, Refusal.none(jnp.zeros_like(t0)))

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        state, before = controller_state
        kept, *times, state, result = self.controller.adapt_step_size(t0, t1, y0, y1_candidate, args, y_error, error_order, state)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(y_error)]))
        return kept, *times, (state, before.and_then(kept, t1 - t0, finite)), result
