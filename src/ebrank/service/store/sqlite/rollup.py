"""Roll-up: old entries become part of the snapshot, and leave the log.

A portion of the log is summed up by SQL, into a temporary table, and added to the snapshot, and its
entries are deleted, in one transaction. After each portion counts = snapshot + log, so a roll-up
can be interrupted at any point.

Other writes wait for a portion. So it is small, smaller if it takes long, and after each comes a
pause of many times its length: a long backlog takes longer, but requests hardly notice.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time

from ebrank.evidence.behaviors import SHOWN
from ebrank.evidence.slots import FIRST_RANKS
from ebrank.service.store.records import RolledUp
from ebrank.service.store.sqlite import forgetting
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.entries import placed_page
from ebrank.service.store.sqlite.meta import touch
from ebrank.service.store.sqlite.schema import COUNTS

FIRST_PORTION, MOST_PORTION = 20, 200
"""Entries per transaction."""
WANTED_SECONDS = 5e-4
"""How long a portion should take: about as long as a list."""
PAUSE = 9.0
"""How many times as long as a portion the pause after it is."""
MINUTES_AT_ONCE = 600.0
"""Sums of so many seconds are dropped in one transaction."""


def _slot(rank: str) -> str:
    """Return `slot_of` as SQL."""
    cases = " ".join(
        f"WHEN {rank} < {first} THEN {slot}" for slot, first in enumerate(FIRST_RANKS[1:])
    )
    return f"CASE {cases} ELSE {len(FIRST_RANKS) - 1} END"


# `counting.steps` as SQL, for all entries of a portion; tests compare the two.
_SUM = f"""INSERT INTO rolled SELECT query, place, outcome, slot, sum(amount) AS count, 0 FROM (
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
_EPOCH = """SELECT max(epoch) FROM (
    SELECT epoch FROM rankings WHERE seq > :after AND seq <= :last
    UNION ALL SELECT epoch FROM events WHERE seq > :after AND seq <= :last)"""
_LATEST = """SELECT max(time) FROM (
    SELECT time FROM rankings WHERE seq > :after AND seq <= :last
    UNION ALL SELECT received FROM events WHERE seq > :after AND seq <= :last)"""


async def roll_up(database: Connections, end: int, before: float, oldest_minute: float) -> RolledUp:
    """Roll up entries up to a number that are older than a time; drop sums of older minutes."""
    total, portion, done = RolledUp(), FIRST_PORTION, False
    while not done:
        began = time.perf_counter()
        with database.write() as connection:
            moved, done = _portion(connection, portion, end, before)
        total = RolledUp(total.rankings + moved.rankings, total.events + moved.events)
        portion = await _paused(began, portion)
    while not await _minutes_dropped(database, oldest_minute):
        pass
    return total


async def _paused(began: float, portion: int) -> int:
    """Let others write after a portion of this size; return the size of the next."""
    took = time.perf_counter() - began
    await asyncio.sleep(PAUSE * took)
    return next_portion(portion, took)


def next_portion(portion: int, took: float) -> int:
    """Return how many entries to take after so many that took so long.

    >>> next_portion(100, took=0.1e-3), next_portion(100, took=2e-3), next_portion(100, took=1.0)
    (200, 50, 50)
    """
    fitting = portion * WANTED_SECONDS / max(took, 1e-6)
    return int(max(min(max(fitting, portion / 2), portion * 2, MOST_PORTION), 1))


def _portion(
    connection: sqlite3.Connection, portion: int, end: int, before: float
) -> tuple[RolledUp, bool]:
    """Roll up the oldest entries; return how many there were, and whether no more are to be."""
    [(after,)] = connection.execute("SELECT rolled_up FROM state")
    last = min(after + portion, end)
    borders = {"after": after, "last": last, "before": before}
    young = connection.execute(_YOUNG, borders).fetchone()[0]
    if young is not None:
        last = young - 1
    if last <= after:
        return RolledUp(), True
    [(epoch,)] = connection.execute(_EPOCH, borders)
    if epoch:
        forgetting.add(connection, "snapshot", placed_page(connection, after, last))
    else:
        _add(connection, after, last)
    return _move(connection, after, last), young is not None or last == end


async def _minutes_dropped(database: Connections, before: float) -> bool:
    """Drop sums of some old minutes; return whether none are left."""
    began = time.perf_counter()
    with database.write() as connection:
        [(oldest,)] = connection.execute("SELECT min(start) FROM minutes")
        if oldest is None or oldest >= before:
            return True
        border = min(before, oldest + MINUTES_AT_ONCE)
        connection.execute("DELETE FROM minutes WHERE start < ?", (border,))
    await _paused(began, 1)
    return False


def _add(connection: sqlite3.Connection, after: int, last: int) -> None:
    """Add entries after a number and up to another to the snapshot, where nothing is forgotten."""
    connection.execute(COUNTS.format(name="IF NOT EXISTS temp.rolled"))
    connection.execute("DELETE FROM rolled")
    connection.execute(_SUM, {"after": after, "last": last})
    connection.execute(
        "INSERT INTO snapshot SELECT * FROM rolled WHERE count != 0 "
        "ON CONFLICT DO UPDATE SET count = count + excluded.count"
    )


def _move(connection: sqlite3.Connection, after: int, last: int) -> RolledUp:
    """Delete entries that were added to the snapshot."""
    latest = connection.execute(_LATEST, {"after": after, "last": last}).fetchone()[0]
    rankings = connection.execute("DELETE FROM rankings WHERE seq <= ?", (last,)).rowcount
    events = connection.execute("DELETE FROM events WHERE seq <= ?", (last,)).rowcount
    connection.execute("UPDATE state SET rolled_up = ?", (last,))
    if latest is not None:
        touch(connection, latest)
    return RolledUp(rankings, events)
