"""What a store is: the only part of the service that touches a disk or another server.

State is additive. A store keeps the items, the log of rankings and events, the counters they add up
to, and the snapshot of what was removed from the log; counters = snapshot + log at any time, to the
bit, because both are added up in the order of the log.

Methods are awaitable and grouped by topic: `items`, `catalog`, `log`, `models`, `meta`,
`deletions`. Each write is a transaction: it happens as a whole or raises `StoreError`. It survives
the end of the process when it returns, and a power cut when the next `flush` returns.

Every query has a version, which each write to it advances by one. If a write returns the version
that a server has in memory plus one, nobody else has written. The catalog, which holds what all
queries share, also has a version. No version occurs twice, even if a query is deleted and added
again.

If many servers share a store, one of them is elected for each job that one server does for all; a
store that only one server can open elects that one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from ebrank.errors import EBRankError
from ebrank.service.store.announcements import Announced
from ebrank.service.store.records import (
    CatalogCommit,
    Commit,
    Deletion,
    Fault,
    Minute,
    ModelRecord,
    NewItem,
    Operation,
    QueryRow,
    QueryState,
    RankingEntry,
    RolledUp,
    StoreSize,
    Tally,
)
from ebrank.typing import Features

Mode: TypeAlias = Literal["serve", "read", "browse", "new", "copy"]
"""How a store is opened.

`serve`: to read and write; created if it does not exist. `read`: as it is at this moment; it must
exist and is not changed. `browse`: the same, but each call sees the current state: nothing is held
for long that a server would have to work around. `new`: to write; it must not exist, and does not
appear before it is closed. `copy`: the same, but if it is discarded, what was written is kept,
unseen, and the next `copy` to the same place continues with it.
"""

Remembered: TypeAlias = Callable[[str], int | None]
"""Returns the version of a query that a server has in memory now, None if it has none."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and the total."""

SALT = "salt"
"""The setting that users' names are hashed with. It leaves a store only in a backup."""

ANOTHER_EPOCH = (
    "the connection to the store was lost, perhaps with what was not on disk yet; send the request "
    "again."
)


class StoreError(EBRankError):
    """The store cannot do what was asked: names the file and the remedy. Nothing was changed.

    Only if the connection to another server is lost, or a call is cancelled, a write may have
    happened all the same.
    """


class UnknownQuery(StoreError):
    """A write to a query that does not exist; another server may have deleted it."""


class CatalogChanged(StoreError):
    """Settings are based on a catalog that another write has changed meanwhile."""


def check_catalog(meta: Mapping[str, str] | None, known: int | None, now: int) -> None:
    """Raise if settings are based on another version of the catalog."""
    if meta and known not in (None, now):
        raise CatalogChanged(
            "another server changed the catalog or the features meanwhile. Nothing of this was "
            "stored; send the request again."
        )


# --- what can be read ----------------------------------------------------------------------------


class ItemsView(Protocol):
    """Queries and their items."""

    async def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were added."""
        ...

    async def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        ...

    async def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        ...


class CatalogView(Protocol):
    """Features of items that all queries share, by the items' names."""

    async def version(self) -> int:
        """Return how many writes have changed the catalog, or a setting stored with it."""
        ...

    async def read(self, names: Sequence[str], since: int = 0) -> dict[str, Features | None]:
        """Return the rows of the items that were put after a version; None for removed ones.

        Names that are not in the catalog are left out. The caller owns the arrays.
        """
        ...

    def entries(self) -> AsyncIterator[tuple[str, Features]]:
        """Yield all items with their rows, in the order of their names as UTF-8."""
        ...


class LogView(Protocol):
    """Rankings and events, in the order in which they were written."""

    async def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        ...

    def entries(self) -> AsyncIterator[Operation]:
        """Yield the log in order, up to its current end."""
        ...

    async def length(self) -> int:
        """Return how many entries the log holds, or slightly more, for progress bars."""
        ...

    async def last_time(self) -> float:
        """Return the time of the latest write, 0 if there is none: clocks may jump back."""
        ...


class ModelsView(Protocol):
    """The versions of the prior."""

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        ...

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        ...

    async def active(self) -> int:
        """Return the active version, 0 before any training."""
        ...


class MetaView(Protocol):
    """Settings that belong to the data, such as the feature schema, and sums per minute."""

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        ...

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        ...

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        ...


