"""Memory of compiled programs."""

from pathlib import Path

import jax

MOST_MEMORY_MAPS = 28_000  # of 65,530 that Linux gives a process; this many programs take some seven gigabytes


def drop_if_many():
    """Each compiled program holds memory maps, of which a process has only so many."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MEMORY_MAPS:
        jax.clear_caches()
