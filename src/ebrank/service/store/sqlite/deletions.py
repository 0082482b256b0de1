"""Deletions by SQL: deleted data is overwritten, and the log is searched a portion at a time.

The log has no index by query or user, which every list would have to update. So a query is gone at
once, and its entries in the log, which nobody finds without it, follow in portions.

The proof is there from the first transaction on, and each portion adds to its counts. What was
interrupted is finished when the store is opened to be written, or when it is asked for again.
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
_PROOF = "SELECT time, kind, digest, queries, rankings, events FROM deletions WHERE number = ?"
_COUNT = "UPDATE deletions SET {table} = {table} + ? WHERE number = ?"
_BEGIN = "INSERT INTO unfinished VALUES (?, ?, ?)"
_BEGUN = """SELECT proof FROM unfinished JOIN deletions ON number = proof
    WHERE kind = 'query' AND digest = ? ORDER BY proof DESC"""
_BORDERS = """SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM
    (SELECT min(seq) AS seq FROM rankings UNION ALL SELECT max(seq) FROM rankings
    UNION ALL SELECT min(seq) FROM events UNION ALL SELECT max(seq) FROM events)"""
_PORTION = " AND seq > ? AND seq <= ?"


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
                begun = connection.execute(_BEGUN, (digest,)).fetchone()
                if begun is None:
                    return None
                [proof] = begun
            else:
                connection.execute("DELETE FROM queries WHERE number = ?", (known.number,))
                _delete_parts(connection, known.number)
                connection.execute("UPDATE state SET lives = lives + 1")
                touch(connection, time)
                proof = _noted(connection, Deletion(time, "query", digest, 1))
                connection.execute(_BEGIN, (proof, known.number, None))
        return await self._finished(proof)

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
            proof = Deletion(time, "item", digest, len(places))
            _noted(connection, proof)
        return proof, [name for _, _, name in places]

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user from all lists, which still count."""
        with self._erasing() as connection:
            touch(connection, time)
            proof = _noted(connection, Deletion(time, "user", digest))
            connection.execute(_BEGIN, (proof, None, user))
        return await self._finished(proof)

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        with self._database.write() as connection:
            connection.executemany(_NOTE, [astuple(one) for one in deletions])

    async def purge(self) -> None:
        """Rewrite all files, so that they hold nothing of what was deleted any more."""
        if not isinstance(self._database, Database):
            raise StoreError(f"{self._database.path}: opened to be read, not to be written")
        self.finish()
        await self._database.rewrite()

    def finish(self) -> None:
        """Finish the deletions that were interrupted."""
        with self._database.read() as connection:
            begun = connection.execute("SELECT proof FROM unfinished").fetchall()
        for (proof,) in begun:
            for _ in self._portions(proof):
                pass

    async def _finished(self, proof: int) -> Deletion:
        """Finish a deletion while others write, and return its proof."""
        for _ in self._portions(proof):
            await asyncio.sleep(PAUSE_SECONDS)
        with self._database.read() as connection:
            return Deletion(*connection.execute(_PROOF, (proof,)).fetchone())

    def _portions(self, proof: int) -> Iterator[None]:
        """Remove what a deletion left in the log; yield after each portion."""
        sql = "SELECT query, user FROM unfinished WHERE proof = ?"
        with self._database.read() as connection:
            begun = connection.execute(sql, (proof,)).fetchone()
            first, last = connection.execute(_BORDERS).fetchone()
        if begun is None:
            return
        query, user = begun
        for table, sql, given in _removals(query, user):
            for after in range(first - 1, last, PORTION):
                with self._erasing() as connection:
                    borders = (given, after, after + PORTION)
                    changed = connection.execute(sql + _PORTION, borders).rowcount
                    connection.execute(_COUNT.format(table=table), (changed, proof))
                yield
        with self._erasing() as connection:
            if query is not None:
                _delete_parts(connection, query)  # a roll-up may have come in between
            connection.execute("DELETE FROM unfinished WHERE proof = ?", (proof,))

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


def _removals(query: int | None, user: str | None) -> list[tuple[str, str, object]]:
    """Return the tables to remove a query or a user from, and how."""
    if query is None:
        return [("rankings", "UPDATE rankings SET user = NULL WHERE user = ?", user)]
    return [
        ("rankings", "DELETE FROM rankings WHERE query = ?", query),
        # By their numbers: the index would lead to all events of the query each time.
        ("events", "DELETE FROM events NOT INDEXED WHERE query = ?", query),
    ]


def _noted(connection: sqlite3.Connection, deletion: Deletion) -> int:
    """Keep a proof; return its number."""
    return int(connection.execute(_NOTE, astuple(deletion)).lastrowid or 0)
