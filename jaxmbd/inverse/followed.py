"""The outcome of a search for inputs: motion, inputs, what was missed, and what is told where it failed."""

from collections.abc import Mapping

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from ..errors import ModelError, Result, SimulationError
from ..numerics.arrays import known
from ..numerics.naming import look_up
from ..simulation import Trajectory


class Followed(eqx.Module):
    r"""A motion near a wanted one, and the inputs that lead to it.

    `simulate(..., controls=inputs)` with the same scheme returns `trajectory`. `missed` are the residuals of the targets at all nodes, one
    column a component, by the name of the target. `cost` is what was minimised, `gradient` the part of the weighted residuals that other
    inputs could still take off, relative to their size, `iterations` the number of Gauss-Newton steps.

    `effects` says how much each input moves the targets in all; `rank` how many of the `unknowns` coefficients of the splines they
    determine. The others stay as they were guessed, as far as they can.
    """

    trajectory: Trajectory
    inputs: PyTree
    missed: dict[str, Float[Array, "rows k"]]
    cost: Float[Array, ""]
    gradient: Float[Array, ""]
    iterations: Int[Array, ""]
    result: Int[Array, ""]
    effects: PyTree
    rank: Int[Array, ""]
    unknowns: int = eqx.field(static=True)

    @property
    def successful(self) -> Array:
        """Whether an optimum was found."""
        return self.result == Result.SUCCESS

    def check(self) -> None:
        """Raise unless an optimum was found, and every input has a part in it."""
        result = self._result("check")
        if result == Result.NON_FINITE:
            self._require_numbers()
            raise SimulationError(
                "follow: no motion to begin with: a step failed with the guess of the inputs. Give guess=, inputs with which the motion "
                "goes through, such as those of a shorter or slower motion",
                self.trajectory,
            )
        effects = zip(_names(self.effects), jax.tree.leaves(self.effects), strict=True)
        idle = [name for name, effect in effects if not np.all(np.asarray(effect) > 0)]
        if idle:
            which = f"{', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect on the targets ({', '.join(self.missed)})"
            raise ModelError(f"follow: {which}: take it out of inputs, or name targets that depend on it")
        if result != Result.SUCCESS:
            raise SimulationError(
                f"follow: no optimum after {int(self.iterations)} iterations: inputs could still take {float(self.gradient):.1e} off the "
                "weighted residuals, relative to their size. Begin nearer (guess=), weigh effort more, or go there in parts: the inputs "
                "of an easier motion are a guess for a harder one",
                self.trajectory,
            )

    def _result(self, reader: str) -> np.ndarray:
        """The code of one motion, if its numbers are seen."""
        result = known(self.result)
        if result is None or result.ndim:
            raise ModelError(f"{reader} reads the numbers of one motion, which jit and vmap hide or stack: call it outside, on one member")
        return result

    def _require_numbers(self) -> None:
        """Raise where a motion was found, and a target is no number along it."""
        for name, missed in self.missed.items():
            blank = ~np.all(np.isfinite(np.asarray(missed)), axis=-1)
            if self.trajectory.successful and np.any(blank):
                t = float(self.trajectory.t[np.argmax(blank)])
                advice = "look for a division by zero or a root in it"
                raise SimulationError(f"follow: target {name!r} is infinite or NaN at t = {t:.6g}: {advice}", self.trajectory)

    def require(self, tolerance: float | Mapping[str, float]) -> None:
        """Raise where a target is missed by more than a tolerance, telling which and when; the motion stays in the error."""
        self._result("require")
        self._require_numbers()
        named = tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(self.missed, tolerance)
        bounds = {look_up(name, self.missed, "follow: there is no target"): bound for name, bound in named.items()}
        t = np.asarray(self.trajectory.t)
        for name, bound in bounds.items():
            far = np.max(np.abs(np.asarray(self.missed[name])), axis=-1)
            if np.any(beyond := ~(far <= bound)):  # what is no number too
                first, worst = np.argmax(beyond), np.argmax(far)
                raise SimulationError(
                    f"follow: target {name!r} is missed by {far[worst]:.2e} at t = {t[worst]:.6g}, more than {bound:.2e} from "
                    f"t = {t[first]:.6g} on{_why_missed(int(first))}",
                    self.trajectory,
                )


def _names(control: PyTree) -> list[str]:
    """Inputs in words, by their paths."""
    paths = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree_util.tree_leaves_with_path(control)]
    return [f"input {path!r}" if path else "the input" for path in paths]


def _why_missed(first: int) -> str:
    """What a miss from some node on tells."""
    if first == 0:
        return ": the start is not on the wanted motion; begin with the q0 that the targets have at t0"
    if first < 4:
        return (
            ": the start does not fit the wanted motion, whose first steps ask for other velocities or hidden coordinates (stretches of "
            "springs, angles of pendula) than q0 and v0 have; begin both at rest"
        )
    return (
        ": the motion may be out of reach, sharper than the splines (every=) or the step follow, or effort may weigh too much; "
        "the motion is in the error as .trajectory"
    )
