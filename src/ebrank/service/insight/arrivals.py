"""Watches the newest items rise: their ranks over time, and those they would have by clicks alone.

An arrival is an item that enters a query which users have seen. Its rank is noted at ages that grow
by an eighth, a few dozen times in all: by the order that is served, by relevance alone, by features
alone, and by clicks alone. That order
sorts by C/n, clicks weighted by rank per impression, equal ones in the order in which they came. An
arrival learns there only from impressions that this order would have given it: until it stands in
the top k by clicks alone, what users did with it does not count.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from ebrank.service import api
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.resources import Resources
from ebrank.service.insight.survey import places_in
from ebrank.service.serving.draft import ScoredCandidates, scored
from ebrank.typing import Ints

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
        seen: its ranks at the ages at which it was looked at, as the dashboard shows them.
        row: its row in its query.
        counted: its weighted clicks and impressions when it was last looked at.
        learned: those of them that clicks alone would have learned.
    """

    seen: api.Arrival
    row: int
    counted: tuple[float, float] = (0.0, 0.0)
    learned: tuple[float, float] = (0.0, 0.0)
    listed_by_clicks: bool = False
    next_age: float = 0.0

    def count(self, clicks: float, shown: float) -> None:
        """Take its counts as they are now; what is more counts if clicks alone listed it."""
        if self.listed_by_clicks:
            more = clicks - self.counted[0], shown - self.counted[1]
            clicks_more, shown_more = self.learned[0] + more[0], self.learned[1] + more[1]
            self.learned = max(clicks_more, 0.0), max(shown_more, 0.0)
        self.counted = clicks, shown

    def note(self, age: float, period: float, ranks: Sequence[int], k: int) -> None:
        """Record its ranks at an age: as served, by clicks, by features, by relevance."""
        seen = self.seen
        orders = seen.ranks, seen.ranks_by_clicks, seen.ranks_by_features, seen.ranks_by_relevance
        seen.seconds.append(round(age, 1))
        for order, rank in zip(orders, ranks, strict=True):
            order.append(rank)
        by_clicks, by_features, by_relevance = (held(seen.seconds, o, k) for o in orders[1:])
        self.seen = structs.replace(
            seen,
            holds=by_relevance,
            holds_by_clicks=by_clicks,
            holds_by_features=by_features,
        )
        self.next_age = max(age + 0.9 * period, GROWTH * age)


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
        self._looking = False

    def out(self) -> list[api.Arrival]:
        """Return the watched items, oldest first."""
        return [structs.replace(item.seen) for item in self._watched if item.seen.seconds]

    async def look(self) -> None:
        """Watch items that have arrived since the last look, and record ranks of watched ones."""
        if self._looking:
            return
        self._looking = True
        now = self._resources.clock()
        try:
            recent = self._resources.queries.recent(MOST_QUERIES)
            for live in recent:
                self._admit(live, now)
            self._looked = now
            due: dict[str, list[WatchedItem]] = {}
            for arrival in self._watched:
                due.setdefault(arrival.seen.query, []).append(arrival)
            for live in recent:
                arrivals = [item for item in due.get(live.state.query, []) if _present(live, item)]
                if any(self._is_due(arrival, now) for arrival in arrivals):
                    self._note(live, arrivals, now)
                    await asyncio.sleep(0)
        finally:
            self._looking = False

    def _is_due(self, arrival: WatchedItem, now: float) -> bool:
        return arrival.next_age <= now - arrival.seen.entered <= self._window

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
        first_shown = live.state.first_shown
        first = np.nanmin(first_shown) if not np.isnan(first_shown).all() else math.inf
        arrived = (entered > since) & (entered > first) & live.active
        watched = {(item.seen.query, item.row) for item in self._watched}
        for row in np.flatnonzero(arrived)[-MOST_WATCHED:].tolist():
            if (live.state.query, row) in watched:
                continue
            if len(self._watched) >= MOST_WATCHED:
                if now - self._admitted < self._window / MOST_WATCHED:
                    return
                del self._watched[0]
            self._admitted = now
            came = live.state.query, live.ids[row], float(entered[row])
            self._watched.append(WatchedItem(api.Arrival(*came, [], [], [], [], []), row))

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
        ranks = places_in(candidates.order)
        by_relevance = places_in(candidates.relevance_order)
        places = np.searchsorted(candidates.rows, [item.row for item in arrivals]).tolist()
        by_clicks = _ranks_by_clicks(candidates, arrivals, places)
        features = candidates.details.prior_mean - candidates.details.prior_change
        by_features = places_in(np.argsort(-features, kind="stable"))
        for arrival, place in zip(arrivals, places, strict=True):
            arrival.listed_by_clicks = bool(by_clicks[place] <= k)
            if self._is_due(arrival, now):
                orders = ranks, by_clicks, by_features, by_relevance
                own = [int(order[place]) for order in orders]
                arrival.note(now - arrival.seen.entered, self.period, own, k)


def held(ages: Sequence[float], ranks: Sequence[int], k: int) -> bool:
    """Return whether all ranks in the second half of an item's age are in the top k.

    >>> held([1.0, 4.0, 8.0], [20, 3, 5], 10), held([1.0, 4.0, 8.0], [2, 12, 5], 10)
    (True, False)
    """
    return all(rank <= k for age, rank in zip(ages, ranks, strict=True) if age >= ages[-1] / 2)


def _present(live: LiveQuery, arrival: WatchedItem) -> bool:
    """Return whether an item is still the one that was watched, and a candidate."""
    row = arrival.row
    return row < len(live) and live.lists_row(row) and live.ids[row] == arrival.seen.item


def _ranks_by_clicks(
    candidates: ScoredCandidates, arrivals: list[WatchedItem], places: list[int]
) -> Ints:
    """Return the rank of each candidate by clicks alone, as far as that order would know them."""
    sums = candidates.details.sums
    clicks, shown = sums.weighted_clicks.copy(), sums.shown.astype(np.float64)
    for arrival, place in zip(arrivals, places, strict=True):
        arrival.count(float(clicks[place]), float(shown[place]))
        clicks[place], shown[place] = arrival.learned
    return places_in(np.argsort(-clicks / np.maximum(shown, 1.0), kind="stable"))
