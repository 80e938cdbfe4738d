"""Functions that the user gave to parts of a mechanism: each is tried once, under the name of its part."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..geometry.frame import identity
from ..joints import Measure, UserJoint
from ..loads import Controller, Force, JointForce, PDDrive, Potential, Torque, UserForce
from ..numerics.trial import is_own, require_shape, returned
from .mechanism import Mechanism


class Trial(NamedTuple):
    """A function, what it is called with, and the shape of what it returns."""

    function: Callable
    arguments: tuple
    shape: tuple[int | None, ...]
    wanted: str
    params: Any = None

    def run(self, name: str) -> None:
        """Refuse a function that does not do what its part needs."""
        found = returned(name, self.function, self.arguments, params=self.params)
        require_shape(name, self.function, found, self.shape, self.wanted)


def try_parts(mechanism: Mechanism) -> None:
    """Try every function of the user's once, for parts of one kind that share it with the first of them."""
    seen = set()
    kinds = {f"joint {name!r}": joint.kind for name, joint in mechanism.connections.items()}
    for name, part in [*kinds.items(), *((f"load {name!r}", load) for name, load in mechanism.loads.items())]:
        for trial in _trials(part):
            key = (jax.tree.structure((trial.function, trial.params)), str(jax.tree.map(jnp.shape, trial.params)))
            if key not in seen and not is_own(trial.function):
                seen.add(key)
                trial.run(name)


def _trials(part: Any) -> Iterator[Trial]:
    """The functions of a part."""
    t, zero, frame = jnp.zeros(()), jnp.zeros(3), identity()
    if isinstance(part, UserForce):
        given = (t, frame, zero, zero, part.params)
        yield Trial(part.function, given, (2, 3), "a pair of a force (3,) and a torque (3,)", part.params)
    elif isinstance(part, Potential):
        yield Trial(part.function, (t, frame, frame, part.params), (), "a scalar", part.params)
    elif isinstance(part, UserJoint):
        yield Trial(part.function, (frame, frame, part.params), (None,), "a vector (m,)", part.params)
        if part.slipping is not None:
            yield Trial(part.slipping, (frame, frame, frame, frame, part.params), (None,), "a vector (k,)", part.params)
    elif isinstance(part, Measure):
        shape, wanted = ((2,), "a pair of a cosine and a sine") if part.turns else ((), "a scalar")
        yield Trial(part.function, part.arguments(frame, frame), shape, wanted, part.params)
    elif isinstance(part, Controller):
        told = jnp.zeros(len(part.measured))
        yield Trial(part.function, part.arguments(t, told, told), (), "a scalar", part.params)
    elif isinstance(part, PDDrive):
        yield from (Trial(history, (t,), (), "a scalar") for history in (part.target, part.rate) if callable(history))
    elif isinstance(part, Force | Torque | JointForce):
        history = part.torque if isinstance(part, Torque) else part.force
        shape, wanted = ((), "a scalar") if isinstance(part, JointForce) else ((3,), "a vector of shape (3,)")
        if callable(history):
            yield Trial(history, (t,), shape, wanted)
