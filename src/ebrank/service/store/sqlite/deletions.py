"""Deletions by SQL: deleted data is overwritten, and the log is searched a portion at a time.

The log has no index by query or user, which every list would have to update. So a query is gone at
once, and its entries in the log, which nobody finds without it, follow in portions.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import Deletion
from ebrank.service.store.sqlite.database import Connections, Database
from ebrank.service.store.sqlite.items import known_query
from ebrank.service.store.sqlite.meta import touch

PORTION = 2000
"""Numbers of the log searched in one transaction."""
PAUSE_SECONDS = 0.005

_OF_QUERY = ("items", "features", "evidence", "snapshot")
_ALL = "SELECT time, kind, digest, queries, rankings, events FROM deletions ORDER BY number"
_NOTE = "INSERT INTO deletions VALUES (NULL, ?, ?, ?, ?, ?, ?)"
_BORDERS = """SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM
    (SELECT min(seq) AS seq FROM rankings UNION ALL SELECT max(seq) FROM rankings
    UNION ALL SELECT min(seq) FROM events UNION ALL SELECT max(seq) FROM events)"""


class SqliteDeletions:
    """See `StoredDeletions` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        return await self._database.read_long(
            lambda connection: [Deletion(*row) for row in connection.execute(_ALL)]
        )

    async def query(self, query: str, digest: str, time: float) -> Deletion | None:
        """Delete a query: its items, counters and entries of the log."""
        with self._erasing() as connection:
            known = known_query(connection, query)
            if known is None:
                return None
            connection.execute("DELETE FROM queries WHERE number = ?", (known.number,))
            _delete_parts(connection, known.number)
            connection.execute("UPDATE state SET lives = lives + 1")
            touch(connection, time)
        rankings = await self._in_portions("DELETE FROM rankings WHERE query = ?", known.number)
        # By their numbers: the index would lead to all events of the query each time.
        sql = "DELETE FROM events NOT INDEXED WHERE query = ?"
        events = await self._in_portions(sql, known.number)
        with self._erasing() as connection:
            _delete_parts(connection, known.number)  # a roll-up may have come in between
            return _noted(connection, Deletion(time, "query", digest, 1, rankings, events))

    async def item(
        self, item: str, stand_in: str, digest: str, time: float
    ) -> tuple[Deletion, list[str]] | None:
        """Delete an item from all queries and the catalog."""
        sql = "SELECT query, place, name FROM items JOIN queries ON number = query WHERE id = ?"
        places = await self._database.read_long(
            lambda connection: connection.execute(sql, (item,)).fetchall()
        )
        with self._erasing() as connection:
            shared = connection.execute("DELETE FROM catalog WHERE id = ?", (item,)).rowcount
            if not (shared or places):
                return None
            connection.execute("UPDATE state SET catalog = catalog + ?", (shared,))
            connection.executemany(
                "UPDATE items SET id = ?, active = 0 WHERE query = ? AND place = ?",
                [(stand_in, query, place) for query, place, _ in places],
            )
            connection.executemany(
                "UPDATE features SET numbers = x'' WHERE query = ? AND place = ?",
                [(query, place) for query, place, _ in places],
            )
            connection.executemany(
                "UPDATE queries SET version = version + 1 WHERE number = ?",
                [(query,) for query, _, _ in places],
            )
            touch(connection, time)
            proof = _noted(connection, Deletion(time, "item", digest, len(places)))
        return proof, [name for _, _, name in places]

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user from all lists, which still count."""
        sql = "UPDATE rankings SET user = NULL WHERE user = ?"
        rankings = await self._in_portions(sql, user)
        with self._erasing() as connection:
            touch(connection, time)
            return _noted(connection, Deletion(time, "user", digest, rankings=rankings))

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        with self._database.write() as connection:
            connection.executemany(_NOTE, [astuple(one) for one in deletions])

    async def purge(self) -> None:
        """Rewrite all files, so that they hold nothing of what was deleted any more."""
        if not isinstance(self._database, Database):
            raise StoreError(f"{self._database.path}: opened to be read, not to be written")
        with self._erasing() as connection:  # what a deletion left that was interrupted
            for table in (*_OF_QUERY, "rankings", "events"):
                sql = f"DELETE FROM {table} WHERE query NOT IN (SELECT number FROM queries)"
                connection.execute(sql)
        await self._database.rewrite()

    async def _in_portions(self, sql: str, *given: object) -> int:
        """Return how many entries of the log a statement changed, a portion at a time."""
        with self._database.read() as connection:
            first, last = connection.execute(_BORDERS).fetchone()
        changed = 0
        for after in range(first - 1, last, PORTION):
            with self._erasing() as connection:
                borders = (after, after + PORTION)
                changed += connection.execute(
                    f"{sql} AND seq > ? AND seq <= ?", (*given, *borders)
                ).rowcount
            await asyncio.sleep(PAUSE_SECONDS)
        return changed

    @contextmanager
    def _erasing(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes; what it deletes is overwritten with zeros."""
        with self._database.write() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            try:
                yield connection
            finally:
                connection.execute("PRAGMA secure_delete = OFF")


def _delete_parts(connection: sqlite3.Connection, query: int) -> None:
    for table in _OF_QUERY:
        connection.execute(f"DELETE FROM {table} WHERE query = ?", (query,))


def _noted(connection: sqlite3.Connection, deletion: Deletion) -> Deletion:
    connection.execute(_NOTE, astuple(deletion))
    return deletion
