"""The log by SQL: written with its counters in one transaction, and read back in its order."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from ebrank.service.store.base import ANOTHER_EPOCH, Remembered, StoreError, UnknownQuery
from ebrank.service.store.counting import Placed, as_written, items_of, shown, steps, time_of
from ebrank.service.store.records import (
    LIFE,
    Commit,
    EventEntry,
    Operation,
    RankingEntry,
    RolledUp,
    Written,
)
from ebrank.service.store.rows import ALREADY_COUNTED, ID_SEEN
from ebrank.service.store.sqlite import forgetting, rollup
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.entries import Row, find_ranking, page
from ebrank.service.store.sqlite.items import found, items_by_name

PAGE = 1000
"""Numbers read at a time: no read stays open for long, which would keep the WAL from shrinking."""

_ADVANCE = (
    "UPDATE queries SET version = version + 1 WHERE name = ? "
    "RETURNING number, version, (SELECT active_model FROM state), (SELECT catalog FROM state)"
)
_ADD = (
    "INSERT INTO evidence VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_RANKING = f"INSERT INTO rankings VALUES ({', '.join('?' * 18)})"
# An event counts if it is better than those before it, of which none was negative (-1), or if it is
# the first that is; it shows its item if none of them did.
# Scalar subqueries: a SELECT from the table it inserts into would be copied first.
_BEFORE = "FROM events WHERE ranking_id = ?3 AND place = ?5"
_EVENT = f"""INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
    iif(EXISTS (SELECT 1 {_BEFORE} AND (outcome < 0 OR outcome >= ?8 AND ?8 > 0)), 0, ?8),
    iif(?15 > 0, ?15, (SELECT
        iif(min(outcome) >= 0 AND (max(outcome) < ?8 OR ?8 < 0), max(outcome), 0) {_BEFORE})),
    ?9 AND NOT EXISTS (SELECT 1 {_BEFORE} AND shows), ?10, ?11, ?12, ?13, ?14)
    ON CONFLICT DO NOTHING"""
_BECAME = "SELECT seq, shows, outcome, replaces FROM events WHERE seq >= ?"
_SHOWN = "UPDATE items SET first_shown = ? WHERE query = ? AND place = ? AND first_shown IS NULL"
_LAST_TIME = (
    "SELECT max(last_time, "
    "coalesce((SELECT time FROM rankings ORDER BY seq DESC LIMIT 1), 0.0), "
    "coalesce((SELECT received FROM events ORDER BY seq DESC LIMIT 1), 0.0)) FROM state"
)
_NTH_LAST = "SELECT seq FROM rankings ORDER BY seq DESC LIMIT 1 OFFSET ?"

ACCEPTED = Written("accepted")


class Advanced(NamedTuple):
    """A query that is written to: its number and new version, the active model, the catalog's."""

    number: int
    version: int
    model: int
    catalog: int


