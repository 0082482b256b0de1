"""What the dashboard shows about all queries, at a bounded cost.

Sums of minutes are read from the store. Figures about items are computed over a bounded number of
recently used queries, and cached for some seconds. The loop gets a turn between queries.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import ebrank
from ebrank.evaluation.survival import kaplan_meier
from ebrank.service import api
from ebrank.service.core.lists import ScoredCandidates, examined_clicks, scored
from ebrank.service.core.queries.cache import Queries
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.insight.activity import Activity, quantile
from ebrank.service.insight.query_report import buried, places_in
from ebrank.service.learning.models import Model
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.records import Minute, StoreSize
from ebrank.typing import Floats, Ints

MOST_QUERIES = 500
MOST_LISTED = 20
MOST_STEPS = 200
BINS = 10
HOUR = 3600.0
WIDTHS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Spans that sums are added up over: a chart has room for some."""
MOST_BUCKETS = 170
KEPT_SECONDS = 30.0
"""How long sums of more than an hour are cached."""
SIZE_SECONDS = 10.0
"""How long the size of the store is cached."""


@dataclass
class Survey:
    """What a look at the items of some queries found.

    Attributes:
        predicted: prior mean of the items that were shown.
        clicks, exposure: their c and E, each divided by E + α + β.
        waits: seconds until the first impression, NaN while waiting; with how long it was watched.
        earned: the same until the first place in a list that relevance alone gave it.
        found: items that exploration showed first and that stand in the top k by relevance.
        coverage: queries, candidates, those shown, those clicked, and those that are new.
    """

    predicted: list[Floats] = field(default_factory=list)
    clicks: list[Floats] = field(default_factory=list)
    exposure: list[Floats] = field(default_factory=list)
    waits: list[Floats] = field(default_factory=list)
    earned: list[Floats] = field(default_factory=list)
    buried: list[api.BuriedItem] = field(default_factory=list)
    found: list[api.FoundItem] = field(default_factory=list)
    top_queries: list[api.TopQuery] = field(default_factory=list)
    coverage: Ints = field(default_factory=lambda: np.zeros(5, np.int64))

    def look(self, live: LiveQuery, model: Model, k: int, now: float, new_seconds: float) -> None:
        """Take in one query."""
        candidates, state = scored(live, model), live.state
        rows = candidates.rows
        ranks = places_in(candidates.relevance_order)
        sums, (alpha, beta) = candidates.known.sums, candidates.known.prior_beta
        seen = sums.exposure > 0
        self.predicted.append(candidates.known.prior_mean[seen])
        evidence = sums.exposure + alpha + beta
        self.clicks.append((sums.clicks / evidence)[seen])
        self.exposure.append((sums.exposure / evidence)[seen])
        age = now - state.entered[rows]
        self.waits.append(np.stack([state.first_shown[rows] - state.entered[rows], age]))
        watched = rows[state.entered[rows] >= live.since]
        self.earned.append(np.stack([live.earned[watched], now - state.entered[watched]]))
        self.buried += _buried(live, candidates, ranks, k)
        clicks = examined_clicks(candidates.known.behavior, candidates.known.examination)
        self.found += _found(live, candidates, ranks, clicks, k)
        shown = sums.shown.astype(np.int64)
        self.coverage += (1, len(rows), seen.sum(), (clicks > 0).sum(), (age < new_seconds).sum())
        self.top_queries.append(
            api.TopQuery(
                query=live.state.query,
                candidates=len(rows),
                lists=live.lists,
                shown=int(shown.sum()),
                clicks=int(clicks.sum()),
            )
        )

    def settle(self) -> None:
        """Keep the most telling of what was found."""
        self.buried.sort(key=lambda item: -item.prior / (1.0 + item.exposure))
        self.found.sort(key=lambda item: (-item.entered, item.query, item.item))
        self.top_queries.sort(key=lambda query: (-query.lists, query.query))
        for listed in (self.buried, self.found, self.top_queries):
            del listed[MOST_LISTED:]


class Sums:
    """The sums of some hours, over spans that give a chart a hundred points or two."""

    def __init__(self, settings: Settings, activity: Activity, timer: Callable[[], float]) -> None:
        self._shortest = settings.insights.bucket_seconds
        self._activity = activity
        self._timer = timer
        self._kept: dict[int, tuple[float, list[Minute]]] = {}

    async def over(self, hours: int, now: float, first: float | None) -> tuple[float, list[Minute]]:
        """Return the width of a span, and the sums of those since the first item, in order.

        Many hours take long to add up: such sums are kept for a while.
        """
        width = self._width(hours, now - (now if first is None else first))
        until, minutes = self._kept.get(hours, (-math.inf, []))
        if self._timer() >= until:
            since = now - hours * HOUR
            minutes = await self._activity.sums(math.ceil(since / width) * width, width)
            self._kept[hours] = self._timer() + (KEPT_SECONDS if hours > 1 else 0.0), minutes
        return width, minutes

    def _width(self, hours: int, age: float) -> float:
        span = min(max(age, 0.0), hours * HOUR) if hours == 1 else hours * HOUR
        wide = [one for one in WIDTHS if one >= self._shortest and span <= one * MOST_BUCKETS]
        return wide[0] if wide else WIDTHS[-1]


