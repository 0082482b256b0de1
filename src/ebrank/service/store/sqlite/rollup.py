"""Roll-up: old entries become part of the snapshot, and leave the log.

Entries are added in the order of the log to what the snapshot holds, in Python, because only there
is the order of additions ours. While that is done nobody waits; the result is then moved into
place, and the entries are deleted, by a few statements in one transaction. After each such portion
counters = snapshot + log, so a roll-up can be interrupted at any point.
"""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Iterator, Sequence

from ebrank.service.store.counting import steps, time_of
from ebrank.service.store.records import RankingEntry, RolledUp
from ebrank.service.store.rows import Counters
from ebrank.service.store.sqlite import log_rows
from ebrank.service.store.sqlite.connection import transaction
from ebrank.service.store.sqlite.items import known_query
from ebrank.service.store.sqlite.log_rows import NumberedEntry
from ebrank.service.store.sqlite.meta import touch

PORTION = 1000
"""Entries per transaction: writers wait for some ten milliseconds at most."""

_SNAPSHOT = (
    "SELECT shown, clicks, weighted_clicks, exposure, first_shown FROM snapshot "
    "WHERE query = ? AND id = ?"
)


def roll_up(
    connection: sqlite3.Connection,
    writing: threading.RLock,
    stop: threading.Event,
    before: float,
    oldest_minute: float,
) -> RolledUp:
    """Roll up what is older than a time, over a connection that nobody else uses.

    It ends early, between two portions, if it is told to stop.
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS rolled AS SELECT * FROM snapshot LIMIT 0")
    rankings = events = 0
    for portion in _portions(connection, before):
        _fold(connection, portion)
        with writing, transaction(connection):
            _move(connection, last=portion[-1])
        shown = sum(isinstance(entry, RankingEntry) for _, entry in portion)
        rankings, events = rankings + shown, events + len(portion) - shown
        if stop.is_set():
            break
    with writing, transaction(connection):
        connection.execute("DELETE FROM minutes WHERE start < ?", (oldest_minute,))
    return RolledUp(rankings, events)


def _portions(connection: sqlite3.Connection, before: float) -> Iterator[Sequence[NumberedEntry]]:
    """Yield the head of the log, up to the first entry that is not older, in portions."""
    begin, end = log_rows.rolled_up(connection), log_rows.last_number(connection)
    log = (
        entry
        for after, last in log_rows.pages(begin, end)
        for entry in log_rows.page(connection, after, last)
    )
    old = itertools.takewhile(lambda entry: time_of(entry[1]) < before, log)
    while portion := list(itertools.islice(old, PORTION)):
        yield portion


def _fold(connection: sqlite3.Connection, portion: Sequence[NumberedEntry]) -> None:
    """Put into the temporary table what the snapshot's rows will be after these entries."""
    numbers: dict[str, int] = {}
    counters: dict[tuple[int, str], Counters] = {}
    for _, entry in portion:
        if entry.query not in numbers:
            known = known_query(connection, entry.query)
            assert known is not None, "queries are never forgotten"
            numbers[entry.query] = known.number
        for step in steps(entry):
            key = (numbers[entry.query], step.item)
            if key not in counters:
                row = connection.execute(_SNAPSHOT, key).fetchone()
                counters[key] = Counters(*row) if row else Counters()
            counters[key].add(step)
    rows = [
        (*key, one.shown, one.clicks, one.weighted_clicks, one.exposure, one.first_shown)
        for key, one in counters.items()
    ]
    connection.execute("BEGIN")  # of the temporary database alone: nobody waits
    connection.execute("DELETE FROM rolled")
    connection.executemany("INSERT INTO rolled VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute("COMMIT")


def _move(connection: sqlite3.Connection, last: NumberedEntry) -> None:
    seq, entry = last
    connection.execute("INSERT OR REPLACE INTO snapshot SELECT * FROM rolled")
    connection.execute("DELETE FROM rankings WHERE seq <= ?", (seq,))
    connection.execute("DELETE FROM events WHERE seq <= ?", (seq,))
    connection.execute("UPDATE state SET rolled_up = ?", (seq,))
    touch(connection, time_of(entry))