class SqliteLog:
    """See `StoredLog` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database
        with database.read() as connection:
            self._last = last_number(connection)

    async def write(
        self,
        operations: Sequence[Operation],
        *,
        epoch: int | None = None,
        known: Remembered | None = None,
    ) -> Commit:
        """Log operations and add them to the counters, in order, in one transaction.

        There never are news: nobody else writes.
        """
        if epoch:  # there is but one
            raise StoreError(ANOTHER_EPOCH)
        with self._database.write() as connection:
            commit = _write(connection, operations, self._last + 1)
        self._last += len(operations)
        return commit

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        with self._database.read() as connection:
            return find_ranking(connection, ranking_id)

    async def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order, up to its current end."""
        with self._database.read() as connection:
            begin, end = rolled_up(connection), last_number(connection)
        async for entry in self._between(begin, end):
            yield entry

    async def latest(self, lists: int) -> AsyncIterator[Operation]:
        """Yield the end of the log in order, starting this many lists back."""
        with self._database.read() as connection:
            end = last_number(connection)
            first = connection.execute(_NTH_LAST, (lists - 1,)).fetchone()
            begin = rolled_up(connection) if first is None else first[0] - 1
        async for entry in self._between(begin, end):
            yield entry

    async def _between(self, begin: int, end: int) -> AsyncIterator[Operation]:
        """Yield the entries with numbers after one and up to another."""
        for after, last in pages(begin, end):
            read = partial(page, after=after, last=last)
            for entry in await self._database.read_long(read):
                yield entry

    async def length(self) -> int:
        """Return an upper limit of the log's length: numbers of duplicates are gaps."""
        with self._database.read() as connection:
            return last_number(connection) - rolled_up(connection)

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""
        with self._database.read() as connection:
            return float(connection.execute(_LAST_TIME).fetchone()[0])

    async def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them."""
        oldest = before if minutes_before is None else minutes_before
        return await rollup.roll_up(self._database, self._last, before, oldest)


def _write(connection: sqlite3.Connection, operations: Sequence[Operation], begin: int) -> Commit:
    """Log operations, numbered from `begin`, and add those that are new to the counts."""
    queries = dict.fromkeys([entry.query for entry in operations])
    known = {query: _advance(connection, query) for query in queries}
    placed = _placed(connection, operations, known)
    written = _insert(connection, placed, begin)
    logged = [
        (query, places, as_written(entry, result))
        for (query, places, entry), result in zip(placed, written, strict=True)
        if result.status == "accepted"
    ]
    epoch = operations[-1].epoch if operations else 0
    if epoch and not forgetting.only_adds(connection, "evidence", logged, epoch):
        forgetting.add(connection, "evidence", logged)
    else:
        _add(connection, logged, epoch)
    first = list(_first_shown(logged))
    if first:
        connection.executemany(_SHOWN, first)
    model, catalog = next(iter(known.values()))[2:] if known else found(connection)
    return Commit(written, {query: one.version for query, one in known.items()}, model, catalog)


def _advance(connection: sqlite3.Connection, query: str) -> Advanced:
    """Note a write to a query."""
    found = connection.execute(_ADVANCE, (query,)).fetchall()
    if not found:
        raise UnknownQuery(f"there is no query {query!r}; nothing was stored")
    return Advanced(*found[0])


def _add(connection: sqlite3.Connection, entries: Sequence[Placed], epoch: int) -> None:
    """Add entries to the counts, where nothing is forgotten: all are in this epoch."""
    counts: dict[tuple[int, int, int, int], int] = {}
    for query, places, entry in entries:
        for place, outcome, slot, amount in steps(entry, places):
            key = (query, place, outcome, slot)
            counts[key] = counts.get(key, 0) + amount
    rows = [(*key, amount, epoch) for key, amount in counts.items() if amount]
    connection.executemany(_ADD, rows)


def _first_shown(entries: Iterable[Placed]) -> Iterator[tuple[float, int, int]]:
    """Yield the times of entries, with the items they may be the first to show."""
    for query, places, entry in entries:
        unseen = [True] * len(places) if entry.hint is None else entry.hint.unseen
        if True in unseen:
            for place, new in shown(entry, tuple(zip(places, unseen, strict=True))):
                if new:
                    yield time_of(entry), query, place


def _placed(
    connection: sqlite3.Connection, operations: Sequence[Operation], known: Mapping[str, Advanced]
) -> list[Placed]:
    """Return operations with where the items stand that they name; looked up if no hint says it."""
    names: dict[str, set[str]] = {}
    for entry in operations:
        if entry.hint is None:
            names.setdefault(entry.query, set()).update(items_of(entry))
        elif entry.hint.life != known[entry.query].version // LIFE:
            raise UnknownQuery(f"query {entry.query!r} was deleted, and given again")
        elif len(entry.hint.places) != len(items_of(entry)):
            raise ValueError(f"a hint of {len(entry.hint.places)} places for other items: {entry}")
    found = {
        query: _places(connection, query, known[query].number, some)
        for query, some in names.items()
    }
    return [
        (
            known[entry.query].number,
            [found[entry.query][name] for name in items_of(entry)]
            if entry.hint is None
            else entry.hint.places,
            entry,
        )
        for entry in operations
    ]


def _places(
    connection: sqlite3.Connection, query: str, number: int, names: Set[str]
) -> dict[str, int]:
    """Return where items stand, by their names."""
    found = dict(items_by_name(connection, "id, place", number, list(names)))
    missing = names - found.keys()
    if missing:
        raise StoreError(f"query {query!r} has no item {min(missing)!r}; nothing was stored")
    return found


def _insert(connection: sqlite3.Connection, entries: Sequence[Placed], begin: int) -> list[Written]:
    """Insert lists, and events that are new, numbered from `begin`; return what became of each."""
    rankings, events = list[Row](), list[Row]()
    for seq, (query, places, entry) in enumerate(entries, begin):
        if isinstance(entry, RankingEntry):
            rankings.append(ranking_row(seq, entry, query, places))
        else:
            events.append(event_row(seq, entry, query, places[0]))
    if rankings:
        try:
            connection.executemany(_RANKING, rankings)
        except sqlite3.IntegrityError as problem:
            raise StoreError(f"a ranking's id is there already ({problem})") from problem
    if not events:
        return [ACCEPTED] * len(entries)
    sql, new = _BECAME, connection.executemany(_EVENT, events).rowcount == len(events)
    plain = new and not any(entry.shows for _, _, entry in entries if isinstance(entry, EventEntry))
    if plain:  # then most are logged as they were given
        sql += " AND (outcome = 0 OR replaces > 0)"
    became = {
        seq: Written("accepted", "", bool(shows), outcome, replaces)
        for seq, shows, outcome, replaces in connection.execute(sql, (begin,))
    }
    written = []
    for seq, (query, _, entry) in enumerate(entries, begin):
        if isinstance(entry, RankingEntry):
            written.append(ACCEPTED)
        elif seq in became:
            written.append(became[seq])
        elif plain:
            written.append(Written("accepted", "", False, entry.outcome))
        else:
            written.append(Written("duplicate", _why(connection, seq, entry, query)))
    return written


def _why(connection: sqlite3.Connection, seq: int, event: EventEntry, query: int) -> str:
    sql = "SELECT 1 FROM events WHERE query = ? AND event_id = ? AND seq < ?"
    seen = connection.execute(sql, (query, event.event_id, seq)).fetchone()
    return ALREADY_COUNTED if seen is None else ID_SEEN


def last_number(connection: sqlite3.Connection) -> int:
    """Return the number of the log's last entry, be it rolled up."""
    return int(
        connection.execute(
            "SELECT max(rolled_up, coalesce((SELECT max(seq) FROM rankings), 0), "
            "coalesce((SELECT max(seq) FROM events), 0)) FROM state"
        ).fetchone()[0]
    )


