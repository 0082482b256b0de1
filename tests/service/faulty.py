"""The store in memory, as if its disk could be full, damaged, or fail to flush."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore

FAULTS = {
    "full": "the disk is full. Free some space",
    "damaged": "the database is damaged. Restore a backup",
    "broken": "the disk failed to flush (Input/output error)",
}


class FaultyStore(MemoryStore):
    """Refuses to write while it is `full`; counts writes to the log, of items, and flushes."""

    def __init__(self) -> None:
        super().__init__()
        self.full = self.damaged = self.broken = self.stuck = False
        self.writes = self.puts = self.flushes = 0
        self.log.write = self._unless("full", self.log.write, "writes")
        self.items.load = self._unless("damaged", self.items.load)  # type: ignore[method-assign]
        self.items.put = self._unless("full", self.items.put, "puts")  # type: ignore[method-assign]
        self.meta.set = self._unless("full", self.meta.set)  # type: ignore[method-assign]
        self.meta.add = self._unless("full", self.meta.add)  # type: ignore[method-assign]
        self.flush = self._unless("broken", self._flushed, "flushes")  # type: ignore[method-assign]

    async def _flushed(self) -> None:
        while self.stuck:
            await asyncio.sleep(0.01)

    def _unless(
        self, fault: str, call: Callable[..., Awaitable[Any]], kind: str = ""
    ) -> Callable[..., Any]:
        async def guarded(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the store's)
            if kind:
                setattr(self, kind, getattr(self, kind) + 1)
            if getattr(self, fault):
                raise StoreError(f"/store/log.db: {FAULTS[fault]}")
            return await call(*given, **named)

        return guarded
