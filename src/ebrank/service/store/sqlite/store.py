"""A store in a folder: opened, and copied while it is served.

The pages of a copy are read in one transaction, so it is the store at that moment; the server keeps
writing to its WAL meanwhile, which grows until all pages are copied. A backup appears under its
name when it is complete, checked, and on disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from ebrank.environment.files import make_private_file, make_private_folder
from ebrank.environment.paths import expanded
from ebrank.service.store.base import Store
from ebrank.service.store.driver import Mode, Progress, StoreError
from ebrank.service.store.schema import SQLITE
from ebrank.service.store.sqlite.database import (
    Connections,
    Database,
    Snapshot,
    connect,
    explained,
    migrate,
    transaction,
)
from ebrank.service.store.sqlite.driver import SqliteDriver, ended
from ebrank.service.store.sqlite.folder import (
    NAME,
    Lock,
    database_of,
    flush_folder,
    last_change,
    made,
    make_folder,
    unfinished,
    unusable,
)
from ebrank.service.store.sqlite.salvage import SalvagedDatabase

PAGES_AT_ONCE = 2000

log = logging.getLogger("ebrank.service")


class FolderDriver(SqliteDriver):
    """A database in a folder.

    One that is `new` is built beside its place and moved there when it is closed.
    """

    def __init__(self, path: Path, mode: Mode) -> None:
        self.touched = last_change(path)
        self._place = path
        with ExitStack() as building:
            self._building = _beside(path, building) if mode == "new" else None
            super().__init__(_opened(self._building or path, mode), f"sqlite:{path.absolute()}")
            self._built = building.pop_all()

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Copy the database, as it is at one moment, to a new file or into a folder."""
        return await asyncio.to_thread(backup, self.database.path, target, progress)

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; closing twice is harmless."""
        await self.database.close()
        building, self._building = self._building, None
        with self._built:
            if building is not None and not discard:
                building.replace(self._place)
                flush_folder(self._place.parent)


class SqliteStore(Store):
    """A folder with a database.

    Args:
        folder: of the store; to `read`, a backup in one file will do.
        mode: see `Mode`.

    Raises:
        StoreError: if another server uses it, or it is not a store, or it cannot be opened.
    """

    incarnation = 0

    def __init__(self, folder: str | os.PathLike[str], mode: Mode = "serve") -> None:
        driver = FolderDriver(expanded(folder), mode)
        super().__init__(driver)
        self.database, self.left_out = driver.database, driver.database.left_out
        self.flush = driver.database.flush  # type: ignore[method-assign]
        if mode == "serve":
            try:
                ended(self.deletions.finish())
            except StoreError as problem:  # a full disk does not keep a store closed
                log.warning("a deletion is unfinished, and will be at the next start: %s", problem)

    @classmethod
    async def migrate(cls, folder: str) -> tuple[str, int, int]:
        """Bring a store to this version; return its name and the versions before and now."""
        path = expanded(folder)
        database = database_of(path)
        if not path.is_dir():
            raise StoreError(
                f"{path}: a backup. Put it into a new folder as {NAME}, and name that."
            )
        with (
            closing(Lock(path)),
            explained(database),
            closing(connect(database)) as connection,
        ):
            connection.execute("PRAGMA synchronous = FULL")
            with transaction(connection):
                return str(path), migrate(connection, database), SQLITE.version


def _opened(folder: Path, mode: Mode) -> Connections:
    if mode == "salvage":
        return SalvagedDatabase(database_of(folder))
    if mode == "browse":
        return Snapshot(database_of(folder), lasting=False)
    if mode == "read":
        return _as_it_is(database_of(folder))
    return Database(made(folder))


def _as_it_is(path: Path) -> Snapshot:
    """Return a database at this moment: a copy, if a server may be writing to it.

    A lasting view would let the server's write-ahead log grow until the reader is done.
    """
    if not path.with_name(f"{path.name}-wal").exists():
        return Snapshot(path)
    with private_copy(path) as copy:
        return Snapshot(path, copy)


def _beside(place: Path, building: ExitStack) -> Path:
    """Return where to build a store, on the same disk as its place, where there must be nothing."""
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise StoreError(f"{place}: already exists. Name a new folder.")
    try:
        make_folder(place.parent)
        return building.enter_context(unfinished(place, make_private_folder))
    except OSError as problem:
        raise unusable(place, problem) from problem


# --- copies --------------------------------------------------------------------------------------


def backup(source: Path, target: Path, progress: Progress | None = None) -> Path:
    """Copy a database to a new file, or into a folder, and return the file.

    A folder with a backup is a store: serve it, replay it.
    """
    place = _place(target)
    with unfinished(place, make_private_file) as building:
        with explained(source):
            _copy(source, building, progress)
            _check(source, building)
        with building.open("rb") as file:
            os.fsync(file.fileno())
        building.replace(place)
        flush_folder(place.parent)
    return place


def _copy(source: Path, target: Path, progress: Progress | None) -> None:
    def report(status: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    with closing(sqlite3.connect(target, isolation_level=None)) as writer:
        with closing(connect(source, read_only=True)) as reader:
            reader.execute("BEGIN")
            reader.backup(writer, pages=PAGES_AT_ONCE, progress=report)
        writer.execute("PRAGMA journal_mode = DELETE")  # one file, without a WAL beside it


def _check(source: Path, target: Path) -> None:
    """Check every page of a copy; the server can checkpoint again meanwhile."""
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise StoreError(f"{source}: damaged ({verdict}). The backup was not kept.")


@contextmanager
def private_copy(source: Path) -> Iterator[Path]:
    """Yield a copy of a database, which is removed at the end; open connections can go on."""
    folder = source.parent if os.access(source.parent, os.W_OK) else Path(tempfile.gettempdir())
    with unfinished(folder / source.name, make_private_file) as place:
        with explained(source):
            _copy(source, place, None)
        yield place


def _place(target: Path) -> Path:
    """Return the file a backup goes to; it must be new."""
    place = target / NAME if target.is_dir() else target
    if place.exists():
        raise StoreError(f"{place}: exists already. Name a new file or folder.")
    try:
        make_private_folder(place.parent)
    except OSError as problem:
        raise StoreError(f"{place.parent}: cannot be made: {problem.strerror}.") from None
    return place
