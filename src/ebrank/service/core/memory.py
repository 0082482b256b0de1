"""How much memory the service may take: what there is, and who gets how much of it."""

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
"""The process may be so much larger than its limit before caches shrink."""
_STATM = Path("/proc/self/statm")

log = logging.getLogger("ebrank.service")


class Cache(Protocol):
    """What can be told how much it may hold."""

    room: int

    @property
    def size(self) -> int:
        """Bytes it takes."""
        ...

    def trim(self) -> None:
        """Drop what there is no room for, or some of it if that is much."""
        ...


class Memory:
    """Shares the memory of the process out among caches.

    They get what the limit leaves beside the process as it starts and a reserve, each by its share.
    What they take is an estimate. Should the process be larger than its limit all the same, they
    shrink until it is not, down to a quarter: memory that is free again may not be given back.

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
        """Measure the process before it has remembered anything, and share the rest out."""
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
        """Look how large the process has become, and change the room of the caches."""
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
    """Return the memory that this process takes; where that is unknown, the most it ever took."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
