"""Looks at items: those of one query, and which of them are buried; and those of many queries.

The survey of recently used queries has a bounded cost, and is kept for some seconds. The loop gets
a turn between queries, and between portions of a large one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ebrank.service import api
from ebrank.service.core.background import Turns
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import Model
from ebrank.service.core.resources import Resources
from ebrank.service.serving.described import described, examined_clicks, or_none
from ebrank.service.serving.lists import ScoredCandidates, scored
from ebrank.service.settings import RankingSettings
from ebrank.statistics.survival import kaplan_meier
from ebrank.statistics.trust import embedded, trust
from ebrank.typing import Features, Floats, Ints

MOST_BURIED = 10
"""Buried items of a query that are named."""
MOST_DRAWN = 100
"""The lowest rank of which a density is returned."""
AT_ONCE = 50
"""Candidates examined in one turn."""
MOST_QUERIES = 500
MOST_LISTED = 20
MOST_STEPS = 200
BINS = 10
MOST_NUMBERS = 200_000
"""Trust is computed from this many numbers: 5,000 items with 40 features."""


# --- one query -----------------------------------------------------------------------------------


async def query_view(
    resources: Resources, live: LiveQuery, wanted: api.QueryOptions, turns: Turns
) -> api.QueryResponse:
    """Return the state of some items of a query."""
    deployment, k = resources.active.deployment, resources.settings.ranking.k
    model = deployment.model
    candidates = scored(
        live,
        model,
        lists=resources.pace.planned(live, model, resources.clock()),
        elsewhere=resources.sharing.elsewhere(live, model, deployment),
    )
    ranks = places_in(candidates.order), places_in(candidates.relevance_order)
    outside = buried(candidates, k, MOST_BURIED if wanted.cursor == 0 else 0)
    await turns.next()
    end = wanted.cursor + wanted.limit
    begin, stop = np.searchsorted(candidates.rows, [wanted.cursor, end]).tolist()
    items: list[api.ItemState] = []
    for places in _steps(begin, stop):
        rank, by_relevance = (order_ranks[places].tolist() for order_ranks in ranks)
        density = _densities(candidates, places, ranks[0]) if wanted.density else None
        items += described(
            api.ItemState,
            live,
            candidates,
            places,
            rank=rank,
            rank_by_relevance=by_relevance,
            density=density or [None] * len(rank),
        )
        await turns.next()
    return api.QueryResponse(
        live.state.query,
        model.version,
        k,
        items,
        _withdrawn(live, model, wanted.cursor, end),
        live.ids.at(candidates.rows[outside].tolist()),
        next_cursor=end if end < len(live) else None,
    )


def _densities(
    candidates: ScoredCandidates, places: Ints, ranks: Ints
) -> list[api.ItemDensity | None]:
    """Return the belief about the relevance of those with the best ranks."""
    drawn = ranks[places] <= MOST_DRAWN
    details = candidates.details.rows(places[drawn])
    curves = details.prior_densities.points(), details.posterior_densities.points()
    densities = iter([api.ItemDensity(*both) for both in zip(*curves, strict=True)])
    return [next(densities) if wanted else None for wanted in drawn.tolist()]


def _steps(begin: int, end: int) -> Iterator[Ints]:
    """Yield places from one to another, in portions of about a millisecond."""
    for first in range(begin, end, AT_ONCE):
        yield np.arange(first, min(first + AT_ONCE, end))


def buried(candidates: ScoredCandidates, k: int, most: int) -> Ints:
    """Return places of promising candidates outside the list with little exposure."""
    outside = candidates.order[k:]
    most_buried_first = -candidates.details.prior_mean / (1.0 + candidates.details.sums.exposure)
    return outside[np.argsort(most_buried_first[outside], kind="stable")[:most]]


def places_in(order: Ints) -> Ints:
    """Return the rank of each candidate in an order, counted from 1."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def _withdrawn(live: LiveQuery, model: Model, begin: int, end: int) -> list[api.WithdrawnItem]:
    """Return the withdrawn items in some rows."""
    state, rows = live.state, begin + np.flatnonzero(~live.active[begin:end])
    stats, curve = live.stats(rows), model.ranker.curve
    sums = stats.sums(curve)
    columns = (
        live.ids.at(rows.tolist()),
        sums.shown.astype(np.int64).tolist(),
        examined_clicks(stats, curve).tolist(),
        sums.exposure.tolist(),
        sums.weighted_clicks.tolist(),
        state.entered[rows].tolist(),
        or_none(state.first_shown[rows]),
    )
    return [api.WithdrawnItem(*values) for values in zip(*columns, strict=True)]


# --- recently used queries -----------------------------------------------------------------------


