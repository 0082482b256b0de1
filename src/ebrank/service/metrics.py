"""Figures for Prometheus, in its text format.

A metric has a name, a line of help and, where it is split up, labels:

>>> asked = Counter("asked_total", "How often.", "by")
>>> asked.add(2, "shop")
>>> print("\\n".join(asked.lines()))
# HELP asked_total How often.
# TYPE asked_total counter
asked_total{by="shop"} 2

Each metric is written by one thread only, so none needs a lock.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metric(Protocol):
    """Something that can be written down."""

    def lines(self) -> Iterator[str]:
        """Yield the metric's lines."""
        ...


class Counter:
    """A sum that only grows, for each value of its labels."""

    def __init__(self, name: str, help: str, *labels: str) -> None:
        self._name, self._help, self._labels = name, help, labels
        self._sums: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, amount: float = 1.0, *values: str) -> None:
        """Add to the sum of these labels."""
        self._sums[values] = self._sums.get(values, 0.0) + amount

    def lines(self) -> Iterator[str]:
        """Yield the metric's lines."""
        yield from _head(self._name, self._help, "counter")
        for values, amount in list(self._sums.items()):
            yield f"{self._name}{_labeled(self._labels, values)} {_number(amount)}"


class Gauge:
    """A value that is looked up when somebody asks."""

    def __init__(
        self, name: str, help: str, value: Callable[[], float], *, kind: str = "gauge"
    ) -> None:
        self._name, self._help, self._value, self._kind = name, help, value, kind

    def lines(self) -> Iterator[str]:
        """Yield the metric's lines."""
        yield from _head(self._name, self._help, self._kind)
        yield f"{self._name} {_number(self._value())}"


class Histogram:
    """How many values were at most so large, for each value of its labels."""

    def __init__(
        self, name: str, help: str, *labels: str, bounds: tuple[float, ...] = SECONDS
    ) -> None:
        self._name, self._help, self._labels, self._bounds = name, help, labels, bounds
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count one value."""
        counts = self._counts.get(values)
        if counts is None:
            self._sums[values] = 0.0
            counts = self._counts[values] = [0] * (len(self._bounds) + 1)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[values] += value

    def lines(self) -> Iterator[str]:
        """Yield the metric's lines."""
        yield from _head(self._name, self._help, "histogram")
        for values, counts in list(self._counts.items()):
            below = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                below += count
                labels = _labeled((*self._labels, "le"), (*values, _number(bound)))
                yield f"{self._name}_bucket{labels} {below}"
            labels = _labeled(self._labels, values)
            yield f"{self._name}_sum{labels} {_number(self._sums[values])}"
            yield f"{self._name}_count{labels} {below}"


def text(metrics: Iterable[Metric]) -> str:
    """Return the page that Prometheus reads."""
    return "\n".join(line for metric in metrics for line in metric.lines()) + "\n"


def process_metrics() -> list[Metric]:
    """Return what Prometheus' own dashboards expect of any process."""
    born = time.time()
    return [
        Gauge("process_start_time_seconds", "When the server started.", lambda: born),
        Gauge("process_resident_memory_bytes", "Memory in use.", _resident_bytes),
        Gauge(
            "process_cpu_seconds_total", "Processor time used.", time.process_time, kind="counter"
        ),
    ]


def _resident_bytes() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return math.nan  # the system does not tell
    import resource

    return float(pages * resource.getpagesize())


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _labeled(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}" if names else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
