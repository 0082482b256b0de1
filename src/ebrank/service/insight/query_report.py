"""The state of one query: what is known about its items, which are promising, which are buried."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ebrank.policy.posterior import posterior_densities, prior_densities
from ebrank.policy.ranking import Candidates, Ranking
from ebrank.service import api
from ebrank.service.core.background import Turns
from ebrank.service.core.lists import (
    ScoredCandidates,
    described,
    examined_clicks,
    or_none,
    scored,
    whole_order,
)
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import Model
from ebrank.service.core.resources import Resources
from ebrank.service.settings import RankingSettings
from ebrank.typing import Floats, Ints

MOST = 10
MOST_DRAWN = 100
"""The lowest rank of which a density is returned."""
AT_ONCE = 50
"""Candidates looked at in one turn."""


async def query_view(
    resources: Resources, live: LiveQuery, wanted: api.QueryOptions, turns: Turns
) -> api.QueryResponse:
    """Return the state of some items of a query."""
    model, settings = resources.active.model, resources.settings.ranking
    expected = resources.pace.planned(live, model, resources.clock())
    candidates = scored(live, model, lists=expected)
    k, order = settings.k, whole_order(candidates, settings)
    ranks = places_in(order), places_in(candidates.relevance_order)
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
    outstanding: tuple[list[str], list[str]] = [], []
    if wanted.cursor == 0:
        outstanding = await _outstanding(live, candidates, order[k:], turns)
    return api.QueryResponse(
        live.state.query,
        model.version,
        k,
        items,
        _withdrawn(live, model, wanted.cursor, end),
        *outstanding,
        next_cursor=end if end < len(live) else None,
    )


def _densities(
    candidates: ScoredCandidates, places: Ints, ranks: Ints
) -> list[api.ItemDensity | None]:
    """Return what is believed of the relevance of those with the best ranks."""
    drawn = ranks[places] <= MOST_DRAWN
    details = candidates.details.rows(places[drawn])
    curves = prior_densities(details).points(), posterior_densities(details).points()
    densities = iter([api.ItemDensity(*both) for both in zip(*curves, strict=True)])
    return [next(densities) if wanted else None for wanted in drawn.tolist()]


def _steps(begin: int, end: int) -> Iterator[Ints]:
    """Yield places from one to another, in portions of about a millisecond."""
    for first in range(begin, end, AT_ONCE):
        yield np.arange(first, min(first + AT_ONCE, end))


async def _outstanding(
    live: LiveQuery, candidates: ScoredCandidates, outside: Ints, turns: Turns
) -> tuple[list[str], list[str]]:
    """Return the ids of the most promising candidates, and of the most buried outside the list."""
    upper, promise = np.empty((2, len(candidates.rows)))
    for places in _steps(0, len(upper)):
        part = candidates.details.rows(places)
        upper[places] = Ranking(np.arange(len(places)), part).interval[:, 1]
        promise[places] = _promise(part)
        await turns.next()
    promising = np.argsort(-upper, kind="stable")[:MOST]
    most_buried = outside[np.argsort(-promise[outside], kind="stable")[:MOST]]
    rows = candidates.rows
    return live.ids.at(rows[promising].tolist()), live.ids.at(rows[most_buried].tolist())


def buried(candidates: ScoredCandidates, settings: RankingSettings, most: int) -> Ints:
    """Return places of promising candidates outside the list with little exposure."""
    outside = whole_order(candidates, settings)[settings.k :]
    promise = _promise(candidates.details)[outside]
    return outside[np.argsort(-promise, kind="stable")[:most]]


def _promise(details: Candidates) -> Floats:
    """Return how promising the features of each are, given how little it was exposed."""
    return details.prior_mean / (1.0 + details.sums.exposure)


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
