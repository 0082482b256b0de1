"""The tables in a database of SQLite, made of nothing or of those of an earlier version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ebrank.service.store import migrations
from ebrank.service.store.driver import StoreError
from ebrank.service.store.tables import BEGIN, INDEXES, TABLES

APPLICATION_ID = 0x45425231  # "EBR1"
VERSION = migrations.VERSIONS["sqlite"]
_VERSION = f"PRAGMA user_version = {VERSION}"


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a database is new; if not, it is a store of this version.

    Raises:
        StoreError: if it belongs to something else, or to another version of ebrank.
    """
    version = version_of(connection, path)
    if version is not None:
        migrations.check("sqlite", version, str(path), "folder")
    return version is None


def version_of(connection: sqlite3.Connection, path: Path) -> int | None:
    """Return the version of a store, None if the database is new.

    Raises:
        StoreError: if it belongs to something else.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not (owner or version or tables):
        return None
    if owner != APPLICATION_ID:
        raise StoreError(f"{path}: a database of another program. Name a new folder for the store.")
    return version


def make(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty database, within a transaction."""
    tables = (table.made("sqlite") for table in TABLES)
    owner = f"PRAGMA application_id = {APPLICATION_ID}"
    for statement in (*tables, *INDEXES, BEGIN, owner, _VERSION):
        connection.execute(statement)


def migrate(connection: sqlite3.Connection, path: Path) -> int:
    """Bring a store up to this version, within a transaction; return the version that it had.

    Raises:
        StoreError: if there is none, or it is newer, or there is no way.
    """
    version = version_of(connection, path)
    if version is None:
        raise StoreError(f"{path}: an empty database. Name a store that was served.")
    if version < VERSION:
        for statement in (*migrations.steps("sqlite", version, str(path)), _VERSION):
            connection.execute(statement)
    is_empty(connection, path)  # refuses a newer one
    return version
