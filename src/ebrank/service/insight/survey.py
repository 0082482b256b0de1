"""A look at the items of recently used queries, at a bounded cost.

It is kept for some seconds. The loop gets a turn between queries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ebrank.evaluation.survival import kaplan_meier
from ebrank.evaluation.trust import embedded, trust
from ebrank.service import api
from ebrank.service.core.feature_schema import FeatureSchema
from ebrank.service.core.lists import described, examined_clicks, scored
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import Model
from ebrank.service.core.resources import Resources
from ebrank.service.insight.query_report import buried, places_in
from ebrank.service.settings import RankingSettings
from ebrank.typing import Features, Floats, Ints

MOST_QUERIES = 500
MOST_LISTED = 20
MOST_STEPS = 200
BINS = 10
MOST_NUMBERS = 200_000
"""Trust is computed from this many numbers: 5,000 items with 40 features."""


@dataclass
class Survey:
    """What a look at the items of some queries found.

    Attributes:
        seen: of the items that were shown, prior mean, and c and E, each divided by E + α + β.
        waits: seconds until the first impression, NaN while waiting; with how long it was watched.
        earned: the same until the first place in a list that relevance alone gave it.
        found: items that exploration showed first and that stand in the top k by relevance.
        coverage: queries, candidates, those shown, those clicked, and those that are new.
        inputs: features of some items, as the prior gets them.
        trusted: how far the prior trusts them.
    """

    seen: list[Floats] = field(default_factory=list)
    waits: list[Floats] = field(default_factory=list)
    earned: list[Floats] = field(default_factory=list)
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
        settings: RankingSettings,
        now: float,
        new_seconds: float,
    ) -> None:
        """Add one query to the survey."""
        candidates, state = scored(live, model), live.state
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
        self.earned.append(np.stack([live.earned[watched], now - state.entered[watched]]))
        places = buried(candidates, settings, most=3)
        by_relevance = ranks[places].tolist()
        self.buried += described(
            api.BuriedItem, live, candidates, places, rank_by_relevance=by_relevance
        )
        places = np.flatnonzero(live.explored_first[rows] & (ranks <= settings.k))
        by_relevance = ranks[places].tolist()
        self.found += described(
            api.FoundItem, live, candidates, places, rank_by_relevance=by_relevance
        )
        clicks = examined_clicks(candidates.details.behavior, candidates.details.examination)
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
            model, survey = self._resources.active.model, Survey()
            for live in self._resources.queries.recent(MOST_QUERIES):
                survey.look(live, model, settings.ranking, now, settings.insights.new_seconds)
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
