"""How often a caller may ask: a bucket of tokens for each, filled at a steady rate.

A caller may ask `burst` times at once and `rate` times a second in the long run:

>>> times = iter([0.0, 0.0, 0.0, 0.5])
>>> limiter = Limiter(rate=2.0, burst=2, clock=lambda: next(times))
>>> [limiter.wait("shop") for _ in range(4)]
[0.0, 0.0, 0.5, 0.0]
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

MOST_CALLERS = 10_000
"""Buckets kept; whoever was not seen for longest is forgotten first."""


class Limiter:
    """Counts requests of each caller against a rate.

    A bucket is one number: the time at which it is full again. Each request moves it by 1/rate,
    and must not move it further than burst/rate ahead.
    """

    def __init__(
        self, rate: float, burst: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = 1.0 / rate if rate > 0 else 0.0
        self._room = burst * self._interval
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Count a request; return 0, or the seconds after which to ask again if it is too many."""
        if not self._interval:
            return 0.0  # a rate of zero is no limit
        now = self._clock()
        full_at = max(now, self._full_at.get(caller, now)) + self._interval
        excess = full_at - now - self._room
        if excess > 1e-9:
            return excess
        self._full_at[caller] = full_at
        self._full_at.move_to_end(caller)
        if len(self._full_at) > MOST_CALLERS:
            self._full_at.popitem(last=False)
        return 0.0
