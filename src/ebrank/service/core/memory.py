"""Compact caches, and how they share the memory of the process.

A Python object takes far more than what it holds, and the garbage collector, which stops everything
meanwhile, visits each of its parts. It does not look into bytes or arrays: so names and unused
values are packed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import resource
import sys
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Generic, Protocol, TypeVar, overload

ROOM = 16 * 10**6
"""Default capacity of a cache, in bytes."""
ENTRY_BYTES = 136
"""Overhead of a packed value beyond its bytes and its key's: objects and a hash table entry."""
GENERATIONS = 8
"""Packed values are stored with those used at about the same time: an eighth of all."""
MOST_TOGETHER = 20_000
"""... and no more than this: copying a table that grows takes a millisecond then."""
DROPPED_AT_ONCE = 1000
"""The most to drop when another is kept: more would delay the request that keeps it."""

RESERVE_BYTES = 48 * 10**6
"""Left for requests under way, pages of the store and threads."""
LEAST_BYTES = 16 * 10**6
"""For caches, however small the limit is."""
TOLERANCE = 1.1
"""How far the process may exceed its limit before caches shrink."""
_STATM = Path("/proc/self/statm")

log = logging.getLogger("ebrank.service")

_Key = TypeVar("_Key", bound=Hashable)


def encode(text: str) -> bytes:
    """Encode any text as bytes, even lone surrogates, which UTF-8 rejects."""
    return text.encode("utf-8", "surrogatepass")


def decode(text: bytes) -> str:
    """Return the text that was encoded."""
    return text.decode("utf-8", "surrogatepass")


class PackedStrings(Sequence[str]):
    """An immutable list of short texts, stored as one text and the end of each.

    A Python string takes 50 bytes besides its text, which is too much for each item's name.

    >>> names = PackedStrings(["green", "tè nero"])
    >>> names[1], len(names), list(names.extended(["white"]))
    ('tè nero', 2, ['green', 'tè nero', 'white'])
    """

    __slots__ = ("_ends", "_text")

    def __init__(self, names: Sequence[str] = ()) -> None:
        encoded = [encode(name) for name in names]
        self._text = b"".join(encoded)
        self._ends = array("I", accumulate(map(len, encoded)))  # indexed faster than NumPy's

    @classmethod
    def of_parts(cls, text: bytes, ends: array[int]) -> PackedStrings:
        """Return the list with these `parts`."""
        names = cls()
        names._text, names._ends = text, ends
        return names

    @property
    def parts(self) -> tuple[bytes, array[int]]:
        """All texts as UTF-8, and the end of each."""
        return self._text, self._ends

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        end = self._ends[place]
        begin = self._ends[place - 1] if place % len(self) else 0
        return decode(self._text[begin:end])

    def __iter__(self) -> Iterator[str]:
        begin = 0
        for end in self._ends:
            yield decode(self._text[begin:end])
            begin = end

    def at(self, places: Sequence[int]) -> list[str]:
        """Return the texts at some places, counted from 0: faster than one by one."""
        text, ends = self._text, self._ends
        parts = [text[ends[at - 1] if at else 0 : ends[at]] for at in places]
        return [part.decode("utf-8", "surrogatepass") for part in parts]

    def extended(self, names: Sequence[str]) -> PackedStrings:
        """Return these names followed by others."""
        text, ends = PackedStrings(names).parts
        moved = array("I", (len(self._text) + end for end in ends))
        return PackedStrings.of_parts(self._text + text, self._ends + moved)


class PackedCache(Generic[_Key]):
    """An LRU cache of packed values by name, limited in bytes.

    As Python objects, a query with one item takes 4 KB, and the garbage collector, which stops
    everything meanwhile, visits each of its parts. It does not look into bytes.

    >>> cache = PackedCache(room=1000)
    >>> cache.put("tea", b"green")
    >>> cache.get("tea"), cache.get("coffee")
    (b'green', None)

    Of a million values, cachetools' LRU takes 302 bytes each where this takes 182, and holds the
    loop for 0.3 s when its dictionaries grow.

    Each table holds values stored or used within a span of time. Values are dropped from the oldest
    table, in no particular order. No table is so large that growing it would take long.

    Attributes:
        room: bytes it may take.
        size: bytes it takes.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self.size = 0
        self._tables: deque[dict[_Key, bytes]] = deque([{}])
        self._written = 0  # bytes, since the newest table was begun

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def put(self, key: _Key, value: bytes) -> None:
        """Keep a value, replacing another with this name."""
        self.pop(key)
        cost = _cost(key, value)
        if (
            self._written + cost > self.room // GENERATIONS
            or len(self._tables[-1]) >= MOST_TOGETHER
        ):
            self._begin_table()
        self._tables[-1][key] = value
        self._written += cost
        self.size += cost
        self.trim()

    def _begin_table(self) -> None:
        for at, (older, newer) in enumerate(itertools.pairwise(self._tables)):
            if len(older) + len(newer) <= MOST_TOGETHER // 8:  # much was taken out of them
                newer.update(older)
                del self._tables[at]
                break
        self._tables.append({})
        self._written = 0

    def get(self, key: _Key) -> bytes | None:
        """Return a value, which counts as used now."""
        value = self._tables[-1].get(key)
        if value is None:
            value = self.pop(key)
            if value is not None:
                self.put(key, value)
        return value

    def pop(self, key: _Key) -> bytes | None:
        """Remove a value and return it."""
        for table in reversed(self._tables):
            value = table.pop(key, None)
            if value is not None:
                self.size -= _cost(key, value)
                return value
        return None

    async def drop(self, concerns: Callable[[_Key], bool]) -> None:
        """Drop the values with some keys, with other requests in between."""
        for table in list(self._tables):  # the newest last: what is used moves there
            for key in [key for key in table if concerns(key)]:
                self.pop(key)
            await asyncio.sleep(0)

    def clear(self) -> None:
        """Drop everything."""
        self._tables = deque([{}])
        self.size = self._written = 0

    def trim(self) -> None:
        """Drop what exceeds the room, the longest unused first, or a part if that is a lot."""
        for _ in range(DROPPED_AT_ONCE):
            if self.size <= self.room:
                break
            while not self._tables[0]:
                self._tables.popleft()
            self.size -= _cost(*self._tables[0].popitem())


def _cost(key: _Key, value: bytes) -> int:
    return ENTRY_BYTES + len(key) + len(value)  # type: ignore[arg-type]


class Cache(Protocol):
    """A cache whose capacity can be changed."""

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
