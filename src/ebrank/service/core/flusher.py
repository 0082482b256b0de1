"""Group commit: everybody who waits for the disk shares one flush.

A write that survives the process takes some ten microseconds, one that survives a power cut takes a
flush, which is milliseconds. So a request writes at once, and then waits here with all others.

>>> from ebrank.service.store.memory import MemoryStore
>>> async def session() -> None:
...     flusher = Flusher(MemoryStore())
...     await flusher.flushed()  # wait for this before the answer leaves
...     await flusher.close()
>>> asyncio.run(session())
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ebrank.service.core.clock import log
from ebrank.service.store.base import Store, StoreError


class Flusher:
    """Flushes a store for all who asked before a flush began.

    Attributes:
        on_flush: is given the seconds that each flush took.
    """

    def __init__(self, store: Store) -> None:
        self.on_flush: Callable[[float], None] = lambda seconds: None
        self._store = store
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many wait for the next flush."""
        return len(self._waiting)

    async def flushed(self) -> None:
        """Return when all that was written so far is on disk.

        If the flush fails, all who wait for it get the error. What was written stays written: it
        may or may not survive a power cut, and the same event sent again is a duplicate.
        """
        if self._closed:
            raise StoreError("the service is closing and takes nothing more")
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await future  # one's own: a caller that goes away takes nobody along

    async def close(self) -> None:
        """Flush for those who wait, and stop; the store stays open."""
        self._closed = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._waiting:
            together, self._waiting = self._waiting, []
            began = time.perf_counter()
            problem: Exception | None = None
            try:
                await self._store.flush()
            except Exception as failed:  # whatever a store raises, those who wait must know
                problem = failed
            else:
                self._measured(time.perf_counter() - began)
            for future in together:
                if future.done():
                    continue  # its caller has left
                if problem is None:
                    future.set_result(None)
                else:
                    future.set_exception(problem)
        self._task = None

    def _measured(self, seconds: float) -> None:
        try:
            self.on_flush(seconds)
        except Exception:  # whoever measures may not stop what is measured
            log.exception("the time of a flush was not noted")
