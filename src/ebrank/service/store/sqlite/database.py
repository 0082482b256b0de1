"""The connections to a database, and who uses which when.

A `Database` belongs to the server. One connection writes and another reads, both in the thread of
whoever calls, which is the event loop's: a write of a list takes 80 µs there, and hundreds of
milliseconds in a thread that competes with a busy loop for Python's lock. What takes long is read
over a third connection in a thread. A `Snapshot` belongs to another process, which only reads.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from ebrank.service.store.base import StoreError
from ebrank.service.store.sqlite import schema
from ebrank.service.store.sqlite.connection import connect, told, transaction
from ebrank.service.store.sqlite.folder import Lock, flush_folder
from ebrank.service.store.sqlite.wal import Wal

T = TypeVar("T")


class Connections(Protocol):
    """What the parts of a store ask for."""

    path: Path

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend a connection for something quick, which sees one moment."""
        ...

    async def read_long(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what work reads over a connection, which sees one moment, without blocking."""
        ...

    def write(self) -> AbstractContextManager[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction."""
        ...

    async def write_long(
        self, work: Callable[[sqlite3.Connection, threading.RLock, threading.Event], T]
    ) -> T:
        """Return what work does in a thread, over a connection of its own.

        It is given the lock of those who write, which it holds for moments only, and an event that
        tells it to stop.
        """
        ...


class Snapshot:
    """A database as it was when it was opened; everything happens in the caller's thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with told(path):
            self._connection = connect(path, read_only=True)
            try:
                self._connection.execute("BEGIN")
                if schema.is_empty(self._connection, path):
                    raise StoreError(f"{path}: an empty database. Name a store that was served.")
            except BaseException:
                self._connection.close()
                raise
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection."""
        with told(self.path):
            _check_open(self.path, self._closed)
            yield self._connection

    async def read_long(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what work reads; other tasks get a turn first."""
        await asyncio.sleep(0)
        with self.read() as connection:
            return work(connection)

    def write(self) -> AbstractContextManager[sqlite3.Connection]:
        """Refuse."""
        raise StoreError(f"{self.path}: opened to be read, not to be written")

    async def write_long(
        self, work: Callable[[sqlite3.Connection, threading.RLock, threading.Event], T]
    ) -> T:
        """Refuse."""
        raise StoreError(f"{self.path}: opened to be read, not to be written")

    async def flush(self) -> None:
        """Do nothing: nothing was written."""

    async def close(self) -> None:
        """Let go of the database."""
        self._closed = True
        self._connection.close()


class Database:
    """The database of a server; opening reads nothing but its version, however long the log is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writing = threading.RLock()
        self._reading = threading.Lock()  # in threads
        self._rolling_up = threading.Lock()
        self._closing = threading.Event()
        with ExitStack() as opened, told(path):
            opened.callback(Lock(path.parent).close)
            self._writer = self._connected(opened)
            empty = schema.is_empty(self._writer, path)
            _use_wal(self._writer, path)
            if empty:
                schema.make(self._writer)
            self._reader, self._far_reader = self._connected(opened), self._connected(opened)
            self._wal = Wal(path, self._writing)
            opened.callback(self._wal.close)
            self._flusher = ThreadPoolExecutor(1, "flush")
            opened.callback(self._flusher.shutdown)
            self._wal.flush()
            flush_folder(path.parent)
            self._opened = opened.pop_all()

    def _connected(self, opened: ExitStack) -> sqlite3.Connection:
        connection = connect(self.path)
        opened.callback(connection.close)
        return connection

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that reads."""
        with told(self.path):
            _check_open(self.path, self._closing.is_set())
            with _one_moment(self._reader):
                yield self._reader

    async def read_long(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what work reads in a thread."""

        def read() -> T:
            with told(self.path), self._reading:
                _check_open(self.path, self._closing.is_set())
                with _one_moment(self._far_reader):
                    return work(self._far_reader)

        return await asyncio.to_thread(read)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction."""
        with told(self.path), self._writing:
            _check_open(self.path, self._closing.is_set())
            self._wal.check()
            with transaction(self._writer):
                yield self._writer

    async def write_long(
        self, work: Callable[[sqlite3.Connection, threading.RLock, threading.Event], T]
    ) -> T:
        """Return what work does in a thread, one at a time."""

        def write() -> T:
            with told(self.path), self._rolling_up:
                _check_open(self.path, self._closing.is_set())
                connection = connect(self.path)
                try:
                    return work(connection, self._writing, self._closing)
                finally:
                    connection.close()

        return await asyncio.to_thread(write)

    async def flush(self) -> None:
        """Return when all earlier writes are on disk."""
        _check_open(self.path, self._closing.is_set())
        await asyncio.get_running_loop().run_in_executor(self._flusher, self._wal.flush)

    async def close(self) -> None:
        """Flush and let go of everything; closing twice is no trouble."""
        if self._closing.is_set():
            return
        self._closing.set()
        for busy in (self._rolling_up, self._reading, self._writing):
            with busy:  # whoever is at work ends it, and nobody begins any more
                pass
        with told(self.path):
            try:
                self._wal.flush()
            finally:
                self._opened.close()


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """See one moment, however many statements there are."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def _check_open(path: Path, closed: bool) -> None:
    if closed:
        raise StoreError(f"{path}: the store is closed")


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system lacks what SQLite's write-ahead log needs (got {mode!r}). "
            "Name a folder on a local disk."
        )
