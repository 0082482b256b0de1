"""For how long a user's list stays as it is: the orders that users have seen recently."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import msgspec

from ebrank.service.core.memory import ROOM, PackedCache, encode
from ebrank.typing import Ints


def hashed(user: str, salt: str) -> str:
    """Return what the log holds instead of a user's name; without the salt it reveals nothing."""
    return hashlib.blake2b(encode(user), key=salt.encode(), digest_size=8).hexdigest()


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


_read = msgspec.msgpack.Decoder(KeptOrder).decode
_packed = msgspec.msgpack.Encoder().encode


class Windows:
    """The orders that users have seen recently, in memory; drops the least recently used first."""

    def __init__(self, seconds: float, room: int = ROOM) -> None:
        self._seconds = seconds
        self.cache: PackedCache[bytes] = PackedCache(room)

    def get(self, page: ListKey, now: float) -> KeptOrder | None:
        """Return the order a user has seen within the window."""
        data = self.cache.get(page.packed())
        kept = None if data is None else _read(data)
        return None if kept is None or now >= kept.until else kept

    async def forget(self, user: str) -> None:
        """Forget what a user has seen."""
        begins = encode(user)
        await self.cache.drop(lambda key: key.startswith(begins))

    def keep(self, page: ListKey, order: Ints, offset: int, ranking_id: str, now: float) -> None:
        """Remember an order of which the ranks from `offset` on were served as a list.

        An impression counts at the rank where the user first saw its item, for the first list of
        the window. Seeing an order again does not extend its window.
        """
        kept = self.get(page, now) or KeptOrder([], [], 0, ranking_id, now + self._seconds)
        ranks = dict(zip(kept.rows, kept.ranks, strict=True))
        for rank, row in enumerate(order.tolist(), 1):
            ranks[row] = ranks.get(row) or (rank if rank > offset else 0)
        depth = max(kept.depth, len(order))
        updated = KeptOrder([*ranks], [*ranks.values()], depth, kept.view, kept.until)
        self.cache.put(page.packed(), _packed(updated))
