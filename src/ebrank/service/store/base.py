"""What a store is: the only part of the service that touches a disk or another server.

State is additive. A store keeps the items, the log of rankings and events, the counters they add up
to, and the snapshot of what was removed from the log; counters = snapshot + log at any time, to the
bit, because both are added up in the order of the log.

Methods are awaitable and grouped by topic: `items`, `catalog`, `log`, `models`, `meta`,
`deletions`. Each write is a transaction of the store's `Driver`.

Every query has a version, which each write to it advances by one. If a write returns the version
that a server has in memory plus one, nobody else has written. The catalog, which holds what all
queries share, also has a version. No version occurs twice, even if a query is deleted and added
again.

If many servers share a store, one of them is elected for each job that one server does for all; a
store that only one server can open elects that one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from ebrank.service.store import records
from ebrank.service.store.deletions import StoredDeletions
from ebrank.service.store.driver import (
    WRITES_LOST,
    CatalogChanged,
    Conflict,
    Damaged,
    Driver,
    Mode,
    Progress,
    StoreError,
    UnknownQuery,
)
from ebrank.service.store.faults import faults
from ebrank.service.store.items import StoredCatalog, StoredItems
from ebrank.service.store.log import StoredLog
from ebrank.service.store.meta import StoredMeta, StoredModels

__all__ = [
    "SALT",
    "WRITES_LOST",
    "CatalogChanged",
    "Conflict",
    "Damaged",
    "Mode",
    "Progress",
    "Store",
    "StoreError",
    "StoreView",
    "StoredLog",
    "UnknownQuery",
]

SALT = "salt"
"""The setting that users' names are hashed with. It leaves a store only in a backup."""


class Store:
    """Keeps what the service must not forget.

    Attributes:
        driver: the database behind it.
        items: queries and their items.
        catalog: features that queries share.
        log: rankings and events.
        models: the versions of the prior.
        meta: settings that belong to the data.
        deletions: what was deleted, and to delete more.
        url: where another process finds it (see `open`), None if none can.
        touched: when it was last changed before it was opened, by the clock of its disk, if known.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.url = driver.url
        self.touched = driver.touched
        self.items = StoredItems(driver)
        self.catalog = StoredCatalog(driver)
        self.log = StoredLog(driver)
        self.models = StoredModels(driver)
        self.meta = StoredMeta(driver)
        self.deletions = StoredDeletions(driver)

    @property
    def incarnation(self) -> int:
        """How often unflushed writes may have been lost since it was opened.

        A database that restarts loses those that were not flushed; one that does not respond may
        carry out a write later. What was read before may be wrong.
        """
        return self.driver.incarnation

    async def flush(self) -> None:
        """Return when all earlier writes are on disk; others may write meanwhile.

        After a failed flush a store refuses to write, because what the disk holds is unknown.
        """
        await self.driver.flush()

    async def size(self) -> records.StoreSize | None:
        """Return how much space it takes; None if there is no disk. Takes hardly any time."""
        return await self.driver.size()

    async def elected(self, job: str) -> bool:
        """Return whether this server is the one that does a job for all.

        It stays so until it leaves or loses its connection; then the next one that asks is elected.
        """
        return await self.driver.elected(job)

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves.

        Nothing depends on it; a crash of the store may lose it.
        """
        await self.driver.announce(server, about)

    async def servers(self) -> list[records.Announced]:
        """Return the servers that have announced themselves recently, by name."""
        return await self.driver.servers()

    async def faults(self) -> list[records.Fault]:
        """Return what is wrong below what the methods show: files, tables, references.

        The first few of each kind are enough. It takes as long as reading everything.
        """
        return [*await self.driver.faults(), *await self.driver.read_long(faults)]

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Copy all of it, as it is at one moment, to a new file or into a folder; return the file.

        The copy appears when it is complete and on disk. Raises `StoreError` if the store has no
        files of its own; use other tools then.
        """
        return await self.driver.backup(target, progress)

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; with `discard`, a store opened as new never appears."""
        await self.driver.close(discard=discard)


StoreView: TypeAlias = Store
"""A store of which a caller only reads: it may be an export, or a damaged one as it should be."""
