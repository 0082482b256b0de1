"""What goes on beside requests: saving sums, rolling up the log, starting the trainer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from ebrank.service.core.clock import log
from ebrank.service.store.base import StoreError

TICK_SECONDS = 1.0
SAVE_SECONDS = 5.0


class Housekeeping:
    """Chores, each done again and again at its interval, until closed."""

    def __init__(self, timer: Callable[[], float], tick: float = TICK_SECONDS) -> None:
        """Take a timer that nobody sets, such as `time.monotonic`."""
        self._timer = timer
        self._tick = tick
        self._chores: list[asyncio.Task[None]] = []

    def add(self, seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
        """Do a chore every so many seconds by the timer."""
        self._chores.append(asyncio.create_task(self._repeat(seconds, chore)))

    async def close(self) -> None:
        """Stop; a chore under way is finished or leaves nothing half done."""
        for task in self._chores:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._chores = []

    async def _repeat(self, seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
        last = self._timer()
        while True:
            await asyncio.sleep(min(self._tick, seconds))
            if self._timer() - last >= seconds:
                last = self._timer()
                try:
                    await chore()
                except StoreError as problem:  # requests are told too; the next time may do
                    log.warning("%s", problem)
