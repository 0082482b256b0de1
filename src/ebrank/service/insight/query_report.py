"""The state of one query: what is known about its items, which are promising, which are buried."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ebrank.ranking import Candidates, Ranking
from ebrank.service import api
from ebrank.service.core.background import Turns
from ebrank.service.core.lists import ScoredCandidates, examined_clicks, scored
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.learning.models import Model
from ebrank.typing import Floats, Ints

MOST = 10
AT_ONCE = 50
"""Candidates looked at in one turn."""


async def query_view(
    live: LiveQuery,
    model: Model,
    k: int,
    expected: float | None,
    wanted: api.QueryOptions,
    turns: Turns,
) -> api.QueryResponse:
    """Return what is known about some items of a query, given its expected lists."""
    candidates = scored(live, model, lists=expected)
    ranks = places_in(candidates.ranking.order), places_in(candidates.relevance_order)
    await turns.next()
    end = wanted.cursor + wanted.limit
    begin, stop = np.searchsorted(candidates.rows, [wanted.cursor, end]).tolist()
    items: list[api.ItemState] = []
    for places in _steps(begin, stop):
        items += _states(live, candidates, ranks, places)
        await turns.next()
    outstanding: tuple[list[str], list[str]] = [], []
    if wanted.cursor == 0:
        outstanding = await _outstanding(live, candidates, k, turns)
    return api.QueryResponse(
        live.state.query,
        model.version,
        k,
        items,
        _withdrawn(live, model, wanted.cursor, end),
        *outstanding,
        next_cursor=end if end < len(live) else None,
    )


def _steps(begin: int, end: int) -> Iterator[Ints]:
    """Yield places from one to another, in portions of about a millisecond."""
    for first in range(begin, end, AT_ONCE):
        yield np.arange(first, min(first + AT_ONCE, end))


async def _outstanding(
    live: LiveQuery, candidates: ScoredCandidates, k: int, turns: Turns
) -> tuple[list[str], list[str]]:
    """Return the ids of the most promising and of the most buried candidates."""
    upper, promise = np.empty((2, len(candidates.rows)))
    for places in _steps(0, len(upper)):
        part = candidates.known.rows(places)
        upper[places] = Ranking(np.arange(len(places)), part).interval[:, 1]
        promise[places] = _promise(part)
        await turns.next()
    promising = np.argsort(-upper, kind="stable")[:MOST]
    outside = candidates.ranking.order[k:]
    most_buried = outside[np.argsort(-promise[outside], kind="stable")[:MOST]]
    rows = candidates.rows
    return live.ids.at(rows[promising].tolist()), live.ids.at(rows[most_buried].tolist())


def buried(candidates: ScoredCandidates, k: int, most: int = MOST) -> Ints:
    """Return places of promising candidates outside the list with little exposure."""
    outside = candidates.ranking.order[k:]
    promise = _promise(candidates.known)[outside]
    return outside[np.argsort(-promise, kind="stable")[:most]]


def _promise(known: Candidates) -> Floats:
    """Return how promising the features of each are, given how little it was exposed."""
    return known.prior_mean / (1.0 + known.sums.exposure)


def places_in(order: Ints) -> Ints:
    """Return the rank of each candidate in an order, counted from 1."""
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def _states(
    live: LiveQuery, candidates: ScoredCandidates, ranks: tuple[Ints, Ints], places: Ints
) -> list[api.ItemState]:
    """Return the states of candidates, given the ranks of all by score and by relevance."""
    state, rows, known = live.state, candidates.rows[places], candidates.known.rows(places)
    sums, (alpha, beta) = known.sums, known.prior_beta
    interval = Ranking(np.arange(len(places)), known).interval
    columns = (
        live.ids.at(rows.tolist()),
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
        ranks[0][places].tolist(),
        ranks[1][places].tolist(),
        state.entered[rows].tolist(),
        [_or_none(time) for time in state.first_shown[rows].tolist()],
    )
    return [api.ItemState(*values) for values in zip(*columns, strict=True)]


def _withdrawn(live: LiveQuery, model: Model, begin: int, end: int) -> list[api.WithdrawnItem]:
    """Return the withdrawn items in some rows."""
    state, rows = live.state, begin + np.flatnonzero(~live.state.active[begin:end])
    stats, curve = live.stats(rows), model.ranker.curve
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
