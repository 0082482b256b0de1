"""The log: rankings and events in the order in which they were written, and its roll-up.

Entries of a query are in the order in which they were counted: a writer holds its row. Entries of
different queries that several servers wrote at the same time are in any order.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ebrank.service.store import counting
from ebrank.service.store.driver import Connection, Driver, StoreGroup
from ebrank.service.store.meta import touch
from ebrank.service.store.records import Operation, RankingEntry, RolledUp
from ebrank.service.store.tables import COUNTS, ENDS, ITEMS, QUERIES, SNAPSHOT, Row

PAGE = 1000
"""Entries of a kind read at a time: a long read would keep SQLite's WAL from shrinking."""
FIRST_PORTION, MOST_PORTION = 20, 200
"""Entries that are rolled up in one transaction."""
WANTED_SECONDS = 2e-3
"""How long such a transaction should take, of which 0.5 ms are the same for any portion."""
PAUSE = 9.0
"""Pause after a portion, as a multiple of its duration."""
MINUTES_AT_ONCE = 600.0
"""Sums of so many seconds are dropped in one transaction."""
HEAD, SLACK_SECONDS = 1000, 3600.0
"""The log begins at the earliest time of this many entries of a kind, or at most so much earlier:
its times are out of order by as much as servers' clocks differ."""

LAST_TIME = """SELECT CASE WHEN used > last_time THEN used ELSE last_time END
    FROM state, (SELECT coalesce(max(used), 0.0) AS used FROM queries) AS latest"""
END = f"SELECT coalesce(max(seq), 0) FROM {ENDS}"
_HEAD = """SELECT seq, query, time FROM (
    SELECT * FROM (SELECT seq, query, time FROM rankings WHERE seq > ?1
        ORDER BY seq LIMIT {limit}) AS lists
    UNION ALL SELECT * FROM (SELECT seq, query, received FROM events WHERE seq > ?1
        ORDER BY seq LIMIT {limit}) AS events
    ) AS head"""
BEGINNING = f"SELECT min(time) FROM ({_HEAD.format(limit=HEAD)}) AS beginning"
"""The time at which the log begins, None if it is empty; takes a number below its first."""


class StoredLog(StoreGroup):
    """Rankings and events, in the order in which they were written.

    Their times are in this order too if one server wrote them. Each server has its own clock, and
    takes the time before it waits for its turn.

    Attributes:
        write: logs operations; see `Driver.log`.
        pause: waits for some seconds between two portions of a roll-up.
    """

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.write = driver.log
        self.pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        async with self._driver.read() as connection:
            rows = await connection.fetch(f"{counting.RANKING.selected} WHERE id = ?1", ranking_id)
            for _, (_, _, entry) in await named(connection, {counting.RANKING: rows}):
                assert isinstance(entry, RankingEntry)
                return entry
        return None

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order, up to its current end."""
        async for _, (_, _, entry) in self.numbered():
            yield entry

    async def numbered(self, after: int = -1) -> AsyncIterator[tuple[int, counting.Placed]]:
        """Yield what follows a number in the log, with numbers and with the places of items."""
        end = await self._number(END)
        while after < end:
            portion, after = await self._driver.read_long(partial(page, after=after, end=end))
            for numbered in portion:
                yield numbered

    async def length(self) -> int:
        """Return how many entries the log holds, or slightly more, for progress bars."""
        return await self._number(self._driver.texts["length"])

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""
        [(time,)] = await self._fetch(LAST_TIME)
        return float(time)

    async def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them.

        Of each query, only those up to the first that is younger. Sums of minutes that began before
        `minutes_before`, or else `before`, are dropped.

        A portion of the log is added and removed in one transaction, so that a roll-up can be
        interrupted at any point. Other writes wait for a portion. So it is small, smaller if it
        takes long, and after each comes a pause of many times its length: a long backlog takes
        longer, but requests hardly notice.

        From then on the store cannot know that such an event was counted: the caller must reject
        events of rankings slightly younger than `before`, or one in flight may count twice.
        """
        total, portion, after, young = RolledUp(), FIRST_PORTION, -1, set[int]()
        end = await self._number(END)
        head = f"{_HEAD.format(limit='?2')} ORDER BY seq LIMIT ?2"
        while after < end:
            began = clock.perf_counter()
            async with self._driver.chore() as connection:
                rows = await connection.fetch(head, after, portion)
                old = list[Row]()
                for row in rows:
                    if row[2] >= before:
                        young.add(row[1])
                    elif row[1] not in young:
                        old.append(row)
                moved = await _moved(connection, old) if old else RolledUp()
            if not old:
                break
            total = RolledUp(total.rankings + moved.rankings, total.events + moved.events)
            after = rows[-1][0]
            portion = await self._paused(began, portion)
        while not await self._minutes_dropped(before if minutes_before is None else minutes_before):
            pass
        return total

    async def _minutes_dropped(self, before: float) -> bool:
        """Drop sums of some old minutes; return whether none are left."""
        began = clock.perf_counter()
        async with self._driver.chore() as connection:
            [(oldest,)] = await connection.fetch("SELECT min(start) FROM minutes")
            if oldest is None or oldest >= before:
                return True
            border = min(before, oldest + MINUTES_AT_ONCE)
            await connection.execute("DELETE FROM minutes WHERE start < ?1", border)
        await self._paused(began, 1)
        return False

    async def _paused(self, began: float, portion: int) -> int:
        """Let others write after a portion of this size; return the size of the next."""
        took = clock.perf_counter() - began
        await self.pause(PAUSE * took)
        return next_portion(portion, took)


