"""The tables, and how those of an older version become those of this one.

A database is made by the same steps that bring an old one up to date: step n makes version n + 1.
To change the schema, append a step; never edit one that was released.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ebrank.service.store.base import StoreError

APPLICATION_ID = 0x45425231  # "EBR1"

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE queries (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
        # Counters of a query's items lie side by side, so that a list of ten touches few pages;
        # features, which are large and seldom read, lie elsewhere.
        """CREATE TABLE items (
            query INTEGER NOT NULL, id TEXT NOT NULL, place INTEGER NOT NULL,
            entered REAL NOT NULL, active INTEGER NOT NULL, shown INTEGER NOT NULL,
            clicks INTEGER NOT NULL, weighted_clicks REAL NOT NULL, exposure REAL NOT NULL,
            first_shown REAL, PRIMARY KEY (query, id)) WITHOUT ROWID""",
        """CREATE TABLE features (
            query INTEGER NOT NULL, id TEXT NOT NULL, numbers BLOB NOT NULL,
            PRIMARY KEY (query, id)) WITHOUT ROWID""",
        # What was rolled up adds up to this; items without a row were never in an old entry.
        """CREATE TABLE snapshot (
            query INTEGER NOT NULL, id TEXT NOT NULL, shown INTEGER NOT NULL,
            clicks INTEGER NOT NULL, weighted_clicks REAL NOT NULL, exposure REAL NOT NULL,
            first_shown REAL, PRIMARY KEY (query, id)) WITHOUT ROWID""",
        # Rankings and events share one sequence: the order of the log.
        """CREATE TABLE rankings (
            seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, query INTEGER NOT NULL,
            time REAL NOT NULL, model INTEGER NOT NULL, items TEXT NOT NULL,
            examination BLOB NOT NULL, counted INTEGER NOT NULL, explored BLOB NOT NULL,
            relevance BLOB NOT NULL, cost REAL NOT NULL, user TEXT, would_rank TEXT)""",
        """CREATE TABLE events (
            seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, ranking_id TEXT NOT NULL,
            query INTEGER NOT NULL, item TEXT NOT NULL, type TEXT NOT NULL, rank INTEGER NOT NULL,
            examination REAL NOT NULL, shows INTEGER NOT NULL, time REAL NOT NULL,
            received REAL NOT NULL, UNIQUE (ranking_id, item, type))""",
        """CREATE TABLE minutes (
            start REAL NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
            PRIMARY KEY (start, name)) WITHOUT ROWID""",
        """CREATE TABLE models (
            version INTEGER PRIMARY KEY, created REAL NOT NULL, rows INTEGER NOT NULL,
            validation_loss REAL, previous_loss REAL, activated INTEGER NOT NULL,
            reason TEXT NOT NULL, document BLOB NOT NULL)""",
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE state (
            one INTEGER PRIMARY KEY CHECK (one = 1), active_model INTEGER NOT NULL,
            last_time REAL NOT NULL, rolled_up INTEGER NOT NULL)""",
        "INSERT INTO state VALUES (1, 0, 0.0, 0)",
    ),
)
VERSION = len(STEPS)


def check(connection: sqlite3.Connection, path: Path) -> int:
    """Return the version of a database; 0 if it is empty.

    Raises:
        StoreError: if it belongs to something else, or to a newer version of ebrank.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if owner != APPLICATION_ID and (owner or version or tables):
        raise StoreError(f"{path}: a database of another program. Name a new folder for the store.")
    if version > VERSION:
        raise StoreError(
            f"{path}: a store of version {version}, this ebrank knows up to {VERSION}. "
            "Upgrade ebrank, or name another folder."
        )
    return version


def upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Make the tables those of this version, all steps or none; 0 is an empty database."""
    if version == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
