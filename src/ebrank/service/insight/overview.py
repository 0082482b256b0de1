"""What the dashboard shows of all queries, and what it may cost.

Sums of minutes are read from the store. What needs a look at items is computed over the queries
used last, a bounded number of them, and kept for some seconds. The loop gets a turn between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ebrank.evaluation.survival import kaplan_meier
from ebrank.service import api
from ebrank.service.core.lists import ScoredCandidates, scored
from ebrank.service.core.queries import LiveQuery, Queries
from ebrank.service.insight.activity import quantile
from ebrank.service.insight.query_report import buried, places_in
from ebrank.service.learning.models import Model
from ebrank.service.settings import Settings
from ebrank.service.store.records import Minute
from ebrank.typing import Floats

MOST_QUERIES = 500
MOST_BURIED = 20
MOST_STEPS = 200
BINS = 10


@dataclass
class Survey:
    """What a look at the items of some queries found.

    Attributes:
        predicted: prior mean of the items that were shown.
        clicks, exposure: their c and E, each divided by E + α + β.
        waits: seconds until the first impression, NaN while waiting; with how long it was watched.
        earned: the same until the first place in a list that relevance alone gave it.
        found: items that exploration showed first and that now stand in the top k by relevance.
    """

    predicted: list[Floats] = field(default_factory=list)
    clicks: list[Floats] = field(default_factory=list)
    exposure: list[Floats] = field(default_factory=list)
    waits: list[Floats] = field(default_factory=list)
    earned: list[Floats] = field(default_factory=list)
    buried: list[api.BuriedItem] = field(default_factory=list)
    found: int = 0

    def look(self, live: LiveQuery, model: Model, k: int, now: float) -> None:
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
        self.found += int((live.explored_first[rows] & (ranks <= k)).sum())
        self.buried += _buried(live, candidates, ranks, k)


class Surveyor:
    """Looks at the queries used last, now and then."""

    def __init__(self, settings: Settings, queries: Queries, timer: Callable[[], float]) -> None:
        self._k = settings.ranking.k
        self._seconds = settings.insights.refresh_seconds
        self._queries = queries
        self._timer = timer
        self._last: tuple[float, Survey] | None = None

    async def survey(self, model: Model, now: float) -> Survey:
        """Return a look at these queries: the last one, unless it is too old."""
        if self._last is None or self._timer() - self._last[0] > self._seconds:
            found = Survey()
            for live in self._queries.recent(MOST_QUERIES):
                found.look(live, model, self._k, now)
                await asyncio.sleep(0)
            found.buried.sort(key=lambda item: -item.prior / (1.0 + item.exposure))
            del found.buried[MOST_BURIED:]
            self._last = self._timer(), found
        return self._last[1]


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
    these weights give the estimate of m that varies least. Without them items that do well,
    and so are shown most, would speak for their whole bin.
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


def minute_out(minute: Minute) -> api.MinuteOut:
    """Return the sums of a minute as the dashboard reads them."""

    def total(name: str) -> float:
        return minute.values.get(name, 0.0)

    return api.MinuteOut(
        start=minute.start,
        rankings=int(total("rankings")),
        clicks=int(total("clicks")),
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


def exploration_out(minutes: Sequence[Minute], found: int) -> api.ExplorationOut:
    """Return what exploration cost over these minutes, and what it found."""
    return api.ExplorationOut(
        cost=_total(minutes, "exploration_cost"),
        explored=int(_total(minutes, "explored")),
        found=found,
    )


def bots_out(minutes: Sequence[Minute]) -> api.BotsOut:
    """Return what bots asked for and did over these minutes."""
    return api.BotsOut(int(_total(minutes, "bot_lists")), int(_total(minutes, "bot_events")))


def _total(minutes: Sequence[Minute], name: str) -> float:
    return sum((minute.values.get(name, 0.0) for minute in minutes), 0.0)


def _buried(
    live: LiveQuery, candidates: ScoredCandidates, ranks: npt.NDArray[np.int64], k: int
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
