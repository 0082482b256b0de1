"""Counts what the dashboard shows, as it happens: totals, and sums over short spans.

A span is a minute, or `insights.bucket_seconds`. Totals and sums are added to the store's every few
seconds; a crash loses the last of them. The counters that rank items are never lost: they do not
pass through here. Response times are counted in classes that grow by a quarter, so that sums of
spans still give quantiles:

>>> round(quantile({latency_class(0.004): 3.0, latency_class(5.0): 1.0}, 0.5), 1)
4.0
"""

from __future__ import annotations

import asyncio
import bisect
import json
from collections import Counter
from collections.abc import Mapping

import numpy as np

from ebrank.service import api
from ebrank.service.core.background import Sums, Unsaved
from ebrank.service.core.experiments import ArmCell
from ebrank.service.core.fleet import Fleet
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.resources import Resources
from ebrank.service.serving.lists import Listing, Logged
from ebrank.service.store import counting
from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import Change
from ebrank.service.store.records import ArmSums, Minute, RankingEntry

TOTALS = "totals"

_GROWTH = 1.25
_FIRST = 0.05  # milliseconds; anything faster is in the first class
_CLASSES = 64

_UNWATCHED = {"", "/", "/dashboard/{file}", "/docs", "/healthz", "/metrics", "/v1/insights"}
"""Routes whose successes are not worth counting: pages, probes, and the dashboard's own calls."""
_READY = "/readyz"
"""A route whose 503 is an answer: the server starts, closes, or has a failing store."""

_CLASS_NAMES = [f"ms{place}" for place in range(_CLASSES)]
_EDGES = [_FIRST * _GROWTH**power for power in range(_CLASSES)]