class Surveyor:
    """Looks at the most recently used queries now and then."""

    def __init__(self, settings: Settings, queries: Queries, timer: Callable[[], float]) -> None:
        self._k = settings.ranking.k
        self._seconds = settings.insights.refresh_seconds
        self._new_seconds = settings.insights.new_seconds
        self._queries = queries
        self._timer = timer
        self._last: tuple[float, Survey] | None = None

    async def survey(self, model: Model, now: float) -> Survey:
        """Return a look at these queries: the last one, unless it is too old."""
        if self._last is None or self._timer() - self._last[0] > self._seconds:
            found = Survey()
            for live in self._queries.recent(MOST_QUERIES):
                found.look(live, model, self._k, now, self._new_seconds)
                await asyncio.sleep(0)
            found.settle()
            self._last = self._timer(), found
        return self._last[1]


class System:
    """The server itself, for the engineer on call; it looks at the store now and then."""

    def __init__(self, store: Store, started: float, timer: Callable[[], float]) -> None:
        self._store = store
        self._started = started
        self._timer = timer
        self._looked = -math.inf
        self._size: StoreSize | None = None

    async def out(self, model: Model) -> api.SystemOut:
        """Return its version and policy, since when it runs, and the room on its disk."""
        if self._timer() - self._looked > SIZE_SECONDS:
            self._looked, self._size = self._timer(), await self._store.size()
        size = self._size
        return api.SystemOut(
            version=ebrank.__version__,
            policy=str(model.ranker.policy),
            started=self._started,
            store_bytes=None if size is None else size.used,
            free_bytes=None if size is None else size.free,
            log_entries=None if size is None else size.entries,
        )


def waiting(pairs: Sequence[Floats]) -> api.WaitingCurve:
    """Return Kaplan and Meier's curve of waits; each pair is (waits, watched), in seconds."""
    waits, watched = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0))
    happened = ~np.isnan(waits)
    whole = np.where(happened, np.maximum(waits, 0.0), -1.0).astype(np.int64)
    curve = kaplan_meier(whole, np.maximum(watched.astype(np.int64), whole))
    steps = np.unique(np.linspace(0, max(len(curve.x) - 1, 0), MOST_STEPS).astype(np.int64))
    steps = steps[: len(curve.x)]
    return api.WaitingCurve(
        items=len(waits),
        happened=int(happened.sum()),
        median=None if curve.median is None else float(curve.median),
        seconds=curve.x[steps].astype(float).tolist(),
        still_waiting=(1.0 - curve.share[steps]).tolist(),
    )


def calibration(found: Survey) -> list[api.CalibrationBin]:
    """Return items in bins of about equal size by what the prior predicts of them.

    Observed is the click rate Σwc/ΣwE with w = 1/(E + α + β). If c is Beta-binomial with mean E·m,
    these weights give the estimate of m that varies least. Without them good items, which are shown
    most, would dominate their bin.
    """
    if not found.predicted:
        return []
    predicted, clicks, exposure = (
        np.concatenate(parts) for parts in (found.predicted, found.clicks, found.exposure)
    )
    order = np.argsort(predicted, kind="stable")
    bins = [part for part in np.array_split(order, BINS) if len(part)]
    return [
        api.CalibrationBin(
            predicted=float(predicted[part].mean()),
            observed=float(clicks[part].sum() / exposure[part].sum()),
            rows=len(part),
        )
        for part in bins
    ]


def bucket_out(minute: Minute) -> api.BucketOut:
    """Return the sums of a span as the dashboard reads them."""

    def total(name: str) -> float:
        return minute.values.get(name, 0.0)

    return api.BucketOut(
        start=minute.start,
        rankings=int(total("rankings")),
        shown=int(total("shown")),
        clicks=int(total("clicks")),
        events=int(total("events")),
        duplicate=int(total("duplicate")),
        rejected=int(total("rejected")),
        refused=int(total("refused")),
        failed=int(total("failed")),
        starts=int(total("starts")),
        found=int(total("found")),
        exposure_new=total("exposure_new"),
        exposure_old=total("exposure_old"),
        clicks_new=int(total("clicks_new")),
        clicks_old=int(total("clicks_old")),
        exploration_cost=total("exploration_cost"),
        explored=int(total("explored")),
        latency_p50_ms=quantile(minute.values, 0.5),
        latency_p99_ms=quantile(minute.values, 0.99),
    )


