"""Queries and their items, by SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import NewItem, QueryState
from ebrank.service.store.rows import ItemRow, check_width, rows_of, state_of
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.meta import set_meta, touch

FLOAT32 = np.dtype("<f4")
QUICK_ITEMS = 500
"""A query of so many items is read in 2 ms: more are read in a thread."""

_ITEMS = "SELECT id, entered, active, {counters} FROM items {join} WHERE query = ? ORDER BY place"
_COUNTERS = "shown, clicks, weighted_clicks, exposure, first_shown"
_CURRENT = _ITEMS.format(counters=_COUNTERS, join="")
_ROLLED_UP = _ITEMS.format(
    counters="coalesce(s.shown, 0), coalesce(s.clicks, 0), coalesce(s.weighted_clicks, 0.0), "
    "coalesce(s.exposure, 0.0), s.first_shown",
    join="LEFT JOIN snapshot AS s USING (query, id)",
)
_FEATURES = (
    "SELECT numbers FROM items JOIN features USING (query, id) WHERE query = ? ORDER BY place"
)
_ADVANCE = "UPDATE queries SET version = version + 1 WHERE name = ? RETURNING number, version"


class Known(NamedTuple):
    """A query as other tables refer to it, its version, and how many items it has."""

    number: int
    version: int
    size: int


class SqliteItems:
    """See `StoredItems` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were first given."""
        sql = "SELECT name FROM queries ORDER BY number"
        return await self._database.read_long(
            lambda connection: [name for (name,) in connection.execute(sql)]
        )

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        return await self._load(query, _CURRENT)

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        return await self._load(query, _ROLLED_UP)

    async def _load(self, query: str, sql: str) -> QueryState | None:
        with self._database.read() as connection:
            known = known_query(connection, query)
            if known is None or known.size <= QUICK_ITEMS:
                return _state(connection, query, sql)
        return await self._database.read_long(lambda connection: _state(connection, query, sql))

    async def put(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
    ) -> int:
        """Add candidates or change their features; return the query's version."""
        if not items:
            with self._database.read() as connection:
                known = known_query(connection, query)
            return 0 if known is None else known.version
        with self._database.write() as connection:
            set_meta(connection, meta or {})
            return _put(connection, query, items, time)

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate, its history stays."""
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE items SET active = 0 WHERE id = ? AND active = 1 "
                "AND query = (SELECT number FROM queries WHERE name = ?)",
                (item, query),
            ).rowcount
            if not changed:
                return None
            touch(connection, time)
            return advance(connection, query)[1]

    async def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        with self._database.write() as connection:
            _restore(connection, state, time)


def known_query(connection: sqlite3.Connection, query: str) -> Known | None:
    """Return what is known of a query by its name."""
    sql = "SELECT number, version, size FROM queries WHERE name = ?"
    row = connection.execute(sql, (query,)).fetchone()
    return None if row is None else Known(*row)


def advance(connection: sqlite3.Connection, query: str) -> tuple[int, int]:
    """Note a write to a query; return its number and its new version."""
    found = connection.execute(_ADVANCE, (query,)).fetchall()
    if not found:
        raise StoreError(f"there is no query {query!r}; nothing was stored")
    number, version = found[0]
    return number, version


def _state(connection: sqlite3.Connection, query: str, sql: str) -> QueryState | None:
    known = known_query(connection, query)
    if known is None:
        return None
    rows = [
        ItemRow(name, entered, bool(active), *counters)
        for name, entered, active, *counters in connection.execute(sql, (known.number,))
    ]
    blobs = [blob for (blob,) in connection.execute(_FEATURES, (known.number,))]
    numbers = np.frombuffer(b"".join(blobs), FLOAT32).astype(np.float32)
    width = len(blobs[0]) // FLOAT32.itemsize
    return state_of(query, rows, numbers.reshape(len(rows), width), known.version)


def _put(connection: sqlite3.Connection, query: str, items: Sequence[NewItem], time: float) -> int:
    known = known_query(connection, query) or _new_query(connection, query)
    check_width(query, items, _width(connection, known.number))
    there = _there(connection, known, items)
    new = [name for name in dict.fromkeys(item.id for item in items) if name not in there]
    connection.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, 1, 0, 0, 0.0, 0.0, NULL)",
        [(known.number, name, place, time) for place, name in enumerate(new, known.size)],
    )
    connection.executemany(
        "UPDATE items SET active = 1 WHERE query = ? AND id = ? AND active = 0",
        [(known.number, item.id) for item in items if item.id in there],
    )
    _put_features(
        connection,
        [(known.number, item.id, np.array(item.features, FLOAT32).tobytes()) for item in items],
    )
    connection.execute(
        "UPDATE queries SET version = version + 1, size = size + ? WHERE number = ?",
        (len(new), known.number),
    )
    touch(connection, time)
    return known.version + 1


def _there(connection: sqlite3.Connection, known: Known, items: Sequence[NewItem]) -> set[str]:
    """Return the names of those that the query has already."""
    if not known.size:
        return set()
    sql = "SELECT 1 FROM items WHERE query = ? AND id = ?"
    return {
        item.id for item in items if connection.execute(sql, (known.number, item.id)).fetchone()
    }


def _restore(connection: sqlite3.Connection, state: QueryState, time: float) -> None:
    """Add a query whose counters become those of the snapshot too."""
    if known_query(connection, state.query) is not None:
        raise StoreError(f"query {state.query!r} is there already")
    number = _new_query(connection, state.query).number
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
    connection.execute(
        "UPDATE queries SET version = 1, size = ? WHERE number = ?", (len(rows), number)
    )
    touch(connection, time)


def _new_query(connection: sqlite3.Connection, query: str) -> Known:
    sql = "INSERT INTO queries (name, version, size) VALUES (?, 0, 0) RETURNING number"
    [(number,)] = connection.execute(sql, (query,)).fetchall()
    return Known(number, 0, 0)


def _put_features(connection: sqlite3.Connection, rows: Sequence[tuple[int, str, bytes]]) -> None:
    connection.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", rows)


def _width(connection: sqlite3.Connection, number: int) -> int | None:
    """Return how many features the items of a query have; None if it has no items."""
    sql = "SELECT length(numbers) FROM features WHERE query = ? LIMIT 1"
    row = connection.execute(sql, (number,)).fetchone()
    return None if row is None else int(row[0]) // FLOAT32.itemsize
