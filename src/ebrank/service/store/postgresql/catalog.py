"""The features that queries share, by SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ebrank.service.store.base import check_catalog
from ebrank.service.store.postgresql.database import Connections
from ebrank.service.store.postgresql.items import FLOAT32, packed, tally
from ebrank.service.store.postgresql.meta import next_version, set_meta, touch
from ebrank.service.store.records import CatalogCommit, NewItem, Tally
from ebrank.typing import Features

if TYPE_CHECKING:
    import asyncpg

PAGE = 1000
"""Items read at a time."""

_PUT = """INSERT INTO catalog AS c SELECT id, $3, features
    FROM unnest($1::bytea[], $2::bytea[]) AS g (id, features)
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, features = excluded.features
    WHERE c.features IS DISTINCT FROM excluded.features RETURNING id"""
_REMOVE = """UPDATE catalog SET version = $2, features = NULL
    WHERE id = ANY ($1) AND features IS NOT NULL RETURNING id"""
_READ = "SELECT id, features FROM catalog WHERE id = ANY ($1) AND version > $2"
_PAGE = """SELECT id, features FROM catalog
    WHERE id > $1 AND features IS NOT NULL ORDER BY id LIMIT $2"""
_FIRST_PAGE = "SELECT id, features FROM catalog WHERE features IS NOT NULL ORDER BY id LIMIT $1"


class PostgresCatalog:
    """See `StoredCatalog` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def version(self) -> int:
        """Return how many writes have changed the catalog."""
        async with self._database.reader() as connection:
            return int(await connection.fetchval("SELECT catalog FROM state"))

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features | None]:
        """Return the rows of the items that were put after a version; None for removed ones."""
        asked = [name.encode() for name in names]
        async with self._database.reader() as connection:
            rows = await connection.fetch(_READ, asked, since)
        return {name.decode(): None if blob is None else _row(blob) for name, blob in rows}

    async def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""
        last: bytes | None = None
        while True:
            async with self._database.reader() as connection:
                if last is None:
                    page = await connection.fetch(_FIRST_PAGE, PAGE)
                else:
                    page = await connection.fetch(_PAGE, last, PAGE)
            for name, blob in page:
                yield name.decode(), _row(blob)
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
        rows = {item.id.encode(): packed(item.features) for item in items}
        async with self._database.writer() as connection, connection.transaction():
            version = await next_version(connection)
            check_catalog(meta, known, version - 1)
            changed = await connection.fetch(_PUT, list(rows), list(rows.values()), version)
            await set_meta(connection, meta or {})
            return await _commit(connection, version, len(changed), bool(changed or meta), time)

    async def remove(self, names: Sequence[str], time: float) -> CatalogCommit:
        """Remove items; the version grows by one if any of them existed."""
        async with self._database.writer() as connection, connection.transaction():
            version = await next_version(connection)
            gone = await connection.fetch(_REMOVE, [name.encode() for name in names], version)
            return await _commit(connection, version, len(gone), bool(gone), time)

    async def tally(self) -> Tally:
        """Return how many items there are, and how many have a number in each column."""
        sql = "SELECT features FROM catalog WHERE features IS NOT NULL"
        return await tally(self._database, sql)


async def _commit(
    connection: asyncpg.Connection, version: int, changed: int, rises: bool, time: float
) -> CatalogCommit:
    if not rises:
        return CatalogCommit(version - 1, changed)
    await connection.execute("UPDATE state SET catalog = $1", version)
    await touch(connection, time)
    return CatalogCommit(version, changed)


def _row(blob: bytes) -> Features:
    return np.frombuffer(blob, FLOAT32).astype(np.float32)
