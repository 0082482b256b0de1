"""What the dashboard shows about all queries.

Sums of minutes are read from the store; figures about items come from a survey.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

import ebrank
from ebrank.service import api
from ebrank.service.core.fleet import Fleet
from ebrank.service.core.items import FIRST_ITEM
from ebrank.service.core.queries.cache import Queries
from ebrank.service.insight.activity import Activity, quantile
from ebrank.service.insight.arrivals import Arrivals
from ebrank.service.insight.survey import Surveyor, calibration, waiting
from ebrank.service.learning.models import Model
from ebrank.service.learning.training import Training
from ebrank.service.learning.versions import ModelVersions
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store
from ebrank.service.store.records import Minute, StoreSize

HOUR = 3600.0
WIDTHS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Spans that sums are added up over: a chart has room for some."""
MOST_BUCKETS = 170
KEPT_SECONDS = 30.0
"""How long sums of more than an hour are cached."""
SIZE_SECONDS = 10.0
"""How long the size of the store is cached."""
MOST_SHOWN = 20
"""Versions of the prior that the dashboard requests again and again."""


class Overview:
    """Puts together what the dashboard shows."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        queries: Queries,
        activity: Activity,
        arrivals: Arrivals,
        versions: ModelVersions,
        training: Training,
        fleet: Fleet,
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        self._store = store
        self._settings = settings
        self._activity = activity
        self._arrivals = arrivals
        self._versions = versions
        self._training = training
        self._fleet = fleet
        self._clock = clock
        self._system = System(store, clock(), timer)
        self._sums = Sums(settings, activity, timer)
        self._surveyor = Surveyor(settings, queries, timer)

    async def insights(self, hours: int) -> api.Insights:
        """Return it, with sums of some hours."""
        now, k = self._clock(), self._settings.ranking.k
        first = await self._store.meta.get(FIRST_ITEM)
        first_item = None if first is None else float(first)
        width, minutes = await self._sums.over(hours, now, first_item)
        finer = minutes if hours == 1 else (await self._sums.over(1, now, first_item))[1]
        found = await self._surveyor.survey(self._versions.model, now)
        await self._arrivals.look(self._versions.model, self._clock())
        training = self._training.out()
        shadow = self._settings.ranking.mode == "shadow"
        return api.Insights(
            now=now,
            model=self._versions.model.version,
            mode=self._settings.ranking.mode,
            k=k,
            new_seconds=self._settings.insights.new_seconds,
            first_item=first_item,
            demo=self._settings.insights.demo,
            hours=hours,
            bucket_seconds=width,
            totals=self._activity.totals,
            buckets=[bucket_out(minute) for minute in minutes],
            feedback=feedback_out(minutes, finer, self._activity.last_event),
            routes=routes_out(minutes),
            system=await self._system.out(self._versions.model),
            arrivals=self._arrivals.out(),
            waiting=api.WaitingTimes(waiting(found.waits), waiting(found.earned)),
            buried=found.buried,
            found=found.found,
            top_queries=found.top_queries,
            coverage=api.Coverage(*found.coverage.tolist()),
            examination=examination_out(self._versions.model, k),
            exploration=exploration_out(minutes),
            calibration=calibration(found),
            models=await self._versions.out(MOST_SHOWN),
            training=training,
            prior=await self._versions.prior(training, self._training.failing_since),
            bots=bots_out(minutes),
            servers=await self._fleet.servers(),
            shadow=shadow_out(minutes) if shadow else None,
        )


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
