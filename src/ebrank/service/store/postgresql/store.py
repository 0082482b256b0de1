"""The store itself: its parts around one database."""

from __future__ import annotations

from pathlib import Path

from ebrank.service.store.announcements import LATELY_SECONDS, Announced
from ebrank.service.store.base import Mode, Progress, StoreError
from ebrank.service.store.postgresql.catalog import PostgresCatalog
from ebrank.service.store.postgresql.database import Address, Database, Session, encoded
from ebrank.service.store.postgresql.deletions import PostgresDeletions
from ebrank.service.store.postgresql.faults import faults
from ebrank.service.store.postgresql.items import PostgresItems
from ebrank.service.store.postgresql.log import PostgresLog
from ebrank.service.store.postgresql.meta import PostgresMeta
from ebrank.service.store.postgresql.models import PostgresModels
from ebrank.service.store.records import Fault, StoreSize

MOST_COUNTED = 10_000
"""Entries of a kind that are counted: to count more takes too long."""

# If there are more, as the database last estimated them; it has not yet if they are new.
_ENTRIES = """SELECT sum(CASE WHEN counted < $1 THEN counted ELSE greatest(counted, reltuples) END)
    FROM (SELECT 'rankings'::regclass, count(*) FROM (SELECT FROM rankings LIMIT $1) AS few
        UNION ALL SELECT 'events'::regclass, count(*) FROM (SELECT FROM events LIMIT $1) AS few
    ) AS kinds (kind, counted) JOIN pg_class ON oid = kind"""

_ANNOUNCE = """INSERT INTO servers VALUES ($1, clock_timestamp(), $2)
    ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, about = excluded.about"""
_LEAVE = "DELETE FROM servers WHERE name = $1 AND $2::bytea IS NULL"
_SILENT = "extract(epoch FROM clock_timestamp() - seen)::float8"
_FORGET = f"DELETE FROM servers WHERE {_SILENT} > $1"
_SERVERS = f"SELECT name, {_SILENT}, about FROM servers WHERE {_SILENT} <= $1 ORDER BY name"


class PostgresStore:
    """A schema of a database, which many servers share; see `Store` for what the methods promise.

    A `new` store is written in one transaction, and does not exist before that ends.
    """

    def __init__(self, database: Database | Session) -> None:
        """Take what `open` has opened."""
        self._database = database
        self.url: str | None = database.address.url
        self.touched: float | None = None
        self.flush = database.flush
        self.elected = database.elected
        self.items = PostgresItems(database)
        self.catalog = PostgresCatalog(database)
        self.log = PostgresLog(database)
        self.models = PostgresModels(database)
        self.meta = PostgresMeta(database)
        self.deletions = PostgresDeletions(database)

    @classmethod
    async def open(cls, rest: str, mode: Mode = "serve") -> PostgresStore:
        """Return the store at an address, given without its scheme.

        Raises:
            StoreError: if it cannot be reached, or it is not a store.
        """
        address = Address(f"postgresql:{rest}")
        if mode == "serve":
            return cls(await Database.open(address))
        return cls(await Session.open(address, mode))

    @property
    def epoch(self) -> int:
        """How often the connection that writes was lost."""
        return self._database.epoch

    async def size(self) -> StoreSize:
        """Return the bytes of the database; its server's disk is not visible from here."""
        async with self._database.reader() as connection:
            used = await connection.fetchval("SELECT pg_database_size(current_database())")
            entries = await connection.fetchval(_ENTRIES, MOST_COUNTED)
        return StoreSize(int(used), None, int(entries))

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves."""
        name, said = server.encode(), encoded(about)
        async with self._database.reader() as connection:
            await connection.execute(_LEAVE if said is None else _ANNOUNCE, name, said)
            await connection.execute(_FORGET, LATELY_SECONDS)

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently."""
        async with self._database.reader() as connection:
            rows = await connection.fetch(_SERVERS, LATELY_SECONDS)
        return [Announced(name.decode(), seconds, about.decode()) for name, seconds, about in rows]

    async def faults(self) -> list[Fault]:
        """Return what is wrong with the tables."""
        async with self._database.reader() as connection:
            return await faults(connection)

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Refuse: PostgreSQL has its own tools."""
        raise StoreError(
            f"{self._database.address.name}: has no files to copy. Use pg_dump, or what backs up "
            "the database, or `ebrank store copy`."
        )

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; closing twice is harmless."""
        await self._database.close(discard=discard)
