"""How a list is made: EBRank's order of the candidates, within the limits of exploration.

A `Listing` holds what is served, what is logged and what an explanation needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from ebrank.evidence import BehaviorStats, Examination
from ebrank.ranking import Candidates, Ranking, best_first
from ebrank.service import api
from ebrank.service.core import exploration
from ebrank.service.core.exploration import Kept
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.learning.models import Model
from ebrank.service.settings import RankingSettings
from ebrank.typing import Floats, Ints


@dataclass(frozen=True)
class ScoredCandidates:
    """The candidates of a request in both orders; orders hold positions in `rows`.

    Attributes:
        rows: the candidates' rows in their query.
        ranking: all of them by score, best first.
        relevance_order: all of them by relevance alone.
    """

    rows: Ints
    ranking: Ranking
    relevance_order: Ints

    @property
    def known(self) -> Candidates:
        """What is known about each candidate."""
        return self.ranking.candidates


@dataclass(frozen=True)
class Listing:
    """A list to serve.

    Attributes:
        candidates: those it was chosen from.
        places: positions in `candidates.rows`, best rank first.
        explored: for each rank, whether exploration put the item there.
        cost: expected clicks lost compared with the order by relevance alone.
        offset: how many ranks are above its first item.
    """

    candidates: ScoredCandidates
    places: Ints
    explored: npt.NDArray[np.bool_]
    cost: float
    offset: int = 0

    @cached_property
    def rows(self) -> Ints:
        """Rows of its items in their query."""
        return self.candidates.rows[self.places]

    @property
    def relevance(self) -> Floats:
        """R̂ of its items."""
        return self.candidates.known.relevance[self.places]

    @property
    def scores(self) -> Floats:
        """The scores of its items."""
        return self.candidates.known.scores[self.places]


def scored(
    live: LiveQuery,
    model: Model,
    only: Ints | None = None,
    *,
    draws: np.random.PCG64 | None = None,
    lists: float | None = None,
    contexts: tuple[int, ...] = (),
) -> ScoredCandidates:
    """Return the candidates of a query, or only some of them, in both orders.

    A policy that draws takes the keys of its draws from `draws`, or else draws the same for an item
    every time. `lists` is how many the query is expected to get, for policies that plan. Known
    contexts move relevances.
    """
    rows, prior = live.candidates, live.prior(model)
    shifts = live.shifts(model, contexts) if contexts else None
    if only is not None:
        places = np.searchsorted(rows, only)
        prior = prior.rows(places)
        shifts = None if shifts is None else shifts[places]
        rows = only
    keys = live.tie_keys[rows]
    drawn = None
    if draws is not None and model.ranker.policy.noisy:
        drawn = draws.random_raw(len(rows)).reshape(-1)
    ranking = model.ranker.rank_by_prior(
        prior, live.stats(rows), tie_keys=keys, draw_keys=drawn, lists=lists, shifts=shifts
    )
    by_relevance = best_first(ranking.candidates.relevance, keys)
    return ScoredCandidates(rows, ranking, by_relevance)


def new_order(
    candidates: ScoredCandidates, offset: int, k: int, settings: RankingSettings, *, explore: bool
) -> Ints:
    """Return the first `offset + k` places, by score within the guardrails or by relevance."""
    if not explore:
        return candidates.relevance_order[: offset + k]
    order, by_relevance = candidates.ranking.order, candidates.relevance_order
    return _guarded(order, by_relevance, offset, k, settings)


def whole_order(candidates: ScoredCandidates, k: int, settings: RankingSettings) -> Ints:
    """Return all places: the first k as a new list has them, the others by score."""
    first = new_order(candidates, 0, k, settings, explore=True)
    return exploration.followed(first, candidates.ranking.order)


def resumed_order(
    candidates: ScoredCandidates,
    kept: Kept,
    offset: int,
    k: int,
    settings: RankingSettings,
    *,
    explore: bool,
) -> Ints:
    """Return the first `offset + k` places of an order that a user has seen, as far as it holds.

    Beyond what was made before, a page continues with the best items now. The order was made within
    the guardrails for lists of `kept.k`; for a list of another length they are applied again.
    """
    depth, by_relevance = offset + k, candidates.relevance_order
    place_of = {row: place for place, row in enumerate(candidates.rows.tolist())}
    seen = np.array([place_of[row] for row in kept.rows.tolist() if row in place_of], np.int64)
    order = exploration.resumed(seen, by_relevance, kept.depth)
    by_score = candidates.ranking.order if explore else by_relevance
    if offset == 0 and k != kept.k and explore:
        by_score = exploration.followed(order, by_score)
        return _guarded(by_score, by_relevance, offset, k, settings)
    if depth <= len(order):
        return order[:depth]
    return _guarded(by_score, by_relevance, offset, k, settings, above=order)


def _guarded(
    order: Ints,
    relevance_order: Ints,
    offset: int,
    k: int,
    settings: RankingSettings,
    above: Ints = exploration.NOTHING,
) -> Ints:
    """Return the first of an order of candidates, as far as the guardrails allow."""
    return exploration.guarded(
        order,
        relevance_order,
        k,
        offset=offset,
        above=above,
        max_explored=settings.max_explored,
        max_promotion=settings.max_promotion,
    )


def listing(candidates: ScoredCandidates, order: Ints, p: Floats, offset: int = 0) -> Listing:
    """Return the list of these places from `offset` on, and what exploration changed in it."""
    places, below = order[offset:], len(order)
    best = candidates.relevance_order[offset:below]
    relevance = candidates.known.relevance
    cost = float(p[offset:below] @ (relevance[best] - relevance[places]))
    explored = exploration.explored(places, candidates.relevance_order, offset)
    return Listing(candidates, places, explored, cost, offset)


def ranked_items(names: Sequence[str], chosen: Listing, *, explain: bool) -> list[api.RankedItem]:
    """Return a list as in a response, given the names of its items."""
    scored_names = zip(names, chosen.scores.tolist(), strict=True)
    if not explain:
        return [
            api.RankedItem(name, rank, score)
            for rank, (name, score) in enumerate(scored_names, start=chosen.offset + 1)
        ]
    return [
        api.RankedItem(name, rank, score, **reasons)
        for rank, ((name, score), reasons) in enumerate(
            zip(scored_names, _reasons(chosen), strict=True), start=chosen.offset + 1
        )
    ]


def _reasons(chosen: Listing) -> list[dict[str, Any]]:
    ranking = Ranking(chosen.places, chosen.candidates.known)
    known = ranking.candidates
    sums, clicks = known.sums, examined_clicks(known.behavior, known.examination)
    reasons = []
    for at, place in enumerate(chosen.places.tolist()):
        why = ranking.explain(place)
        low, high = ranking.interval[at].tolist()
        reasons.append(
            {
                "relevance": why.relevance,
                "interval": (low, high),
                "prior": why.prior,
                "shown": int(sums.shown[place]),
                "clicks": int(clicks[place]),
                "exposure": float(sums.exposure[place]),
                "bonus": why.bonus,
                "explored": bool(chosen.explored[at]),
                "context": UNSET if known.moved is None else why.context,
            }
        )
    return reasons


def examined_clicks(behavior: BehaviorStats, examination: Examination) -> Ints:
    """Return how many impressions of each item led to a behavior, where users look."""
    examined = behavior.valuation(examination).table[: behavior.slots] > 0
    total: Ints = behavior.counts[:, 1:, examined].sum(axis=(1, 2), dtype=np.int64)
    return total
