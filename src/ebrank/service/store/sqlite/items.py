"""Queries, their items and what users did with them, by SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebrank.service.store.base import StoreError, check_catalog
from ebrank.service.store.records import LIFE, NewItem, QueryRow, QueryState, Tally
from ebrank.service.store.rows import (
    Count,
    ItemRow,
    count_rows,
    item_rows,
    padded,
    snapshot_of,
    state_of,
    tally_of,
)
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.meta import set_meta, touch
from ebrank.typing import Features

FLOAT32 = np.dtype("<f4")
QUICK_ITEMS = 500
"""A query of so many items is read in 2 ms: more are read in a thread."""
AT_ONCE = 500
"""Names looked up, or features read, by one statement."""

_NEW = (
    "INSERT INTO queries (name, version, size) VALUES (?, (SELECT lives FROM state) * ?, 0) "
    "RETURNING number, version"
)
# By the index of names, from the prefix or the last name on, to where the prefix ends.
_FIND = """SELECT name, size FROM queries
    WHERE name >= max(:prefix, coalesce(:after, '')) AND name < :prefix || char(1114111)
    AND name IS NOT :after AND instr(name, :contains) > 0 ORDER BY name LIMIT :limit"""


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
        """Return the names of all queries, in the order in which they were added."""
        sql = "SELECT name FROM queries ORDER BY number"
        return await self._database.read_long(
            lambda connection: [name for (name,) in connection.execute(sql)]
        )

    async def find(
        self, prefix: str = "", contains: str = "", after: str | None = None, limit: int = 100
    ) -> list[QueryRow]:
        """Return queries whose names begin with a text and contain another, after a name."""
        asked = {"prefix": prefix, "contains": contains, "after": after, "limit": limit}
        return await self._database.read_long(
            lambda connection: [QueryRow(*row) for row in connection.execute(_FIND, asked)]
        )

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        return await self._load(query, rolled_up=False)

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        return await self._load(query, rolled_up=True)

    async def _load(self, query: str, *, rolled_up: bool) -> QueryState | None:
        with self._database.read() as connection:
            known = known_query(connection, query)
            if known is None or known.size <= QUICK_ITEMS:
                return _state(connection, query, rolled_up)
        return await self._database.read_long(
            lambda connection: _state(connection, query, rolled_up)
        )

    async def put(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> int:
        """Add candidates or change their features; return the query's version."""
        if not items:
            with self._database.read() as connection:
                there = known_query(connection, query)
            return 0 if there is None else there.version
        with self._database.write() as connection:
            if meta:
                check_catalog(meta, known, found(connection)[1])
                set_meta(connection, meta)
                connection.execute("UPDATE state SET catalog = catalog + 1")
            return _put(connection, query, items, time)

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate; its history stays."""
        with self._database.write() as connection:
            changed = connection.execute(
                "UPDATE items SET active = 0 WHERE id = ? AND active = 1 "
                "AND query = (SELECT number FROM queries WHERE name = ?)",
                (item, query),
            ).rowcount
            if not changed:
                return None
            touch(connection, time)
            sql = "UPDATE queries SET version = version + 1 WHERE name = ? RETURNING version"
            [(version,)] = connection.execute(sql, (query,)).fetchall()
            return int(version)

    async def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        with self._database.write() as connection:
            _restore(connection, state, time)

    async def tally(self) -> Tally:
        """Return how many items all queries have, and how many have a number in each column."""
        sql = "SELECT numbers FROM features"
        return await self._database.read_long(lambda connection: tally(connection, sql))


def found(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the active model, and the version of the catalog."""
    model, catalog = connection.execute("SELECT active_model, catalog FROM state").fetchone()
    return model, catalog


