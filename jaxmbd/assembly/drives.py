"""Drives, stacked: forces on gauges that depend on controls."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..errors import ModelError, UnknownNameError
from ..loads import Motor
from ..numerics.arrays import Indices
from ..numerics.checks import nearest_names

Control = dict[str, Array]


class MotorGroup(eqx.Module):
    """Motors on gauges, of one kind."""

    load: Motor
    gauges: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)

    def forces(self, control: Control) -> Float[Array, " count"]:
        """Their forces, for a control of each by name."""
        return jax.vmap(lambda load, u: load.force(u))(self.load, jnp.stack([control[name] for name in self.names]))


def as_control(control: PyTree, names: Sequence[str], dtype: Any) -> Control:
    """A number for every motor, by name; what else was given is refused."""
    listed = f"the motors of this mechanism are {', '.join(map(repr, names))}"
    if not isinstance(control, Mapping):
        raise ModelError(f"controls of a mechanism are a dictionary of motors by name, and nothing else: {listed}")
    for name in control:
        if name not in names:
            raise UnknownNameError(f"controls name {name!r}, which is no motor{nearest_names(name, names)}; {listed}")
    missing = [name for name in names if name not in control]
    if missing:
        raise ModelError(f"controls have nothing for the motor{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}; {listed}")
    numbers = {name: jnp.asarray(value) for name, value in control.items()}
    for name, value in numbers.items():
        if value.shape != ():
            raise ModelError(f"controls of motor {name!r} are one number a step, but an array of shape {value.shape} was given for a step")
    return {name: value.astype(dtype) for name, value in numbers.items()}
