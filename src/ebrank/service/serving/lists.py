"""How a list is made: EBRank's order of the candidates, after what its user has already seen.

A `Listing` holds what is served, what is logged and what an explanation needs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Struct

from ebrank.evidence import BehaviorStats, Examination
from ebrank.model.policy.ranking import Candidates, Ranking
from ebrank.model.prior.item_effects import Elsewhere
from ebrank.model.scoring import best_first
from ebrank.service import api
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.memory import encode
from ebrank.service.core.models import Model
from ebrank.typing import Bools, Floats, Ints

T = TypeVar("T", bound=Struct)


@dataclass(slots=True)
class ScoredCandidates:
    """The candidates of a request in both orders; orders hold positions in `rows`.

    Attributes:
        rows: the candidates' rows in their query.
        order: all of them by score, best first.
        relevance_order: all of them by relevance alone.
        details: score, relevance and evidence of each.
    """

    rows: Ints
    order: Ints
    relevance_order: Ints
    details: Candidates


@dataclass(slots=True)
class Listing:
    """A list to serve.

    Attributes:
        candidates: those it was chosen from.
        places: positions in `candidates.rows`, best rank first.
        rows: of its items in their query.
        relevance: R̂ of its items.
        explored: for each rank, whether exploration put the item there.
        cost: expected clicks lost compared with the order by relevance alone.
        offset: how many ranks are above its first item.
    """

    candidates: ScoredCandidates
    places: Ints
    rows: Ints
    relevance: Floats
    explored: Bools
    cost: float
    offset: int = 0


class ListKey(NamedTuple):
    """Whose list it is: a user's of a query, among all candidates (None) or some (their hash).

    In another life of the query, rows have other items; in another arm, the order is another one.
    """

    query: str
    user: str
    among: int | None = None
    explore: bool = True
    life: int = 0
    arm: str = ""

    def packed(self) -> bytes:
        """Return its key in memory, which begins with the user's hash."""
        text = f"{self.life}:{self.among}:{self.explore}:{self.arm}:{self.query}"
        return encode(self.user) + hashlib.blake2b(encode(text), digest_size=16).digest()


class KeptOrder(msgspec.Struct, array_like=True, frozen=True):
    """An order that was made for a user, from the first rank on.

    Attributes:
        rows: the items, by their rows.
        ranks: at which rank each one's impression counts; 0 for those not yet served.
        depth: how many ranks were made.
        view: the first list that was served from it.
        until: when the window ends.
    """

    rows: list[int]
    ranks: list[int]
    depth: int
    view: str
    until: float

    def ranks_of(self, rows: Ints) -> tuple[int, ...]:
        """Return the ranks at which impressions of these items already count, 0 for others."""
        rank_of = dict(zip(self.rows, self.ranks, strict=True))
        return tuple(rank_of.get(row, 0) for row in rows.tolist())


def scored(
    live: LiveQuery,
    model: Model,
    only: Ints | None = None,
    *,
    draws: np.random.PCG64 | None = None,
    lists: float | None = None,
    elsewhere: Elsewhere | None = None,
) -> ScoredCandidates:
    """Return the candidates of a query, or only some of them, in both orders.

    A policy that draws takes the keys of its draws from `draws`, or else draws the same for an item
    every time. `lists` is how many to plan for, if the policy plans. `elsewhere`
    is the evidence of other queries about the candidates.
    """
    rows, prior, ranker = live.candidates, live.prior(model), model.ranker
    if only is not None:
        places = np.searchsorted(rows, only)
        prior = prior.rows(places)
        elsewhere = None if elsewhere is None else elsewhere.rows(places)
        rows = only
    whole = len(rows) == len(live) and only is None  # the usual case: nothing is withdrawn
    keys = live.tie_keys if whole else live.tie_keys[rows]
    drawn = None
    if model.noisy:
        drawn = keys.astype(np.uint64) if draws is None else draws.random_raw(len(rows)).reshape(-1)
    stats = live.stats(None if whole else rows)
    ranking = ranker.ranked(prior, stats, keys, drawn, lists, elsewhere)
    details = ranking.candidates
    return ScoredCandidates(rows, ranking.order, best_first(details.relevance, keys), details)


def first_places(
    candidates: ScoredCandidates,
    depth: int,
    *,
    explore: bool = True,
    kept: KeptOrder | None = None,
) -> Ints:
    """Return the first `depth` places, by score or by relevance alone.

    An order that a user has seen, `kept`, is resumed as far as it goes; beyond that, a page
    continues with the best items now.
    """
    by_relevance = candidates.relevance_order
    order = candidates.order if explore else by_relevance
    if kept is not None:
        place_of = {row: place for place, row in enumerate(candidates.rows.tolist())}
        seen = np.array([place_of[row] for row in kept.rows if row in place_of], np.int64)
        order = followed(resumed(seen, by_relevance, kept.depth), order)
    return order[:depth]


