"""From a request to a list: who takes part, in which order, and for whom it stays the same."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from ebrank.service import api
from ebrank.service.core import lists
from ebrank.service.core.exploration import ListKey, Windows
from ebrank.service.core.lists import Listing, ScoredCandidates
from ebrank.service.core.problems import Problem
from ebrank.service.core.queries import LiveQuery, encode
from ebrank.service.learning.models import Model
from ebrank.service.settings import Settings
from ebrank.typing import Ints


@dataclass(frozen=True)
class Choice:
    """The list to serve, and in shadow mode the one EBRank would have served."""

    served: Listing
    would: Listing | None = None


class Chooser:
    """Makes lists by the settings.

    Attributes:
        examination: p of the ranks.
        windows: what users have seen lately.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.ranking
        self.windows = Windows(settings.ranking.window)
        self._draws = np.random.PCG64()
        self.examination = settings.examination.examination()(np.arange(1, api.MOST_RANKS + 1))

    def choose(
        self,
        request: api.RankRequest,
        live: LiveQuery,
        model: Model,
        user: str | None,
        now: float,
        expected: float | None,
    ) -> Choice:
        """Return the list that answers a request of a query expected to get so many lists."""
        k = request.k or self._settings.k
        if self._settings.mode == "shadow":
            return self._shadow(request, live, model, k, expected)
        only = None if request.items is None else _rows(live, request.items)
        candidates = lists.scored(live, model, only, draws=self._draws, lists=expected)
        if not request.explore:
            return Choice(lists.relevance_list(candidates, k, self.examination))
        if user is None or not self._settings.window:
            return Choice(self._explored(candidates, k))
        page = ListKey(live.state.query, user, None if only is None else _hash(only))
        return Choice(self._stable(candidates, page, k, now))

    def _explored(self, candidates: ScoredCandidates, k: int) -> Listing:
        return lists.explored_list(candidates, k, self._settings, self.examination)

    def _stable(self, candidates: ScoredCandidates, page: ListKey, k: int, now: float) -> Listing:
        kept = self.windows.get(page, now)
        chosen = (
            self._explored(candidates, k)
            if kept is None
            else lists.resumed_list(candidates, kept, k, self._settings, self.examination)
        )
        self.windows.keep(page, chosen.rows, k, now)
        return chosen

    def _shadow(
        self,
        request: api.RankRequest,
        live: LiveQuery,
        model: Model,
        k: int,
        expected: float | None,
    ) -> Choice:
        if request.items is None:
            raise Problem("in shadow mode a request gives its own order: items", "items")
        rows = _rows(live, request.items)
        candidates = lists.scored(live, model, rows, draws=self._draws, lists=expected)
        served = lists.listing(candidates, np.arange(min(k, len(rows))), self.examination)
        # The caller's order is not our exploration, whatever it costs.
        own = Listing(candidates, served.places, np.zeros(len(served.places), np.bool_), 0.0)
        return Choice(own, self._explored(candidates, k))


def ids_of(items: Sequence[str | api.ItemIn]) -> list[str]:
    """Return the names in a request, each once."""
    return list(dict.fromkeys(item if isinstance(item, str) else item.id for item in items))


def hashed(user: str, salt: str) -> str:
    """Return what the log says instead of a user's name; without the salt it reveals nothing."""
    return hashlib.blake2b(encode(user), key=salt.encode(), digest_size=8).hexdigest()


def check_known(live: LiveQuery | None, items: Sequence[str | api.ItemIn]) -> None:
    """Refuse names that are no candidates, unless the same request makes them candidates.

    Withdrawn items are refused in any case: who may only rank must not bring them back.
    """
    new = {item.id for item in items if not isinstance(item, str)}
    names = ids_of(items)
    rows = [None] * len(names) if live is None else live.rows_of(names)
    known = dict(zip(names, rows, strict=True))
    unknown = [name for name, row in known.items() if row is None and name not in new]
    if unknown:
        raise Problem(f"no candidates of this query: {_listed(unknown)}", "items")
    withdrawn = [
        name
        for name, row in known.items()
        if live is not None and row is not None and not live.state.active[row]
    ]
    if withdrawn:
        raise Problem(
            f"withdrawn from this query: {_listed(withdrawn)}. "
            "PUT /v1/queries/{query}/items brings them back",
            "items",
        )


def _listed(names: Sequence[str]) -> str:
    others = f" and {len(names) - 10} others" if len(names) > 10 else ""
    return ", ".join(repr(name) for name in names[:10]) + others


def _hash(rows: Ints) -> int:
    """Return a number for a set of rows, whatever their order."""
    return xxhash.xxh3_64_intdigest(np.sort(rows).tobytes())


def _rows(live: LiveQuery, items: Sequence[str | api.ItemIn]) -> Ints:
    """Return the rows of items that are known to be candidates, in the order given."""
    return np.array(live.rows_of(ids_of(items)), np.int64)
