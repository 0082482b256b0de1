"""What happened in each minute, as sums: of the traffic, of what is new, of how long answers took.

Sums of a minute still under way are added to the store's every few seconds. Response times are
counted in classes that grow by a quarter, so that sums of minutes still tell quantiles:

>>> book = MinuteBook()
>>> book.add(61.0, clicks=1)
>>> book.latency(62.0, seconds=0.004)
>>> [minute] = book.taken()
>>> minute.start, minute.values["clicks"], round(quantile(minute.values, 0.5), 1)
(60.0, 1.0, 3.9)
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping

from ebrank.service.store.records import Minute

_LATENCY = "ms"
_GROWTH = 1.25
_FIRST = 0.05  # milliseconds; anything faster is in the first class
_CLASSES = 64

_EDGES = [_FIRST * _GROWTH**power for power in range(_CLASSES)]


class MinuteBook:
    """Sums that are not yet in the store."""

    def __init__(self) -> None:
        self._minutes: dict[float, dict[str, float]] = {}

    def add(self, time: float, **values: float) -> None:
        """Add values to the minute of a time."""
        sums = self._minutes.setdefault(time // 60.0 * 60.0, {})
        for name, value in values.items():
            sums[name] = sums.get(name, 0.0) + value

    def latency(self, time: float, seconds: float) -> None:
        """Count an answer that took so long."""
        place = min(bisect.bisect_left(_EDGES, seconds * 1000.0), _CLASSES - 1)
        self.add(time, **{f"{_LATENCY}{place}": 1.0})

    def taken(self) -> list[Minute]:
        """Return what was added since the last call."""
        minutes = [Minute(start, values) for start, values in sorted(self._minutes.items())]
        self._minutes = {}
        return minutes

    def put_back(self, minutes: Iterable[Minute]) -> None:
        """Take back what could not be stored."""
        for minute in minutes:
            self.add(minute.start, **minute.values)


def quantile(values: Mapping[str, float], share: float) -> float | None:
    """Return the response time in ms that this share of a minute's answers did not exceed."""
    counts = [values.get(f"{_LATENCY}{place}", 0.0) for place in range(_CLASSES)]
    wanted = share * sum(counts)
    if wanted == 0.0:
        return None
    so_far = 0.0
    for count, edge in zip(counts, _EDGES, strict=True):
        if so_far + count >= wanted:
            lower = edge / _GROWTH
            return lower + (edge - lower) * (wanted - so_far) / count
        so_far += count
    return _EDGES[-1]
