"""The log by SQL: writing it with its counters, and reading it back in its order."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from itertools import compress

from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import as_written, items_of, shown_items, shows, steps, time_of
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
from ebrank.service.store.sqlite.items import Advanced, advance, places_of
from ebrank.service.store.sqlite.models import active_model

_ADD = (
    "INSERT INTO evidence VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_RANKING = "INSERT INTO rankings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# An event shows its item if none before it did, and counts if it is better than those before it.
_EVENT = """INSERT INTO events SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, iif(?8 > best, ?8, 0),
    iif(?8 > best, best, 0), ?9 AND NOT shown, ?10, ?11 FROM (
        SELECT coalesce(max(outcome), 0) AS best, coalesce(max(shows), 0) AS shown
        FROM events WHERE ranking_id = ?3 AND place = ?5)
    WHERE true ON CONFLICT DO NOTHING"""
_SHOWN = "UPDATE items SET first_shown = ? WHERE query = ? AND place = ? AND first_shown IS NULL"
_LAST_TIME = (
    "SELECT max(last_time, "
    "coalesce((SELECT time FROM rankings ORDER BY seq DESC LIMIT 1), 0.0), "
    "coalesce((SELECT received FROM events ORDER BY seq DESC LIMIT 1), 0.0)) FROM state"
)


ACCEPTED = Written("accepted")


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
            read = partial(log_rows.page, after=after, last=last)
            for entry in await self._database.read_long(read):
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
    """Log operations, numbered from `begin`, and add those that are new to the counts."""
    queries = dict.fromkeys(entry.query for entry in operations)
    known = {query: advance(connection, query) for query in queries}
    placed = _placed(connection, operations, known)
    numbered = list(enumerate(operations, begin))
    _insert_rankings(connection, numbered, known, placed)
    odd = _insert_events(connection, numbered, known, placed, begin)
    written = [odd.get(seq, ACCEPTED) for seq, _ in numbered]
    counts: dict[tuple[int, int, int, int], int] = {}
    shown: list[tuple[float, int, int]] = []
    for entry, became, places in zip(operations, written, placed, strict=True):
        if became.status == "accepted":
            _count(as_written(entry, became), known[entry.query].number, places, counts, shown)
    connection.executemany(_ADD, [(*key, amount) for key, amount in counts.items() if amount])
    if shown:
        connection.executemany(_SHOWN, shown)
    model = next(iter(known.values())).model if known else active_model(connection)
    return Commit(written, {query: one.version for query, one in known.items()}, model)


def _placed(
    connection: sqlite3.Connection,
    operations: Sequence[Operation],
    known: Mapping[str, Advanced],
) -> list[Mapping[str, int]]:
    """Return for each operation where the items that it names stand."""
    names: dict[str, dict[str, None]] = {}
    for entry in operations:
        if entry.hint is None:
            names.setdefault(entry.query, {}).update(dict.fromkeys(items_of(entry)))
    looked_up = {
        query: places_of(connection, known[query].number, list(some))
        for query, some in names.items()
    }
    for query, some in names.items():
        for name in some:
            if name not in looked_up[query]:
                raise StoreError(f"query {query!r} has no item {name!r}; nothing was stored")
    return [
        looked_up[entry.query]
        if entry.hint is None
        else dict(zip(items_of(entry), entry.hint.places, strict=True))
        for entry in operations
    ]


def _count(
    entry: Operation,
    query: int,
    places: Mapping[str, int],
    counts: dict[tuple[int, int, int, int], int],
    shown: list[tuple[float, int, int]],
) -> None:
    """Add what an entry adds to counts, and when it showed items that may have been unseen."""
    for item, outcome, slot, amount in steps(entry):
        key = (query, places[item], outcome, slot)
        counts[key] = counts.get(key, 0) + amount
    if shows(entry):
        time, items = time_of(entry), shown_items(entry)
        if entry.hint is not None:
            items = tuple(compress(items, entry.hint.unseen))
        shown += [(time, query, places[item]) for item in items]


def _insert_rankings(
    connection: sqlite3.Connection,
    numbered: Sequence[tuple[int, Operation]],
    known: Mapping[str, Advanced],
    placed: Sequence[Mapping[str, int]],
) -> None:
    rows = [
        log_rows.ranking_row(seq, entry, known[entry.query].number, places)
        for (seq, entry), places in zip(numbered, placed, strict=True)
        if isinstance(entry, RankingEntry)
    ]
    try:
        connection.executemany(_RANKING, rows)
    except sqlite3.IntegrityError as problem:
        raise StoreError(f"a ranking's id is there already ({problem})") from problem


def _insert_events(
    connection: sqlite3.Connection,
    numbered: Sequence[tuple[int, Operation]],
    known: Mapping[str, Advanced],
    placed: Sequence[Mapping[str, int]],
    begin: int,
) -> dict[int, Written]:
    """Insert those that are new, and return by their numbers what became of all."""
    events = [
        (seq, entry, places[entry.item])
        for (seq, entry), places in zip(numbered, placed, strict=True)
        if isinstance(entry, EventEntry)
    ]
    if not events:
        return {}
    connection.executemany(
        _EVENT,
        [
            log_rows.event_row(seq, event, known[event.query].number, place)
            for seq, event, place in events
        ],
    )
    sql = "SELECT seq, shows, outcome, replaces FROM events WHERE seq >= ?"
    logged = {row[0]: row[1:] for row in connection.execute(sql, (begin,))}
    return {
        seq: Written("accepted", "", bool(logged[seq][0]), *logged[seq][1:])
        if seq in logged
        else Written("duplicate", _why(connection, seq, event))
        for seq, event, _ in events
    }


def _why(connection: sqlite3.Connection, seq: int, event: EventEntry) -> str:
    sql = "SELECT 1 FROM events WHERE event_id = ? AND seq < ?"
    seen = connection.execute(sql, (event.event_id, seq)).fetchone()
    return ALREADY_COUNTED if seen is None else ID_SEEN
