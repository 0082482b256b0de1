"""The clock of the log: it never goes back, whatever the machine's does.

While the machine's clock is behind the log, times of the log stand still. That is told once, and
nothing that must go on may go by this clock: chores and windows go by `time.monotonic`.

>>> readings = iter([10.0, 7.0, 11.0])
>>> clock = MonotoneClock(lambda: next(readings), last=9.0)
>>> clock(), clock(), clock()
(10.0, 10.0, 11.0)
"""

from __future__ import annotations

import logging
from collections.abc import Callable

TOLERATED_SECONDS = 5.0
"""Clocks are set right by less than this all the time: no reason to warn."""

log = logging.getLogger("ebrank.service")


class MonotoneClock:
    """Returns the latest time seen so far.

    Attributes:
        last: what it returned last.
    """

    def __init__(self, clock: Callable[[], float], last: float = 0.0) -> None:
        self._clock = clock
        self.last = last
        self._told = False

    def __call__(self) -> float:
        """Return the time in seconds since 1970, never less than before; warn if it stands still.

        A clock that has caught up and falls behind again is told again.
        """
        reading = self._clock()
        self.last = max(self.last, reading)
        behind = self.last - reading
        if behind > TOLERATED_SECONDS and not self._told:
            log.warning(
                "the clock is %.0f s behind the log, whose times stand still until it catches up. "
                "Check the machine's clock",
                behind,
            )
        self._told = behind > TOLERATED_SECONDS
        return self.last

    @property
    def lag(self) -> float:
        """How many seconds the machine's clock is behind the log; 0 if it is right."""
        return max(self.last - self._clock(), 0.0)