def rolled_up(connection: sqlite3.Connection) -> int:
    """Return the number of the last entry that was rolled up."""
    return int(connection.execute("SELECT rolled_up FROM state").fetchone()[0])


def pages(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the borders of pages of numbers after one and up to another."""
    for after in range(begin, end, PAGE):
        yield after, min(after + PAGE, end)


def ranking_row(seq: int, entry: RankingEntry, query: int, places: Sequence[int]) -> Row:
    """Return the row of a list, given where its items stand, and then those it would have had."""
    length = len(entry.items)
    return (
        seq,
        entry.id,
        query,
        entry.time,
        entry.model,
        _text(places[:length]),
        entry.counted,
        bytes(entry.explored),
        struct.pack(f"<{len(entry.relevance)}d", *entry.relevance),
        entry.cost,
        entry.user,
        _text(places[length:]) if entry.would_rank else None,
        entry.offset,
        entry.continues,
        _text(entry.seen) if entry.seen else None,
        entry.bot,
        entry.epoch,
        _text(entry.contexts) if entry.contexts else None,
    )


def event_row(seq: int, entry: EventEntry, query: int, place: int) -> Row:
    """Return the row of an event; what it replaces, if that is known, comes last."""
    return (
        seq,
        entry.event_id,
        entry.ranking_id,
        query,
        place,
        entry.type,
        entry.rank,
        entry.outcome,
        entry.shows,
        entry.time,
        entry.received,
        entry.bot,
        entry.value,
        entry.epoch,
        entry.replaces,
    )


def _text(numbers: Iterable[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"
