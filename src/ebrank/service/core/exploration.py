"""How far exploration may change a list, and for how long a user's list stays as it is.

Guardrails are off by default. Here the best by score is the worst by relevance:

>>> score_order, relevance_order = np.array([3, 0, 1, 2]), np.array([0, 1, 2, 3])
>>> guarded(score_order, relevance_order, 2).tolist()
[3, 0]
>>> guarded(score_order, relevance_order, 2, max_promotion=2).tolist()
[0, 3]
>>> guarded(score_order, relevance_order, 2, max_explored=0).tolist()
[0, 1]
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.service.core.packed import ROOM, PackedCache, decode, encode
from ebrank.typing import Ints, SmallInts

NOTHING: Ints = np.zeros(0, np.int64)

_HEAD = struct.Struct("<dIII")


def guarded(
    score_order: Ints,
    relevance_order: Ints,
    k: int,
    *,
    offset: int = 0,
    above: Ints = NOTHING,
    max_explored: int | None = None,
    max_promotion: int | None = None,
) -> Ints:
    """Return the first `offset + k` by score, as far as the guardrails allow in lists of k.

    The order begins with those `above`, which were made before. Its lists end at rank `offset + k`,
    at `offset`, and so on upwards. A slot is explored if its item is below its list by relevance
    alone. An item is promoted by its rank by relevance alone, among all items, minus its rank here.
    Every rank gets the best item by score that both limits allow there. There is always one: of the
    i best by relevance, at least one is left for rank i. Without any explored slot there is no
    exploration: the order is by relevance.
    """
    depth = offset + k
    if max_explored is None and max_promotion is None:
        return followed(above, score_order)[:depth]
    if max_explored == 0:
        return followed(above, relevance_order)[:depth]
    places = np.empty(len(relevance_order), np.int64)
    places[relevance_order] = np.arange(1, len(relevance_order) + 1)
    reach = len(score_order) if max_promotion is None else max_promotion
    below = followed(above, score_order)[len(above) :]
    reachable = below[places[below] <= depth + reach]
    waiting = list(zip(reachable.tolist(), places[reachable].tolist(), strict=True))
    most = k if max_explored is None else max_explored
    chosen, end, left = above.tolist(), 0, most
    for rank in range(len(above) + 1, min(depth, len(score_order)) + 1):
        if rank > end:  # another list begins, or goes on after those above
            end = rank + (offset - rank) % k
            left = most - int(np.count_nonzero(places[above[max(end - k, 0) :]] > end))
        at = next(
            at
            for at, (_, place) in enumerate(waiting)
            if place <= rank + reach and (place <= end or left > 0)
        )
        item, place = waiting.pop(at)
        left -= place > end
        chosen.append(item)
    return np.array(chosen, np.int64)


def followed(first: Ints, others: Ints) -> Ints:
    """Return an order that begins with some items, and goes on with the others in their order."""
    if not len(first):
        return others
    return np.concatenate([first, others[~np.isin(others, first)]])


def explored(listed: Ints, relevance_order: Ints, offset: int = 0) -> npt.NDArray[np.bool_]:
    """Return for each slot whether its item would be below this list by relevance alone.

    `offset` is how many ranks are above the list.
    """
    outside = np.ones(len(relevance_order), np.bool_)
    outside[relevance_order[: offset + len(listed)]] = False
    return outside[listed]


def resumed(kept: Ints, relevance_order: Ints, k: int) -> Ints:
    """Return the first k of an order that a user has seen, without items that are gone.

    The best by relevance fill free slots: exploration waits until the window is over.

    >>> resumed(np.array([9, 3, 0]), np.array([0, 1, 2, 3]), 3).tolist()
    [3, 0, 1]
    """
    still = kept[np.isin(kept, relevance_order)][:k]
    others = relevance_order[~np.isin(relevance_order, still)]
    return np.concatenate([still, others[: k - len(still)]])


class ListKey(NamedTuple):
    """Whose list it is: a user's of a query, among all candidates (None) or some (their hash).

    In another life of the query, rows have other items.
    """

    query: str
    user: str
    among: int | None = None
    explore: bool = True
    life: int = 0

    def packed(self) -> bytes:
        """Return its key in memory, which begins with the user's hash."""
        text = f"{self.life}:{self.among}:{self.explore}:{self.query}"
        return encode(self.user) + hashlib.blake2b(encode(text), digest_size=16).digest()


