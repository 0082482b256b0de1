"""The log by SQL: writing it with its counters, and reading it back in its order."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence

from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import as_written, steps
from ebrank.service.store.records import (
    Commit,
    EventEntry,
    Operation,
    RankingEntry,
    RolledUp,
    Written,
)
from ebrank.service.store.rows import ALREADY_COUNTED, ID_SEEN
from ebrank.service.store.sqlite import log_rows, rollup
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.items import advance
from ebrank.service.store.sqlite.models import active_model

_ADD = (
    "UPDATE items SET shown = shown + ?, clicks = clicks + ?, "
    "weighted_clicks = weighted_clicks + ?, exposure = exposure + ?, "
    "first_shown = coalesce(first_shown, ?) WHERE query = ? AND id = ?"
)
_RANKING = "INSERT INTO rankings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_EVENT = (
    "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 AND NOT EXISTS ("
    "SELECT 1 FROM events WHERE ranking_id = ?3 AND item = ?5 AND shows), ?10, ?11) "
    "ON CONFLICT DO NOTHING"
)
_LAST_TIME = (
    "SELECT max(last_time, "
    "coalesce((SELECT time FROM rankings ORDER BY seq DESC LIMIT 1), 0.0), "
    "coalesce((SELECT received FROM events ORDER BY seq DESC LIMIT 1), 0.0)) FROM state"
)


class SqliteLog:
    """See `StoredLog` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database
        with database.read() as connection:
            self._last = log_rows.last_number(connection)

    async def write(self, operations: Sequence[Operation]) -> Commit:
        """Log operations and add them to the counters, in order, in one transaction."""
        with self._database.write() as connection:
            commit = _write(connection, operations, self._last + 1)
        self._last += len(operations)
        return commit

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        with self._database.read() as connection:
            return log_rows.ranking(connection, ranking_id)

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in its order, up to what is its end now."""
        with self._database.read() as connection:
            begin, end = log_rows.rolled_up(connection), log_rows.last_number(connection)
        for after, last in log_rows.pages(begin, end):

            def page(
                connection: sqlite3.Connection, after: int = after, last: int = last
            ) -> list[log_rows.NumberedEntry]:
                return log_rows.page(connection, after, last)

            for _, entry in await self._database.read_long(page):
                yield entry

    async def length(self) -> int:
        """Return an upper limit of the log's length: numbers of duplicates are gaps."""
        with self._database.read() as connection:
            return log_rows.last_number(connection) - log_rows.rolled_up(connection)

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""
        with self._database.read() as connection:
            return float(connection.execute(_LAST_TIME).fetchone()[0])

    async def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them."""
        oldest = before if minutes_before is None else minutes_before
        return await self._database.write_long(
            lambda connection, writing, stop: rollup.roll_up(
                connection, writing, stop, before, oldest
            )
        )


def _write(connection: sqlite3.Connection, operations: Sequence[Operation], begin: int) -> Commit:
    """Log operations, numbered from `begin`, and add those that are new to the counters."""
    numbers, versions = {}, {}
    for query in dict.fromkeys(entry.query for entry in operations):
        numbers[query], versions[query] = advance(connection, query)
    numbered = list(enumerate(operations, begin))
    rankings = [(seq, entry) for seq, entry in numbered if isinstance(entry, RankingEntry)]
    events = [(seq, entry) for seq, entry in numbered if isinstance(entry, EventEntry)]
    _insert_rankings(connection, rankings, numbers)
    odd = _insert_events(connection, events, numbers, begin)
    written = [odd.get(seq, Written("accepted")) for seq, _ in numbered]
    added = [
        (*step[1:], numbers[entry.query], step.item)
        for entry, outcome in zip(operations, written, strict=True)
        if outcome.status == "accepted"
        for step in steps(as_written(entry, outcome))
    ]
    # In the order of the log: sums of floats depend on it.
    if connection.executemany(_ADD, added).rowcount < len(added):
        raise StoreError("an entry names an item that its query does not have; nothing was stored")
    return Commit(written, versions, active_model(connection))


def _insert_rankings(
    connection: sqlite3.Connection,
    rankings: Sequence[tuple[int, RankingEntry]],
    numbers: dict[str, int],
) -> None:
    try:
        connection.executemany(
            _RANKING,
            [log_rows.ranking_row(seq, one, numbers[one.query]) for seq, one in rankings],
        )
    except sqlite3.IntegrityError as problem:
        raise StoreError(f"a ranking's id is there already ({problem})") from problem


def _insert_events(
    connection: sqlite3.Connection,
    events: Sequence[tuple[int, EventEntry]],
    numbers: dict[str, int],
    begin: int,
) -> dict[int, Written]:
    """Insert those that are new, and return by their numbers what the others are, or those show."""
    rows = [log_rows.event_row(seq, event, numbers[event.query]) for seq, event in events]
    all_new = connection.executemany(_EVENT, rows).rowcount == len(rows)
    if all_new and not any(event.shows for _, event in events):
        return {}
    sql = "SELECT seq, shows FROM events WHERE seq >= ?"
    inserted = dict(connection.execute(sql, (begin,)).fetchall())
    return {
        seq: Written("accepted", shows=bool(inserted[seq]))
        if seq in inserted
        else Written("duplicate", _why(connection, event))
        for seq, event in events
    }


def _why(connection: sqlite3.Connection, event: EventEntry) -> str:
    sql = "SELECT 1 FROM events WHERE event_id = ?"
    seen = connection.execute(sql, (event.event_id,)).fetchone()
    return ALREADY_COUNTED if seen is None else ID_SEEN
