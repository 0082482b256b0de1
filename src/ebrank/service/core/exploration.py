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
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ebrank.service.core.queries import ROOM, PackedCache, encode
from ebrank.typing import Ints

_HEAD = struct.Struct("<dI")


def guarded(
    score_order: Ints,
    relevance_order: Ints,
    k: int,
    *,
    max_explored: int | None = None,
    max_promotion: int | None = None,
) -> Ints:
    """Return the first k of the order by score, as far as the guardrails let it.

    A slot is explored if its item is not among the first k by relevance alone. An item is promoted
    by its rank by relevance alone minus its rank here. Every rank gets the best item by score that
    both limits let stand there. There always is one: of the i best by relevance, one at least is
    left for rank i. Without any explored slot there is no exploration: the order is by relevance.
    """
    if max_explored is None and max_promotion is None:
        return score_order[:k]
    if max_explored == 0:
        return relevance_order[:k]
    places = np.empty(len(relevance_order), np.int64)
    places[relevance_order] = np.arange(1, len(relevance_order) + 1)
    reach = len(score_order) if max_promotion is None else max_promotion
    left = max_explored if max_explored is not None else k
    reachable = score_order[places[score_order] <= k + reach]
    waiting = list(zip(reachable.tolist(), places[reachable].tolist(), strict=True))
    chosen: list[int] = []
    for rank in range(1, min(k, len(score_order)) + 1):
        at = next(
            at
            for at, (_, place) in enumerate(waiting)
            if place <= rank + reach and (place <= k or left > 0)
        )
        item, place = waiting.pop(at)
        left -= place > k
        chosen.append(item)
    return np.array(chosen, np.int64)


def explored(listed: Ints, relevance_order: Ints) -> npt.NDArray[np.bool_]:
    """Return for each slot whether its item would not be in this list by relevance alone."""
    outside = np.ones(len(relevance_order), np.bool_)
    outside[relevance_order[: len(listed)]] = False
    return outside[listed]


def resumed(kept: Ints, relevance_order: Ints, k: int) -> Ints:
    """Return a user's list again: what is gone drops out, and what is new waits at the end.

    Freed slots go to the best by relevance: exploration waits until the window is over.

    >>> resumed(np.array([9, 3, 0]), np.array([0, 1, 2, 3]), 3).tolist()
    [3, 0, 1]
    """
    still = kept[np.isin(kept, relevance_order)][:k]
    others = relevance_order[~np.isin(relevance_order, still)]
    return np.concatenate([still, others[: k - len(still)]])


class ListKey(NamedTuple):
    """Whose list it is: a user's of a query, among all candidates (None) or some (their hash)."""

    query: str
    user: str
    among: int | None = None

    def packed(self) -> bytes:
        """Return what stands for it in memory."""
        text = f"{len(self.query)}:{self.query}{self.user}:{self.among}"
        return hashlib.blake2b(encode(text), digest_size=16).digest()


class Kept(NamedTuple):
    """An order that a user has seen, by rows, and the k it was made for."""

    rows: Ints
    k: int
    until: float

    def packed(self) -> bytes:
        """Return it as bytes, which take less memory."""
        return _HEAD.pack(self.until, self.k) + self.rows.astype(np.int32).tobytes()

    @classmethod
    def unpacked(cls, data: bytes) -> Kept:
        """Return the order that was packed."""
        until, k = _HEAD.unpack_from(data)
        return cls(np.frombuffer(data, np.int32, offset=_HEAD.size).astype(np.int64), k, until)


class Windows:
    """The orders that users have seen lately, in memory; the least recently used ones go first."""

    def __init__(self, seconds: float, room: int = ROOM) -> None:
        self._seconds = seconds
        self.cache: PackedCache[bytes] = PackedCache(room)

    def get(self, page: ListKey, now: float) -> Kept | None:
        """Return the order a user has seen within the window."""
        data = self.cache.get(page.packed())
        kept = None if data is None else Kept.unpacked(data)
        return None if kept is None or now >= kept.until else kept

    def keep(self, page: ListKey, rows: Ints, k: int, now: float) -> None:
        """Remember an order; seen again within its window, it still ends when it was to end."""
        kept = self.get(page, now)
        if kept is None:
            kept = Kept(rows, k, now + self._seconds)
        else:
            unseen = rows[~np.isin(rows, kept.rows)]
            if not len(unseen):
                return
            kept = kept._replace(rows=np.concatenate([kept.rows, unseen]))
        self.cache.put(page.packed(), kept.packed())
