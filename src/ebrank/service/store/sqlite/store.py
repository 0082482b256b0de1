"""The store itself: its parts around one database."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
from pathlib import Path

from ebrank.paths import expanded
from ebrank.service.store.announcements import Announced, Announcements
from ebrank.service.store.base import Mode, Progress, StoreError
from ebrank.service.store.records import Fault, StoreSize
from ebrank.service.store.sqlite.backup import backup, private_copy
from ebrank.service.store.sqlite.catalog import SqliteCatalog
from ebrank.service.store.sqlite.database import Database, Snapshot
from ebrank.service.store.sqlite.deletions import SqliteDeletions
from ebrank.service.store.sqlite.faults import faults
from ebrank.service.store.sqlite.folder import database_of, flush_folder, last_change, made
from ebrank.service.store.sqlite.items import SqliteItems
from ebrank.service.store.sqlite.log import SqliteLog
from ebrank.service.store.sqlite.meta import SqliteMeta
from ebrank.service.store.sqlite.models import SqliteModels

log = logging.getLogger("ebrank.service")


class SqliteStore:
    """A folder with a database; see `Store` for what the methods promise.

    Args:
        folder: of the store; to `read`, a backup in one file will do.
        mode: a store that is `new`, or a `copy`, is built beside its place and moved there when it
            is closed.

    Raises:
        StoreError: if another server uses it, or it is not a store, or it cannot be opened.
    """

    def __init__(self, folder: str | os.PathLike[str], mode: Mode = "serve") -> None:
        path = expanded(folder)
        self.url: str | None = f"sqlite:{path.absolute()}"
        self._place = path
        self._announcements = Announcements()  # of one server: no other can open the store
        self.touched = last_change(path)
        self.epoch = 0  # whatever takes the database along takes this process along
        self._building = _beside(path, mode) if mode in ("new", "copy") else None
        self._mode = mode
        self.database = _opened(self._building or path, mode)
        self.flush = self.database.flush
        self.items = SqliteItems(self.database)
        self.catalog = SqliteCatalog(self.database)
        self.log = SqliteLog(self.database)
        self.models = SqliteModels(self.database)
        self.meta = SqliteMeta(self.database)
        self.deletions = SqliteDeletions(self.database)
        if mode == "serve":
            self._finish_deletions()

    def _finish_deletions(self) -> None:
        """Finish what was interrupted, if possible: a full disk does not keep a store closed."""
        try:
            self.deletions.finish()
        except StoreError as problem:
            log.warning("a deletion is unfinished, and will be at the next start: %s", problem)

    async def size(self) -> StoreSize:
        """Return the bytes of the database and its write-ahead log, and what is free there."""
        place = self.database.path
        files = [file for file in place.parent.glob(f"{place.name}*") if file.is_file()]
        used = sum(file.stat().st_size for file in files)
        return StoreSize(used, shutil.disk_usage(place.parent).free, await self.log.length())

    async def elected(self, job: str) -> bool:
        """Return whether this server does a job: no other can open the store."""
        return True

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves."""
        self._announcements.announce(server, about)

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently."""
        return self._announcements.heard()

    async def faults(self) -> list[Fault]:
        """Return what is wrong with the database and its tables."""
        return await self.database.read_long(faults)

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Copy the store, as it is at one moment, to a new file or into a folder."""
        return await asyncio.to_thread(backup, self.database.path, target, progress)

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; closing twice is harmless."""
        await self.database.close()
        building, self._building = self._building, None
        if building is None:
            return
        if discard and self._mode == "new":
            shutil.rmtree(building, ignore_errors=True)
        elif not discard:
            building.replace(self._place)
            flush_folder(self._place.parent)


def _opened(folder: Path, mode: Mode) -> Database | Snapshot:
    if mode == "browse":
        return Snapshot(database_of(folder), lasting=False)
    if mode == "read":
        return _as_it_is(database_of(folder))
    try:
        return Database(made(folder))
    except BaseException:
        if mode == "new":
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _as_it_is(path: Path) -> Snapshot:
    """Return a database at this moment: a copy, if a server may be writing to it.

    A lasting view would let the server's write-ahead log grow until the reader is done.
    """
    if not path.with_name(f"{path.name}-wal").exists():
        return Snapshot(path)
    with private_copy(path) as copy:
        return Snapshot(path, copy)


def _beside(place: Path, mode: Mode) -> Path:
    """Return where to build a store, on the same disk as its place, where there must be nothing."""
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise StoreError(f"{place}: there is something already. Name a new folder.")
    mark = "copying" if mode == "copy" else secrets.token_hex(4)
    return place.with_name(f".{place.name}.{mark}")
