"""How many lists of a query to plan for.

>>> from ebrank.service.store.memory import MemoryStore
>>> queries = Queries(MemoryStore(), seed=0)
>>> new = queries.empty("tea", (), now=0.0)
>>> Pace(queries, period=86400.0, k=10).expected_lists(new, now=60.0)  # when nothing is known yet
100.0
"""

from __future__ import annotations

import math

from ebrank.composition import LISTS_AHEAD, USUAL_LISTS
from ebrank.evidence.forgetting import HalfLife
from ebrank.service.core.queries.cache import Queries
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.learning.models import Model

KNOWN = 10.0
"""After this many lists a query's own rate counts as much as that of all."""
PACE_SECONDS, MOST_PACED = 10.0, 256
"""How often, and from how many queries, the rate of all is computed."""


class Pace:
    """The rate at which lists of a query are requested, from its past and that of others."""

    def __init__(
        self, queries: Queries, period: float, k: int, half_life: HalfLife | None = None
    ) -> None:
        """Take for how many seconds to plan at most, and how long lists are."""
        self._queries = queries
        self._period = period
        self._k = k
        self._half_life = half_life
        self._usual = 0.0, 0.0, 0.0
        self._usual_until = -math.inf

    def planned(self, live: LiveQuery, model: Model, now: float) -> float | None:
        """Return how many lists of a query to plan for; None if the model's policy has no plans."""
        return self.expected_lists(live, now) if model.ranker.policy.plans else None

    def expected_lists(self, live: LiveQuery, now: float) -> float:
        """Return how many lists of a query to plan for: those in which its items matter.

        We assume that its rate stays the same, and plan no further ahead than its past reaches
        back. The rate of a query with little history is shrunk towards that of all: a Gamma prior
        worth `KNOWN` lists. If new items keep coming, what we learn decides who is last in the list
        until the next new item takes that place. Of M candidates k are listed, and so is one
        arrival in M/k. Each of the two ends has its own rate; the rates add up.
        """
        if now >= self._usual_until:
            self._usual, self._usual_until = self._of_all(now), now + PACE_SECONDS
        lists, age, past = self._usual
        own, expected = live.lists, USUAL_LISTS
        since = live.age(now)
        remembered = self._remembered(since)
        if lists > 0.0 and age > 0.0:
            rate = (KNOWN + own) / (KNOWN * age / lists + remembered)
            expected = max(rate * min(self._period, max(since, past)), USUAL_LISTS)
        arrivals = live.arrivals * (remembered / since if since else 1.0)
        candidates = max(len(live.candidates), 1)
        renewal = arrivals / max(own, 1) * min(self._k / candidates, 1.0)
        return 1.0 / (1.0 / expected + LISTS_AHEAD * renewal)

    def _of_all(self, now: float) -> tuple[float, float, float]:
        """Return the sums of the lists and ages of queries in memory, and the mean age."""
        some = self._queries.recent(MOST_PACED)
        ages = [live.age(now) for live in some]
        total = sum(map(self._remembered, ages))
        return float(sum(live.lists for live in some)), total, sum(ages) / max(len(some), 1)

    def _remembered(self, seconds: float) -> float:
        """Return how many of these seconds a query's counters still cover."""
        return seconds if self._half_life is None else self._half_life.remembered(seconds)
