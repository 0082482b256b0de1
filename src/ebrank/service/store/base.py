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

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

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
from ebrank.typing import Features

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
        self._driver = driver
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
        return self._driver.incarnation

    async def flush(self) -> None:
        """Return when all earlier writes are on disk; others may write meanwhile.

        After a failed flush a store refuses to write, because what the disk holds is unknown.
        """
        await self._driver.flush()

    async def size(self) -> records.StoreSize | None:
        """Return how much space it takes; None if there is no disk. Takes hardly any time."""
        return await self._driver.size()

    async def elected(self, job: str) -> bool:
        """Return whether this server is the one that does a job for all.

        It stays so until it leaves or loses its connection; then the next one that asks is elected.
        """
        return await self._driver.elected(job)

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves.

        Nothing depends on it; a crash of the store may lose it.
        """
        await self._driver.announce(server, about)

    async def servers(self) -> list[records.Announced]:
        """Return the servers that have announced themselves recently, by name."""
        return await self._driver.servers()

    async def faults(self) -> list[records.Fault]:
        """Return what is wrong below what the methods show: files, tables, references.

        The first few of each kind are enough. It takes as long as reading everything.
        """
        return [*await self._driver.faults(), *await self._driver.read_long(faults)]

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Copy all of it, as it is at one moment, to a new file or into a folder; return the file.

        The copy appears when it is complete and on disk. Raises `StoreError` if the store has no
        files of its own; use other tools then.
        """
        return await self._driver.backup(target, progress)

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; with `discard`, a store opened as new never appears."""
        await self._driver.close(discard=discard)


# --- a store that is only read: an export, or a damaged store as it should be --------------------


class ItemsView(Protocol):
    """See `StoredItems`."""

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""

    async def load(self, query: str) -> records.QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""

    async def snapshot(self, query: str) -> records.QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""


class CatalogView(Protocol):
    """See `StoredCatalog`."""

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features]:
        """Return the rows of the items that were put after a version."""

    def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""


class LogView(Protocol):
    """See `StoredLog`."""

    async def ranking(self, ranking_id: str) -> records.RankingEntry | None:
        """Return a list that is still in the log."""

    def entries(self) -> AsyncIterator[records.Operation]:
        """Yield the log in order, up to its current end."""

    async def length(self) -> int:
        """Return how many entries the log holds, or slightly more, for progress bars."""

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""


class ModelsView(Protocol):
    """See `StoredModels`."""

    async def all(self) -> list[records.ModelRecord]:
        """Return all versions, oldest first."""

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""

    async def active(self) -> int:
        """Return the active version, 0 before any training."""


class MetaView(Protocol):
    """See `StoredMeta`."""

    async def get(self, key: str) -> str | None:
        """Return a setting."""

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""

    async def minutes(self, since: float) -> list[records.Minute]:
        """Return the sums of the minutes since a time, in order."""


class DeletionsView(Protocol):
    """See `StoredDeletions`."""

    async def all(self) -> list[records.Deletion]:
        """Return the proofs of all deletions, oldest first."""


class StoreView(Protocol):
    """A store that is only read: by a trainer, a replay, an export."""

    @property
    def items(self) -> ItemsView:
        """Queries and their items."""

    @property
    def catalog(self) -> CatalogView:
        """Features that queries share."""

    @property
    def log(self) -> LogView:
        """Rankings and events."""

    @property
    def models(self) -> ModelsView:
        """The versions of the prior."""

    @property
    def meta(self) -> MetaView:
        """Settings that belong to the data."""

    @property
    def deletions(self) -> DeletionsView:
        """What was deleted."""