class Activity:
    """Counts lists, events and items; the `Watcher` of the core.

    Attributes:
        own: what this server has counted since it started, by the names of `api.Totals`.
    """

    def __init__(self, resources: Resources, fleet: Fleet) -> None:
        self._fleet = fleet
        self._store = resources.store
        self._examination = resources.examination
        self._new_seconds = resources.settings.insights.new_seconds
        self.arms = Unsaved[ArmCell]()
        self._spans = Unsaved[float]()
        self._width = resources.settings.insights.bucket_seconds
        self._totals: dict[str, int] = json.loads(resources.meta.get(TOTALS, "{}"))
        self.own = Counter[str]()
        self._saved = Counter[str]()  # of them
        self._saving = asyncio.Lock()
        self.last_event: float | None = None

    @property
    def totals(self) -> api.Totals:
        """Totals of all servers since the store was made, as last saved."""
        return api.Totals(**{name: self._total(name) for name in api.Totals.__struct_fields__})

    @property
    def events(self) -> int:
        """How many events were accepted since the store was made."""
        return self._total("events")

    def _total(self, name: str) -> int:
        return self._totals.get(name, 0) + self.own[name] - self._saved[name]

    def items(self, *, items: int, queries: int) -> None:
        """Count new items and queries."""
        self.own.update(items=items, queries=queries)

    def logged(self, logged: Logged) -> None:
        """Count a list or an event."""
        live, change, draft = logged.live, logged.change, logged.draft
        sums = self._at(change.time)
        if draft is None:
            self._event(live, change, sums)
        else:
            self._list(live, draft.entry, draft.served, sums)
        if change.shown:
            new = live.state.entered[change.shown] > change.time - self._new_seconds
            p = self._examination[np.array(change.ranks) - 1]
            sums["shown"] += len(new)
            sums["exposure_new"] += float(p @ new)
            sums["exposure_old"] += float(p @ ~new)

    def _list(self, live: LiveQuery, entry: RankingEntry, served: Listing, sums: Sums) -> None:
        """Count a list, and what it explores; earlier lists of the window did the rest."""
        self.own["rankings"] += 1
        sums["rankings"] += 1.0
        filled = sum(counting.fresh(entry, entry.explored))
        if filled:
            unseen = np.isnan(live.state.first_shown[served.rows])
            live.explored_first[served.rows] |= unseen & served.explored
        self._discoveries(live, served, entry.time)
        sums["exploration_cost"] += 0.0 if entry.seen and entry.refresh else served.cost
        sums["explored"] += filled

    def _discoveries(self, live: LiveQuery, served: Listing, time: float) -> None:
        """Note which items are listed for their relevance for the first time."""
        waiting = np.isnan(live.found_after[served.rows])
        if not np.count_nonzero(waiting):
            return
        deserved = served.rows[~served.explored & waiting]
        live.found_after[deserved] = time - live.state.entered[deserved]
        discoveries = int(np.count_nonzero(live.explored_first[deserved]))
        if discoveries:
            self.own["found"] += discoveries
            self._at(time)["found"] += discoveries

    def _event(self, live: LiveQuery, change: Change, sums: Sums) -> None:
        """Count an event; the first behavior on an impression is its click."""
        self.own["events"] += 1
        sums["events"] += 1.0
        if change.clicks:
            new = live.state.entered.item(change.rows[0]) > change.time - self._new_seconds
            self.own["clicks"] += change.clicks
            sums["clicks_new" if new else "clicks_old"] += change.clicks
        self.last_event = change.time

    def not_counted(self, time: float, status: str, reason: str) -> None:
        """Count an event that was a duplicate, or rejected for a reason that begins with a code."""
        sums = self._at(time)
        sums[status] += 1.0
        if status == "rejected":
            sums[f"rejected {reason.partition(':')[0]}"] += 1.0

    def answered(self, time: float, route: str, status: int) -> None:
        """Count a response of a route."""
        if route == _READY or (status < 400 and route in _UNWATCHED):
            return
        sums = self._at(time)
        sums[f"http {route}"] += 1.0
        if status >= 400:
            kind = "failed" if status >= 500 else "refused"
            sums[kind] += 1.0
            sums[f"{kind} {route}"] += 1.0

    def started(self, time: float) -> None:
        """Count a start of a server."""
        self._at(time)["starts"] += 1.0

    def latency(self, time: float, seconds: float) -> None:
        """Count a response time."""
        self._at(time)[latency_class(seconds)] += 1.0

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums over spans of some seconds since a time."""
        await self.save()
        return await self._store.meta.sums(since, width)

    async def save(self) -> None:
        """Save what the store does not have yet; keep what it does not accept."""
        async with self._saving:
            spans, arms, own = self._spans.taken(), self.arms.taken(), self.own.copy()
            if not (spans or own != self._saved or self._fleet.size > 1):
                return
            unsaved = {name: count - self._saved[name] for name, count in own.items()}
            try:
                self._totals = await self._store.meta.add(
                    TOTALS,
                    unsaved,
                    [Minute(start, dict(sums)) for start, sums in sorted(spans.items())],
                    [arm_sums(cell, sums) for cell, sums in arms.items()],
                )
            except StoreError:
                self._spans.put_back(spans)
                self.arms.put_back(arms)
                raise
            except asyncio.CancelledError:  # they may be stored all the same
                self._saved = own
                raise
            self._saved = own

    def _at(self, time: float) -> Sums:
        """Return the sums of the span of a time, to add to."""
        return self._spans.of(time // self._width * self._width)


def arm_sums(cell: ArmCell, sums: Sums) -> ArmSums:
    """Return the sums of a cell as the store has them."""
    lists, clicks, found = (int(sums[name]) for name in ("lists", "clicks", "found"))
    return ArmSums(*cell, lists, clicks, sums["outcome"], found)


def latency_class(seconds: float) -> str:
    """Return the name of the class of a response time."""
    place = min(bisect.bisect_left(_EDGES, seconds * 1000.0), _CLASSES - 1)
    return _CLASS_NAMES[place]


def quantile(values: Mapping[str, float], share: float) -> float | None:
    """Return the response time in ms that this share of a minute's responses did not exceed."""
    counts = [values.get(name, 0.0) for name in _CLASS_NAMES]
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
