"""Constraints added to ordinary differential equations by projection, on the adaptive solvers of diffrax, an extra: `jaxmbd[odes]`."""

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import ModelError
from .dynamics import Dynamics as Dynamics, State as State
from .methods import (
    AbstractMethod as AbstractMethod,
    Baseline as Baseline,
    Baumgarte as Baumgarte,
    BraunGoldfarb as BraunGoldfarb,
    Field as Field,
    Instant as Instant,
    Penalty as Penalty,
    Projection as Projection,
)
from .motion import Motion as Motion

if TYPE_CHECKING:
    from .integration import integrate as integrate
    from .solver import CountingSteps as CountingSteps, Projected as Projected

_ON_DIFFRAX = {"integrate": "integration", "Projected": "solver", "CountingSteps": "solver"}


def __getattr__(name: str) -> Any:
    """What needs diffrax is imported when it is first asked for, so that the rest of the library works without it."""
    if name not in _ON_DIFFRAX:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{_ON_DIFFRAX[name]}", __name__), name)
    except ImportError as error:
        raise ModelError(f"mbd.odes.{name} runs on diffrax ({error}): pip install 'jaxmbd[odes]'") from error
