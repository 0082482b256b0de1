"""Connections to the database, and what SQLite's errors mean to a person."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ebrank.service.store.base import StoreError

BUSY_SECONDS = 10.0
CACHE_KIB = 32 * 1024
BRAKE_PAGES = 65_536
"""If nobody checkpoints, the writer does when the WAL has this many pages (256 MB)."""

_REMEDIES = (
    ("SQLITE_FULL", "the disk is full", "Free some space; nothing of this was stored."),
    ("SQLITE_READONLY", "the disk or folder is read-only", "Make it writable for this user."),
    ("SQLITE_CANTOPEN", "cannot be opened", "Check the path and its permissions."),
    ("SQLITE_PERM", "cannot be opened", "Check the path and its permissions."),
    (
        "SQLITE_CORRUPT",
        "the database is damaged",
        "Stop the server, keep a copy, and restore the latest backup (see docs/store.md).",
    ),
    (
        "SQLITE_NOTADB",
        "not a database, or damaged",
        "Name another folder, or restore the latest backup.",
    ),
    ("SQLITE_BUSY", "another process is writing to it", "End that process, then try again."),
    ("SQLITE_IOERR", "the disk failed", "Look at the system's log; nothing of this was stored."),
    ("SQLITE_NOMEM", "not enough memory", "Give the process more memory."),
    ("SQLITE_TOOBIG", "a value is too large", "Send less at a time."),
)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into ones that name the file and the remedy."""
    try:
        yield
    except sqlite3.Error as problem:
        raise StoreError(f"{path}: {_in_words(problem)}") from problem
    except UnicodeEncodeError as problem:
        raise StoreError(f"{path}: {problem.object!r} is not valid Unicode text.") from problem


def _in_words(problem: sqlite3.Error) -> str:
    name = getattr(problem, "sqlite_errorname", None) or ""
    for prefix, what, remedy in _REMEDIES:
        if name.startswith(prefix):
            return f"{what} ({problem}). {remedy}"
    return f"{problem} ({name or type(problem).__name__})."


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do everything inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite may have rolled back itself, on a full disk
            connection.execute("ROLLBACK")
        raise


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection that commits when told to, usable from any one thread at a time.

    Commits are NORMAL: the operating system has them, and checkpoints flush in the right order.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{_mode(path, read_only)}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {BRAKE_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(path: Path, read_only: bool) -> str:
    """Return how to open: a copy on a read-only disk has no server, so it cannot change."""
    if not read_only:
        return "mode=rwc"
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() and not _writable(path.parent):
        return "mode=ro&immutable=1"
    return "mode=ro"


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)
