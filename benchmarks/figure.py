"""One measured figure beside its target."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measurement: what, how much, the target, and whether it was met."""

    what: str
    measured: str
    target: str
    met: bool


def best_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of several timings: noise on a shared machine only ever adds time."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
