"""How much memory the service may take, and how caches share it."""

from __future__ import annotations

import logging
import os
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

RESERVE_BYTES = 48 * 10**6
"""Left for requests under way, pages of the store and threads."""
LEAST_BYTES = 16 * 10**6
"""For caches, however small the limit is."""
TOLERANCE = 1.1
"""How far the process may exceed its limit before caches shrink."""
_STATM = Path("/proc/self/statm")

log = logging.getLogger("ebrank.service")


class Cache(Protocol):
    """A cache that can be told how much it may hold."""

    room: int

    @property
    def size(self) -> int:
        """Bytes it takes."""
        ...

    def trim(self) -> None:
        """Drop what exceeds the room, or a part if that is a lot."""
        ...


class Memory:
    """Divides the memory of the process among caches.

    They get what the limit leaves besides the process at its start and a reserve, each by its
    share. Their sizes are estimates. If the process still exceeds its limit, they shrink until it
    does not, down to a quarter: freed memory may not be returned to the system.

    Args:
        limit: bytes that the process may take.
        caches: with their shares of the room.
        resident: returns the bytes that the process takes.
    """

    def __init__(
        self,
        limit: int,
        caches: Sequence[tuple[Cache, float]],
        resident: Callable[[], int] | None = None,
    ) -> None:
        self._limit = limit
        self._caches = caches
        self._resident = resident or resident_bytes
        self._most = self._room = 0

    def start(self) -> None:
        """Measure the process before it caches anything, and divide the rest."""
        base = self._resident() + RESERVE_BYTES
        self._most = max(self._limit - base, LEAST_BYTES)
        if self._limit < base + LEAST_BYTES:
            log.warning(
                "limits.memory is %.0f MB, but the process needs %.0f MB before it caches "
                "anything, so it will exceed the limit. Set limits.memory to at least %.0f MB",
                self._limit / 1e6,
                base / 1e6,
                (base + 4 * LEAST_BYTES) / 1e6,
            )
        self._share(self._most)

    def adjust(self) -> None:
        """Measure the process, and adjust the room of the caches."""
        excess = self._resident() - self._limit * TOLERANCE
        if excess > 0:
            used = sum(cache.size for cache, _ in self._caches)
            self._share(max(int(min(used, self._room) - excess), self._most // 4))
        elif self._resident() < self._limit:
            self._share(min(self._room + self._most // 16, self._most))
        for cache, _ in self._caches:
            cache.trim()

    def _share(self, room: int) -> None:
        self._room = room
        for cache, share in self._caches:
            cache.room = int(room * share)


def resident_bytes() -> int:
    """Return the memory that this process takes; if unknown, the most it ever took."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