@dataclass
class Survey:
    """What a look at the items of some queries found.

    Attributes:
        seen: of the items that were shown, prior mean, and c and E, each divided by E + α + β.
        waits: seconds until the first impression, NaN while waiting; with how long it was watched.
        found_after: the same until the first place in a list that relevance alone gave it.
        found: items that exploration showed first and that stand in the top k by relevance.
        coverage: queries, candidates, those shown, those clicked, and those that are new.
        inputs: features of some items, as the prior gets them.
        trusted: how far the prior trusts them.
    """

    seen: list[Floats] = field(default_factory=list)
    waits: list[Floats] = field(default_factory=list)
    found_after: list[Floats] = field(default_factory=list)
    buried: list[api.BuriedItem] = field(default_factory=list)
    found: list[api.FoundItem] = field(default_factory=list)
    top_queries: list[api.TopQuery] = field(default_factory=list)
    coverage: Ints = field(default_factory=lambda: np.zeros(5, np.int64))
    inputs: list[Features] = field(default_factory=list)
    trusted: list[api.FeatureTrust] = field(default_factory=list)

    def look(
        self,
        live: LiveQuery,
        model: Model,
        candidates: ScoredCandidates,
        settings: RankingSettings,
        now: float,
        new_seconds: float,
    ) -> None:
        """Add one query to the survey, whose candidates a model has scored."""
        state = live.state
        rows = candidates.rows
        ranks = places_in(candidates.relevance_order)
        sums, (alpha, beta) = candidates.details.sums, candidates.details.prior_beta
        seen = sums.exposure > 0
        if sum(part.size for part in self.inputs) < MOST_NUMBERS:
            self.inputs.append(live.inputs(model))
        evidence = sums.exposure + alpha + beta
        rates = sums.clicks / evidence, sums.exposure / evidence
        self.seen.append(np.stack([candidates.details.prior_mean, *rates])[:, seen])
        age = now - state.entered[rows]
        self.waits.append(np.stack([state.first_shown[rows] - state.entered[rows], age]))
        watched = rows[state.entered[rows] >= live.since]
        self.found_after.append(np.stack([live.found_after[watched], now - state.entered[watched]]))
        places = buried(candidates, settings.k, most=3)
        columns = {"rank_by_relevance": ranks[places].tolist()}
        self.buried += described(api.BuriedItem, live, candidates, places, **columns)
        places = np.flatnonzero(live.explored_first[rows] & (ranks <= settings.k))
        columns = {"rank_by_relevance": ranks[places].tolist()}
        self.found += described(api.FoundItem, live, candidates, places, **columns)
        clicks = examined_clicks(candidates.details.behavior, candidates.details.examination)
        self.coverage += (1, len(rows), seen.sum(), (clicks > 0).sum(), (age < new_seconds).sum())
        totals = len(rows), live.lists, int(sums.shown.sum()), int(clicks.sum())
        self.top_queries.append(api.TopQuery(state.query, *totals))

    def settle(self) -> None:
        """Keep only the most notable items and queries."""
        self.buried.sort(key=lambda item: -item.prior / (1.0 + item.exposure))
        self.found.sort(key=lambda item: (-item.entered, item.query, item.item))
        self.top_queries.sort(key=lambda query: (-query.lists, query.query))
        for listed in (self.buried, self.found, self.top_queries):
            del listed[MOST_LISTED:]


class Surveyor:
    """Looks at the most recently used queries now and then."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._last: tuple[float, Survey] | None = None

    async def survey(self, now: float) -> Survey:
        """Return a look at these queries: the last one, unless it is too old."""
        settings, timer = self._resources.settings, self._resources.timer
        if self._last is None or timer() - self._last[0] > settings.insights.refresh_seconds:
            deployment, sharing = self._resources.active.deployment, self._resources.sharing
            model, survey = deployment.model, Survey()
            for live in self._resources.queries.recent(MOST_QUERIES):
                elsewhere = sharing.elsewhere(live, model, deployment)
                candidates = scored(live, model, elsewhere=elsewhere)
                survey.look(
                    live, model, candidates, settings.ranking, now, settings.insights.new_seconds
                )
                await asyncio.sleep(0)
            survey.settle()
            schema = self._resources.catalog.schema
            survey.trusted = await asyncio.to_thread(trusted, model, schema, survey.inputs)
            survey.inputs.clear()
            self._last = timer(), survey
        return self._last[1]


def trusted(
    model: Model, schema: FeatureSchema, inputs: Sequence[Features]
) -> list[api.FeatureTrust]:
    """Return how far a prior trusts its features, those it trusts most first."""
    keys = model.features or schema.keys
    inputs = [rows for rows in inputs if rows.shape[1] == len(keys)]
    if model.ranker.state_ is None or not inputs:
        return []
    some = np.concatenate(inputs)[: max(1, MOST_NUMBERS // max(1, len(keys)))]
    names = {column.key: column.name for column in (*schema.removed, *schema.features)}
    groups = embedded([names.get(key) or str(place) for place, key in enumerate(keys, 1)])
    shares = trust(model.scores, some, list(groups.values()))
    out = [
        api.FeatureTrust(name, len(columns), float(share))
        for (name, columns), share in zip(groups.items(), shares, strict=True)
    ]
    return sorted(out, key=lambda feature: -feature.share)


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


def calibration(survey: Survey) -> list[api.CalibrationBin]:
    """Return items in bins of about equal size by what the prior predicts of them.

    Observed is the click rate Σwc/ΣwE with w = 1/(E + α + β). If c is Beta-binomial with mean E·m,
    these weights give the estimate of m that varies least. Without them good items, which are shown
    most, would dominate their bin.
    """
    if not survey.seen:
        return []
    predicted, clicks, exposure = np.concatenate(survey.seen, axis=1)
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
