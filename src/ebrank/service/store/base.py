"""What a store is: the only part of the service that touches a disk or another server.

State is additive. A store keeps the items, the log of rankings and events, the counters they add up
to, and the snapshot of what was removed from the log; counters = snapshot + log at any time, to the
bit, because both are added up in the order of the log. One server writes; others may read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ebrank.errors import EBRankError
from ebrank.service.store.records import (
    Minute,
    ModelRecord,
    NewItem,
    Operation,
    QueryState,
    RankingEntry,
    RolledUp,
    Written,
)


class StoreError(EBRankError):
    """The store cannot do what it was asked: names the file and the remedy. Nothing was changed."""


class Readable(Protocol):
    """What a store tells to whoever only looks: a trainer, a replay, an export."""

    def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were first given."""
        ...

    def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        ...

    def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        ...

    def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        ...

    def log(self) -> Iterator[Operation]:
        """Yield the log in its order."""
        ...

    def log_length(self) -> int:
        """Return how many entries the log holds, or a little more: for progress bars."""
        ...

    def last_time(self) -> float:
        """Return the time of the latest entry, 0 if there is none: clocks may jump back."""
        ...

    def minutes(self, since: float) -> list[Minute]:
        """Return what is known of the minutes since a time, in order."""
        ...

    def models(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        ...

    def model(self, version: int) -> bytes | None:
        """Return the file of a version."""
        ...

    def active_model(self) -> int:
        """Return the active version, 0 before any training."""
        ...

    def meta(self, key: str) -> str | None:
        """Return a setting that belongs to the data, such as the feature schema."""
        ...

    def settings(self) -> dict[str, str]:
        """Return all such settings."""
        ...


class Store(Readable, Protocol):
    """Keeps what the service must not forget. Methods raise `StoreError`."""

    def put_items(
        self,
        query: str,
        items: Sequence[NewItem],
        time: float,
        *,
        meta: Mapping[str, str] | None = None,
        flush: bool = True,
    ) -> None:
        """Add candidates or change their features, all or none; withdrawn ones come back.

        Counters of an item that was there before stay. Settings in `meta` are kept in the same
        transaction. Here and below: on disk when it returns, or after the next flush.
        """
        ...

    def withdraw(self, query: str, item: str, time: float, *, flush: bool = True) -> bool:
        """Withdraw a candidate, its history stays; return whether it was one."""
        ...

    def restore(self, state: QueryState, time: float) -> None:
        """Add a query with the history that its counters hold, as if it had been rolled up.

        The store knows no such query yet; `time` is that of the latest entry of this history.
        """
        ...

    def write(self, operations: Sequence[Operation], *, flush: bool) -> list[Written]:
        """Log operations and add them to the counters, in order, in one transaction.

        An event is a duplicate if its id was seen before, or if an event of its type was counted
        for the same item of the same ranking. It `shows` its item only if no event before it did,
        in this list of operations or earlier. With `flush`, this and all earlier writes are on disk
        when it returns; without, they survive the end of the process.
        """
        ...

    def flush(self) -> None:
        """Return when all earlier writes are on disk; others may write meanwhile.

        After a failed flush a store refuses to write: nobody knows what the disk holds.
        """
        ...

    def roll_up(self, before: float, *, minutes_before: float | None = None) -> RolledUp:
        """Add the log's entries older than a time to the snapshot, and remove them.

        Sums of minutes that began before `minutes_before`, or else `before`, are dropped.

        From then on nobody knows that such an event was counted: whoever calls this must refuse
        events of rankings a little younger than `before`, or one in flight may count twice.
        """
        ...

    def add_minutes(self, minutes: Sequence[Minute], meta: Mapping[str, str] | None = None) -> None:
        """Add the sums of some minutes to those kept, and keep settings, in one transaction.

        Not flushed. `roll_up` drops old ones.
        """
        ...

    def add_model(self, record: ModelRecord, document: bytes, *, flush: bool = True) -> None:
        """Keep a version and its file; if it is `activated`, it is the active one from now on."""
        ...

    def activate(
        self, version: int, *, meta: Mapping[str, str] | None = None, flush: bool = True
    ) -> None:
        """Make a version the active one; 0 goes back to before any training.

        Settings in `meta` are kept in the same transaction.
        """
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Keep such a setting."""
        ...

    def close(self) -> None:
        """Flush and let go of everything."""
        ...
