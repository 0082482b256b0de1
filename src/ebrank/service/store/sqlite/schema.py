"""The tables. A store of another version is refused: there are no migrations yet."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ebrank.service.store.base import StoreError

APPLICATION_ID = 0x45425231  # "EBR1"
VERSION = 4

COUNTS = """CREATE TABLE {name} (
        query INTEGER NOT NULL, place INTEGER NOT NULL, outcome INTEGER NOT NULL,
        slot INTEGER NOT NULL, count INTEGER NOT NULL, epoch INTEGER NOT NULL,
        PRIMARY KEY (query, place, outcome, slot)) WITHOUT ROWID"""
"""What users did, as `ebrank.evidence` counts it; an item's counts are all in one
epoch. Counts of 0 have no row, or had one: then the item was shown once."""

UNFINISHED = """CREATE TABLE IF NOT EXISTS unfinished (
        proof INTEGER PRIMARY KEY, query INTEGER, user TEXT)"""
"""Deletions whose query or user may still be in the log, by the numbers of their proofs."""

TABLES = (
    # `version` counts the writes to a query from its life on, `size` its items. No number is used
    # again: the log may hold entries of a query that is being deleted.
    """CREATE TABLE queries (
        number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL, size INTEGER NOT NULL)""",
    # Other tables know an item by its place among those of its query, from 0.
    """CREATE TABLE items (
        query INTEGER NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, entered REAL NOT NULL,
        active INTEGER NOT NULL, first_shown REAL,
        PRIMARY KEY (query, place), UNIQUE (query, id)) WITHOUT ROWID""",
    """CREATE TABLE features (
        query INTEGER NOT NULL, place INTEGER NOT NULL, numbers BLOB NOT NULL,
        PRIMARY KEY (query, place)) WITHOUT ROWID""",
    # What queries share, by the item's name; NULL of an item that was removed.
    "CREATE TABLE catalog (id TEXT PRIMARY KEY, version INTEGER NOT NULL, numbers BLOB) "
    "WITHOUT ROWID",
    "CREATE INDEX catalog_versions ON catalog (version)",
    # Counts of a query's items lie side by side, so that a list of ten touches few pages.
    COUNTS.format(name="evidence"),
    # What was rolled up adds up to this.
    COUNTS.format(name="snapshot"),
    # Rankings and events share one sequence: the order of the log. Lists are JSON: of
    # places, in `seen` of ranks, and in `contexts` of numbers.
    """CREATE TABLE rankings (
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, query INTEGER NOT NULL,
        time REAL NOT NULL, model INTEGER NOT NULL, items TEXT NOT NULL,
        counted INTEGER NOT NULL, explored BLOB NOT NULL, relevance BLOB NOT NULL,
        cost REAL NOT NULL, user TEXT, would_rank TEXT, offset INTEGER NOT NULL,
        continues TEXT, seen TEXT, bot INTEGER NOT NULL, epoch INTEGER NOT NULL,
        contexts TEXT)""",
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, ranking_id TEXT NOT NULL,
        query INTEGER NOT NULL, place INTEGER NOT NULL, type TEXT NOT NULL, rank INTEGER NOT NULL,
        outcome INTEGER NOT NULL, replaces INTEGER NOT NULL, shows INTEGER NOT NULL,
        time REAL NOT NULL, received REAL NOT NULL, bot INTEGER NOT NULL,
        value REAL, epoch INTEGER NOT NULL, UNIQUE (query, event_id),
        UNIQUE (ranking_id, place, type))""",
    """CREATE TABLE minutes (
        start REAL NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
        PRIMARY KEY (start, name)) WITHOUT ROWID""",
    """CREATE TABLE models (
        version INTEGER PRIMARY KEY, created REAL NOT NULL, rows INTEGER NOT NULL,
        validation_loss REAL, previous_loss REAL, activated INTEGER NOT NULL,
        reason TEXT NOT NULL, features TEXT NOT NULL, document BLOB NOT NULL)""",
    """CREATE TABLE deletions (
        number INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, digest TEXT NOT NULL,
        queries INTEGER NOT NULL, rankings INTEGER NOT NULL, events INTEGER NOT NULL)""",
    UNFINISHED,
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1), active_model INTEGER NOT NULL,
        last_time REAL NOT NULL, rolled_up INTEGER NOT NULL, catalog INTEGER NOT NULL,
        lives INTEGER NOT NULL)""",
    "INSERT INTO state VALUES (1, 0, 0.0, 0, 0, 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a database is new; if not, it is a store of this version.

    Raises:
        StoreError: if it belongs to something else, or to another version of ebrank.
    """
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if not (owner or version or tables):
        return True
    if owner != APPLICATION_ID:
        raise StoreError(f"{path}: a database of another program. Name a new folder for the store.")
    if version != VERSION:
        remedy = "Upgrade ebrank" if version > VERSION else "Use the ebrank that made it"
        raise StoreError(
            f"{path}: a store of version {version}; this ebrank reads version {VERSION}. "
            f"{remedy}, or name another folder."
        )
    return False


def make(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty database, within a transaction."""
    for statement in TABLES:
        connection.execute(statement)
