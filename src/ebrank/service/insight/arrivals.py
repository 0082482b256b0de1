"""Watches the newest items rise: their ranks over time, and those they would have by clicks alone.

An arrival is an item that enters a query which users have seen. Its rank is noted at ages that grow
by an eighth, a few dozen times in all: by the order that is served, by clicks alone, by features
alone, and by relevance alone. The order by clicks sorts by C/n, clicks weighted by rank per
impression, equal ones in the order in which they came. An arrival learns there only from
impressions that this order would have given it: until it stands in the top k by clicks alone, what
users did with it does not count.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ebrank.service import api
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.resources import Resources
from ebrank.service.insight.survey import places_in
from ebrank.service.serving.lists import ScoredCandidates, scored
from ebrank.typing import Floats, Ints

MOST_QUERIES = 500
"""How many of the most recently used queries are searched for arrivals."""
MOST_WATCHED = 40
SHORTEST, LONGEST = 1.0, 5.0
"""Seconds between two looks, at least and at most."""
GROWTH = 1.125
"""Growth factor of the ages at which an item's rank is noted."""


@dataclass
class WatchedItem:
    """An item that is watched.

    Attributes:
        seconds: the ages at which its ranks were noted.
        ranks: its ranks then: as served, by clicks, by features and by relevance.
        counted: its weighted clicks and impressions when its query was last scored.
        learned: those of them that clicks alone would have learned.
    """

    query: str
    item: str
    row: int
    entered: float
    seconds: list[float] = field(default_factory=list)
    ranks: list[tuple[int, ...]] = field(default_factory=list)
    counted: Floats = field(default_factory=lambda: np.zeros(2))
    learned: Floats = field(default_factory=lambda: np.zeros(2))
    listed_by_clicks: bool = False
    next_age: float = 0.0

    def count(self, counts: Floats) -> None:
        """Take its counts as they are now; what is more counts if clicks alone listed it."""
        if self.listed_by_clicks:
            self.learned = np.maximum(self.learned + (counts - self.counted), 0.0)
        self.counted = counts

    def out(self, k: int) -> api.Arrival:
        """Return it as the dashboard shows it."""
        served, by_clicks, by_features, by_relevance = map(list, zip(*self.ranks, strict=True))
        orders = served, by_clicks, by_features, by_relevance
        holds = (held(self.seconds, ranks, k) for ranks in (by_relevance, by_clicks, by_features))
        return api.Arrival(self.query, self.item, self.entered, [*self.seconds], *orders, *holds)


class Arrivals:
    """The newest items of the most recently used queries.

    Attributes:
        period: seconds between two looks.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._settings = resources.settings.ranking
        self._window = resources.settings.insights.new_seconds
        self.period = min(max(self._window / 60.0, SHORTEST), LONGEST)
        self._watched: list[WatchedItem] = []
        self._looked = -math.inf
        self._admitted = -math.inf
        self._looking = asyncio.Lock()

    def out(self) -> list[api.Arrival]:
        """Return the watched items, oldest first."""
        return [item.out(self._settings.k) for item in self._watched if item.seconds]

    async def look(self) -> None:
        """Watch items that have arrived since the last look, and record ranks of watched ones."""
        if self._looking.locked():
            return
        now = self._resources.clock()
        async with self._looking:
            recent = self._resources.queries.recent(MOST_QUERIES)
            for live in recent:
                self._admit(live, now)
            self._looked = now
            due: dict[str, list[WatchedItem]] = {}
            for arrival in self._watched:
                due.setdefault(arrival.query, []).append(arrival)
            for live in recent:
                arrivals = [item for item in due.get(live.state.query, []) if _present(live, item)]
                if any(self._is_due(arrival, now) for arrival in arrivals):
                    self._note(live, arrivals, now)
                    await asyncio.sleep(0)

    def _is_due(self, arrival: WatchedItem, now: float) -> bool:
        return arrival.next_age <= now - arrival.entered <= self._window

    def _admit(self, live: LiveQuery, now: float) -> None:
        """Watch items that arrived in a query since the last look, up to the limit.

        There always is for one more after a share of the window, so that ages differ. In a query
        that was not in memory then, all that is new counts: it may be so after a restart.
        """
        entered, since = live.state.entered, self._looked
        if live.since > since:
            since = now - self._window
        if entered.max(initial=-math.inf) <= since:
            return
        first = np.fmin.reduce(live.state.first_shown, initial=math.inf)
        arrived = (entered > since) & (entered > first) & live.active
        watched = {(item.query, item.row) for item in self._watched}
        for row in np.flatnonzero(arrived)[-MOST_WATCHED:].tolist():
            if (live.state.query, row) in watched:
                continue
            if len(self._watched) >= MOST_WATCHED:
                if now - self._admitted < self._window / MOST_WATCHED:
                    return
                del self._watched[0]
            self._admitted = now
            came = live.state.query, live.ids[row], row, float(entered[row])
            self._watched.append(WatchedItem(*came))

    def _note(self, live: LiveQuery, arrivals: list[WatchedItem], now: float) -> None:
        """Record the ranks of a query's items that are due."""
        k, resources = self._settings.k, self._resources
        deployment = resources.active.deployment
        model = deployment.model
        candidates = scored(
            live,
            model,
            lists=resources.pace.planned(live, model, now),
            elsewhere=resources.sharing.elsewhere(live, model, deployment),
        )
        places = np.searchsorted(candidates.rows, [item.row for item in arrivals]).tolist()
        by_clicks = _by_clicks(candidates, arrivals, places)
        features = candidates.details.prior_mean - candidates.details.prior_change
        by_features = np.argsort(-features, kind="stable")
        orders = candidates.order, by_clicks, by_features, candidates.relevance_order
        ranks = np.stack([places_in(order) for order in orders])
        for arrival, place in zip(arrivals, places, strict=True):
            at_place = tuple(ranks[:, place].tolist())
            arrival.listed_by_clicks = at_place[1] <= k
            if self._is_due(arrival, now):
                age = now - arrival.entered
                arrival.seconds.append(round(age, 1))
                arrival.ranks.append(at_place)
                arrival.next_age = max(age + 0.9 * self.period, GROWTH * age)


def held(ages: Sequence[float], ranks: Sequence[int], k: int) -> bool:
    """Return whether all ranks in the second half of an item's age are in the top k.

    >>> held([1.0, 4.0, 8.0], [20, 3, 5], 10), held([1.0, 4.0, 8.0], [2, 12, 5], 10)
    (True, False)
    """
    return all(rank <= k for age, rank in zip(ages, ranks, strict=True) if age >= ages[-1] / 2)


def _present(live: LiveQuery, arrival: WatchedItem) -> bool:
    """Return whether an item is still the one that was watched, and a candidate."""
    row = arrival.row
    return row < len(live) and live.lists_row(row) and live.ids[row] == arrival.item


def _by_clicks(
    candidates: ScoredCandidates, arrivals: list[WatchedItem], places: list[int]
) -> Ints:
    """Return the order by clicks alone, as far as that order would know them."""
    sums = candidates.details.sums
    counts = np.stack([sums.weighted_clicks, sums.shown])
    for arrival, place in zip(arrivals, places, strict=True):
        arrival.count(counts[:, place].copy())
        counts[:, place] = arrival.learned
    clicks, shown = counts
    return np.argsort(-clicks / np.maximum(shown, 1.0), kind="stable")