class Kept(NamedTuple):
    """An order that was made for a user, from the first rank on.

    Attributes:
        rows: the items, by their rows.
        ranks: at which rank each one's impression counts; 0 for those not yet served.
        depth: how many ranks were made.
        k: the length of a list when it was made.
        view: the first list that was served from it; None before there is one that counts.
        until: when the window ends.
    """

    rows: SmallInts
    ranks: SmallInts
    depth: int
    k: int
    view: str | None
    until: float

    def ranks_of(self, rows: Ints) -> tuple[int, ...]:
        """Return the ranks at which impressions of these items already count, 0 for others."""
        known = dict(zip(self.rows.tolist(), self.ranks.tolist(), strict=True))
        return tuple(known.get(row, 0) for row in rows.tolist())

    def packed(self) -> bytes:
        """Return it as bytes, which take less memory."""
        head = _HEAD.pack(self.until, self.k, self.depth, len(self.rows))
        return b"".join([head, self.rows.tobytes(), self.ranks.tobytes(), encode(self.view or "")])

    @classmethod
    def unpacked(cls, data: bytes) -> Kept:
        """Return the order that was packed."""
        until, k, depth, count = _HEAD.unpack_from(data)
        rows, ranks = np.frombuffer(data, np.int32, 2 * count, _HEAD.size).reshape(2, count)
        view = decode(data[_HEAD.size + 2 * rows.nbytes :]) or None
        return cls(rows, ranks, depth, k, view, until)


class Windows:
    """The orders that users have seen recently, in memory; drops the least recently used first."""

    def __init__(self, seconds: float, room: int = ROOM) -> None:
        self._seconds = seconds
        self.cache: PackedCache[bytes] = PackedCache(room)

    def get(self, page: ListKey, now: float) -> Kept | None:
        """Return the order a user has seen within the window."""
        data = self.cache.get(page.packed())
        kept = None if data is None else Kept.unpacked(data)
        return None if kept is None or now >= kept.until else kept

    async def forget(self, user: str) -> None:
        """Forget what a user has seen."""
        begins = encode(user)
        await self.cache.drop(lambda key: key.startswith(begins))

    def keep(
        self, page: ListKey, order: Ints, offset: int, k: int, ranking_id: str | None, now: float
    ) -> None:
        """Remember an order of which the ranks from `offset` on were served as a list.

        An impression counts at the rank where the user first saw its item, for the first list of
        the window. A list that does not count has no `ranking_id`. Seeing an order again does not
        extend its window.
        """
        kept = self.get(page, now)
        if kept is None:
            none = np.zeros(0, np.int32)
            kept = Kept(none, none, 0, k, None, now + self._seconds)
        rows = np.concatenate([kept.rows, order[~np.isin(order, kept.rows)]]).astype(np.int32)
        ranks = np.zeros(len(rows), np.int32)
        ranks[: len(kept.ranks)] = kept.ranks
        if ranking_id is not None:
            listed = dict(zip(order[offset:].tolist(), itertools.count(offset + 1), strict=False))
            for at, row in enumerate(rows.tolist()):
                if not ranks[at]:
                    ranks[at] = listed.get(row, 0)
        depth, view = max(kept.depth, len(order)), kept.view or ranking_id
        updated = Kept(rows, ranks, depth, kept.k, view, kept.until)
        self.cache.put(page.packed(), updated.packed())
