"""Rows of the log as entries again.

Rows name items by their places in their query.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ebrank.service.store.counting import Placed
from ebrank.service.store.records import EventEntry, Operation, RankingEntry
from ebrank.service.store.sqlite.items import names_of

Row: TypeAlias = tuple[Any, ...]
Names: TypeAlias = Mapping[int, str]
"""Of items, by their places."""

_RANKINGS = (
    "SELECT query, seq, id, name, time, model, items, counted, explored, relevance, cost, user, "
    "would_rank, offset, continues, seen, bot, epoch, contexts FROM rankings "
    "JOIN queries ON query = number"
)
_EVENTS = (
    "SELECT query, seq, event_id, ranking_id, name, place, type, rank, outcome, shows, time, "
    "received, replaces, bot, value, epoch FROM events JOIN queries ON query = number"
)
_RANKING_TYPES = (int, int, str, str, float, int, str, int, bytes, bytes, float)
_EVENT_TYPES = (int, int, str, str, str, int, str, int, int, int, float, float, int)
_PAGE = " WHERE seq > ? AND seq <= ? ORDER BY seq"


def page(connection: sqlite3.Connection, after: int, last: int) -> list[Operation]:
    """Return the entries with numbers after one and up to another, in order."""
    return [entry for _, _, entry in placed_page(connection, after, last)]


def placed_page(connection: sqlite3.Connection, after: int, last: int) -> list[Placed]:
    """Return the same with their queries' numbers, and where their items stand."""
    rankings = connection.execute(_RANKINGS + _PAGE, (after, last)).fetchall()
    events = connection.execute(_EVENTS + _PAGE, (after, last)).fetchall()
    places: dict[int, set[int]] = {}
    for row in rankings:
        places.setdefault(row[0], set()).update(_listed(row[6]), _listed(row[12]))
    for row in events:
        places.setdefault(row[0], set()).add(row[5])
    names = {query: names_of(connection, query, list(some)) for query, some in places.items()}
    numbered: list[tuple[int, Placed]] = []
    for row in rankings:
        listed = [*_listed(row[6]), *_listed(row[12])]
        numbered.append((row[1], (row[0], listed, _ranking(row, names[row[0]]))))
    for row in events:
        numbered.append((row[1], (row[0], [row[5]], _event(row, names[row[0]]))))
    numbered.sort(key=lambda entry: entry[0])
    return [entry for _, entry in numbered]


def find_ranking(connection: sqlite3.Connection, ranking_id: str) -> RankingEntry | None:
    """Return a list that is still in the log."""
    row = connection.execute(f"{_RANKINGS} WHERE id = ?", (ranking_id,)).fetchone()
    if row is None:
        return None
    places = [*_listed(row[6]), *_listed(row[12])]
    return _ranking(row, names_of(connection, row[0], places))


def _typed(row: Row, types: tuple[type, ...]) -> None:
    """Raise unless the first values of a row are of these types: SQLite would hold any."""
    if tuple(map(type, row[: len(types)])) != types:
        raise ValueError(f"a row of the log that cannot be: {row}")


def _ranking(row: Row, names: Names) -> RankingEntry:
    _typed(row, _RANKING_TYPES)
    _, _, name, query, time, model, items, counted, explored, relevance, *rest = row
    cost, user, would_rank, offset, continues, seen, bot, epoch, contexts = rest
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
        offset=offset,
        continues=continues,
        seen=tuple(_listed(seen)),
        bot=bool(bot),
        epoch=epoch,
        contexts=tuple(_listed(contexts)),
    )


def _event(row: Row, names: Names) -> EventEntry:
    _typed(row, _EVENT_TYPES)
    _, _, event_id, ranking_id, query, place, kind, rank, outcome, shows, *rest = row
    time, received, replaces, bot, value, epoch = rest
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
        bool(bot),
        value,
        epoch,
    )


def _listed(numbers: str | None) -> Sequence[int]:
    return [] if numbers is None else json.loads(numbers)
