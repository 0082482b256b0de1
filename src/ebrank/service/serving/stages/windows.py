"""Windows: for how long a user's list stays as it is, and pages that continue it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec
import numpy as np
import xxhash

from ebrank.service.core.memory import ROOM, PackedCache, encode
from ebrank.service.core.models import Deployment
from ebrank.service.serving.lists import Draft, KeptOrder, ListKey, Logged, Stage
from ebrank.typing import Ints

_read = msgspec.msgpack.Decoder(KeptOrder).decode
_packed = msgspec.msgpack.Encoder().encode


class Windows(Stage):
    """The orders that users have seen recently, in memory; drops the least recently used first.

    Attributes:
        cache: the packed orders.
    """

    columns: ClassVar = ("user", "continues", "seen")

    def __init__(self, seconds: float, timer: Callable[[], float], room: int = ROOM) -> None:
        self._seconds, self._timer = seconds, timer
        self._making: dict[ListKey, asyncio.Future[None]] = {}  # lists on their way to the log
        self.cache: PackedCache[bytes] = PackedCache(room)

    def on(self, deployment: Deployment) -> bool:
        """Return whether lists stay for a while."""
        return self._seconds > 0.0

    def shape(self, draft: Draft) -> None:
        """Keep the order that the user has seen within the window."""
        entry = draft.entry
        if entry.user is None:
            return
        among = None if draft.rows is None else _hash(draft.rows)
        arm = "" if draft.arm is None else draft.arm.label
        page = ListKey(entry.query, entry.user, among, draft.request.explore, draft.live.life, arm)
        draft.page, draft.kept = page, self.get(page)

    def logged(self, logged: Logged) -> None:
        """Remember the order of a list that was served."""
        draft = logged.draft
        if draft is not None and draft.page is not None:
            rows = draft.candidates.rows[draft.order]
            self.keep(draft.page, rows, draft.entry.offset, draft.entry.id)

    def under_way(self, page: ListKey) -> asyncio.Future[None] | None:
        """Return what to wait for, if the same list is on its way to the log already."""
        return self._making.get(page)

    @contextmanager
    def making(self, page: ListKey) -> Iterator[None]:
        """Let those wait that ask for the same list meanwhile."""
        self._making[page] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._making.pop(page).set_result(None)

    def get(self, page: ListKey) -> KeptOrder | None:
        """Return the order a user has seen within the window."""
        data = self.cache.get(page.packed())
        kept = None if data is None else _read(data)
        return None if kept is None or self._timer() >= kept.until else kept

    async def forget(self, user: str) -> None:
        """Forget what a user has seen."""
        begins = encode(user)
        await self.cache.drop(lambda key: key.startswith(begins))

    def keep(self, page: ListKey, order: Ints, offset: int, ranking_id: str) -> None:
        """Remember an order of which the ranks from `offset` on were served as a list.

        An impression counts at the rank where the user first saw its item, for the first list of
        the window. Seeing an order again does not extend its window.
        """
        kept = self.get(page)
        if kept is None:
            kept = KeptOrder([], [], 0, ranking_id, self._timer() + self._seconds)
        ranks = dict(zip(kept.rows, kept.ranks, strict=True))
        for rank, row in enumerate(order.tolist(), 1):
            ranks[row] = ranks.get(row) or (rank if rank > offset else 0)
        depth = max(kept.depth, len(order))
        updated = KeptOrder([*ranks], [*ranks.values()], depth, kept.view, kept.until)
        self.cache.put(page.packed(), _packed(updated))


def _hash(rows: Ints) -> int:
    """Return a number for a set of rows, in any order."""
    return xxhash.xxh3_64_intdigest(np.sort(rows).tobytes())
