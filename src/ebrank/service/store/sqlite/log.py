"""The log by SQL: writing it with its counters, and reading it back in its order."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ebrank.evidence.behaviors import SHOWN
from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import as_written, items_of, steps, time_of
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
from ebrank.service.store.sqlite.items import Place, advance, places_of
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
    by_query: dict[str, list[Operation]] = {}
    for entry in operations:
        by_query.setdefault(entry.query, []).append(entry)
    known = {query: _Written.of(connection, query, some) for query, some in by_query.items()}
    numbered = list(enumerate(operations, begin))
    _insert_rankings(connection, numbered, known)
    odd = _insert_events(connection, numbered, known, begin)
    written = [odd.get(seq, Written("accepted")) for seq, _ in numbered]
    for (_, entry), outcome in zip(numbered, written, strict=True):
        if outcome.status == "accepted":
            known[entry.query].add(as_written(entry, outcome))
    connection.executemany(_ADD, [row for one in known.values() for row in one.counts()])
    connection.executemany(
        "UPDATE items SET first_shown = ? WHERE query = ? AND place = ?",
        [row for one in known.values() for row in one.first_shown()],
    )
    versions = {query: one.version for query, one in known.items()}
    return Commit(written, versions, active_model(connection))


@dataclass
class _Written:
    """What some entries add to a query."""

    number: int
    version: int
    places: dict[str, Place]
    added: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    shown: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, connection: sqlite3.Connection, query: str, entries: Sequence[Operation]
    ) -> _Written:
        """Advance a query, and find the items that entries name."""
        number, version = advance(connection, query)
        names = list(dict.fromkeys(name for entry in entries for name in items_of(entry)))
        places = places_of(connection, number, names)
        for name in names:
            if name not in places:
                raise StoreError(f"query {query!r} has no item {name!r}; nothing was stored")
        return cls(number, version, places)

    def place(self, name: str) -> int:
        return self.places[name].place

    def add(self, entry: Operation) -> None:
        """Take in what an entry adds."""
        for step in steps(entry):
            place, unseen = self.places[step.item]
            self.added[place, step.outcome, step.slot] += step.amount
            if unseen and step.outcome == SHOWN:
                self.shown.setdefault(place, time_of(entry))

    def counts(self) -> Iterator[tuple[int, int, int, int, int]]:
        """Yield rows of counts to add."""
        return ((self.number, *key, amount) for key, amount in self.added.items() if amount)

    def first_shown(self) -> Iterator[tuple[float, int, int]]:
        """Yield when items were first shown, of those that were not before."""
        return ((time, self.number, place) for place, time in self.shown.items())


def _insert_rankings(
    connection: sqlite3.Connection,
    numbered: Sequence[tuple[int, Operation]],
    known: Mapping[str, _Written],
) -> None:
    rows = []
    for seq, entry in numbered:
        if isinstance(entry, RankingEntry):
            query = known[entry.query]
            rows.append(log_rows.ranking_row(seq, entry, query.number, query.place))
    try:
        connection.executemany(_RANKING, rows)
    except sqlite3.IntegrityError as problem:
        raise StoreError(f"a ranking's id is there already ({problem})") from problem


def _insert_events(
    connection: sqlite3.Connection,
    numbered: Sequence[tuple[int, Operation]],
    known: Mapping[str, _Written],
    begin: int,
) -> dict[int, Written]:
    """Insert those that are new, and return by their numbers what became of all."""
    events = [(seq, entry) for seq, entry in numbered if isinstance(entry, EventEntry)]
    rows = []
    for seq, event in events:
        query = known[event.query]
        rows.append(log_rows.event_row(seq, event, query.number, query.place(event.item)))
    if not rows:
        return {}
    connection.executemany(_EVENT, rows)
    sql = "SELECT seq, shows, outcome, replaces FROM events WHERE seq >= ?"
    logged = {row[0]: row[1:] for row in connection.execute(sql, (begin,))}
    return {
        seq: Written("accepted", "", bool(logged[seq][0]), *logged[seq][1:])
        if seq in logged
        else Written("duplicate", _why(connection, seq, event))
        for seq, event in events
    }


def _why(connection: sqlite3.Connection, seq: int, event: EventEntry) -> str:
    sql = "SELECT 1 FROM events WHERE event_id = ? AND seq < ?"
    seen = connection.execute(sql, (event.event_id, seq)).fetchone()
    return ALREADY_COUNTED if seen is None else ID_SEEN
