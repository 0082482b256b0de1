"""The state of one query: what is known of its items, which are promising, which are buried."""

from __future__ import annotations

import math

import numpy as np

from ebrank.ranking import Ranking
from ebrank.service import api
from ebrank.service.core.lists import ScoredCandidates, examined_clicks, scored
from ebrank.service.core.queries import LiveQuery
from ebrank.service.learning.models import Model
from ebrank.typing import Floats, Ints

MOST = 10


def query_view(live: LiveQuery, model: Model, k: int, expected: float | None) -> api.QueryResponse:
    """Return what is known of the items of a query that is expected to get so many lists."""
    candidates = scored(live, model, lists=expected)
    ids = live.state.ids
    interval = Ranking(np.arange(len(candidates.rows)), candidates.known).interval
    promising = np.argsort(-interval[:, 1], kind="stable")[:MOST]
    return api.QueryResponse(
        query=live.state.query,
        model=model.version,
        items=_states(live, candidates, interval),
        withdrawn=_withdrawn(live, model),
        most_promising=[ids[row] for row in candidates.rows[promising]],
        most_buried=[ids[row] for row in candidates.rows[buried(candidates, k)]],
    )


def buried(candidates: ScoredCandidates, k: int, most: int = MOST) -> Ints:
    """Return places of candidates outside the list that promise much and were little exposed."""
    outside = candidates.ranking.order[k:]
    known = candidates.known
    promise = known.prior_mean[outside] / (1.0 + known.sums.exposure[outside])
    return outside[np.argsort(-promise, kind="stable")[:most]]


def places_in(order: Ints) -> Ints:
    """Return the rank of each candidate in an order, counted from 1."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def _states(live: LiveQuery, candidates: ScoredCandidates, interval: Floats) -> list[api.ItemState]:
    state, known, rows = live.state, candidates.known, candidates.rows
    sums, (alpha, beta) = known.sums, known.prior_beta
    columns = (
        [state.ids[row] for row in rows],
        sums.shown.astype(np.int64).tolist(),
        examined_clicks(known.behavior, known.examination).tolist(),
        sums.exposure.tolist(),
        known.relevance.tolist(),
        sums.weighted_clicks.tolist(),
        known.prior_mean.tolist(),
        alpha.tolist(),
        beta.tolist(),
        [(low, high) for low, high in interval.tolist()],
        known.bonus.tolist(),
        known.scores.tolist(),
        places_in(candidates.ranking.order).tolist(),
        places_in(candidates.relevance_order).tolist(),
        state.entered[rows].tolist(),
        [_or_none(time) for time in state.first_shown[rows].tolist()],
    )
    return [api.ItemState(*values) for values in zip(*columns, strict=True)]


def _withdrawn(live: LiveQuery, model: Model) -> list[api.WithdrawnItem]:
    """Return what is left of the items that are no candidates any more."""
    state, rows = live.state, np.flatnonzero(~live.state.active)
    stats, curve = live.stats[rows], model.ranker.curve
    sums, clicks = stats.sums(curve), examined_clicks(stats, curve)
    return [
        api.WithdrawnItem(
            id=state.ids[row],
            shown=int(sums.shown[at]),
            clicks=int(clicks[at]),
            exposure=float(sums.exposure[at]),
            weighted_clicks=float(sums.weighted_clicks[at]),
            entered=float(state.entered[row]),
            first_shown=_or_none(float(state.first_shown[row])),
        )
        for at, row in enumerate(rows.tolist())
    ]


def _or_none(time: float) -> float | None:
    return None if math.isnan(time) else time
