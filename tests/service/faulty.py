"""The store in memory, as if its disk could be full, damaged, or fail to flush."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore


class FaultyStore(MemoryStore):
    """Refuses to write while it is `full`; counts writes to the log, of items, and flushes."""

    def __init__(self) -> None:
        super().__init__()
        self.full = self.damaged = self.broken = self.stuck = False
        self.writes = 0
        self.puts = 0
        self.flushes = 0
        self.log.write = self._counted(self.log.write, "writes")
        self.items.load = self._readable(self.items.load)  # type: ignore[method-assign]
        self.items.put = self._counted(self.items.put, "puts")  # type: ignore[method-assign]
        self.meta.set = self._checked(self.meta.set)  # type: ignore[method-assign]
        self.meta.add = self._checked(self.meta.add)  # type: ignore[method-assign]

    async def flush(self) -> None:
        self.flushes += 1
        if self.broken:
            raise StoreError("/store/log.db: the disk failed to flush (Input/output error)")
        while self.stuck:
            await asyncio.sleep(0.01)

    def _readable(self, read: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        async def readable(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the store's)
            if self.damaged:
                raise StoreError("/store/log.db: the database is damaged. Restore a backup")
            return await read(*given, **named)

        return readable

    def _checked(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        async def checked(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the store's)
            if self.full:
                raise StoreError("/store/log.db: the disk is full. Free some space")
            return await write(*given, **named)

        return checked

    def _counted(self, write: Callable[..., Awaitable[Any]], kind: str) -> Callable[..., Any]:
        checked = self._checked(write)

        async def counted(*given: Any, **named: Any) -> Any:  # noqa: ANN401 (as the store's)
            setattr(self, kind, getattr(self, kind) + 1)
            return await checked(*given, **named)

        return counted