class DeletionsView(Protocol):
    """What was deleted."""

    async def all(self) -> list[Deletion]:
        """Return the proofs of all deletions, oldest first."""
        ...


class StoreView(Protocol):
    """A store that is only read: by a trainer, a replay, an export."""

    @property
    def items(self) -> ItemsView:
        """Queries and their items."""
        ...

    @property
    def catalog(self) -> CatalogView:
        """Features that queries share."""
        ...

    @property
    def log(self) -> LogView:
        """Rankings and events."""
        ...

    @property
    def models(self) -> ModelsView:
        """The versions of the prior."""
        ...

    @property
    def meta(self) -> MetaView:
        """Settings that belong to the data."""
        ...

    @property
    def deletions(self) -> DeletionsView:
        """What was deleted."""
        ...


# --- what can be written -------------------------------------------------------------------------


class StoredItems(ItemsView, Protocol):
    """Queries and their items, to change."""

    async def find(
        self, prefix: str = "", contains: str = "", after: str | None = None, limit: int = 100
    ) -> list[QueryRow]:
        """Return queries whose names begin with a text and contain another, after a name.

        They are ordered by their names as UTF-8.
        """
        ...

    async def put(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> int:
        """Add candidates or change their features; return the query's version.

        Withdrawn ones come back, and existing items keep their counters. Settings in `meta` are
        kept in the same transaction, and make a new version of the catalog: they are rejected with
        `CatalogChanged` if its version is not the one `known`. Without items, nothing changes.
        """
        ...

    async def withdraw(self, query: str, item: str, time: float) -> int | None:
        """Withdraw a candidate; return the query's version, or None if it was not a candidate.

        Its history stays.
        """
        ...

    async def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up.

        The store must not have this query yet; `time` is that of the latest entry of this history.
        """
        ...

    async def tally(self) -> Tally:
        """Return how many items all queries have, and how many have a number in each column."""
        ...


class StoredCatalog(CatalogView, Protocol):
    """Features that queries share, to change."""

    async def put(
        self,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        known: int | None = None,
    ) -> CatalogCommit:
        """Add items or change their rows, and keep settings in the same transaction.

        The version grows by one if a row is new or changed, or if settings are given, which are
        rejected with `CatalogChanged` if the version is not the one `known`.
        """
        ...

    async def remove(self, names: Sequence[str], time: float) -> CatalogCommit:
        """Remove items; the version grows by one if any of them existed."""
        ...

    async def tally(self) -> Tally:
        """Return how many items there are, and how many have a number in each column."""
        ...


class StoredLog(LogView, Protocol):
    """Rankings and events, to add to."""

    def latest(self, lists: int) -> AsyncIterator[Operation]:
        """Yield the end of the log in order, starting this many lists back."""
        ...

    async def write(
        self,
        operations: Sequence[Operation],
        *,
        epoch: int | None = None,
        known: Remembered | None = None,
    ) -> Commit:
        """Log operations and add them to the counters, in order, in one transaction.

        An event is a duplicate if its id was seen before for its query, or if an event of its type
        was counted for the same item of the same ranking; callers see the reason, `ID_SEEN` or else
        `ALREADY_COUNTED` of `ebrank.service.store.rows`. It `shows` its item only if no earlier
        event did, in these operations or before. It has an outcome only if it is better than those
        before it for the same item of the same ranking, whose best it `replaces`, and none of them
        was negative; a negative one, -1, replaces the best of them. An event that already says what
        it replaces was logged before, and is logged as it is: what it replaces may have been rolled
        up. The version of each query named advances by one.

        Operations may rely on what was read in an `epoch` of the store: in another one they are
        rejected. Their hints belong to one life of their query: in another one they are rejected
        with `UnknownQuery`.

        `known` is called when it is this write's turn. If others have written to a query since that
        version, a store may return their changes, but need not.
        """
        ...

    async def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them.

        Sums of minutes that began before `minutes_before`, or else `before`, are dropped.

        From then on the store cannot know that such an event was counted: the caller must reject
        events of rankings slightly younger than `before`, or one in flight may count twice.
        """
        ...


class StoredModels(ModelsView, Protocol):
    """The versions of the prior, to add to."""

    async def add(
        self,
        record: ModelRecord,
        document: bytes,
        *,
        instead_of: int | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a version and its file; return whether it is now the active one.

        It is if it is `activated`, unless a version other than `instead_of` is active now, or one
        of the settings has a value in `unless`: then it is kept as not activated.
        """
        ...

    async def remove(self, versions: Sequence[int]) -> None:
        """Remove versions and their files; the active one cannot be removed."""
        ...

    async def activate(self, version: int, *, meta: Mapping[str, str] | None = None) -> None:
        """Activate a version; 0 goes back to before any training.

        Settings in `meta` are kept in the same transaction.
        """
        ...


class StoredMeta(MetaView, Protocol):
    """Settings and sums of minutes, to change."""

    async def set(self, values: Mapping[str, str], minutes: Sequence[Minute] = ()) -> None:
        """Keep settings, and add the sums of some minutes to those kept, in one transaction."""
        ...

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums of the minutes since a time, added up over spans of some seconds.

        Spans begin at multiples of their width. Empty spans are left out.
        """
        ...

    async def add(
        self, key: str, numbers: Mapping[str, int], minutes: Sequence[Minute] = ()
    ) -> dict[str, int]:
        """Add to the numbers that a setting holds, as JSON, and return the new ones.

        The sums of some minutes are added to those kept, in the same transaction.
        """
        ...

    async def settle(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep the settings that are not set yet; return the current value of each."""
        ...


class StoredDeletions(DeletionsView, Protocol):
    """Deletes things permanently, and keeps a proof. Counters stay snapshot + log."""

    async def query(self, query: str, digest: str, time: float) -> Deletion | None:
        """Delete a query: its items, counters and entries of the log; None if it is unknown."""
        ...

    async def item(
        self, item: str, stand_in: str, digest: str, time: float
    ) -> tuple[Deletion, list[str]] | None:
        """Delete an item from all queries and the catalog; None if it is unknown.

        A stand-in takes its place, which is withdrawn and has no features: lists and counters of
        others depend on that place. Also return the queries that had it.
        """
        ...

    async def user(self, user: str, digest: str, time: float) -> Deletion:
        """Remove a user, given as in the log, from all lists, which still count."""
        ...

    async def restore(self, deletions: Sequence[Deletion]) -> None:
        """Add proofs from elsewhere."""
        ...

    async def purge(self) -> None:
        """Rewrite all files, so that no trace of deleted data remains.

        It takes as long as writing everything, and nobody else can write meanwhile.
        """
        ...


class Store(Protocol):
    """Keeps what the service must not forget.

    Attributes:
        url: where another process finds it (see `open`), None if none can.
        touched: when it was last changed before it was opened, by the clock of its disk or its
            server; None if unknown.
    """

    url: str | None
    touched: float | None

    @property
    def epoch(self) -> int:
        """How often it became unknown which writes have happened, since it was opened.

        A database that restarts loses those that were not flushed; one that does not respond may
        carry out a write later. What was read before may be wrong.
        """
        ...

    @property
    def items(self) -> StoredItems:
        """Queries and their items."""
        ...

    @property
    def catalog(self) -> StoredCatalog:
        """Features that queries share."""
        ...

    @property
    def log(self) -> StoredLog:
        """Rankings and events."""
        ...

    @property
    def models(self) -> StoredModels:
        """The versions of the prior."""
        ...

    @property
    def meta(self) -> StoredMeta:
        """Settings that belong to the data."""
        ...

    @property
    def deletions(self) -> StoredDeletions:
        """What was deleted, and to delete more."""
        ...

    async def flush(self) -> None:
        """Return when all earlier writes are on disk; others may write meanwhile.

        After a failed flush a store refuses to write, because what the disk holds is unknown.
        """
        ...

    async def size(self) -> StoreSize | None:
        """Return how much space it takes; None if there is no disk. Takes hardly any time."""
        ...

    async def elected(self, job: str) -> bool:
        """Return whether this server is the one that does a job for all.

        It stays so until it leaves or loses its connection; then the next one that asks is elected.
        """
        ...

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves.

        Nothing depends on it; a crash of the store may lose it.
        """
        ...

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently, by name."""
        ...

    async def faults(self) -> list[Fault]:
        """Return what is wrong below what the methods show: files, tables, references.

        The first few of each kind are enough. It takes as long as reading everything.
        """
        ...

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Copy all of it, as it is at one moment, to a new file or into a folder; return the file.

        The copy appears when it is complete and on disk. Raises `StoreError` if the store has no
        files of its own; use other tools then.
        """
        ...

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; with `discard`, a store opened as new never appears."""
        ...
