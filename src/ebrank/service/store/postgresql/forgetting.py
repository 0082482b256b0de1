"""Counters of a store that forgets: read, added to in the order of the log, and written back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ebrank.service.store.counting import ItemCounts, Placed, changed_counts, places_of

if TYPE_CHECKING:
    import asyncpg

_READ = """SELECT t.query, t.place, outcome, slot, count, epoch
    FROM unnest($1::bigint[], $2::integer[]) AS g (query, place)
    JOIN {table} AS t ON t.query = g.query AND t.place = g.place"""
_WRITE = """INSERT INTO {table} SELECT * FROM unnest(
    $1::bigint[], $2::integer[], $3::smallint[], $4::smallint[], $5::integer[], $6::integer[])
    ON CONFLICT (query, place, outcome, slot) DO UPDATE
    SET count = excluded.count, epoch = excluded.epoch"""


async def add(connection: asyncpg.Connection, table: str, entries: Sequence[Placed]) -> None:
    """Add entries to the counts of a table, `evidence` or `snapshot`.

    The transaction holds the rows of their queries, so nobody else changes these counts.
    """
    places = places_of(entries)
    pairs = sorted(set(places.values()))
    before: dict[tuple[int, int], ItemCounts] = {}
    numbers, wanted = [number for number, _ in pairs], [place for _, place in pairs]
    for number, place, outcome, slot, count, epoch in await connection.fetch(
        _READ.format(table=table), numbers, wanted
    ):
        item = before.setdefault((number, place), ItemCounts(epoch=epoch))
        item.counts[outcome, slot] = count
    changed = changed_counts(entries, places, before)
    if changed:
        columns = map(list, zip(*changed, strict=True))
        await connection.execute(_WRITE.format(table=table), *columns)
