"""The features that queries share, by SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ebrank.service.store.base import check_catalog
from ebrank.service.store.records import CatalogCommit, NewItem, Tally
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.items import AT_ONCE, FLOAT32, QUICK_ITEMS, tally
from ebrank.service.store.sqlite.meta import set_meta, touch
from ebrank.typing import Features

PAGE = 1000
"""Items read at a time."""

_PUT = (
    "INSERT INTO catalog VALUES (?, ?, ?) ON CONFLICT DO UPDATE "
    "SET version = excluded.version, numbers = excluded.numbers "
    "WHERE numbers IS NOT excluded.numbers"
)
_REMOVE = "UPDATE catalog SET version = ?, numbers = NULL WHERE id = ? AND numbers IS NOT NULL"
_PAGE = "SELECT id, numbers FROM catalog WHERE {} numbers IS NOT NULL ORDER BY id LIMIT ?"


class SqliteCatalog:
    """See `StoredCatalog` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def version(self) -> int:
        """Return how many writes have changed the catalog."""
        with self._database.read() as connection:
            return _version(connection)

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features | None]:
        """Return the rows of the items that were put after a version; None for removed ones."""
        if len(names) <= QUICK_ITEMS:
            with self._database.read() as connection:
                return _changed(connection, names, since)
        return await self._database.read_long(lambda connection: _changed(connection, names, since))

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""
        last: str | None = None
        while True:
            page = await self._database.read_long(partial(_page, after=last))
            for name, blob in page:
                yield name, np.frombuffer(blob, FLOAT32).astype(np.float32)
            if len(page) < PAGE:
                return
            last = page[-1][0]

    async def put(
        self,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> CatalogCommit:
        """Add items or change their rows, and keep settings in the same transaction."""
        with self._database.write() as connection:
            version = _version(connection) + 1
            check_catalog(meta, known, version - 1)
            rows = [
                (item.id, version, np.array(item.features, FLOAT32).tobytes()) for item in items
            ]
            changed = connection.executemany(_PUT, rows).rowcount if rows else 0
            set_meta(connection, meta or {})
            return _commit(connection, changed, bool(changed or meta), time)

    async def remove(self, names: Sequence[str], time: float) -> CatalogCommit:
        """Remove items; the version grows by one if any of them existed."""
        with self._database.write() as connection:
            version = _version(connection) + 1
            rows = [(version, name) for name in names]
            changed = connection.executemany(_REMOVE, rows).rowcount if rows else 0
            return _commit(connection, changed, bool(changed), time)

    async def tally(self) -> Tally:
        """Return how many items there are, and how many have a number in each column."""
        sql = "SELECT numbers FROM catalog WHERE numbers IS NOT NULL"
        return await self._database.read_long(lambda connection: tally(connection, sql))


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT catalog FROM state").fetchone()[0])


def _commit(
    connection: sqlite3.Connection, changed: int, rises: bool, time: float
) -> CatalogCommit:
    if rises:
        connection.execute("UPDATE state SET catalog = catalog + 1")
        touch(connection, time)
    return CatalogCommit(_version(connection), changed)


def _changed(
    connection: sqlite3.Connection, names: Sequence[str], since: int
) -> dict[str, Features | None]:
    """Return what changed after a version, through the smaller set: the names or the changes."""
    if since:
        sql = "SELECT id, numbers FROM catalog WHERE version > ? LIMIT ?"
        changes = connection.execute(sql, (since, len(names) + 1)).fetchall()
        if len(changes) <= len(names):
            wanted = set(names)
            return {name: _row(blob) for name, blob in changes if name in wanted}
    return {name: _row(blob) for name, blob in _by_name(connection, names, since)}


def _by_name(
    connection: sqlite3.Connection, names: Sequence[str], since: int
) -> Iterator[tuple[str, bytes | None]]:
    for begin in range(0, len(names), AT_ONCE):
        some = names[begin : begin + AT_ONCE]
        marks = ", ".join("?" * len(some))
        sql = f"SELECT id, numbers FROM catalog WHERE id IN ({marks}) AND version > ?"
        yield from connection.execute(sql, (*some, since))


def _page(connection: sqlite3.Connection, after: str | None) -> list[tuple[str, bytes]]:
    if after is None:
        return connection.execute(_PAGE.format(""), (PAGE,)).fetchall()
    return connection.execute(_PAGE.format("id > ? AND"), (after, PAGE)).fetchall()


def _row(blob: bytes | None) -> Features | None:
    return None if blob is None else np.frombuffer(blob, FLOAT32).astype(np.float32)
