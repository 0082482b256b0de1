"""The state of one query: what is known of its items, which are promising, which are buried."""

from __future__ import annotations

import math

import numpy as np

from ebrank.ranking import Ranking
from ebrank.service import api
from ebrank.service.core.lists import ScoredCandidates, scored
from ebrank.service.core.queries import LiveQuery
from ebrank.service.learning.models import Model
from ebrank.typing import Floats, Ints

MOST = 10


def query_view(live: LiveQuery, model: Model, k: int) -> api.QueryResponse:
    """Return what is known of a query's items."""
    candidates = scored(live, model)
    ids = live.state.ids
    interval = Ranking(np.arange(len(candidates.rows)), candidates.known).interval
    promising = np.argsort(-interval[:, 1], kind="stable")[:MOST]
    return api.QueryResponse(
        query=live.state.query,
        model=model.version,
        items=_states(live, candidates, interval),
        withdrawn=[_withdrawn(live, int(row)) for row in np.flatnonzero(~live.state.active)],
        most_promising=[ids[row] for row in candidates.rows[promising]],
        most_buried=[ids[row] for row in candidates.rows[buried(candidates, k)]],
    )


def buried(candidates: ScoredCandidates, k: int, most: int = MOST) -> Ints:
    """Return places of candidates outside the list that promise much and were little exposed."""
    outside = candidates.ranking.order[k:]
    promise = prior_mean(candidates)[outside] / (1.0 + candidates.known.exposure[outside])
    return outside[np.argsort(-promise, kind="stable")[:most]]


def prior_mean(candidates: ScoredCandidates) -> Floats:
    """Return α/(α + β) of each candidate."""
    return candidates.known.alpha / (candidates.known.alpha + candidates.known.beta)


def places_in(order: Ints) -> Ints:
    """Return the rank of each candidate in an order, counted from 1."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def _states(live: LiveQuery, candidates: ScoredCandidates, interval: Floats) -> list[api.ItemState]:
    state, known, rows = live.state, candidates.known, candidates.rows
    columns = (
        [state.ids[row] for row in rows],
        state.stats.shown[rows].tolist(),
        state.stats.clicks[rows].tolist(),
        known.exposure.tolist(),
        known.relevance.tolist(),
        state.stats.weighted_clicks[rows].tolist(),
        prior_mean(candidates).tolist(),
        known.alpha.tolist(),
        known.beta.tolist(),
        [(low, high) for low, high in interval.tolist()],
        known.bonus.tolist(),
        (known.relevance + known.bonus).tolist(),
        places_in(candidates.ranking.order).tolist(),
        places_in(candidates.relevance_order).tolist(),
        state.entered[rows].tolist(),
        [_or_none(time) for time in state.first_shown[rows].tolist()],
    )
    return [api.ItemState(*values) for values in zip(*columns, strict=True)]


def _withdrawn(live: LiveQuery, row: int) -> api.WithdrawnItem:
    state = live.state
    return api.WithdrawnItem(
        id=state.ids[row],
        shown=int(state.stats.shown[row]),
        clicks=int(state.stats.clicks[row]),
        exposure=float(state.stats.exposure[row]),
        weighted_clicks=float(state.stats.weighted_clicks[row]),
        entered=float(state.entered[row]),
        first_shown=_or_none(float(state.first_shown[row])),
    )


def _or_none(time: float) -> float | None:
    return None if math.isnan(time) else time
