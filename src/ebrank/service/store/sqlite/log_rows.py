"""Log entries as rows, and back; rows name items by their places."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ebrank.service.store.records import EventEntry, Operation, RankingEntry
from ebrank.service.store.sqlite.items import names_of

Row: TypeAlias = tuple[Any, ...]
Names: TypeAlias = Mapping[int, str]
"""Of items, by their places."""

PAGE = 1000
"""Numbers read at a time: no read stays open for long, which would keep the WAL from shrinking."""

_RANKINGS = (
    "SELECT query, seq, id, name, time, model, items, counted, explored, relevance, cost, user, "
    "would_rank FROM rankings JOIN queries ON query = number"
)
_EVENTS = (
    "SELECT query, seq, event_id, ranking_id, name, place, type, rank, outcome, shows, time, "
    "received, replaces FROM events JOIN queries ON query = number"
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


def pages(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the borders of pages of numbers after one and up to another."""
    for after in range(begin, end, PAGE):
        yield after, min(after + PAGE, end)


def page(connection: sqlite3.Connection, after: int, last: int) -> list[Operation]:
    """Return the entries with numbers after one and up to another, in order."""
    rankings = connection.execute(_RANKINGS + _PAGE, (after, last)).fetchall()
    events = connection.execute(_EVENTS + _PAGE, (after, last)).fetchall()
    places: dict[int, set[int]] = {}
    for row in rankings:
        places.setdefault(row[0], set()).update(_listed(row[6]), _listed(row[12]))
    for row in events:
        places.setdefault(row[0], set()).add(row[5])
    names = {query: names_of(connection, query, list(some)) for query, some in places.items()}
    numbered: list[tuple[int, Operation]] = [
        *((row[1], _ranking(row, names[row[0]])) for row in rankings),
        *((row[1], _event(row, names[row[0]])) for row in events),
    ]
    numbered.sort(key=lambda entry: entry[0])
    return [entry for _, entry in numbered]


def ranking(connection: sqlite3.Connection, ranking_id: str) -> RankingEntry | None:
    """Return a list that is still in the log."""
    row = connection.execute(f"{_RANKINGS} WHERE id = ?", (ranking_id,)).fetchone()
    if row is None:
        return None
    places = [*_listed(row[6]), *_listed(row[12])]
    return _ranking(row, names_of(connection, row[0], places))


def ranking_row(seq: int, entry: RankingEntry, query: int, places: Mapping[str, int]) -> Row:
    """Return the row of a list, given where its items stand."""
    return (
        seq,
        entry.id,
        query,
        entry.time,
        entry.model,
        _text(places[item] for item in entry.items),
        entry.counted,
        bytes(entry.explored),
        struct.pack(f"<{len(entry.relevance)}d", *entry.relevance),
        entry.cost,
        entry.user,
        _text(places[item] for item in entry.would_rank) if entry.would_rank else None,
    )


def event_row(seq: int, entry: EventEntry, query: int, place: int) -> Row:
    """Return the row of an event, without what it replaces."""
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
    )


def _ranking(row: Row, names: Names) -> RankingEntry:
    _, _, name, query, time, model, items, counted, explored, relevance, *rest = row
    cost, user, would_rank = rest
    return RankingEntry(
        id=name,
        query=query,
        time=time,
        model=model,
        items=tuple(names[place] for place in _listed(items)),
        counted=bool(counted),
        explored=tuple(map(bool, explored)),
        relevance=struct.unpack(f"<{len(relevance) // 8}d", relevance),
        cost=cost,
        user=user,
        would_rank=tuple(names[place] for place in _listed(would_rank)),
    )


def _event(row: Row, names: Names) -> EventEntry:
    _, _, event_id, ranking_id, query, place, kind, rank, outcome, shows, *rest = row
    time, received, replaces = rest
    return EventEntry(
        event_id,
        ranking_id,
        query,
        names[place],
        kind,
        rank,
        outcome,
        bool(shows),
        time,
        received,
        replaces,
    )


def _text(places: Iterable[int]) -> str:
    return f"[{','.join(map(str, places))}]"


def _listed(places: str | None) -> Sequence[int]:
    return [] if places is None else json.loads(places)