def listing(candidates: ScoredCandidates, order: Ints, p: Floats, offset: int = 0) -> Listing:
    """Return the list of these places from `offset` on, and what exploration changed in it."""
    places, below = order[offset:], len(order)
    best, relevance = candidates.relevance_order[offset:below], candidates.details.relevance
    listed = relevance[places]
    cost = float(p[offset:below] @ (relevance[best] - listed))
    below_list = np.ones(len(relevance), np.bool_)
    below_list[candidates.relevance_order[:below]] = False
    rows, explored = candidates.rows[places], below_list[places]
    return Listing(candidates, places, rows, listed, explored, cost, offset)


def ranked_items(
    live: LiveQuery, names: Sequence[str], chosen: Listing, *, explain: bool
) -> list[api.RankedItem]:
    """Return a list as in a response, given the names of its items."""
    details, places = chosen.candidates.details, chosen.places
    ranks = range(chosen.offset + 1, chosen.offset + len(names) + 1)
    if not explain:
        return list(map(api.RankedItem, names, ranks, details.scores[places].tolist()))
    columns = {"rank": ranks, "explored": chosen.explored.tolist()}
    return described(api.RankedItem, live, chosen.candidates, places, **columns)


_COLUMNS: Mapping[str, Callable[[Candidates, LiveQuery, Ints], Sequence[Any]]] = {
    "query": lambda _, live, rows: [live.state.query] * len(rows),
    "id": lambda _, live, rows: live.ids.at(rows.tolist()),
    "item": lambda _, live, rows: live.ids.at(rows.tolist()),
    "entered": lambda _, live, rows: live.state.entered[rows].tolist(),
    "first_shown": lambda _, live, rows: or_none(live.state.first_shown[rows]),
    "shown": lambda details, *_: details.sums.shown.astype(np.int64).tolist(),
    "clicks": lambda details, *_: examined_clicks(details.behavior, details.examination).tolist(),
    "exposure": lambda details, *_: details.sums.exposure.tolist(),
    "weighted_clicks": lambda details, *_: details.sums.weighted_clicks.tolist(),
    "relevance": lambda details, *_: details.relevance.tolist(),
    "prior": lambda details, *_: (details.prior_mean - details.prior_change).tolist(),
    "elsewhere": lambda details, *_: details.prior_change.tolist(),
    "other_queries": lambda details, *_: details.elsewhere.queries.tolist(),
    "alpha": lambda details, *_: details.prior_beta[0].tolist(),
    "beta": lambda details, *_: details.prior_beta[1].tolist(),
    "interval": lambda details, *_: [tuple(ends) for ends in _intervals(details).tolist()],
    "bonus": lambda details, *_: details.bonus.tolist(),
    "score": lambda details, *_: details.scores.tolist(),
}
"""What is known about candidates, by its name in responses; computed if a response has it."""
_IF_SHARED = ("elsewhere", "other_queries")
"""What responses have only if queries share evidence."""


def described(
    kind: type[T],
    live: LiveQuery,
    candidates: ScoredCandidates,
    places: Ints,
    **columns: Sequence[Any],
) -> list[T]:
    """Return candidates as structs of a kind; `_COLUMNS` has the fields that are not given."""
    if not len(places):
        return []
    rows, details = candidates.rows[places], candidates.details.rows(places)
    if details.elsewhere is None:
        columns |= dict.fromkeys(_IF_SHARED, [UNSET] * len(rows))
    values = [
        columns[name] if name in columns else _COLUMNS[name](details, live, rows)
        for name in kind.__struct_fields__
    ]
    return [kind(*row) for row in zip(*values, strict=True)]


def _intervals(details: Candidates) -> Floats:
    return Ranking(np.arange(len(details.scores)), details).interval


def or_none(times: Floats) -> list[float | None]:
    """Return times as in a response: None if there is none yet."""
    return [None if math.isnan(time) else time for time in times.tolist()]


def examined_clicks(behavior: BehaviorStats, examination: Examination) -> Ints:
    """Return how many impressions of each item led to a behavior, where users look."""
    examined = behavior.valuation(examination).table[: behavior.slots] > 0
    total: Ints = behavior.counts[:, 1:, examined].sum(axis=(1, 2), dtype=np.int64)
    return total


# --- orders --------------------------------------------------------------------------------------


def followed(first: Ints, others: Ints) -> Ints:
    """Return an order that begins with some items, and goes on with the others in their order."""
    if not len(first):
        return others
    return np.concatenate([first, others[~np.isin(others, first)]])


def resumed(kept: Ints, relevance_order: Ints, k: int) -> Ints:
    """Return the first k of an order that a user has seen, without items that are gone.

    The best by relevance fill free slots: exploration waits until the window is over.

    >>> resumed(np.array([9, 3, 0]), np.array([0, 1, 2, 3]), 3).tolist()
    [3, 0, 1]
    """
    still = kept[np.isin(kept, relevance_order)][:k]
    return followed(still, relevance_order)[:k]
