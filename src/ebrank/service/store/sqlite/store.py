"""The store itself: who uses which connection when; SQL is in `candidates`, `journal`, `books`.

One connection writes, under a lock; another reads, so that a long write delays no reader. Opening
reads nothing but the schema's version and the last entry's number, however long the log is.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import (
    Minute,
    ModelRecord,
    NewItem,
    Operation,
    QueryState,
    RolledUp,
    Written,
)
from ebrank.service.store.sqlite import books, candidates, journal, rollup, schema
from ebrank.service.store.sqlite.connection import connect, told, transaction
from ebrank.service.store.sqlite.folders import flush_folder, make_folder
from ebrank.service.store.sqlite.lock import Lock
from ebrank.service.store.sqlite.view import NAME, Reader
from ebrank.service.store.sqlite.wal import Wal


class SqliteStore(Reader):
    """A folder with a database; see `Store` for what the methods promise.

    Args:
        folder: of the store; a new one is made.

    Raises:
        StoreError: if another server uses it, or it is no store, or one that cannot be opened.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        path = _made(Path(folder)) / NAME
        self._writing = threading.RLock()
        self._rolling_up = threading.Lock()
        with ExitStack() as opened, told(path):
            opened.callback(Lock(path.parent).close)
            self._writer = connect(path)
            opened.callback(self._writer.close)
            version = schema.check(self._writer, path)
            _use_wal(self._writer, path)
            schema.upgrade(self._writer, version)
            self._next = journal.next_number(self._writer)
            super().__init__(path, connect(path))
            opened.callback(self._reader.close)
            self._wal = Wal(path, self._writing)
            opened.callback(self._wal.close)
            self._wal.flush()
            flush_folder(path.parent)
            self._opened = opened.pop_all()

    @contextmanager
    def _write(self, *, flush: bool = True) -> Iterator[sqlite3.Connection]:
        """Yield the connection that writes, in a transaction."""
        with told(self.path), self._writing:
            self._check_open()
            self._wal.check()
            with transaction(self._writer):
                yield self._writer
        if flush:
            self._wal.flush()

    def put_items(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        flush: bool = True,
    ) -> None:
        """Add candidates or change their features, all or none; withdrawn ones come back."""
        if items:
            with self._write(flush=flush) as connection:
                candidates.put(connection, query, items, time)
                books.set_meta(connection, meta or {})

    def withdraw(self, query: str, item: str, time: float, *, flush: bool = True) -> bool:
        """Withdraw a candidate, its history stays; return whether it was one."""
        with self._write(flush=flush) as connection:
            return candidates.withdraw(connection, query, item, time)

    def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up."""
        with self._write(flush=False) as connection:
            candidates.restore(connection, state, time)

    def write(self, operations: Sequence[Operation], *, flush: bool) -> list[Written]:
        """Log operations and add them to the counters, in order, in one transaction."""
        with self._write(flush=flush) as connection:
            written = journal.write(connection, operations, self._next)
            self._next += len(operations)
            return written

    def flush(self) -> None:
        """Return when all earlier writes are on disk; others may write meanwhile."""
        self._check_open()
        self._wal.flush()

    def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them."""
        with told(self.path), self._rolling_up:
            self._check_open()
            connection = connect(self.path)
            try:
                oldest = before if minutes_before is None else minutes_before
                return rollup.roll_up(connection, self._writing, before, oldest)
            finally:
                connection.close()

    def add_minutes(self, minutes: Sequence[Minute], meta: Mapping[str, str] | None = None) -> None:
        """Add the sums of some minutes to those kept, and keep settings, in one transaction."""
        with self._write(flush=False) as connection:
            books.add_minutes(connection, minutes)
            books.set_meta(connection, meta or {})

    def add_model(self, record: ModelRecord, document: bytes, *, flush: bool = True) -> None:
        """Keep a version and its file; if it is `activated`, it is the active one from now on."""
        with self._write(flush=flush) as connection:
            books.add_model(connection, record, document)

    def activate(
        self, version: int, *, meta: Mapping[str, str] | None = None, flush: bool = True
    ) -> None:
        """Make a version the active one; 0 goes back to before any training."""
        with self._write(flush=flush) as connection:
            books.activate(connection, version)
            books.set_meta(connection, meta or {})

    def set_meta(self, key: str, value: str) -> None:
        """Keep a setting that belongs to the data."""
        with self._write() as connection:
            books.set_meta(connection, {key: value})

    def close(self) -> None:
        """Flush and let go of everything; closing twice is no trouble."""
        with self._writing, self._reading:
            if self._closed:
                return
            self._closed = True
        with told(self.path):
            try:
                self._wal.flush()
            finally:
                self._opened.close()


def _made(folder: Path) -> Path:
    """Return the folder of a store, made if there is none."""
    try:
        make_folder(folder)
        foreign = [one.name for one in folder.iterdir() if not one.name.startswith((NAME, "lock"))]
    except (FileExistsError, NotADirectoryError):
        raise StoreError(f"{folder}: a file, not a folder. Name a folder for the store.") from None
    except OSError as problem:
        raise StoreError(f"{folder}: {problem.strerror}. Name another folder.") from problem
    if foreign and not (folder / NAME).exists():
        raise StoreError(
            f"{folder}: no store, and not empty (it holds {sorted(foreign)[0]}). "
            "Name a new folder, or one that was served."
        )
    return folder


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system lacks what SQLite's write-ahead log needs (got {mode!r}). "
            "Name a folder on a local disk."
        )
