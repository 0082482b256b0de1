"""Roll-up: old entries become part of the snapshot, and leave the log.

A portion of the log is added up as `counting` says, added to the snapshot, and deleted, in one
transaction that holds the rows of its queries. After each portion counts = snapshot + log, so a
roll-up can be interrupted at any point. Writes to one of these queries wait for a portion; the
pause after it is as long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebrank.service.store.counting import Placed, steps
from ebrank.service.store.postgresql import forgetting
from ebrank.service.store.postgresql.database import Connections
from ebrank.service.store.postgresql.log_rows import EVENTS, RANKINGS, Row, event, listed, ranking
from ebrank.service.store.records import RolledUp

if TYPE_CHECKING:
    import asyncpg

PORTION = 300
"""Entries per transaction."""

_HEAD = """SELECT seq, query, time FROM (
    (SELECT seq, query, time FROM rankings WHERE seq > $1 ORDER BY seq LIMIT $2)
    UNION ALL (SELECT seq, query, received FROM events WHERE seq > $1 ORDER BY seq LIMIT $2)
    ) AS head ORDER BY seq LIMIT $2"""
_LOCK = "SELECT 1 FROM queries WHERE number = ANY ($1::bigint[]) ORDER BY number FOR UPDATE"
_OLD = " WHERE seq = ANY ($1::bigint[])"
_ADD = """INSERT INTO snapshot AS s SELECT *, 0 FROM unnest(
    $1::bigint[], $2::integer[], $3::smallint[], $4::smallint[], $5::integer[])
    ON CONFLICT (query, place, outcome, slot) DO UPDATE SET count = s.count + excluded.count"""


async def roll_up(database: Connections, before: float, oldest_minute: float) -> RolledUp:
    """Roll up each query's entries up to the first that is younger; drop sums of older minutes."""
    total, after, young = RolledUp(), -1, set[int]()
    while True:
        began = time.perf_counter()
        async with database.reader() as connection:
            head = await connection.fetch(_HEAD, after, PORTION)
            old = []
            for seq, query, when in head:
                if when >= before:
                    young.add(query)
                elif query not in young:
                    old.append((seq, query))
            if not old:
                break
            async with connection.transaction():
                moved = await _moved(connection, *map(list, zip(*old, strict=True)))
        total = RolledUp(total.rankings + moved.rankings, total.events + moved.events)
        after = head[-1][0]
        await asyncio.sleep(time.perf_counter() - began)
    async with database.reader() as connection:
        await connection.execute("DELETE FROM minutes WHERE start < $1", oldest_minute)
    return total


async def _moved(connection: asyncpg.Connection, seqs: list[int], queries: list[int]) -> RolledUp:
    """Move these entries to the snapshot, unless another server has."""
    await connection.execute(_LOCK, sorted(set(queries)))
    rankings = await connection.fetch(RANKINGS + _OLD, seqs)
    events = await connection.fetch(EVENTS + _OLD, seqs)
    names = _ByPlace()
    placed: list[tuple[int, Placed]] = [
        *((row["seq"], (row["query"], _named(row), ranking(row, names))) for row in rankings),
        *((row["seq"], (row["query"], [row["place"]], event(row, names))) for row in events),
    ]
    entries = [entry for _, entry in sorted(placed, key=lambda one: one[0])]
    if any(entry.epoch for _, _, entry in entries):
        await forgetting.add(connection, "snapshot", entries)
    else:
        await _add(connection, entries)
    for table in ("rankings", "events"):
        await connection.execute(f"DELETE FROM {table} {_OLD}", seqs)
    return RolledUp(len(rankings), len(events))


class _ByPlace(dict[int, str]):
    """Names of items that nobody will see, only to tell them apart."""

    def __missing__(self, place: int) -> str:
        return str(place)


def _named(row: Row) -> list[int]:
    """Return the places of the items that a list names."""
    return [*listed(row["items"]), *listed(row["would_rank"])]


async def _add(connection: asyncpg.Connection, entries: Sequence[Placed]) -> None:
    """Add entries to the snapshot of a store that forgets nothing."""
    counts: dict[tuple[int, int, int, int], int] = {}
    for query, places, entry in entries:
        for place, outcome, slot, amount in steps(entry, places):
            key = query, place, outcome, slot
            counts[key] = counts.get(key, 0) + amount
    rows = [(*key, amount) for key, amount in counts.items() if amount]
    if rows:
        await connection.execute(_ADD, *map(list, zip(*rows, strict=True)))
