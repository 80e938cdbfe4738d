"""Pairs of choices that do not know of each other."""

import itertools
import os
from collections.abc import Iterable
from typing import Any


def some_pairs(first: Iterable, second: Iterable) -> list[tuple[Any, Any]]:
    """Every other pair, so that each choice meets half of the others; all of them with `JAXMBD_ALL_PAIRS=1`."""
    everything = itertools.product(enumerate(first), enumerate(second))
    wanted = os.environ.get("JAXMBD_ALL_PAIRS") == "1"
    return [(one, other) for (i, one), (j, other) in everything if wanted or (i + j) % 2]
