"""A database of SQLite: its connections, who uses which when, and how writes get to the disk.

A `Database` belongs to the server. One connection writes and another reads, both in the caller's
thread, which is the event loop's: writing a list takes 80 µs there, and hundreds of milliseconds in
a thread that competes with a busy loop for Python's lock. Long reads use a third connection in a
thread. A `Snapshot` belongs to another process, which only reads.

A commit appends pages to `log.db-wal`, the write-ahead log; a checkpoint copies them into `log.db`.
SQLite would flush inside a commit and checkpoint after it, and the next writer would have to wait
for both. Here commits are NORMAL (no flush), and neither stops a writer (see `Wal`).

SQLite 3.7.0 to 3.51.2 lose committed rows if a writer starts the WAL over at a certain moment of
somebody else's checkpoint (https://sqlite.org/wal.html#walresetbug). So the only checkpoints while
a store is served are those of `Wal`, under which nobody can start it over, and of `rewrite`, which
holds writers off. Other processes only read; the last of all to close may checkpoint, and is alone.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import NoReturn, TypeVar

from ebrank.service.store.driver import Damaged, StoreError
from ebrank.service.store.schema import APPLICATION_ID, SQLITE
from ebrank.service.store.sqlite.folder import Lock, flush_folder

BUSY_SECONDS = 10.0
WRITER_KIB, READER_KIB = 8 * 1024, 1024
"""Pages that a connection keeps; the operating system keeps more of them."""
INTERVAL_SECONDS = 1.0
LIMIT_PAGES = 16_384
"""64 MB: copied at the end of a long rush, read again after a crash, and kept on disk."""
PAGE_BYTES = 4096
MENDED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""The first versions of SQLite without the WAL-reset bug, of each branch that got the fix."""

