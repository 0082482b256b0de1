"""Roll-up: old entries become part of the snapshot, and leave the log.

What a portion of the log adds is summed up by SQL, into a temporary table, while others go on. Then
it is added to the snapshot, and the entries are deleted, in one short transaction. After each such
portion counts = snapshot + log, so a roll-up can be interrupted at any point.
"""

from __future__ import annotations

import sqlite3
import threading

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import FIRST_RANKS
from ebrank.service.store.records import RolledUp
from ebrank.service.store.sqlite.database import transaction
from ebrank.service.store.sqlite.meta import touch
from ebrank.service.store.sqlite.schema import COUNTS

PORTION = 1000
"""Entries per transaction: writers wait for some ten milliseconds at most."""


def _slot(rank: str) -> str:
    """Return `slot_of` as SQL."""
    cases = " ".join(
        f"WHEN {rank} < {first} THEN {slot}" for slot, first in enumerate(FIRST_RANKS[1:])
    )
    return f"CASE {cases} ELSE {len(FIRST_RANKS) - 1} END"


# `counting.steps` as SQL, for all entries of a portion; tests compare the two.
_SUM = f"""INSERT INTO rolled SELECT query, place, outcome, slot, sum(amount) AS count FROM (
    SELECT query, listed.value AS place, {SHOWN} AS outcome,
        {_slot("offset + listed.key + 1")} AS slot, 1 AS amount
        FROM rankings, json_each(items) AS listed WHERE seq > :after AND seq <= :last AND counted
        AND (seen IS NULL OR json_extract(seen, '$[' || listed.key || ']') = 0)
    UNION ALL SELECT query, place, {SHOWN}, {_slot("rank")}, 1
        FROM events WHERE seq > :after AND seq <= :last AND shows
    UNION ALL SELECT query, place, outcome, {_slot("rank")}, 1
        FROM events WHERE seq > :after AND seq <= :last AND outcome > 0
    UNION ALL SELECT query, place, replaces, {_slot("rank")}, -1
        FROM events WHERE seq > :after AND seq <= :last AND replaces > 0
    ) GROUP BY query, place, outcome, slot"""
_YOUNG = """SELECT min(seq) FROM (
    SELECT seq FROM rankings WHERE seq > :after AND seq <= :last AND time >= :before
    UNION ALL SELECT seq FROM events WHERE seq > :after AND seq <= :last AND received >= :before)"""
_LATEST = """SELECT max(time) FROM (
    SELECT time FROM rankings WHERE seq > :after AND seq <= :last
    UNION ALL SELECT received FROM events WHERE seq > :after AND seq <= :last)"""


def roll_up(
    connection: sqlite3.Connection,
    writing: threading.RLock,
    stop: threading.Event,
    after: int,
    end: int,
    before: float,
    oldest_minute: float,
) -> RolledUp:
    """Roll up entries after a number, up to another, that are older than a time.

    The connection must be one that nobody else uses. Setting `stop` ends it between two portions.
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(COUNTS.format(name="temp.rolled"))
    rankings = events = 0
    while after < end and not stop.is_set():
        last = min(after + PORTION, end)
        borders = {"after": after, "last": last, "before": before}
        young = connection.execute(_YOUNG, borders).fetchone()[0]
        if young is not None:
            last = end = young - 1
        if last > after:
            _fold(connection, after, last)
            with writing, transaction(connection):
                moved = _move(connection, after, last)
            rankings, events = rankings + moved.rankings, events + moved.events
        after = last
    with writing, transaction(connection):
        connection.execute("DELETE FROM minutes WHERE start < ?", (oldest_minute,))
    return RolledUp(rankings, events)


def _fold(connection: sqlite3.Connection, after: int, last: int) -> None:
    """Put into the temporary table what entries after a number and up to another add up to."""
    connection.execute("DELETE FROM rolled")
    connection.execute(_SUM, {"after": after, "last": last})


def _move(connection: sqlite3.Connection, after: int, last: int) -> RolledUp:
    """Add what was summed up to the snapshot, and delete the entries."""
    connection.execute(
        "INSERT INTO snapshot SELECT * FROM rolled WHERE count != 0 "
        "ON CONFLICT DO UPDATE SET count = count + excluded.count"
    )
    latest = connection.execute(_LATEST, {"after": after, "last": last}).fetchone()[0]
    rankings = connection.execute("DELETE FROM rankings WHERE seq <= ?", (last,)).rowcount
    events = connection.execute("DELETE FROM events WHERE seq <= ?", (last,)).rowcount
    connection.execute("UPDATE state SET rolled_up = ?", (last,))
    if latest is not None:
        touch(connection, latest)
    return RolledUp(rankings, events)
