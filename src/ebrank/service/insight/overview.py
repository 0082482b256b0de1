"""What the dashboard shows about all queries.

Timeline of minutes are read from the store; figures about items come from a survey.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import fields

import ebrank
from ebrank.service import api
from ebrank.service.core.items import FIRST_ITEM
from ebrank.service.core.models import Model
from ebrank.service.core.resources import Resources
from ebrank.service.insight.activity import Activity, quantile
from ebrank.service.insight.arrivals import Arrivals
from ebrank.service.insight.survey import Surveyor, calibration, waiting
from ebrank.service.serving.stages.budget import Budget
from ebrank.service.settings import Settings
from ebrank.service.store.records import Minute, StoreSize

HOUR = 3600.0
WIDTHS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0)
"""Widths of a chart's bins, in seconds; the chart shows a hundred or two of them."""
MOST_BUCKETS = 170
KEPT_SECONDS = 30.0
"""How long sums of more than an hour are cached."""
_SUMS = {each.name: each.type for each in fields(api.BucketOut) if each.type in (int, float)}
"""Sums of a span that the dashboard shows as they are, with their types."""


class Overview:
    """Puts together what the dashboard shows."""

    def __init__(
        self, resources: Resources, activity: Activity, arrivals: Arrivals, budget: Budget
    ) -> None:
        self._resources, self._budget = resources, budget
        self._activity = activity
        self._arrivals = arrivals
        self._started = resources.clock()
        self._sums = Timeline(resources.settings, activity, resources.timer)
        self._surveyor = Surveyor(resources)

    async def insights(
        self,
        hours: int,
        servers: list[api.ServerOut],
        models: list[api.ModelOut],
        training: api.TrainingOut,
        prior: api.PriorOut,
        experiment: api.ExperimentOut | None,
        size: StoreSize | None,
    ) -> api.Insights:
        """Return it, with sums of some hours, given what the engine knows."""
        now, settings = self._resources.clock(), self._resources.settings
        model, k = self._resources.active.model, settings.ranking.k
        first = await self._resources.store.meta.get(FIRST_ITEM)
        first_item = None if first is None else float(first)
        width, minutes = await self._sums.over(hours, now, first_item)
        finer = minutes if hours == 1 else (await self._sums.over(1, now, first_item))[1]
        sums = summed(minutes)
        survey = await self._surveyor.survey(now)
        await self._arrivals.look()
        return api.Insights(
            now=now,
            model=model.version,
            k=k,
            new_seconds=settings.insights.new_seconds,
            first_item=first_item,
            demo=settings.insights.demo,
            hours=hours,
            bucket_seconds=width,
            totals=self._activity.totals,
            buckets=buckets_out(minutes),
            feedback=api.FeedbackOut(
                accepted=int(sums["events"]),
                duplicate=int(sums["duplicate"]),
                rejected=by_name(sums, "rejected "),
                last=last_event((*minutes, *finer), self._activity.last_event),
            ),
            routes=routes_out(sums),
            system=api.SystemOut(
                version=ebrank.__version__,
                policy=str(model.ranker.policy),
                started=self._started,
                store_bytes=size and size.used,
                free_bytes=size and size.free,
                log_entries=size and size.entries,
            ),
            arrivals=self._arrivals.out(),
            waiting=api.WaitingTimes(waiting(survey.waits), waiting(survey.found_after)),
            buried=survey.buried,
            found=survey.found,
            top_queries=survey.top_queries,
            coverage=api.Coverage(*survey.coverage.tolist()),
            examination=examination_out(model, k),
            exploration=api.ExplorationOut(
                sums["exploration_cost"], int(sums["explored"]), int(sums["found"])
            ),
            calibration=calibration(survey),
            features=survey.trusted,
            models=models,
            training=training,
            prior=prior,
            servers=servers,
            experiment=experiment,
            budget=self._budget.out() if self._budget.limited else None,
        )


class Timeline:
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
        wide = next((w for w in WIDTHS if span <= w * MOST_BUCKETS), WIDTHS[-1])
        # Whole spans of the store: with parts of them, a steady rate would zigzag.
        return self._shortest * math.ceil(wide / self._shortest)


def buckets_out(minutes: Sequence[Minute]) -> list[api.BucketOut]:
    """Return the sums of spans as the dashboard reads them.

    A click is taken back in a later span, perhaps in one without clicks: then it is subtracted from
    the spans before.
    """
    buckets, debts = list[api.BucketOut](), {"clicks_new": 0, "clicks_old": 0}
    for minute in reversed(minutes):
        values = minute.values
        sums: dict[str, Any] = {name: kind(values.get(name, 0.0)) for name, kind in _SUMS.items()}
        for name, debt in debts.items():
            left = sums[name] - debt
            sums[name], debts[name] = max(left, 0), max(-left, 0)
        sums |= {"start": minute.start, "clicks": sums["clicks_new"] + sums["clicks_old"]}
        sums |= {"latency_p50_ms": quantile(values, 0.5), "latency_p99_ms": quantile(values, 0.99)}
        buckets.append(api.BucketOut(**sums))
    return buckets[::-1]


def summed(minutes: Iterable[Minute]) -> Mapping[str, float]:
    """Return the sums over all minutes, 0 for what did not happen."""
    sums = defaultdict[str, float](float)
    for minute in minutes:
        for name, value in minute.values.items():
            sums[name] += value
    return sums


def by_name(sums: Mapping[str, float], prefix: str) -> dict[str, int]:
    """Return the sums whose names begin with a prefix, by the rest of their names."""
    named = ((name.removeprefix(prefix), name) for name in sorted(sums) if name.startswith(prefix))
    return {rest: int(sums[name]) for rest, name in named}


def last_event(minutes: Iterable[Minute], here: float | None) -> float | None:
    """Return when the last event was accepted; `here` is when this server accepted its last one.

    For other servers, and for the time before it started, only minutes are known.
    """
    starts = [minute.start for minute in minutes if minute.values.get("events")]
    return max([*starts, *([] if here is None else [here])], default=None)


def routes_out(sums: Mapping[str, float]) -> list[api.RouteOut]:
    """Return the responses of each route, those with most failures first."""
    answers, refused, failed = (by_name(sums, kind) for kind in ("http ", "refused ", "failed "))
    routes = [
        api.RouteOut(route, count, refused.get(route, 0), failed.get(route, 0))
        for route, count in answers.items()
    ]
    return sorted(routes, key=lambda out: (-out.failed, -out.refused, -out.answers, out.route))


def examination_out(model: Model, ranks: int) -> api.ExaminationOut:
    """Return how far down users look, as configured and as learned."""
    places = np.arange(1, ranks + 1)
    configured, curve = model.ranker.examination, model.ranker.curve
    return api.ExaminationOut(
        configured=configured(places).tolist(),
        learned=None if curve is configured else curve(places).tolist(),
    )