def shadow_out(minutes: Sequence[Minute]) -> api.ShadowOut:
    """Return how the caller's lists compare with EBRank's, over these minutes."""
    count = _total(minutes, "shadow_rankings")
    mean = {
        name: _total(minutes, f"shadow_{name}") / max(count, 1.0)
        for name in ("different", "overlap", "gain", "new", "served_new")
    }
    return api.ShadowOut(
        rankings=int(count),
        different=mean["different"],
        overlap=mean["overlap"],
        gain=mean["gain"],
        new_items=mean["new"],
        served_new_items=mean["served_new"],
    )


def exploration_out(minutes: Sequence[Minute]) -> api.ExplorationOut:
    """Return what exploration cost over these minutes, and what it found."""
    return api.ExplorationOut(
        cost=_total(minutes, "exploration_cost"),
        explored=int(_total(minutes, "explored")),
        found=int(_total(minutes, "found")),
    )


def feedback_out(
    minutes: Sequence[Minute], finer: Sequence[Minute], last: float | None
) -> api.FeedbackOut:
    """Return the outcome of feedback over these minutes.

    `last` is when this server accepted some. For other servers, and for the time before it started,
    only minutes are known; finer ones are more precise.
    """
    known = [one.start for one in (*minutes, *finer) if one.values.get("events")]
    last = max([*known, *([] if last is None else [last])], default=None)
    return api.FeedbackOut(
        accepted=int(_total(minutes, "events")),
        duplicate=int(_total(minutes, "duplicate")),
        rejected=_by_name(minutes, "rejected "),
        last=last,
    )


def routes_out(minutes: Sequence[Minute]) -> list[api.RouteOut]:
    """Return the responses of each route over these minutes, those with most failures first."""
    answers, refused, failed = (
        _by_name(minutes, kind) for kind in ("http ", "refused ", "failed ")
    )
    routes = [
        api.RouteOut(route, count, refused.get(route, 0), failed.get(route, 0))
        for route, count in answers.items()
    ]
    return sorted(routes, key=lambda one: (-one.failed, -one.refused, -one.answers, one.route))


def _by_name(minutes: Sequence[Minute], prefix: str) -> dict[str, int]:
    """Return the sums whose names begin with a prefix, by the rest of their names."""
    sums: Counter[str] = Counter()
    for minute in minutes:
        for name, value in minute.values.items():
            if name.startswith(prefix):
                sums[name.removeprefix(prefix)] += int(value)
    return dict(sorted(sums.items()))


def examination_out(model: Model, ranks: int) -> api.ExaminationOut:
    """Return how far down users look, as configured and as learned."""
    places = np.arange(1, ranks + 1)
    configured, curve = model.ranker.examination, model.ranker.curve
    return api.ExaminationOut(
        configured=configured(places).tolist(),
        learned=None if curve is configured else curve(places).tolist(),
    )


def bots_out(minutes: Sequence[Minute]) -> api.BotsOut:
    """Return what bots requested and did over these minutes."""
    return api.BotsOut(int(_total(minutes, "bot_lists")), int(_total(minutes, "bot_events")))


def _total(minutes: Sequence[Minute], name: str) -> float:
    return sum((minute.values.get(name, 0.0) for minute in minutes), 0.0)


def _found(
    live: LiveQuery, candidates: ScoredCandidates, ranks: Ints, clicks: Ints, k: int
) -> list[api.FoundItem]:
    places = np.flatnonzero(live.explored_first[candidates.rows] & (ranks <= k)).tolist()
    return [
        api.FoundItem(
            query=live.state.query,
            item=live.state.ids[candidates.rows[place]],
            relevance=float(candidates.known.relevance[place]),
            rank_by_relevance=int(ranks[place]),
            shown=int(candidates.known.sums.shown[place]),
            clicks=int(clicks[place]),
            entered=float(live.state.entered[candidates.rows[place]]),
        )
        for place in places
    ]


def _buried(
    live: LiveQuery, candidates: ScoredCandidates, ranks: Ints, k: int
) -> list[api.BuriedItem]:
    prior, sums = candidates.known.prior_mean, candidates.known.sums
    return [
        api.BuriedItem(
            query=live.state.query,
            item=live.state.ids[candidates.rows[place]],
            prior=float(prior[place]),
            relevance=float(candidates.known.relevance[place]),
            shown=int(sums.shown[place]),
            exposure=float(sums.exposure[place]),
            rank_by_relevance=int(ranks[place]),
        )
        for place in buried(candidates, k, most=3)
    ]
