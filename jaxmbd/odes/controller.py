"""A step-size controller that remembers why steps were refused."""

from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


class Refusal(NamedTuple):
    """The first step that was refused since one was taken (zero without), and whether its error was no number."""

    dt: Float[Array, ""]
    without_number: Bool[Array, ""]


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
        return first, (state, Refusal(jnp.zeros_like(t0), jnp.array(False)))

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        state, before = controller_state
        kept, *times, state, result = self.controller.adapt_step_size(t0, t1, y0, y1_candidate, args, y_error, error_order, state)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(y_error)]))
        first = ~kept & (before.dt == 0)
        now = Refusal(jnp.where(kept, 0, jnp.where(first, t1 - t0, before.dt)), jnp.where(first, ~finite, ~kept & before.without_number))
        return kept, *times, (state, now), result