def next_portion(portion: int, took: float) -> int:
    """Return the size of the next portion, given the size and duration of the last.

    >>> next_portion(100, took=0.1e-3), next_portion(100, took=2e-3), next_portion(100, took=1.0)
    (200, 100, 50)
    """
    fitting = portion * WANTED_SECONDS / max(took, 1e-6)
    return int(max(min(max(fitting, portion / 2), portion * 2, MOST_PORTION), 1))


async def page(
    connection: Connection, after: int, end: int, most: int = PAGE
) -> tuple[list[tuple[int, counting.Placed]], int]:
    """Return some entries after a number and up to another, in order, and the last number.

    `most` are read of a kind.
    """
    where = "WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3"
    parts = {
        codec: await connection.fetch(f"{codec.selected} {where}", after, end, most)
        for codec in counting.CODECS
    }
    # What follows a full page is not read yet: the other kind must not run ahead of it.
    last = min([end, *(part[-1][0] for part in parts.values() if len(part) == most)])
    rows = {codec: [row for row in part if row[0] <= last] for codec, part in parts.items()}
    return await named(connection, rows), last


async def named(
    connection: Connection, parts: Mapping[counting.Codec, Sequence[Row]]
) -> list[tuple[int, counting.Placed]]:
    """Return the entries of rows, by their numbers in the log, in order.

    Entries of a query that has been deleted since its rows were read are left out.
    """
    rows = [
        (codec, row, counting.places_of(codec, row))
        for codec, part in parts.items()
        for row in part
    ]
    keys = {(row[1], place) for _, row, places in rows for place in places}
    names: dict[int, dict[int, str]] = {row[1]: {} for _, row, _ in rows}
    columns, key = ("query", "place", "id"), ("query", "place")
    for query, place, name in await connection.matching(ITEMS, columns, key, keys):
        names[query][place] = name
    nameless = [(query,) for query, of_query in names.items() if not of_query]
    there = await connection.matching(QUERIES, ("number",), ("number",), nameless)
    gone = {query for (query,) in nameless} - {query for (query,) in there}
    entries = [
        (row[0], (row[1], places, counting.entry_of(codec, row, names[row[1]])))
        for codec, row, places in rows
        if row[1] not in gone
    ]
    return sorted(entries, key=lambda numbered: numbered[0])


class _ByPlace(dict[int, str]):
    """Placeholder names of items: a roll-up needs only to tell items apart."""

    def __missing__(self, place: int) -> str:
        return str(place)


async def _moved(connection: Connection, old: Sequence[Row]) -> RolledUp:
    """Add entries, given by their numbers and queries, to the snapshot, unless another server has.

    Those of a query that is being deleted are removed.
    """
    numbers = sorted({query for _, query, _ in old})
    await connection.execute(
        "UPDATE state SET rolled_up = CASE WHEN rolled_up < ?1 THEN ?1 ELSE rolled_up END",
        old[-1][0],
    )
    await touch(connection, max(time for *_, time in old))
    await connection.lock(numbers)
    keys = [(number,) for number in numbers]
    names: dict[int, str] = dict(
        await connection.matching(QUERIES, ("number", "name"), ("number",), keys)
    )
    entries, counts = list[tuple[int, counting.Placed]](), list[int]()
    seqs = [(seq,) for seq, *_ in old]
    for codec in counting.CODECS:
        rows = await connection.matching(codec.table, codec.columns, ("seq",), seqs)
        for row in rows:
            if row[1] in names:
                entry = counting.entry_of(codec, (*row, names[row[1]]), _ByPlace())
                entries.append((row[0], (row[1], counting.places_of(codec, row), entry)))
        await connection.many(f"DELETE FROM {codec.table.name} WHERE seq = ?1", seqs)
        counts.append(len(rows))
    entries.sort(key=lambda numbered: numbered[0])
    moved = [entry for _, entry in entries]
    epoch = counting.latest_epoch(moved)
    places = counting.named_places(moved) if epoch else set[counting.Place]()
    before: Any = await connection.matching(SNAPSHOT, COUNTS, ("query", "place"), places)
    await connection.insert(SNAPSHOT, *counting.counted(moved, epoch, before))
    return RolledUp(*counts)