_DAMAGED = (
    "the database is damaged",
    "Run `ebrank check STORE` to see how far, then restore the latest backup, or save what can be "
    "read: `ebrank store copy STORE NEW`.",
)
SENSELESS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, struct.error)
"""What decoding damaged rows may raise."""
_REMEDIES = (
    ("SQLITE_FULL", "the disk is full", "Free some space; nothing of this was stored."),
    ("SQLITE_READONLY", "the disk or folder is read-only", "Make it writable for this user."),
    ("SQLITE_CANTOPEN", "cannot be opened", "Check the path and its permissions."),
    ("SQLITE_PERM", "cannot be opened", "Check the path and its permissions."),
    ("SQLITE_CORRUPT", *_DAMAGED),
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

_SOUND = ("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_BUSY", "SQLITE_NOMEM")
"""Errors that are not about the content of the file."""

T = TypeVar("T")


class Connections:
    """The connections to a database: here one, for everything, in the caller's thread.

    Attributes:
        path: of the database.
        left_out: what could not be read, in words.
    """

    left_out: Sequence[str] = ()

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._closed = False

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection for something quick, which sees one moment."""
        with explained(self.path, reading=True):
            yield self._connection

    async def read_long(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what work reads over a connection, which sees one moment."""
        with self.read() as connection:
            return work(connection)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction."""
        with explained(self.path), transaction(self._connection):
            yield self._connection

    async def flush(self) -> None:
        """Return when all earlier writes are on disk."""

    async def rewrite(self) -> None:
        """Rewrite the whole database, without its free space."""

    async def close(self) -> None:
        """Flush and release everything; closing twice is harmless."""


class MemoryDatabase(Connections):
    """A database of this process, which lives as long as it is referenced.

    Args:
        name: `:memory:`, or empty for a temporary file.
    """

    def __init__(self, name: str = ":memory:") -> None:
        connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        super().__init__(Path(":memory:"), connection)
        make_tables(connection)
        weakref.finalize(self, connection.close)


class Snapshot(Connections):
    """A database that is only read; everything happens in the caller's thread.

    Args:
        path: its name.
        copy: the file to read, if it is another one.
        lasting: whether all reads see the moment when it was opened; otherwise each sees the
            current state. While one lasts, a server's write-ahead log cannot start over.
    """

    def __init__(self, path: Path, copy: Path | None = None, *, lasting: bool = True) -> None:
        self._lasting = lasting
        with explained(path), ExitStack() as opened:
            super().__init__(path, connect(copy or path, read_only=True))
            opened.callback(self._connection.close)
            if lasting:
                self._connection.execute("BEGIN")
            if is_empty(self._connection, path):
                raise StoreError(f"{path}: an empty database. Name a store that was served.")
            opened.pop_all()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection."""
        with explained(self.path, reading=True):
            self._check_open()
            with nullcontext() if self._lasting else _one_moment(self._connection):
                yield self._connection

    async def read_long(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what work reads; other tasks get a turn first."""
        await asyncio.sleep(0)
        return await super().read_long(work)

    def write(self) -> NoReturn:
        """Refuse."""
        raise StoreError(f"{self.path}: opened to be read, not to be written")

    async def rewrite(self) -> None:
        """Refuse."""
        self.write()

    async def close(self) -> None:
        """Close the database."""
        self._closed = True
        self._connection.close()


class Database(Connections):
    """The database of a server; opening reads only its version, however long the log is."""

    def __init__(self, path: Path) -> None:
        self._writing = threading.RLock()
        self._reading = threading.Lock()  # in threads
        with ExitStack() as opened, explained(path):
            opened.callback(Lock(path.parent).close)
            # Closed last: closing any file of a database releases all locks on it.
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, file)
            self.path = path
            self._writer = self._connected(opened)
            self._writer.execute(f"PRAGMA cache_size = -{WRITER_KIB}")
            empty = is_empty(self._writer, path)
            _use_wal(self._writer, path)
            if empty:
                with transaction(self._writer):
                    make_tables(self._writer)
            super().__init__(path, self._connected(opened))
            self._far_reader = self._connected(opened)
            self._wal = Wal(path, file, self._writing)
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
        with explained(self.path, reading=True):
            self._check_open()
            with _one_moment(self._connection):
                yield self._connection

    async def read_long(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what work reads in a thread."""

        def read() -> T:
            with explained(self.path, reading=True), self._reading:
                self._check_open()
                with _one_moment(self._far_reader):
                    return work(self._far_reader)

        return await asyncio.to_thread(read)

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection that writes, in a transaction."""
        with explained(self.path), self._writing:
            self._check_open()
            self._wal.check()
            with transaction(self._writer):
                yield self._writer

    async def flush(self) -> None:
        """Return when all earlier writes are on disk."""
        self._check_open()
        await asyncio.get_running_loop().run_in_executor(self._flusher, self._wal.flush)

    async def rewrite(self) -> None:
        """Rewrite the whole database, without its free space, and empty the WAL."""

        def rewrite() -> None:
            with explained(self.path), self._writing:
                self._check_open()
                self._writer.execute("PRAGMA secure_delete = ON")
                self._writer.execute("VACUUM")
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self._writer.execute("PRAGMA secure_delete = OFF")

        await asyncio.to_thread(rewrite)

    async def close(self) -> None:
        """Flush and release everything; closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        for busy in (self._reading, self._writing):
            with busy:  # work under way ends, and none begins any more
                pass
        with explained(self.path):
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


def _use_wal(connection: sqlite3.Connection, path: Path) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreError(
            f"{path}: this file system lacks what SQLite's write-ahead log needs (got {mode!r}). "
            "Name a folder on a local disk."
        )


class Wal:
    """Flushes and checkpoints a database until closed.

    - `flush` calls fdatasync on the WAL from any thread. Pages are either in it, and on disk then,
      or were moved by a checkpoint, which flushes both files before the WAL is reused.
    - A thread checkpoints every second. A WAL that is written to all the time would never start
      over, so beyond a limit the thread holds off writers until the last pages are copied. It
      flushes the database before that: otherwise writers would wait for it.

    Args:
        path: the database.
        database: the same, open.
        writing: the lock that a writer holds.
    """

    def __init__(self, path: Path, database: int, writing: threading.RLock) -> None:
        self._path = path
        self._database = database
        self._writing = writing
        self._file = os.open(path.with_name(path.name + "-wal"), os.O_RDONLY | os.O_CLOEXEC)
        self._failed = ""
        self._connection, self._reader = connect(path), connect(path)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def flush(self) -> None:
        """Return when every commit so far is on disk."""
        self._flush(self._file)

    def _flush(self, file: int) -> None:
        self.check()
        try:
            os.fdatasync(file)
        except OSError as problem:
            # The kernel may have dropped the pages, and would report success the next time.
            self._failed = f"{self._path}: the disk failed to flush ({problem.strerror})"
            self.check()

    def check(self) -> None:
        """Raise if a flush has failed."""
        if self._failed:
            raise StoreError(f"{self._failed}. Mend the disk, start again, run `ebrank replay`.")

    def checkpoint(self) -> None:
        """Copy what is in the WAL; hold writers off for the rest if it is long."""
        if self._passive() > LIMIT_PAGES:
            self._flush(self._database)
            with self._writing:
                self._passive()

    def _passive(self) -> int:
        """Copy what can be copied while others read and write; return the WAL's length in pages.

        A reader is under way meanwhile. Either it needs the WAL, and nobody can start that over; or
        all is copied, it reads the database itself, and nothing can be copied into that.
        """
        with _one_moment(self._reader):
            self._reader.execute("SELECT 1 FROM sqlite_schema").fetchall()
            _, pages, _ = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return int(pages)

    def _run(self) -> None:
        while not self._closing.wait(INTERVAL_SECONDS):
            try:
                self.checkpoint()
            except (sqlite3.Error, StoreError):
                continue  # perhaps a full disk: writers get the error; try again in a second

    def close(self) -> None:
        """Stop."""
        self._closing.set()
        self._thread.join()
        self._connection.close()
        self._reader.close()
        os.close(self._file)


@contextmanager
def explained(path: Path, *, reading: bool = False) -> Iterator[None]:
    """Turn errors of SQLite into errors that name the file and the remedy.

    Rows that cannot be decoded are damage too: a store never writes them.
    """
    try:
        yield
    except sqlite3.Error as problem:
        raise error(path, problem) from problem
    except UnicodeEncodeError as problem:
        raise StoreError(f"{path}: a name is not valid Unicode text.") from problem
    except SENSELESS as problem:
        if not (reading or isinstance(problem, UnicodeDecodeError)):
            raise
        what, remedy = _DAMAGED
        # Not in its own words, here and below: they may hold a name, and this gets into the log.
        raise Damaged(f"{path}: {what} ({type(problem).__name__}). {remedy}") from problem


def error(path: Path, problem: sqlite3.Error) -> StoreError:
    """Return an error of SQLite as one that names the file and the remedy."""
    name = getattr(problem, "sqlite_errorname", None) or ""
    kind = StoreError if name.startswith(_SOUND) else Damaged
    for prefix, what, remedy in _REMEDIES:
        if name.startswith(prefix):
            return kind(f"{path}: {what} ({problem}). {remedy}")
    if "decode" in str(problem):  # a text that is not valid
        what, remedy = _DAMAGED
        return kind(f"{path}: {what} (a text is not UTF-8). {remedy}")
    return kind(f"{path}: {problem} ({name or type(problem).__name__}).")


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
    """Return a connection that commits when asked to, usable from any one thread at a time.

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
        connection.execute(f"PRAGMA cache_size = -{READER_KIB}")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {LIMIT_PAGES * PAGE_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def about(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> str:
    """Return which SQLite runs, and what it means if it has the WAL-reset bug.

    >>> about((3, 50, 7)), about((3, 53, 0))
    ('SQLite 3.50.7', 'SQLite 3.53.0')
    >>> about((3, 51, 2))[:40]
    'SQLite 3.51.2, which has the WAL-reset b'
    """
    name = f"SQLite {'.'.join(map(str, version))}"
    if version > MENDED[-1] or any(m <= version and m[:2] == version[:2] for m in MENDED):
        return name
    return (
        f"{name}, which has the WAL-reset bug: harmless here, unless another program writes to "
        "log.db or checkpoints it"
    )


def _mode(path: Path, read_only: bool) -> str:
    """Return how to open: a copy on a read-only disk has no server, so it cannot change."""
    if not read_only:
        return "mode=rwc"
    wal = path.with_name(path.name + "-wal")
    writable = wal.exists() or os.access(path.parent, os.W_OK)
    return "mode=ro" if writable else "mode=ro&immutable=1"


# --- the tables ----------------------------------------------------------------------------------


def is_empty(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a database is new; if not, it is a store of this version.

    Raises:
        StoreError: if it belongs to something else, or to another version of ebrank.
    """
    version = _version(connection, path)
    if version is not None:
        SQLITE.check(version, str(path))
    return version is None


def _version(connection: sqlite3.Connection, path: Path) -> int | None:
    """Return the version of a store, None if the database is new."""
    tables = "SELECT count(*) FROM sqlite_schema"
    version, owner, length = (
        int(connection.execute(sql).fetchone()[0])
        for sql in ("PRAGMA user_version", "PRAGMA application_id", tables)
    )
    if not (owner or version or length):
        return None
    if owner != APPLICATION_ID:
        raise StoreError(f"{path}: a database of another program. Name a new folder for the store.")
    return version


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty database, within a transaction."""
    for statement in (*SQLITE.made, SQLITE.done):
        connection.execute(statement)


def migrate(connection: sqlite3.Connection, path: Path) -> int:
    """Bring a store up to this version, within a transaction; return the version that it had.

    Raises:
        StoreError: if there is none, or it is newer, or there is no way.
    """
    version = _version(connection, path)
    if version is None:
        raise StoreError(f"{path}: an empty database. Name a store that was served.")
    for statement in SQLITE.steps(version, str(path)):
        connection.execute(statement)
    is_empty(connection, path)  # refuses a newer one
    return version
