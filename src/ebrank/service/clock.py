"""A clock that never goes back, whatever the machine's does: times of a log must not.

>>> readings = iter([10.0, 7.0, 11.0])
>>> clock = MonotoneClock(lambda: next(readings), last=9.0)
>>> clock(), clock(), clock()
(10.0, 10.0, 11.0)
"""

from __future__ import annotations

from collections.abc import Callable


class MonotoneClock:
    """Returns the latest time seen so far."""

    def __init__(self, clock: Callable[[], float], last: float = 0.0) -> None:
        self._clock = clock
        self._last = last

    def __call__(self) -> float:
        """Return the time in seconds since 1970, never less than before."""
        self._last = max(self._last, self._clock())
        return self._last
