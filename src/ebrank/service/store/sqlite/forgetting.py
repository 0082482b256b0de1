"""Counters of a store that forgets: read, added to in the order of the log, and written back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ebrank.service.store.counting import ItemCounts, Placed, changed_counts, places_of
from ebrank.service.store.records import EventEntry
from ebrank.service.store.sqlite.items import AT_ONCE


def add(connection: sqlite3.Connection, table: str, entries: Sequence[Placed]) -> None:
    """Add entries to the counts of a table, `evidence` or `snapshot`, within a transaction."""
    places = places_of(entries)
    changed = changed_counts(entries, places, _read(connection, table, places.values()))
    connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?, ?)", changed)


def only_adds(
    connection: sqlite3.Connection, table: str, entries: Sequence[Placed], epoch: int
) -> bool:
    """Return whether entries are lists, and counts of their items in this epoch already.

    Then they only add to them: most do.
    """
    for query, places, entry in entries:
        if isinstance(entry, EventEntry) or entry.epoch != epoch or len(places) > AT_ONCE:
            return False
        marks = ", ".join("?" * len(places))
        sql = f"SELECT 1 FROM {table} WHERE query = ? AND place IN ({marks}) AND epoch != ? LIMIT 1"
        if connection.execute(sql, (query, *places, epoch)).fetchone():
            return False
    return True


def _read(
    connection: sqlite3.Connection, table: str, places: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], ItemCounts]:
    """Return the counts of items by their queries' numbers and their places."""
    by_query: dict[int, set[int]] = {}
    for query, place in places:
        by_query.setdefault(query, set()).add(place)
    found: dict[tuple[int, int], ItemCounts] = {}
    for query, of_query in by_query.items():
        listed = sorted(of_query)
        for at in range(0, len(listed), AT_ONCE):
            some = listed[at : at + AT_ONCE]
            marks = ", ".join("?" * len(some))
            sql = (
                f"SELECT place, outcome, slot, count, epoch FROM {table} "
                f"WHERE query = ? AND place IN ({marks})"
            )
            for place, outcome, slot, count, epoch in connection.execute(sql, (query, *some)):
                item = found.setdefault((query, place), ItemCounts(epoch=epoch))
                item.counts[outcome, slot] = count
    return found
