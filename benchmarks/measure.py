"""Timing on a noisy machine: alternatives take turns, and the medians are compared."""

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import equinox
import jax
import numpy as np

import jaxmbd


def median_times(alternatives: dict[str, Callable], repeats: int = 15) -> dict[str, float]:
    """Median wall time in seconds of each alternative, compiled beforehand, called in turn."""
    for run in alternatives.values():
        jax.block_until_ready(run())
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    for _ in range(repeats):
        for name, run in alternatives.items():
            begin = time.perf_counter()
            jax.block_until_ready(run())
            times[name].append(time.perf_counter() - begin)
    return {name: float(np.median(values)) for name, values in times.items()}


def row(section: str, what: str, expected: str, measured) -> dict:
    text = measured if isinstance(measured, str) else f"{float(measured):.1e}"
    return {"section": section, "what": what, "expected": expected, "measured": text}


def largest(values) -> float:
    return float(np.max(np.abs(np.asarray(values))))


def print_table(rows: list[dict]) -> None:
    """Rows with the same keys as an aligned table."""
    cells = [list(rows[0])] + [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_json(name: str, rows: list[dict], folder: Path) -> Path:
    """The rows beside versions and machine."""
    about = {
        "benchmark": name,
        "versions": {module.__name__: module.__version__ for module in (jax, equinox, np)} | {"jaxmbd": _version()},
        "machine": {"processor": platform.processor() or platform.machine(), "system": platform.platform(), "devices": str(jax.devices())},
        "rows": rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(about, indent=2) + "\n")
    return path


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(jaxmbd.__name__)
    except PackageNotFoundError:
        return "not installed"
