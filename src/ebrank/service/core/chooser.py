"""From a request to a list: its candidates, their order, and for whom it stays the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xxhash

from ebrank.contexts import numbers
from ebrank.service import api
from ebrank.service.core import lists
from ebrank.service.core.exploration import Kept, ListKey, Windows
from ebrank.service.core.lists import Listing, ScoredCandidates
from ebrank.service.core.packed import encode
from ebrank.service.core.problems import Problem, listed, not_candidates
from ebrank.service.core.queries.live import LiveQuery
from ebrank.service.learning.models import Model
from ebrank.service.settings import Settings
from ebrank.typing import Ints


@dataclass(frozen=True)
class Choice:
    """The list to serve, and how it relates to those the user has seen.

    Attributes:
        served: the list.
        order: the places of all ranks down to its last.
        k: the requested length.
        user: the hash of the user's name.
        would: in shadow mode, the list EBRank would have served.
        page: whose list it is, if its order must be kept.
        continues: the user's first list within the window.
        seen: for each item the rank at which its impression already counts, 0 if here; empty if
            all count here.
        contexts: numbers of the contexts it was made for.
    """

    served: Listing
    order: Ints
    k: int
    user: str | None = None
    contexts: tuple[int, ...] = ()
    would: Listing | None = None
    page: ListKey | None = None
    continues: str | None = None
    seen: tuple[int, ...] = ()

    @property
    def first_of(self) -> ListKey | None:
        """Whose list it is, if it shows something for the first time within the window."""
        return None if self.seen and all(self.seen) else self.page


class Chooser:
    """Makes lists as the settings say.

    Attributes:
        examination: p of the ranks.
        windows: what users have seen recently.
    """

    def __init__(self, settings: Settings, salt: str) -> None:
        """Take what users' names are hashed with."""
        self._settings = settings.ranking
        self._salt = salt
        self._in_contexts = settings.contexts.most > 0
        self.windows = Windows(settings.ranking.window)
        self._draws = np.random.PCG64()
        self.examination = settings.examination.examination()(np.arange(1, api.MOST_RANKS + 1))

    def choose(
        self,
        request: api.RankRequest,
        live: LiveQuery,
        model: Model,
        now: float,
        expected: float | None,
    ) -> Choice:
        """Return the list for a request, given how many lists its query is expected to get."""
        offset, k = request.offset, request.k or self._settings.k
        if offset + k > api.MOST_RANKS:
            raise Problem(f"offset and k must not exceed {api.MOST_RANKS} together", "offset")
        only = None if request.items is None else _rows(live, request.items)
        contexts: tuple[int, ...] = ()
        if request.context and self._in_contexts:
            contexts = numbers(request.context)
        candidates = lists.scored(
            live, model, only, draws=self._draws, lists=expected, contexts=contexts
        )
        user = None if request.user is None else hashed(request.user, self._salt)
        page = None
        if user is not None and self._settings.window:
            among = None if only is None else _hash(only)
            page = ListKey(live.state.query, user, among, request.explore, live.life)
        kept = None if page is None else self.windows.get(page, now)
        would = None
        if self._settings.mode == "shadow":
            order = self._own_order(only)[: offset + k]
            by_score = self._order(candidates, None, offset, k, explore=True)
            would = lists.listing(candidates, by_score, self.examination, offset)
        else:
            order = self._order(candidates, kept, offset, k, explore=request.explore)
        served = lists.listing(candidates, order, self.examination, offset)
        if would is not None:
            # The caller's order is not our exploration, whatever it costs.
            nothing = np.zeros(len(served.places), np.bool_)
            served = replace(served, explored=nothing, cost=0.0)
        if kept is None or kept.view is None:
            return Choice(served, order, k, user, contexts, would, page)
        seen = kept.ranks_of(served.rows)
        seen = seen if any(seen) else ()
        return Choice(served, order, k, user, contexts, would, page, kept.view, seen)

    def remember(self, choice: Choice, ranking_id: str | None, now: float) -> None:
        """Keep the order of a logged list; without an id, of one that does not count."""
        if choice.page is not None:
            rows, offset = choice.served.candidates.rows[choice.order], choice.served.offset
            self.windows.keep(choice.page, rows, offset, choice.k, ranking_id, now)

    def _order(
        self, candidates: ScoredCandidates, kept: Kept | None, offset: int, k: int, *, explore: bool
    ) -> Ints:
        if kept is None:
            return lists.new_order(candidates, offset, k, self._settings, explore=explore)
        return lists.resumed_order(candidates, kept, offset, k, self._settings, explore=explore)

    def _own_order(self, only: Ints | None) -> Ints:
        if only is None:
            raise Problem("in shadow mode, a request must give its own order in `items`", "items")
        return np.arange(len(only))


def ids_of(items: Sequence[str | api.ItemIn]) -> list[str]:
    """Return the names in a request, each once."""
    return list(dict.fromkeys(item if isinstance(item, str) else item.id for item in items))


def hashed(user: str, salt: str) -> str:
    """Return what the log holds instead of a user's name; without the salt it reveals nothing."""
    return hashlib.blake2b(encode(user), key=salt.encode(), digest_size=8).hexdigest()


def unknown_names(live: LiveQuery | None, items: Sequence[str | api.ItemIn]) -> list[str]:
    """Return names that are not candidates, and that a request does not make candidates."""
    new = {item.id for item in items if not isinstance(item, str)}
    names = ids_of(items)
    rows = [None] * len(names) if live is None else live.rows_of(names)
    if live is not None:
        reject_withdrawn(live, names, rows)
    return [name for name, row in zip(names, rows, strict=True) if row is None and name not in new]


def reject_withdrawn(live: LiveQuery, names: Sequence[str], rows: Sequence[int | None]) -> None:
    """Raise if items are withdrawn: a caller who may only rank must not bring them back."""
    active = live.state.active
    withdrawn = [
        name for name, row in zip(names, rows, strict=True) if row is not None and not active[row]
    ]
    if withdrawn:
        raise Problem(
            f"withdrawn from this query: {listed(withdrawn)}. "
            "PUT /v1/queries/{query}/items brings them back",
            "items",
        )


def _hash(rows: Ints) -> int:
    """Return a number for a set of rows, in any order."""
    return xxhash.xxh3_64_intdigest(np.sort(rows).tobytes())


def _rows(live: LiveQuery, items: Sequence[str | api.ItemIn]) -> Ints:
    """Return the rows of items in the order given; raise if some are no longer candidates.

    They were when the request came, but it may have waited since.
    """
    names = ids_of(items)
    rows = live.rows_of(names)
    if None in rows:
        raise not_candidates([name for name, row in zip(names, rows, strict=True) if row is None])
    known = np.array(rows, np.int64)
    if not live.state.active[known].all():
        reject_withdrawn(live, names, rows)
    return known