def features_of(blobs: Sequence[bytes]) -> Features:
    """Return rows of features below each other; the caller owns them."""
    width = len(blobs[0]) if blobs else 0
    if all(len(blob) == width for blob in blobs):
        numbers = np.frombuffer(b"".join(blobs), FLOAT32).astype(np.float32)
        return numbers.reshape(len(blobs), width // FLOAT32.itemsize)
    return padded([np.frombuffer(blob, FLOAT32) for blob in blobs])


def tally(connection: sqlite3.Connection, sql: str) -> Tally:
    """Return what there is of the rows that a statement selects."""
    cursor = connection.execute(sql)
    parts = iter(lambda: [blob for (blob,) in cursor.fetchmany(AT_ONCE)], [])
    return tally_of(map(features_of, parts))


def known_query(connection: sqlite3.Connection, query: str) -> Known | None:
    """Return what is known of a query by its name."""
    sql = "SELECT number, version, size FROM queries WHERE name = ?"
    row = connection.execute(sql, (query,)).fetchone()
    return None if row is None else Known(*row)


def items_by_name(
    connection: sqlite3.Connection, columns: str, query: int, names: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Yield some columns of a query's items of these names, as far as it has them.

    The names come first: left to itself, SQLite reads all items of a query instead of looking up
    a few. As JSON they would end at a zero character.
    """
    for begin in range(0, len(names), AT_ONCE):
        some = names[begin : begin + AT_ONCE]
        sql = (
            f"WITH wanted (name) AS (VALUES {', '.join(['(?)'] * len(some))}) "
            f"SELECT {columns} FROM wanted CROSS JOIN items ON query = ? AND id = name"
        )
        yield from connection.execute(sql, (*some, query))


def names_of(connection: sqlite3.Connection, query: int, places: Sequence[int]) -> dict[int, str]:
    """Return the names of the items that stand at these places."""
    sql = "SELECT place, id FROM items WHERE query = ? AND place BETWEEN ? AND ?"
    borders = (min(places, default=0), max(places, default=-1))
    return dict(connection.execute(sql, (query, *borders)).fetchall())


def _state(connection: sqlite3.Connection, query: str, rolled_up: bool) -> QueryState | None:
    known = known_query(connection, query)
    if known is None:
        return None
    number, version, size = known
    sql = "SELECT id, entered, active, first_shown FROM items WHERE query = ? ORDER BY place"
    rows = [
        ItemRow(name, entered, bool(active), first_shown)
        for name, entered, active, first_shown in connection.execute(sql, (number,))
    ]
    sql = "SELECT numbers FROM features WHERE query = ? ORDER BY place"
    blobs = [blob for (blob,) in connection.execute(sql, (number,))]
    if len(rows) != size:
        raise ValueError(f"the parts of query {query!r} do not fit")
    counts = _count_rows(connection, "evidence", number)
    state = state_of(query, rows, features_of(blobs), counts, version)
    return snapshot_of(state, _count_rows(connection, "snapshot", number)) if rolled_up else state


def _count_rows(connection: sqlite3.Connection, table: str, query: int) -> Iterator[Count]:
    sql = f"SELECT place, outcome, slot, count, epoch FROM {table} WHERE query = ?"
    return connection.execute(sql, (query,))


def _put(connection: sqlite3.Connection, query: str, items: Sequence[NewItem], time: float) -> int:
    number, version, size = known_query(connection, query) or _new_query(connection, query)
    features = {item.id: np.array(item.features, FLOAT32).tobytes() for item in items}
    there = dict(items_by_name(connection, "id, place", number, list(features))) if size else {}
    new = [name for name in features if name not in there]
    connection.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, 1, NULL)",
        [(number, place, name, time) for place, name in enumerate(new, size)],
    )
    connection.executemany(
        "UPDATE items SET active = 1 WHERE query = ? AND place = ? AND active = 0",
        [(number, place) for place in there.values()],
    )
    connection.executemany(
        "INSERT INTO features VALUES (?, ?, ?)",
        [(number, place, features[name]) for place, name in enumerate(new, size)],
    )
    connection.executemany(
        "UPDATE features SET numbers = ? WHERE query = ? AND place = ?",
        [(features[name], number, place) for name, place in there.items()],
    )
    connection.execute(
        "UPDATE queries SET version = version + 1, size = size + ? WHERE number = ?",
        (len(new), number),
    )
    touch(connection, time)
    return version + 1


def _restore(connection: sqlite3.Connection, state: QueryState, time: float) -> None:
    """Add a query whose counts become those of the snapshot too."""
    if known_query(connection, state.query) is not None:
        raise StoreError(f"query {state.query!r} is there already")
    number = _new_query(connection, state.query).number
    connection.executemany(
        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)",
        [(number, place, *row) for place, row in enumerate(item_rows(state))],
    )
    counts = [(number, *row) for row in count_rows(state)]
    for table in ("evidence", "snapshot"):
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)", counts)
    connection.executemany(
        "INSERT INTO features VALUES (?, ?, ?)",
        [
            (number, place, numbers.astype(FLOAT32).tobytes())
            for place, numbers in enumerate(state.features)
        ],
    )
    connection.execute(
        "UPDATE queries SET version = version + 1, size = ? WHERE number = ?",
        (len(state.ids), number),
    )
    touch(connection, time)


def _new_query(connection: sqlite3.Connection, query: str) -> Known:
    [(number, version)] = connection.execute(_NEW, (query, LIFE)).fetchall()
    return Known(number, version, 0)
