"""Queries and their items, by SQL: every function is given a connection, and commits nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import numpy as np

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import NewItem, QueryState
from ebrank.service.store.rows import ItemRow, check_width, rows_of, state_of

FLOAT32 = np.dtype("<f4")

_ITEMS = "SELECT id, entered, active, {counters} FROM items {join} WHERE query = ? ORDER BY place"
_COUNTERS = "shown, clicks, weighted_clicks, exposure, first_shown"
CURRENT = _ITEMS.format(counters=_COUNTERS, join="")
ROLLED_UP = _ITEMS.format(
    counters="coalesce(s.shown, 0), coalesce(s.clicks, 0), coalesce(s.weighted_clicks, 0.0), "
    "coalesce(s.exposure, 0.0), s.first_shown",
    join="LEFT JOIN snapshot AS s USING (query, id)",
)
_FEATURES = (
    "SELECT numbers FROM items JOIN features USING (query, id) WHERE query = ? ORDER BY place"
)
_NEW_ITEM = (
    "INSERT INTO items VALUES (?, ?, ?, ?, 1, 0, 0, 0.0, 0.0, NULL) "
    "ON CONFLICT (query, id) DO UPDATE SET active = 1"
)


def queries(connection: sqlite3.Connection) -> list[str]:
    """Return the names in the order in which they were first given."""
    return [name for (name,) in connection.execute("SELECT name FROM queries ORDER BY number")]


def number_of(connection: sqlite3.Connection, query: str) -> int | None:
    """Return the number by which rows refer to a query."""
    row = connection.execute("SELECT number FROM queries WHERE name = ?", (query,)).fetchone()
    return None if row is None else int(row[0])


def load(connection: sqlite3.Connection, query: str, sql: str = CURRENT) -> QueryState | None:
    """Return the state of a query by the current counters, or by `ROLLED_UP` ones."""
    number = number_of(connection, query)
    if number is None:
        return None
    rows = [
        ItemRow(name, entered, bool(active), *counters)
        for name, entered, active, *counters in connection.execute(sql, (number,))
    ]
    blobs = [blob for (blob,) in connection.execute(_FEATURES, (number,))]
    numbers = np.frombuffer(b"".join(blobs), FLOAT32).astype(np.float32)
    width = len(blobs[0]) // FLOAT32.itemsize if blobs else 0
    return state_of(query, rows, numbers.reshape(len(rows), width))


def put(connection: sqlite3.Connection, query: str, items: Sequence[NewItem], time: float) -> None:
    """Add items or change their features."""
    connection.execute("INSERT INTO queries (name) VALUES (?) ON CONFLICT DO NOTHING", (query,))
    number = number_of(connection, query)
    check_width(query, items, _width(connection, number))
    row = connection.execute("SELECT max(place) FROM items WHERE query = ?", (number,)).fetchone()
    begin = 0 if row[0] is None else row[0] + 1
    connection.executemany(
        _NEW_ITEM, [(number, item.id, begin + i, time) for i, item in enumerate(items)]
    )
    _put_features(connection, [(number, item.id, _blob(item.features)) for item in items])
    touch(connection, time)


def withdraw(connection: sqlite3.Connection, query: str, item: str, time: float) -> bool:
    """Withdraw an item; return whether it was a candidate."""
    changed = connection.execute(
        "UPDATE items SET active = 0 WHERE id = ? AND active = 1 "
        "AND query = (SELECT number FROM queries WHERE name = ?)",
        (item, query),
    ).rowcount
    if changed:
        touch(connection, time)
    return bool(changed)


def restore(connection: sqlite3.Connection, state: QueryState, time: float) -> None:
    """Add a query with items and a history: its counters become those of the snapshot too."""
    if number_of(connection, state.query) is not None:
        raise StoreError(f"query {state.query!r} is there already")
    number = connection.execute("INSERT INTO queries (name) VALUES (?)", (state.query,)).lastrowid
    rows = rows_of(state)
    connection.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, row.id, place, *row[1:]) for place, row in enumerate(rows)],
    )
    connection.executemany(
        "INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(number, row.id, *row[3:]) for row in rows if row.shown or row.clicks],
    )
    blobs = (numbers.astype(FLOAT32).tobytes() for numbers in state.features)
    _put_features(connection, list(zip([number] * len(rows), state.ids, blobs, strict=True)))
    touch(connection, time)


def touch(connection: sqlite3.Connection, time: float) -> None:
    """Remember a time that the log does not hold, or will not hold any more."""
    connection.execute("UPDATE state SET last_time = max(last_time, ?)", (time,))


def _put_features(
    connection: sqlite3.Connection, rows: Sequence[tuple[int | None, str, bytes]]
) -> None:
    connection.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", rows)


def _blob(features: Sequence[float]) -> bytes:
    return np.array(features, FLOAT32).tobytes()


def _width(connection: sqlite3.Connection, number: int | None) -> int | None:
    """Return how many features the items of a query have; None if it has no items."""
    sql = "SELECT length(numbers) FROM features WHERE query = ? LIMIT 1"
    row = connection.execute(sql, (number,)).fetchone()
    return None if row is None else int(row[0]) // FLOAT32.itemsize
