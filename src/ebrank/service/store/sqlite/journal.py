"""The log by SQL: writing it with its counters, and reading it back in its order."""

from __future__ import annotations

import heapq
import json
import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ebrank.service.store.base import StoreError
from ebrank.service.store.counting import as_written, steps
from ebrank.service.store.records import EventEntry, Operation, RankingEntry, Written
from ebrank.service.store.rows import ALREADY_COUNTED, ID_SEEN
from ebrank.service.store.sqlite.candidates import number_of

Entry: TypeAlias = tuple[int, Operation]
Row: TypeAlias = tuple[Any, ...]
Fetch: TypeAlias = Callable[[str, Row], list[Row]]
"""Runs a query and returns its rows."""

PAGE = 1000
"""Entries read at a time: no read stays open for long, which would keep the WAL from shrinking."""

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
_RANKINGS = (
    "SELECT seq, id, name, time, model, items, examination, counted, explored, relevance, cost, "
    "user, would_rank FROM rankings JOIN queries ON query = number"
)
_EVENTS = (
    "SELECT seq, event_id, ranking_id, name, item, type, rank, examination, shows, time, received "
    "FROM events JOIN queries ON query = number"
)
_PAGE = " WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?"


def next_number(connection: sqlite3.Connection) -> int:
    """Return the number of the log's next entry."""
    return 1 + int(
        connection.execute(
            "SELECT max(rolled_up, coalesce((SELECT max(seq) FROM rankings), 0), "
            "coalesce((SELECT max(seq) FROM events), 0)) FROM state"
        ).fetchone()[0]
    )


def write(
    connection: sqlite3.Connection, operations: Sequence[Operation], begin: int
) -> list[Written]:
    """Log operations, numbered from `begin`, and add those that are new to the counters."""
    numbers = _query_numbers(connection, operations)
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
    return written


def _query_numbers(
    connection: sqlite3.Connection, operations: Sequence[Operation]
) -> dict[str, int]:
    numbers = {}
    for query in {entry.query for entry in operations}:
        number = number_of(connection, query)
        if number is None:
            raise StoreError(f"there is no query {query!r}; nothing was stored")
        numbers[query] = number
    return numbers


def _insert_rankings(
    connection: sqlite3.Connection,
    rankings: Sequence[tuple[int, RankingEntry]],
    numbers: dict[str, int],
) -> None:
    try:
        connection.executemany(
            _RANKING, [_ranking_row(seq, one, numbers[one.query]) for seq, one in rankings]
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
    rows = [_event_row(seq, event, numbers[event.query]) for seq, event in events]
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


def ranking(connection: sqlite3.Connection, ranking_id: str) -> RankingEntry | None:
    """Return a list that is still in the log."""
    row = connection.execute(f"{_RANKINGS} WHERE id = ?", (ranking_id,)).fetchone()
    return None if row is None else _ranking(row)


def entries(fetch: Fetch, end: int) -> Iterator[Entry]:
    """Yield the log in its order with numbers, those below `end`."""
    rankings = ((row[0], _ranking(row)) for row in _paged(fetch, _RANKINGS, end))
    events = ((row[0], _event(row)) for row in _paged(fetch, _EVENTS, end))
    return heapq.merge(rankings, events, key=lambda entry: entry[0])


def _paged(fetch: Fetch, sql: str, end: int) -> Iterator[Row]:
    last = 0
    while rows := fetch(sql + _PAGE, (last, end, PAGE)):
        yield from rows
        last = rows[-1][0]


def length(connection: sqlite3.Connection) -> int:
    """Return an upper limit of the log's length: numbers of duplicates are gaps."""
    rolled = connection.execute("SELECT rolled_up FROM state").fetchone()[0]
    return next_number(connection) - 1 - int(rolled)


def _ranking_row(seq: int, entry: RankingEntry, query: int) -> Row:
    return (
        seq,
        entry.id,
        query,
        entry.time,
        entry.model,
        json.dumps(entry.items, ensure_ascii=False),
        _packed(entry.examination),
        entry.counted,
        bytes(entry.explored),
        _packed(entry.relevance),
        entry.cost,
        entry.user,
        json.dumps(entry.would_rank, ensure_ascii=False) if entry.would_rank else None,
    )


def _ranking(row: Row) -> RankingEntry:
    _, name, query, time, model, items, examination, counted, explored, relevance, *rest = row
    cost, user, would_rank = rest
    return RankingEntry(
        name,
        query,
        time,
        model,
        tuple(json.loads(items)),
        _unpacked(examination),
        bool(counted),
        tuple(map(bool, explored)),
        _unpacked(relevance),
        cost,
        user,
        () if would_rank is None else tuple(json.loads(would_rank)),
    )


def _event_row(seq: int, entry: EventEntry, query: int) -> Row:
    return (
        seq,
        entry.event_id,
        entry.ranking_id,
        query,
        entry.item,
        entry.type,
        entry.rank,
        entry.examination,
        entry.shows,
        entry.time,
        entry.received,
    )


def _event(row: Row) -> EventEntry:
    _, event_id, ranking_id, query, item, kind, rank, examination, shows, time, received = row
    return EventEntry(
        event_id, ranking_id, query, item, kind, rank, examination, bool(shows), time, received
    )


def _packed(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _unpacked(blob: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(blob) // 8}d", blob)
