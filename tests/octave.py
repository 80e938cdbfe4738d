"""The step-size control of Octave's `ode45` around 2009, with which published numbers of steps were counted."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import optimistix


class Ode45(diffrax.AbstractAdaptiveStepSizeController):
    r"""Every component has a tolerance of its own, $\max(r\,y_i, a)$ with the sign of $y_i$, so that negative ones have the absolute one
    alone. The next step is $0.8\,h\,(\tau_i/|e_i|)^{1/5}$ for the worst component, without a limit to its growth.
    """

    rtol: Any
    atol: Any
    dtmax: Any
    norm: Any = optimistix.rms_norm

    def wrap(self, direction):
        return self

    def init(self, terms, t0, t1, y0, dt0, args, func, error_order):
        return t0 + dt0, None

    def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state):
        y, error = (jnp.concatenate(jax.tree.leaves(tree)) for tree in (y0, y_error))
        share = jnp.max(jnp.maximum(jnp.abs(error), jnp.finfo(y.dtype).eps) / jnp.maximum(self.rtol * y, self.atol))
        kept = share <= 1
        dt = jnp.minimum(0.8 * (t1 - t0) * share**-0.2, self.dtmax)
        begin = jnp.where(kept, t1, t0)
        return kept, begin, begin + dt, jnp.array(False), None, diffrax.RESULTS.successful
