"""The tables in a schema of PostgreSQL, made of nothing or of those of an earlier version.

The query leads every key that is unique, so that a cluster can be cut along it; other indexes are
local to a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebrank.service.store import migrations
from ebrank.service.store.driver import StoreError
from ebrank.service.store.tables import BEGIN, INDEXES, TABLES

if TYPE_CHECKING:
    import asyncpg

VERSION = migrations.VERSIONS["postgresql"]
UNFINISHED = -VERSION
"""The version of a store that is being copied: nobody may use it yet."""
MOST_SECONDS = 3600.0
"""How long a statement of a migration may take."""

_MADE = (
    *(table.made("postgresql") for table in TABLES),
    *INDEXES,
    "CREATE INDEX rankings_order ON rankings (seq)",
    "CREATE INDEX events_order ON events (seq)",
    "CREATE SEQUENCE writes",
    migrations.CHANGES,
    migrations.SERVERS,
    BEGIN,
    f"ALTER TABLE state ADD COLUMN schema_version integer NOT NULL DEFAULT {VERSION}",
)


async def version_of(connection: asyncpg.Connection, schema: str) -> int | None:
    """Return the version of the store in a schema, None if there is none."""
    if await connection.fetchval("SELECT to_regclass($1)", f"{quoted(schema)}.state") is None:
        return None
    return int(await connection.fetchval("SELECT schema_version FROM state"))


async def check(connection: asyncpg.Connection, schema: str, name: str) -> bool:
    """Return whether there is a store; if there is, it is one of this version.

    Raises:
        StoreError: if it belongs to another version of ebrank.
    """
    version = await version_of(connection, schema)
    if version is not None and version < 0:
        raise StoreError(
            f"{name}: an unfinished copy. Run the same `ebrank store copy` again, of the same "
            f"version, to go on with it, or DROP SCHEMA {quoted(schema)} CASCADE."
        )
    if version is not None:
        migrations.check("postgresql", version, name, "schema")
    return version is not None


async def make(connection: asyncpg.Connection, schema: str, name: str) -> None:
    """Make the tables, within a transaction."""
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{name}: its texts are {encoding}. Name a database in UTF8.")
    there = await connection.fetchval("SELECT to_regnamespace($1)::oid", quoted(schema))
    if there is None:
        await connection.execute(f"CREATE SCHEMA {quoted(schema)}")
    for statement in _MADE:
        await connection.execute(statement)


async def migrate(connection: asyncpg.Connection, schema: str, name: str) -> int:
    """Bring a store up to this version; return the version that it had.

    Raises:
        StoreError: if there is none, or it is newer, or there is no way.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", schema)
        version = await version_of(connection, schema)
        if version is None:
            raise StoreError(f"{name}: there is no store. Run `ebrank store init`.")
        if 0 <= version < VERSION:  # an unfinished copy is refused
            done = f"UPDATE state SET schema_version = {VERSION}"
            for statement in (*migrations.steps("postgresql", version, name), done):
                await connection.execute(statement, timeout=MOST_SECONDS)
        await check(connection, schema, name)
    return version


def quoted(name: str) -> str:
    """Return an identifier as SQL.

    >>> quoted("my store")
    '"my store"'
    """
    return '"' + name.replace('"', '""') + '"'
