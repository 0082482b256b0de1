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

import hashlib
from collections.abc import Sequence

from ebrank.service.store.deletions import StoredDeletions
from ebrank.service.store.driver import (
    WRITES_LOST,
    CatalogChanged,
    Conflict,
    Connection,
    Damaged,
    Driver,
    Mode,
    Progress,
    StoreError,
    UnknownQuery,
)
from ebrank.service.store.items import StoredCatalog, StoredItems
from ebrank.service.store.log import StoredLog
from ebrank.service.store.meta import StoredMeta, StoredModels
from ebrank.service.store.records import Fault

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
    "StoredLog",
    "UnknownQuery",
]

SALT = "salt"
"""The setting that users' names are hashed with. It leaves a store only in a backup."""


class Store:
    """Keeps what the service must not forget.

    Attributes:
        driver: the database behind it, whose `size`, `elected`, `announce`, `servers`, `backup` and
            `close` are the store's.
        items: queries and their items.
        catalog: features that queries share.
        log: rankings and events.
        models: the versions of the prior.
        meta: settings that belong to the data.
        deletions: what was deleted, and to delete more.
        about: which database that is, and what to know about its version.
        url: where another process finds it (see `open`), None if none can.
        touched: when it was last changed before it was opened, by the clock of its disk, if known.
        left_out: what could not be read, in words, of a store that was opened to `salvage`.
    """

    left_out: Sequence[str] = ()

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.about = driver.about
        self.url = driver.url
        self.touched = driver.touched
        self.items = StoredItems(driver)
        self.catalog = StoredCatalog(driver)
        self.log = StoredLog(driver)
        self.models = StoredModels(driver)
        self.meta = StoredMeta(driver)
        self.deletions = StoredDeletions(driver)
        self.size = driver.size
        self.elected, self.announce, self.servers = driver.elected, driver.announce, driver.servers
        self.backup = driver.backup
        self.close = driver.close

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

    async def faults(self) -> list[Fault]:
        """Return what is wrong with its files, and what belongs to nothing.

        It takes as long as reading everything.
        """
        return [*await self.driver.faults(), *await self.driver.read_long(_orphans)]


async def _orphans(connection: Connection) -> list[Fault]:
    """Return how many rows belong to queries that are not there, except to ones being deleted."""
    found = list[Fault]()
    for table in ("items", "features", "evidence", "snapshot", "rankings", "events"):
        sql = (
            f"SELECT count(*) FROM {table} WHERE query NOT IN (SELECT number FROM queries "
            "UNION SELECT query FROM unfinished WHERE query IS NOT NULL)"
        )
        try:
            [(count,)] = await connection.fetch(sql)
        except StoreError as problem:
            found.append(Fault("file", str(problem)))
        else:
            if count:
                what = f"{table}: {count} rows of queries that are not there"
                found.append(Fault("orphan", what))
    return found


def hashed(user: str, salt: str) -> str:
    """Return what the log holds instead of a user's name; without the salt it reveals nothing."""
    name = user.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(name, key=salt.encode(), digest_size=8).hexdigest()
