"""A list on its way to its user: a draft, which stages shape one after the other.

`stages.in_order` has the sequence, with the reason for each place. A stage is an optional
capability, or one of the three that every list passes: candidates, score, cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ebrank.model.prior.item_effects import Elsewhere
from ebrank.service import api
from ebrank.service.core.experiments import Assignment
from ebrank.service.core.live import LiveQuery
from ebrank.service.core.models import Deployment, Model
from ebrank.service.serving.lists import (
    KeptOrder,
    Listing,
    ListKey,
    ScoredCandidates,
    first_places,
    listing,
)
from ebrank.service.store.counting import Change
from ebrank.service.store.records import RankingEntry
from ebrank.typing import Floats, Ints


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

    @property
    def on(self) -> bool:
        """Whether lists pass it."""
        return True

    def shape(self, draft: Draft) -> None:
        """Shape a list, before it is logged."""

    def logged(self, logged: Logged) -> None:
        """Take note of a list or an event that is in the log."""
