"""Log entries as rows, and back."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ebrank.service.store.records import EventEntry, Operation, RankingEntry

Row: TypeAlias = tuple[Any, ...]
NumberedEntry: TypeAlias = tuple[int, Operation]

PAGE = 1000
"""Numbers read at a time: no read stays open for long, which would keep the WAL from shrinking."""

_RANKINGS = (
    "SELECT seq, id, name, time, model, items, examination, counted, explored, relevance, cost, "
    "user, would_rank FROM rankings JOIN queries ON query = number"
)
_EVENTS = (
    "SELECT seq, event_id, ranking_id, name, item, type, rank, examination, shows, time, received "
    "FROM events JOIN queries ON query = number"
)
_PAGE = " WHERE seq > ? AND seq <= ? ORDER BY seq"


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


def page(connection: sqlite3.Connection, after: int, last: int) -> list[NumberedEntry]:
    """Return the entries with numbers after one and up to another, in order."""
    found: list[NumberedEntry] = [
        (row[0], _ranking(row)) for row in connection.execute(_RANKINGS + _PAGE, (after, last))
    ]
    found += [(row[0], _event(row)) for row in connection.execute(_EVENTS + _PAGE, (after, last))]
    found.sort(key=lambda entry: entry[0])
    return found


def pages(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the borders of pages of numbers after one and up to another."""
    for after in range(begin, end, PAGE):
        yield after, min(after + PAGE, end)


def ranking(connection: sqlite3.Connection, ranking_id: str) -> RankingEntry | None:
    """Return a list that is still in the log."""
    row = connection.execute(f"{_RANKINGS} WHERE id = ?", (ranking_id,)).fetchone()
    return None if row is None else _ranking(row)


def ranking_row(seq: int, entry: RankingEntry, query: int) -> Row:
    """Return the row of a list."""
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


def event_row(seq: int, entry: EventEntry, query: int) -> Row:
    """Return the row of an event."""
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


def _event(row: Row) -> EventEntry:
    _, event_id, ranking_id, query, item, kind, rank, examination, shows, time, received = row
    return EventEntry(
        event_id, ranking_id, query, item, kind, rank, examination, bool(shows), time, received
    )


def _packed(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def _unpacked(blob: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(blob) // 8}d", blob)
