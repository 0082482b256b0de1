"""What a database must do for a store: lend connections, log a batch, flush, elect.

A store is one class, `ebrank.service.store.base.Store`, on top of a `Driver`. It decides what to
write and says so in SQL that SQLite and PostgreSQL both read; parameters are `?1`, `?2` and so on.
A driver knows files or sockets, transactions, and what its database does in its own way.

Every transaction happens as a whole or raises `StoreError`. It survives the end of the process when
it ends, and a power cut when the next `flush` returns. One that changes the table `state` does so
before it changes queries: two transactions never wait for each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, TypeVar

from ebrank.errors import EBRankError
from ebrank.service.store.records import Announced, Commit, Fault, Operation, StoreSize
from ebrank.service.store.tables import Existing, Names, Row, StoreTable

T = TypeVar("T")

Mode: TypeAlias = Literal["serve", "read", "browse", "new", "salvage"]
"""How a store is opened.

`serve`: to read and write; created if it does not exist. `read`: as it is at this moment; it must
exist and is not changed. `browse`: the same, but each call sees the current state: nothing is held
for long that a server would have to work around. `new`: to write; it must not exist, and does not
appear before it is closed. `salvage`: what can be read of damaged files.
"""

Remembered: TypeAlias = Callable[[str], int | None]
"""Returns the version of a query that a server has in memory now, None if it has none."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and the total."""

LATELY_SECONDS = 60.0
"""A server that has been silent for this long is gone."""
WRITES_LOST = (
    "the connection to the store was lost, perhaps with what was not on disk yet; send the request "
    "again."
)


class StoreError(EBRankError):
    """The store cannot do what was asked: names the file and the remedy. Nothing was changed.

    Only if the connection to another server is lost, or a call is cancelled, a write may have
    happened all the same.
    """


class Damaged(StoreError):
    """The files of a store cannot be read, or not all of them."""


class Conflict(StoreError):
    """Another write came first, and nothing of this one was stored. The store works."""


class UnknownQuery(Conflict):
    """A write to a query that does not exist; another server may have deleted it."""


class CatalogChanged(Conflict):
    """Settings are based on a catalog that another write has changed meanwhile."""


class Connection(Protocol):
    """A connection to a database, lent for one transaction, or to read."""

    async def fetch(self, sql: str, *given: object) -> list[Row]:
        """Return the rows of a statement."""

    async def execute(self, sql: str, *given: object) -> int:
        """Run a statement, and return how many rows it changed."""

    async def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement with the values of each row."""

    async def insert(
        self, table: StoreTable, rows: Sequence[Row], existing: Existing = "refuse"
    ) -> None:
        """Insert rows of all columns but an identity, in order."""

    async def matching(
        self, table: StoreTable, columns: Names, keys: Names, rows: Iterable[Row]
    ) -> list[Row]:
        """Return columns of those rows of a table that have these keys."""

    async def lock(self, queries: Iterable[int], *, wait: bool = True) -> bool:
        """Lock queries, by their numbers, against other writers until the transaction ends.

        Return whether that is so: without waiting, not if another writes to one of them now.
        """


class Driver(Protocol):
    """A database.

    Attributes:
        about: which database it is, and what to know about its version.
        url: where another process finds it (see `open`), None if none can.
        touched: when it was last changed before it was opened, by the clock of its disk or its
            server; None if unknown.
        shared: whether other servers may write to it.
        texts: SQL that it has in its own words: `length` of the log, `floor` of a number; and
            `arrays`, if one statement can read a query and its rows at one moment, each column as
            an array. Otherwise all reads over a connection must see one moment.
        portion: numbers of the log that are searched in one transaction.
    """

    about: str
    url: str | None
    touched: float | None
    shared: bool
    texts: Mapping[str, str]
    portion: int

    @property
    def incarnation(self) -> int:
        """How often unflushed writes may have been lost since it was opened."""

    def read(self) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection for something quick; each statement sees one moment."""

    async def read_long(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Return what work reads, which may take long, without blocking others."""

    def write(self) -> AbstractAsyncContextManager[Connection]:
        """Lend the connection that writes, in a transaction."""

    def chore(self, *, erases: bool = False) -> AbstractAsyncContextManager[Connection]:
        """Lend a connection in a transaction that should not hold up requests.

        What it erases is overwritten; it may search whole tables.
        """

    async def log(
        self,
        operations: Sequence[Operation],
        *,
        incarnation: int | None = None,
        remembered: Remembered | None = None,
    ) -> Commit:
        """Log operations and add them to the counters, in order, in one transaction.

        `ebrank.service.store.counting.decide` says which events are duplicates, and what the others
        replace. An event that already says what it replaces was logged before, and is logged as it
        is: what it replaces may have been rolled up. The version of each query named advances by
        one.

        Operations may rely on what was read in an `incarnation` of the store; in another one they
        are rejected. Their hints belong to one life of their query; in another one they are
        rejected with `UnknownQuery`.

        `remembered` is called when it is this write's turn. If others have written to a query since
        that version, a store may return their changes, but need not.
        """

    async def flush(self) -> None:
        """Return when all earlier writes are on disk; others may write meanwhile."""

    async def size(self) -> StoreSize | None:
        """Return how much space it takes; None if there is no disk. Takes hardly any time."""

    async def elected(self, job: str) -> bool:
        """Return whether this server is the one that does a job for all.

        It stays so until it leaves or loses its connection; then the next one that asks is elected.
        """

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves.

        Nothing depends on it; a crash of the store may lose it.
        """

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently, by name."""

    async def faults(self) -> list[Fault]:
        """Return what is wrong with its files, and with values in its tables."""

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Copy all of it, as it is at one moment, to a new file or into a folder; return the file.

        The copy appears when it is complete and on disk. Raises `StoreError` if the store has no
        files of its own; use other tools then.
        """

    async def purge(self) -> None:
        """Rewrite all files, so that no trace of deleted data remains."""

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything; with `discard`, a store opened as new never appears."""


class StoreGroup:
    """A group of a store's methods."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def _fetch(self, sql: str, *given: object) -> list[Row]:
        """Return the rows of a statement that is quick."""
        async with self._driver.read() as connection:
            return await connection.fetch(sql, *given)

    async def _number(self, sql: str, *given: object) -> int:
        """Return the whole number that a quick statement selects."""
        [(number,)] = await self._fetch(sql, *given)
        return int(number)

    async def _fetch_long(self, sql: str, *given: object) -> list[Row]:
        """Return the rows of a statement that may take long, or return many."""
        return await self._decoded(lambda rows: rows, sql, *given)

    async def _decoded(self, decode: Callable[[list[Row]], T], sql: str, *given: object) -> T:
        """Return what a function makes of these rows; if it cannot, they are damaged."""

        async def work(connection: Connection) -> T:
            return decode(await connection.fetch(sql, *given))

        return await self._driver.read_long(work)
