"""Deletions by SQL, each in one transaction; a vacuum removes deleted data from the files.

The log has no index by query or user, which every list would have to update: a deletion reads the
whole log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from ebrank.service.store.base import StoreError
from ebrank.service.store.postgresql.database import Connections
from ebrank.service.store.postgresql.meta import touch
from ebrank.service.store.records import Deletion

if TYPE_CHECKING:
    import asyncpg

MOST_SECONDS = 3600.0
"""How long a deletion may take."""

_OF_QUERY = ("items", "evidence", "snapshot", "changes")
_READ_ALL = "SET LOCAL enable_seqscan = on"
_ALL = "SELECT time, kind, digest, queries, rankings, events FROM deletions ORDER BY number"
_NOTE = """INSERT INTO deletions (time, kind, digest, queries, rankings, events)
    VALUES ($1, $2, $3, $4, $5, $6)"""
_WHERE = """SELECT i.query, q.name FROM items AS i JOIN queries AS q ON i.query = q.number
    WHERE i.id = $1 ORDER BY i.query"""
_LOCK = "SELECT 1 FROM queries WHERE number = ANY ($1::bigint[]) ORDER BY number FOR UPDATE"
_NOT_OURS = """SELECT count(*) FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'
    AND NOT pg_has_role(relowner, 'USAGE')"""
_TABLES = """SELECT quote_ident(relname) FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'"""


class PostgresDeletions:
    """See `StoredDeletions` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        async with self._database.reader() as connection:
            rows = await connection.fetch(_ALL)
        return [
            Deletion(time, kind, digest.decode(), *counts) for time, kind, digest, *counts in rows
        ]

    async def query(self, query: str, digest: str, time: float) -> Deletion | None:
        """Delete a query: its items, counters and entries of the log."""
        async with self._database.reader() as connection, connection.transaction():
            await connection.execute(_READ_ALL)
            number = await connection.fetchval(
                "DELETE FROM queries WHERE name = $1 RETURNING number", query.encode()
            )
            if number is None:
                return None
            await connection.execute("UPDATE state SET lives = lives + 1")
            for table in _OF_QUERY:
                await _changed(connection, f"DELETE FROM {table} WHERE query = $1", number)
            rankings, events = [
                await _changed(connection, f"DELETE FROM {table} WHERE query = $1", number)
                for table in ("rankings", "events")
            ]
            await touch(connection, time)
            return await _noted(connection, Deletion(time, "query", digest, 1, rankings, events))

    async def item(
        self, item: str, stand_in: str, digest: str, time: float
    ) -> tuple[Deletion, list[str]] | None:
        """Delete an item from all queries and the catalog."""
        name = item.encode()
        async with self._database.reader() as connection, connection.transaction():
            await connection.execute(_READ_ALL)
            await touch(connection, time)  # which other changes of the catalog wait for
            shared = await _changed(connection, "DELETE FROM catalog WHERE id = $1", name)
            places = await connection.fetch(_WHERE, name, timeout=MOST_SECONDS)
            if not (shared or places):
                return None
            queries = [number for number, _ in places]
            await connection.execute(_LOCK, queries)
            await connection.execute("UPDATE state SET catalog = catalog + $1", shared)
            await connection.execute(
                "UPDATE items SET id = $1, active = false, features = '' "
                "WHERE id = $2 AND query = ANY ($3::bigint[])",
                stand_in.encode(),
                name,
                queries,
            )
            await connection.execute(
                "UPDATE queries SET version = version + 1 WHERE number = ANY ($1::bigint[])",
                queries,
            )
            proof = await _noted(connection, Deletion(time, "item", digest, len(places)))
        return proof, [query.decode() for _, query in places]

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user from all lists, which still count."""
        sql = "UPDATE rankings SET user_hash = NULL WHERE user_hash = $1"
        async with self._database.reader() as connection, connection.transaction():
            await connection.execute(_READ_ALL)
            rankings = await _changed(connection, sql, user.encode())
            await touch(connection, time)
            return await _noted(connection, Deletion(time, "user", digest, rankings=rankings))

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        async with self._database.writer() as connection, connection.transaction():
            for one in deletions:
                await _noted(connection, one)

    async def purge(self) -> None:
        """Rewrite all tables; the write-ahead log and backups are the database's own."""
        async with self._database.reader() as connection:
            if connection.is_in_transaction():
                name = self._database.address.name
                raise StoreError(f"{name}: purged only where it is served, not read or copied")
            if await connection.fetchval(_NOT_OURS):
                raise StoreError(
                    f"{self._database.address.name}: only the owner of the tables can rewrite "
                    "them. Give the URL of that user."
                )
            for (table,) in await connection.fetch(_TABLES):
                await connection.execute(f"VACUUM (FULL) {table}", timeout=MOST_SECONDS)


async def _changed(connection: asyncpg.Connection, sql: str, given: object) -> int:
    """Return how many rows a statement changed."""
    status: str = await connection.execute(sql, given, timeout=MOST_SECONDS)
    return int(status.rpartition(" ")[2])


async def _noted(connection: asyncpg.Connection, deletion: Deletion) -> Deletion:
    time, kind, digest, *counts = astuple(deletion)
    await connection.execute(_NOTE, time, kind, digest.encode(), *counts)
    return deletion
