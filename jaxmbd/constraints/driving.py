r"""What inputs do to targets: the matrix $D = Db\,P\,(P^T M P)^{-1} P^T B^T$, and starts from which inputs can drive a motion."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PyTree

from ..errors import ModelError, Result
from ..numerics.arrays import known
from ..numerics.compile import compiled
from ..numerics.lapack import singular_values, solve
from ..numerics.newton import Newton
from ..system import Scalar, System, Vector
from .calculus import constraint_jacobian, mass_matrix
from .counts import position_count
from .judgement import Verdict, first_wrong, judge_position, judge_start
from .manifold import manifold_at
from .servo import AbstractTarget, Servo, with_targets
from .split import Split
from .units import row_size, sizes


def response(
    system: System, t: Scalar, q: Vector, v: Vector, servo: Servo, given: PyTree, at: Split, inputs: PyTree = None
) -> tuple[Float[Array, "n k"], Float[Array, "n k"], Float[Array, "r k"]]:
    """Forces of a unit of each input more than `inputs`, which are zero by default, accelerations of the coordinates by it within the
    constraints that a split picks, and of the targets, $D$.
    """
    about = jnp.zeros(servo.size, q.dtype) if inputs is None else ravel_pytree(inputs)[0]
    pushed = jax.jacfwd(lambda u: system.forces(t, q, v, servo.control(given, servo.inputs(u))))(about)
    M, G = mass_matrix(system, t, q, v), at.independent(constraint_jacobian(system, t, q))
    none = jnp.zeros((G.shape[0], G.shape[0]), q.dtype)
    moved = solve(jnp.block([[M, G.T], [G, none]]), jnp.pad(pushed, ((0, G.shape[0]), (0, 0))))[: q.size]
    return pushed, moved, jax.vmap(lambda a: jax.jvp(lambda q: servo.residual(system, t, q), (q,), (a,))[1], 1, 1)(moved)


def least_inputs(D: Float[Array, "r k"], servo: Servo) -> Float[Array, "k r"]:
    r"""$W^{-1} D^T$: inputs of least weight $u^T W u$ among those with the same $D u$ are combinations of its columns."""
    weights = ravel_pytree(servo.weights)[0].astype(D.dtype)
    return D.T / weights[:, None]


def first_inputs(system: System, t: Scalar, q: Vector, v: Vector, servo: Servo, given: PyTree) -> Float[Array, " k"]:
    r"""Inputs with which targets stay met at a start, $\ddot b = \ddot\gamma$, for schemes that begin with accelerations; zero if
    there are none.
    """
    *_, D = response(system, t, q, v, servo, given, manifold_at(system, t, q).split())
    W = least_inputs(D, servo)
    found = Newton()(_bent_away, jnp.zeros(len(D), q.dtype), (system, t, q, v, servo, given, W))
    return W @ jnp.where(found.result == Result.SUCCESS, found.value, 0)


def _bent_away(nu: Float[Array, " r"], args: tuple) -> Float[Array, " r"]:
    r"""By how much $\ddot b$ misses $\ddot\gamma$ with inputs that are combinations of directions."""
    system, t, q, v, servo, given, directions = args
    one, control = jnp.ones_like(t), servo.control(given, servo.inputs(directions @ nu))
    acceleration, _ = manifold_at(system, t, q).acceleration(v, control)
    rate = lambda t, q, v: jax.jvp(lambda t, q: servo.residual(system, t, q), (t, q), (one, v))[1]
    return jax.jvp(rate, (t, q, v), (one, v, acceleration))[1]


def cosines(system: System, t: Scalar, q: Vector, v: Vector, servo: Servo, given: PyTree, inputs: PyTree = None) -> Float[Array, "r k"]:
    """What inputs do to targets, each as a cosine between the motion that an input makes and the one that a target asks for, times that
    between this motion and the force of the input, which vanishes where constraints take all of it.
    """
    pushed, moved, D = response(system, t, q, v, servo, given, manifold_at(system, t, q).split(), inputs)
    size = sizes(system, q)
    slopes = jax.jacfwd(lambda q: servo.residual(system, t, q))(q) * size
    lengths, efforts = row_size((moved / size[:, None]).T), row_size((pushed * size[:, None]).T)
    grip = jnp.sum(pushed * moved, axis=0) / (lengths * efforts)
    return grip * D / lengths / row_size(slopes)[:, None]


def undriven(found: Float[Array, "r k"]) -> Bool[Array, ""]:
    """Whether inputs with these cosines leave a direction of the targets to itself."""
    return jnp.sum(singular_values(found) > _tolerance(found.dtype)) < found.shape[0]


def passes_singularity(start: Float[Array, "r k"], end: Float[Array, "r k"]) -> Bool[Array, ""]:
    """Whether inputs lose their hold of the targets at the end of a step, or, as many as these, within it."""
    if start.shape[0] < start.shape[1]:
        return undriven(end)
    return undriven(end) | (jnp.linalg.det(start) * jnp.linalg.det(end) < 0)


class Driving(eqx.Module):
    """What is known of a start: whether targets are met there, and what inputs do to them, as cosines between motions and targets."""

    verdict: Verdict
    cosines: Float[Array, "r k"]


@compiled
def _driving(system: System, t: Scalar, q: Vector, v: Vector | None, dt: Scalar, servo: Servo, given: PyTree) -> Driving:
    """How a start looks to a servo, in one compilation."""
    both = with_targets(system, servo, q)
    verdict = judge_position(both, t, q) if v is None else judge_start(both, t, q, v, dt)
    found = cosines(system, t, q, jnp.zeros_like(q) if v is None else v, servo, given)
    lacking = Verdict(jnp.where(undriven(found), jnp.int32(Result.NOT_DRIVEN), 0), jnp.int32(-1), jnp.zeros((), q.dtype))
    before, targets = position_count(system, q), len(servo.rows(system, q))
    return Driving(_renumbered(first_wrong(verdict, lacking), before, targets), found)


def check_driving(system: System, t: Scalar, q: Vector, v: Vector | None, dt: Scalar, servo: Servo | None, given: PyTree) -> Verdict | None:
    """Refuse starts that miss a target or its rate, and inputs that cannot drive the targets; a verdict where numbers are hidden.

    A motion that goes on has a velocity of its own, and `v` is `None`.
    """
    if servo is None:
        return None
    rows, now = servo.rows(system, q), known(t)
    if len(rows) > servo.size:
        when = "" if now is None else f"at t = {float(now):g} "
        raise ModelError(
            f"{when}the targets {_listed(dict.fromkeys(rows))} have {len(rows)} components, but "
            f"there {'is' if servo.size == 1 else 'are'} only {_inputs(servo)} to meet them: give more inputs, or fewer targets, or "
            "approach them over the whole horizon at once with mbd.inverse.follow"
        )
    found = _driving(*jax.lax.stop_gradient((system, t, q, v, dt, servo, given)))
    code = known(found.verdict.result)
    if code is None:
        return found.verdict
    worst = -2 - int(found.verdict.worst)
    if code == Result.NOT_DRIVEN:
        raise ModelError(_why_not_driven(servo, rows, np.asarray(found.cosines), float(t)))
    if code != Result.SUCCESS and worst >= 0:
        raise ModelError(_why_missed(servo, rows[worst], system, t, q, v, Result(int(code)), float(found.verdict.violation)))
    return None


def _why_not_driven(servo: Servo, rows: tuple[str, ...], cosines: np.ndarray, t: float) -> str:
    tolerance = _tolerance(cosines.dtype)
    idle = [name for name, column in zip(servo.input_names, cosines.T, strict=True) if np.max(np.abs(column)) <= tolerance]
    unmoved = [name for name, row in zip(rows, cosines, strict=True) if np.max(np.abs(row)) <= tolerance]
    found = int(np.sum(np.linalg.svd(cosines, compute_uv=False) > tolerance))
    told = f"; {_listed(idle)} moves none of them" if idle else ""
    told += f"; {_listed(dict.fromkeys(unmoved))} is moved by no input" if unmoved else ""
    return (
        f"at t = {t:g} the {_inputs(servo)} {'drives' if servo.size == 1 else 'drive'} only {found} of the {len(rows)} components of the "
        f"targets {_listed(dict.fromkeys(rows))} by their accelerations{told}. Give other inputs or targets, start away from a singular "
        "position, or approach a motion that is driven through springs or pendula over the whole horizon at once with mbd.inverse.follow; "
        "inputs must act with a slope where they are zero, unlike u**2"
    )


def _why_missed(servo: Servo, name: str, system: System, t: Scalar, q: Vector, v: Vector | None, code: Result, off: float) -> str:
    target = servo.targets[servo.names.index(name)]
    advice = "mbd.inverse.consistent_start(system, servo, q0, v0) finds a start that does"
    if code is Result.INCONSISTENT_POSITION:
        measured = lambda: (target.value(system, t, q), target.wanted(t))
        begun = f"q0 does not meet target {name!r} at t = {float(t):g}: it is off by {off:.3g}"
    else:
        rate = lambda t, q: jax.jvp(lambda t, q: jnp.asarray(target.value(system, t, q)), (t, q), (jnp.ones_like(t), v))[1]
        measured = lambda: (rate(t, q), jax.jvp(lambda t: jnp.asarray(target.wanted(t)), (t,), (jnp.ones_like(t),))[1])
        begun = f"v0 does not follow target {name!r} at t = {float(t):g}: its rate is off by {off:.3g}"
    if not isinstance(target, AbstractTarget) or type(target).value is AbstractTarget.value:  # a residual is all that there is
        return f"{begun}; {advice}"
    value, wanted = (np.round(np.asarray(part, float), 6).tolist() for part in measured())
    return f"{begun}, being {value} where {wanted} is wanted; {advice}"


def _renumbered(verdict: Verdict, before: int, targets: int) -> Verdict:
    """Targets, which stand between constraints on positions and on velocities, count downwards from -2, constraints upwards from 0."""
    worst = verdict.worst
    constraint = jnp.where(worst < before + targets, worst, worst - targets)
    of_target = (worst >= before) & (worst < before + targets)
    return Verdict(verdict.result, jnp.where(of_target, before - 2 - worst, constraint), verdict.violation)


def _tolerance(dtype: Any) -> float:
    """Cosines below this are rounding."""
    return float(jnp.finfo(dtype).eps) ** 0.5


def _inputs(servo: Servo) -> str:
    """All inputs by name."""
    return f"input{'' if servo.size == 1 else 's'} {_listed(servo.input_names)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
