"""A list, from the draft that stages shape one after the other to what is remembered of it.

`stages.Stages` has the sequence, with the reason for each place. A stage is an optional capability,
or one of the three that every list passes: candidates, score, cut.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import msgspec
import numpy as np

from ebrank.model.policy.ranking import Candidates
from ebrank.model.prior.item_effects import Elsewhere
from ebrank.model.scoring import best_first
from ebrank.service import api
from ebrank.service.core.experiments import Assignment
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.memory import decode, encode
from ebrank.service.core.models import Deployment, Model
from ebrank.service.store.counting import Change
from ebrank.service.store.records import RankingEntry
from ebrank.typing import Bools, Floats, Ints


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


# --- lists that were served ------------------------------------------------------------------

PER_SECOND = 1_000_000
_SHAPE = re.compile(r"([0-9a-f]{1,15})-[0-9a-f]{16}")


class RankingIds:
    """Generates the ids that events cite, with increasing numbers.

    An id has a number that grows with time, so that it also keeps a store's lists in order, and 16
    random digits that keep a caller from citing other callers' lists.

    >>> ids = RankingIds()
    >>> first, second = ids.new(1700000000.0), ids.new(1700000000.0)
    >>> number_of(first), number_of(second)
    (1700000000000000, 1700000000000001)
    >>> number_of("7") is None
    True
    """

    def __init__(self, after: float = 0.0) -> None:
        """Start after the time of the last ranking in the log."""
        self._last = int(after * PER_SECOND) + 1

    def new(self, time: float, token: str | None = None) -> str:
        """Return the id of a ranking made at this time, with random digits unless given some."""
        self._last = max(self._last + 1, int(time * PER_SECOND))
        return f"{self._last:x}-{token or os.urandom(8).hex()}"


def number_of(ranking_id: str) -> int | None:
    """Return the number in a ranking id, None if this service cannot have made it."""
    match = _SHAPE.fullmatch(ranking_id)
    return int(match.group(1), 16) if match else None


def time_of(ranking_id: str) -> float | None:
    """Return roughly when a ranking was made, None if its id is not one of this service."""
    number = number_of(ranking_id)
    return None if number is None else number / PER_SECOND


class Served(msgspec.Struct, array_like=True):
    """A list that was served.

    Attributes:
        name: of its query, encoded.
        time: when; that of the first list of its window, since its events count for that one.
        counted: whether serving it counted as impressions.
        rows: of its items.
        life: of its query; in another life, these rows have other items.
        offset: how many ranks are above it.
        continues: the list for which its events count, if it is another.
        seen: at which ranks impressions counted before, 0 for others; empty if none did.
        retracted: whether it was taken back.
        arm: of which experiment it is, as it is logged.
        cell: of its unit in the experiment.
        compared: whether the budget of exploration compares it: its order is not the caller's own.
    """

    name: bytes
    time: float
    counted: bool
    rows: Sequence[int]
    life: int
    offset: int = 0
    continues: str | None = None
    seen: Sequence[int] = ()
    retracted: bool = False
    arm: str | None = None
    cell: int = 0
    compared: bool = True

    @classmethod
    def of(cls, entry: RankingEntry, rows: Sequence[int], life: int, *, compared: bool) -> Served:
        """Return what feedback needs to know of a list, given its items' rows in its query."""
        first = time_of(entry.continues) if entry.continues else None
        return cls(
            encode(entry.query),
            entry.time if first is None else first,
            entry.counted,
            rows,
            life,
            entry.offset,
            entry.continues,
            entry.seen,
            entry.retracted,
            entry.arm,
            entry.cell,
            compared,
        )

    @property
    def query(self) -> str:
        """The name of its query."""
        return decode(self.name)

    def packed(self) -> bytes:
        """Return it as it is kept in memory."""
        return _packed_list(self)

    @classmethod
    def unpacked(cls, data: bytes) -> Served:
        """Return what was packed."""
        return _unpacked_list(data)

    def ranks(self) -> Sequence[int]:
        """Return the rank at which each item's impression counts."""
        own = range(self.offset + 1, self.offset + len(self.rows) + 1)
        if not self.seen:
            return own
        return [seen or rank for seen, rank in zip(self.seen, own, strict=True)]


_unpacked_list = msgspec.msgpack.Decoder(Served).decode
_packed_list = msgspec.msgpack.Encoder().encode


# --- drafts and stages ----------------------------------------------------------------------------


@dataclass(slots=True)
class Draft:
    """What a request has become so far.

    Attributes:
        request: what the caller asks for.
        live: the query.
        deployment: what makes lists now.
        model: ranks this one.
        entry: as the list will be logged; its id, and what depends on the time, is set then.
        p: the examination probability of each rank.
        depth: the last rank of the list.
        explore: whether exploration may change the order.
        rows: of the items that the request names, in its order; None for all candidates.
        elsewhere: the evidence of other queries about the candidates.
        candidates: both orders of them.
        kept: the order that the user has seen within the window.
        page: whose list it is, if its order must be kept.
        arm: of the running experiment.
        callers: whether the order is the caller's own.
        token: the random digits of its id, if they were drawn already.
        order: the places of all ranks down to its last.
        served: the list.
    """

    request: api.RankRequest
    live: LiveQuery
    deployment: Deployment
    model: Model
    entry: RankingEntry
    p: Floats
    depth: int
    explore: bool
    rows: Ints | None = None
    elsewhere: Elsewhere | None = None
    kept: KeptOrder | None = None
    arm: Assignment | None = None
    callers: bool = False
    page: ListKey | None = None
    token: str | None = None
    candidates: ScoredCandidates = field(init=False)
    order: Ints = field(init=False)
    served: Listing = field(init=False)

    @property
    def first_of(self) -> ListKey | None:
        """Whose list it is, if it shows something for the first time within the window."""
        return None if self.page is None or self.entry.refresh else self.page

    def cut(self) -> None:
        """Cut the list from the candidates' order."""
        entry, candidates, kept = self.entry, self.candidates, self.kept
        if self.callers:
            self.order = np.arange(len(candidates.rows))[: self.depth]
        else:
            self.order = first_places(candidates, self.depth, explore=self.explore, kept=kept)
        served = self.served = listing(candidates, self.order, self.p, entry.offset)
        if self.callers:  # it is not our exploration, whatever it costs
            served.explored, served.cost = np.zeros(len(served.places), np.bool_), 0.0
        rows = served.rows.tolist()
        entry.items, entry.hint = tuple(self.live.ids.at(rows)), self.live.hint(rows)
        entry.explored, entry.cost = tuple(served.explored.tolist()), served.cost
        entry.relevance = tuple(served.relevance.tolist())
        if kept is not None:
            seen = kept.ranks_of(served.rows)
            entry.continues, entry.seen = kept.view, seen if any(seen) else ()


@dataclass(slots=True)
class Logged:
    """A list or an event that is in the log; the counters of its query change next.

    Attributes:
        change: what it adds.
        live: its query.
        draft: of a list.
        compared: whether an event's list is one of those that the budget compares.
    """

    change: Change
    live: LiveQuery
    draft: Draft | None = None
    compared: bool = False


class Stage:
    """A capability of lists.

    Attributes:
        columns: the fields of the log's entries that it fills.
    """

    columns: ClassVar[Sequence[str]] = ()

    def on(self, deployment: Deployment) -> bool:
        """Return whether lists of a deployment pass it."""
        return True

    def shape(self, draft: Draft) -> None:
        """Shape a list, before it is logged."""

    def logged(self, logged: Logged) -> None:
        """Take note of a list or an event that is in the log."""
