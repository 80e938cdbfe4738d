r"""Inputs over a whole horizon by least squares, for motions that are driven through springs or pendula, or only to be approached.

Inputs are cubic splines in time; the motion that they lead to is that of `simulate`, and its distance from what is wanted is made least.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, PyTree

from ..assembly.abstract_model import model_in
from ..constraints.inputs import as_coordinates, require_time_step, vector_like
from ..constraints.manifold import manifold_at
from ..constraints.rank import find_rank, with_rank_if_cheap
from ..constraints.servo import completed, target_rows, targets_by_name
from ..errors import ModelError
from ..formulations import AbstractFormulation, Multipliers
from ..numerics import lapack
from ..numerics.arguments import checked
from ..numerics.arrays import known, root
from ..numerics.checks import nearest_names, not_negative, whole
from ..numerics.compile import compiled
from ..numerics.least_squares import Optimum, least_squares
from ..numerics.newton import Newton
from ..numerics.trial import returned
from ..schemes import AbstractScheme
from ..simulation import Trajectory, simulate
from ..system import Scalar, System, Vector, VectorLike
from .followed import Followed
from .input_splines import InputSplines, as_rows, control_like, rows_like


class _Horizon(eqx.Module):
    """All that the optimum depends on."""

    system: System
    q0: Vector
    v0: Vector
    t0: Array
    dt: Array
    targets: dict[str, Any]
    weights: dict[str, Array]
    effort: Array
    newton: Newton
    splines: InputSplines
    given: PyTree
    scheme: AbstractScheme | None
    formulation: AbstractFormulation

    def motion(self, c: Float[Array, " k"]) -> Trajectory:
        """The motion with the inputs of some coefficients."""
        return simulate(
            self.system,
            self.q0,
            self.v0,
            dt=self.dt,
            steps=self.splines.steps,
            t0=self.t0,
            scheme=self.scheme,
            formulation=self.formulation,
            newton=self.newton,
            controls=completed(self.given, self.splines.rows(c)),
            throw=False,
        )

    def missed(self, motion: Trajectory) -> dict[str, Float[Array, "rows k"]]:
        """By how much the targets are missed at the nodes."""
        at = lambda named: jax.vmap(lambda t, q: target_rows(named, self.system, t, q))(motion.t, motion.q)
        return {named[0]: at(named) for named in self.targets.items()}

    def residual(self, c: Float[Array, " k"]) -> tuple[Float[Array, " r"], Array]:
        """What is made least, and whether the motion was solved."""
        motion = self.motion(c)
        return self.weighted(c, self.missed(motion)), motion.successful

    def weighted(self, c: Float[Array, " k"], missed: dict[str, Float[Array, "rows k"]]) -> Float[Array, " r"]:
        """The distance from the targets after the start, and the inputs, by their weights."""
        parts = [root(self.dt * self.weights[name]) * values[1:] for name, values in missed.items()]
        spent = root(self.dt * self.effort) * self.splines.numbers(c)
        return jnp.concatenate([part.ravel() for part in (*parts, spent)])

    def holding(self) -> Float[Array, " channels"]:
        """Inputs with which the start is held at rest as well as they can."""
        manifold = manifold_at(self.system.with_step(self.dt), self.t0, self.q0)
        zero, unflatten = ravel_pytree(self.splines.control)
        control = lambda numbers: completed(jax.tree.map(lambda rows: rows[0], self.given), unflatten(numbers))
        acceleration = lambda numbers: manifold.acceleration(jnp.zeros_like(self.q0), control(numbers))[0]
        return -lapack.pinv(jax.jacfwd(acceleration)(zero)) @ acceleration(zero)


@checked
def follow(
    system: System,
    q0: VectorLike,
    v0: VectorLike | None = None,
    *,
    targets: Any,
    inputs: PyTree = None,
    dt: ArrayLike,
    steps: int,
    t0: ArrayLike = 0.0,
    every: int = 2,
    weights: Mapping[str, ArrayLike] | ArrayLike = 1.0,
    effort: PyTree = 0.0,
    guess: PyTree = None,
    controls: PyTree | Callable = None,
    scheme: AbstractScheme | None = None,
    formulation: AbstractFormulation = Multipliers(),
    newton: Newton = Newton(),
    iterations: int = 50,
    throw: bool = True,
) -> Followed:
    r"""Inputs with which a motion follows what is wanted of it, over the whole horizon at once.

    Least is $\frac12 \sum_n h\,(w\,|r(t_n, q_n)|^2 + e\,|u_n|^2)$, over inputs $u$ that are cubic splines in time. Springs, pendula and
    joints may lie between inputs and targets; the motion is that of `simulate` with any scheme and formulation, and nothing is
    differentiated by time. Where the targets can be met and $e = 0$, they are met up to the error of the splines, which is far below that
    of the scheme.

    **Arguments**

    - `q0`, `v0`: the start. It should be one of the wanted motion, hidden coordinates as the stretch of a spring included, as it is where
      both begin at rest.
    - `targets`: objects with `residual(system, t, q) -> (k,)`, or functions of these three; one, several in a sequence, or by name.
    - `inputs`: names of inputs, or numbers shaped like one control, as `forces` receives it: `0.0`, `jnp.zeros(2)`, `{"winch": 0.0}`. Of a
      mechanism they are all its motors.
    - `every`: steps between knots of the splines. More take less time and keep more digits, but follow no turns sharper than that.
    - `weights`: $w$, a number, or for each target by name a number or one for each of its components. `effort`: $e$, a number, or numbers
      shaped like the inputs.
    - `guess`: inputs to begin with, one row a step, as those of an earlier `Followed`; by default those that hold the start at rest.
    - `controls`: what other entries the control has, a row a step, or a function of time, which is taken in the middle of the steps.
    - `throw`: raise an error where no optimum is found; otherwise look at `result`, or call `check()` outside `jit` and `vmap`.

    Differentiable by everything that it takes in but the guess, also where targets are only approached.
    """
    horizon = _horizon(system, q0, v0, targets, inputs, dt, steps, t0, every, weights, effort, controls, scheme, formulation, newton)
    splines, most = horizon.splines, whole("iterations", iterations, 1)
    rows = None if guess is None else rows_like(splines.control, guess, splines.steps, horizon.q0.dtype)
    begin = splines.constant(_holding(horizon)) if rows is None else splines.nearest(rows)
    horizon.motion(begin)  # what is wrong with the start is told here, where numbers are seen
    found = _optimum(horizon, jax.lax.stop_gradient(begin), most)
    motion = horizon.motion(found.value)
    missed = horizon.missed(motion)
    by_channel = jnp.linalg.norm(found.effects.reshape(-1, splines.channels), axis=0)
    followed = Followed(
        trajectory=motion,
        inputs=splines.rows(found.value),
        missed=missed,
        cost=0.5 * jnp.sum(horizon.weighted(found.value, missed) ** 2),
        gradient=found.gradient,
        iterations=found.steps,
        result=found.result,
        effects=ravel_pytree(splines.control)[1](by_channel),
        rank=found.rank,
        unknowns=begin.size,
    )
    if throw and known(found.result) is not None:
        followed.check()
    return followed


@compiled
def _optimum(horizon: _Horizon, begin: Float[Array, " k"], most: int) -> Optimum:
    """The coefficients of the splines by least squares."""
    return least_squares(_residual_of, begin, horizon, horizon.splines.groups, most)


def _residual_of(c: Float[Array, " k"], horizon: _Horizon) -> tuple[Float[Array, " r"], Array]:
    return horizon.residual(c)


@compiled
def _holding(horizon: _Horizon) -> Float[Array, " channels"]:
    return horizon.holding()


def _horizon(system, q0, v0, targets, inputs, dt, steps, t0, every, weights, effort, controls, scheme, formulation, newton) -> _Horizon:
    """Everything in one dtype, judged where it is seen."""
    if not system.controlled:
        raise ModelError(
            "follow looks for controls, but the forces of this system take none: give forces a fifth argument, or a mechanism a Motor"
        )
    q0 = as_coordinates(system, q0)
    dtype = q0.dtype
    require_time_step(dt)
    t0, dt = jnp.asarray(t0, dtype), jnp.asarray(dt, dtype)
    v0 = jnp.zeros_like(q0) if v0 is None else vector_like(v0, q0, "v0")
    system = system.astype(dtype)
    if system.rank is None:
        system = find_rank(system, q0, t0) if formulation.needs_rank else with_rank_if_cheap(system, q0, t0)
    wanted = targets_by_name(targets)
    sizes = {name: _size(name, target, system, t0, q0) for name, target in wanted.items()}
    model = model_in(system)
    given = model.assembly.motor_names if inputs is None and model is not None else inputs
    splines = InputSplines(control_like(given, dtype), whole("steps", steps, 1), whole("every", every, 1))
    efforts = jnp.asarray(_efforts(effort, splines.control), dtype)
    shares = {name: jnp.asarray(_weight(name, weights, sizes), dtype) for name in wanted}
    others = as_rows(controls, t0 + dt * (jnp.arange(splines.steps, dtype=dtype) + 0.5))
    return _Horizon(system, q0, v0, t0, dt, wanted, shares, efforts, newton, splines, others, scheme, formulation)


def _size(name: str, target: Any, system: System, t: Scalar, q: Vector) -> int:
    """The number of components of a target, which is tried once and must have a value at the start."""
    shape = returned(f"target {name!r}", partial(target_rows, (name, target)), (system, t, q)).shape
    numbers = known(target_rows((name, target), system, t, q))
    if numbers is not None and not np.isfinite(numbers).all():
        raise ModelError(f"target {name!r} is not finite at the start")
    return shape[0]


def _weight(name: str, weights: Mapping[str, ArrayLike] | ArrayLike, sizes: dict[str, int]) -> Any:
    """The weight of a target, one for all its components or one for each."""
    if not isinstance(weights, Mapping):
        return not_negative("weights", weights)
    strangers = [stranger for stranger in weights if stranger not in sizes]
    if strangers:
        raise ModelError(f"weights has {strangers[0]!r}, which is no target{nearest_names(strangers[0], sizes)}")
    return not_negative(f"weights[{name!r}]", weights.get(name, 1.0), (), (sizes[name],))


def _efforts(effort: PyTree, control: PyTree) -> Float[Array, " channels"]:
    """The weight of each number of a control."""
    shapes: list[Any] = [jax.tree.structure(tree) for tree in (effort, control)]
    if jax.tree_util.treedef_is_leaf(shapes[0]):
        return jnp.full(ravel_pytree(control)[0].size, not_negative("effort", effort, (), (None,)))
    if shapes[0] != shapes[1]:
        raise ModelError("effort must be a number, or numbers shaped like the inputs")
    each = lambda weight, one: jnp.broadcast_to(not_negative("effort", weight, (), one.shape), one.shape)
    return ravel_pytree(jax.tree.map(each, effort, control))[0]
