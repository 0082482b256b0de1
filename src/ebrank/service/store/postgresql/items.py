"""Queries, their items and what users did with them, by SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from ebrank.service.store.base import StoreError, check_catalog
from ebrank.service.store.postgresql.database import Connections, encoded
from ebrank.service.store.postgresql.meta import next_version, set_meta
from ebrank.service.store.records import LIFE, NewItem, QueryRow, QueryState, Tally
from ebrank.service.store.rows import (
    ItemRow,
    count_rows,
    item_rows,
    padded,
    snapshot_of,
    state_of,
    tally_of,
)
from ebrank.typing import Features

if TYPE_CHECKING:
    import asyncpg

FLOAT32 = np.dtype("<f4")
PAGE = 1000
"""Rows read at a time where there may be many."""

# One statement: what it returns is of one moment.
_COUNTS = """SELECT array_agg(place), array_agg(outcome), array_agg(slot), array_agg(count),
    array_agg(epoch) FROM {table} WHERE query = q.number"""
_LOAD = f"""SELECT q.version, i.*, e.*, s.* FROM queries AS q
    CROSS JOIN LATERAL (SELECT array_agg(id ORDER BY place), array_agg(entered ORDER BY place),
        array_agg(active ORDER BY place), array_agg(first_shown ORDER BY place),
        array_agg(features ORDER BY place) FROM items WHERE query = q.number) AS i
    CROSS JOIN LATERAL ({_COUNTS.format(table="evidence")}) AS e
    CROSS JOIN LATERAL (SELECT a.* FROM ({_COUNTS.format(table="snapshot")} AND $2) AS a) AS s
    WHERE q.name = $1"""
_FIND = """SELECT name, size FROM queries WHERE name >= $1::bytea
    AND ($3::bytea IS NULL OR name > $3) AND substr(name, 1, length($1::bytea)) = $1
    AND (length($2::bytea) = 0 OR position($2::bytea IN name) > 0) ORDER BY name LIMIT $4"""
_PUT = "SELECT put_items($1, $2, $3, $4)"
_WITHDRAW = """WITH gone AS (
        UPDATE items SET active = false WHERE id = $2 AND active
        AND query = (SELECT number FROM queries WHERE name = $1 FOR UPDATE) RETURNING query)
    UPDATE queries SET version = version + 1, last_time = greatest(last_time, $3)
    WHERE number = (SELECT query FROM gone) RETURNING version"""


class PostgresItems:
    """See `StoredItems` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        sql = "SELECT name FROM queries ORDER BY number"
        async with self._database.reader() as connection:
            return [name.decode() for (name,) in await connection.fetch(sql)]

    async def find(
        self, prefix: str = "", contains: str = "", after: str | None = None, limit: int = 100
    ) -> list[QueryRow]:
        """Return queries whose names begin with a text and contain another, after a name."""
        asked = prefix.encode(), contains.encode(), encoded(after), limit
        async with self._database.reader() as connection:
            rows = await connection.fetch(_FIND, *asked)
        return [QueryRow(name.decode(), size) for name, size in rows]

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        return await self._load(query, rolled_up=False)

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        return await self._load(query, rolled_up=True)

    async def _load(self, query: str, *, rolled_up: bool) -> QueryState | None:
        async with self._database.reader() as connection:
            row = await connection.fetchrow(_LOAD, query.encode(), rolled_up)
        return None if row is None else _state(query, row, rolled_up=rolled_up)

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
            sql = "SELECT version FROM queries WHERE name = $1"
            async with self._database.reader() as connection:
                return await connection.fetchval(sql, query.encode()) or 0
        features = {item.id.encode(): packed(item.features) for item in items}
        row = query.encode(), list(features), list(features.values()), time
        async with self._database.writer() as connection:
            if not meta:
                return int(await connection.fetchval(_PUT, *row))
            async with connection.transaction():
                check_catalog(meta, known, await next_version(connection) - 1)
                await set_meta(connection, meta)
                await connection.execute("UPDATE state SET catalog = catalog + 1")
                return int(await connection.fetchval(_PUT, *row))

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate; its history stays."""
        async with self._database.writer() as connection:
            version: int | None = await connection.fetchval(
                _WITHDRAW, query.encode(), item.encode(), time
            )
        return version

    async def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        async with self._database.writer() as connection, connection.transaction():
            await _restore(connection, state, time)

    async def tally(self) -> Tally:
        """Return how many items all queries have, and how many have a number in each column."""
        return await tally(self._database, "SELECT features FROM items")


def packed(numbers: Sequence[float] | Features) -> bytes:
    """Return a row of features as the tables have it."""
    return np.array(numbers, FLOAT32).tobytes()


def features_of(blobs: Sequence[bytes]) -> Features:
    """Return rows of features below each other; the caller owns them."""
    width = len(blobs[0]) if blobs else 0
    if all(len(blob) == width for blob in blobs):
        numbers = np.frombuffer(b"".join(blobs), FLOAT32).astype(np.float32)
        return numbers.reshape(len(blobs), width // FLOAT32.itemsize)
    return padded([np.frombuffer(blob, FLOAT32) for blob in blobs])


async def tally(database: Connections, sql: str) -> Tally:
    """Return what there is of the rows that a statement selects, some of them at a time."""
    rows, given = 0, list[int]()
    async with database.reader() as connection, connection.transaction():
        cursor = await connection.cursor(sql)
        while page := await cursor.fetch(PAGE):
            some = tally_of([features_of([blob for (blob,) in page])])
            rows += some.rows
            given = [sum(both) for both in zip_longest(given, some.given, fillvalue=0)]
    return Tally(rows, given)


def _state(query: str, row: Sequence[Any], *, rolled_up: bool) -> QueryState:
    version, names, entered, active, first_shown, blobs, *counts = row
    rows = [
        ItemRow(name.decode(), *rest)
        for name, *rest in zip(names, entered, active, first_shown, strict=True)
    ]
    now, rolled = (zip(*some, strict=True) if some[0] else () for some in (counts[:5], counts[5:]))
    state = state_of(query, rows, features_of(blobs), now, version)
    return snapshot_of(state, rolled) if rolled_up else state


async def _restore(connection: asyncpg.Connection, state: QueryState, time: float) -> None:
    """Add a query whose counts become those of the snapshot too."""
    number = await connection.fetchval(
        "INSERT INTO queries (name, version, size, last_time) "
        "SELECT $1, lives * $4 + 1, $2, $3 FROM state "
        "ON CONFLICT DO NOTHING RETURNING number",
        state.query.encode(),
        len(state.ids),
        time,
        LIFE,
    )
    if number is None:
        raise StoreError(f"query {state.query!r} is there already")
    items = [
        (number, place, row.id.encode(), row.entered, row.active, row.first_shown, packed(numbers))
        for place, (row, numbers) in enumerate(zip(item_rows(state), state.features, strict=True))
    ]
    await connection.copy_records_to_table("items", records=items)
    counts = [(number, *row) for row in count_rows(state)]
    for table in ("evidence", "snapshot"):
        await connection.copy_records_to_table(table, records=counts)
