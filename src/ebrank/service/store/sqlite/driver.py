"""The SQLite driver: reads a query in a few statements, writes the log in one transaction.

Nothing here waits, so a coroutine that uses only such a connection ends at its first step, in
whichever thread that is; and between the statements of a transaction nobody else has a turn.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from ebrank.service.store import counting, tables
from ebrank.service.store.driver import (
    LATELY_SECONDS,
    WRITES_LOST,
    Connection,
    Progress,
    Remembered,
    StoreError,
    UnknownQuery,
)
from ebrank.service.store.records import LIFE, Announced, Commit, Fault, Operation, StoreSize
from ebrank.service.store.sqlite.database import Connections, about, error
from ebrank.service.store.tables import COUNTS, Existing, Names, Row, StoreTable, prefixed

T = TypeVar("T")

AT_ONCE = 500
"""Keys looked up by one statement."""
MOST_FAULTS = 10

_LAST = f"SELECT max(rolled_up, (SELECT coalesce(max(seq), 0) FROM {tables.ENDS})) FROM state"
_ADVANCE = """UPDATE queries SET version = version + 1, used = max(used, ?1) WHERE name = ?2
    RETURNING number, version, (SELECT active_model FROM state), (SELECT catalog FROM state)"""
_SHOWN = """UPDATE items SET first_shown = ?3
    WHERE query = ?1 AND place = ?2 AND first_shown IS NULL"""
_REPEATED = (("query", "event_id"), ("ranking_id", "place"))
_NAMED, _PLACED = (("query", "id"),), (("query", "place"),)


class SqliteConnection:
    """A connection, for coroutines; see `Connection`."""

    def __init__(self, raw: sqlite3.Connection, path: Path) -> None:
        self._raw = raw
        self._path = path

    async def fetch(self, sql: str, *given: object) -> list[Row]:
        """Return the rows of a statement."""
        try:
            return self._raw.execute(sql, given).fetchall()
        except sqlite3.Error as problem:
            raise error(self._path, problem) from problem

    async def execute(self, sql: str, *given: object) -> int:
        """Run a statement, and return how many rows it changed."""
        return self._raw.execute(sql, given).rowcount

    async def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement with the values of each row."""
        self._raw.executemany(sql, rows)

    async def insert(
        self, table: StoreTable, rows: Sequence[Row], existing: Existing = "refuse"
    ) -> None:
        """Insert rows."""
        if rows:
            self._raw.executemany(_inserting(table, table.names, existing), rows)

    async def matching(
        self, table: StoreTable, columns: Names, keys: Names, rows: Iterable[Row]
    ) -> list[Row]:
        """Return columns of the rows that have these keys."""
        return matching(self._raw, table, columns, (keys,), list(rows))

    async def lock(self, queries: Iterable[int], *, wait: bool = True) -> bool:
        """Do nothing: a transaction that writes is the only one."""
        return True


@cache
def _inserting(table: StoreTable, columns: Names, existing: Existing = "refuse") -> str:
    return table.inserted(f"VALUES ({', '.join('?' * len(columns))})", columns, existing)


def matching(
    connection: sqlite3.Connection,
    table: StoreTable,
    columns: Names,
    keys: tuple[Names, ...],
    rows: Sequence[Row],
) -> list[Row]:
    """Return columns of those rows of a table that have one of these keys.

    A row given holds the values of each key, one after another, and each key has its own index. The
    rows given come first: left to itself, SQLite may read a whole table instead of looking up a
    few. As JSON, texts would end at a zero character.
    """
    matched: list[Row] = []
    for begin in range(0, len(rows), AT_ONCE):
        some = rows[begin : begin + AT_ONCE]
        sql = _matching(table, columns, keys, len(some))
        matched += connection.execute(sql, list(chain.from_iterable(some)))
    return matched


@cache
def _matching(table: StoreTable, columns: Names, keys: tuple[Names, ...], count: int) -> str:
    names = [f"k{at}" for at in range(sum(map(len, keys)))]
    given, row = iter(names), f"({', '.join('?' * len(names))})"
    equal = " OR ".join(
        f"({' AND '.join(f't.{column} = {next(given)}' for column in key)})" for key in keys
    )
    return (
        f"WITH wanted ({', '.join(names)}) AS (VALUES {', '.join([row] * count)}) "
        f"SELECT {prefixed('t', columns)} FROM wanted CROSS JOIN {table.name} AS t ON {equal}"
    )


class SqliteDriver:
    """A database in a file, or in memory; see `Driver` for its methods."""

    about = about()
    touched: float | None = None
    incarnation = 0  # always: SQLite runs in this process, and cannot crash without it
    shared = False
    portion = 2000
    texts: Mapping[str, str] = {
        "floor": "CAST({} AS INTEGER)",
        "length": f"SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM {tables.ENDS}",
    }

    def __init__(self, database: Connections, url: str | None = None) -> None:
        self.database = database
        self.url = url
        self.flush = database.flush
        self.purge = database.rewrite
        self._announced: dict[str, tuple[float, str]] = {}
        with database.read() as connection:
            [self._last] = connection.execute(_LAST).fetchone()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        """Lend the connection that reads."""
        with self.database.read() as raw:
            yield SqliteConnection(raw, self.database.path)

    async def read_long(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Return what work reads, in a thread if the database is a server's."""
        path = self.database.path
        return await self.database.read_long(lambda raw: ended(work(SqliteConnection(raw, path))))

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Connection]:
        """Lend the connection that writes, in a transaction."""
        with self.database.write() as raw:
            yield SqliteConnection(raw, self.database.path)

    @asynccontextmanager
    async def chore(self, *, erases: bool = False) -> AsyncIterator[Connection]:
        """Lend the connection that writes: there is but one. What it erases becomes zeros."""
        async with self.write() as connection:
            if erases:
                await connection.execute("PRAGMA secure_delete = ON")
            try:
                yield connection
            finally:
                if erases:
                    await connection.execute("PRAGMA secure_delete = OFF")

    async def log(
        self,
        operations: Sequence[Operation],
        *,
        incarnation: int | None = None,
        remembered: Remembered | None = None,
    ) -> Commit:
        """Log operations in one transaction; never returns news: there are no other writers."""
        if incarnation:  # the only one is 0
            raise StoreError(WRITES_LOST)
        with self.database.write() as connection:
            commit, count = _write(connection, operations, self._last + 1)
        self._last += count
        return commit

    async def size(self) -> StoreSize | None:
        """Return the bytes of the database and its write-ahead log, and what is free there."""
        place = self.database.path
        if self.url is None:
            return None
        files = [file for file in place.parent.glob(f"{place.name}*") if file.is_file()]
        used = sum(file.stat().st_size for file in files)
        with self.database.read() as connection:
            [length] = connection.execute(self.texts["length"]).fetchone()
        return StoreSize(used, shutil.disk_usage(place.parent).free, length)

    async def elected(self, job: str) -> bool:
        """Return whether this server does a job: no other can open the store."""
        return True

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves."""
        self._announced.pop(server, None)
        if about is not None:
            self._announced[server] = time.monotonic(), about

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently, all of this process."""
        now = time.monotonic()
        return sorted(
            Announced(name, now - then, about)
            for name, (then, about) in self._announced.items()
            if now - then <= LATELY_SECONDS
        )

    async def faults(self) -> list[Fault]:
        """Return damaged pages."""
        return await self.database.read_long(lambda connection: list(_faults(connection)))

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Refuse: there is no file."""
        raise StoreError("a store in memory has no files to copy. Export it instead")

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release everything."""
        await self.database.close()


def ended(work: Awaitable[T]) -> T:
    """Run a coroutine that never waits, without an event loop; return its result."""
    try:
        next(work.__await__())
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("a coroutine on a database must not wait")


def _faults(connection: sqlite3.Connection) -> Iterator[Fault]:
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({MOST_FAULTS})").fetchall():
            if text != "ok":
                yield Fault("file", text)
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        yield Fault("file", str(problem))


# --- writing to the log --------------------------------------------------------------------------


def _write(
    connection: sqlite3.Connection, operations: Sequence[Operation], begin: int
) -> tuple[Commit, int]:
    """Log operations, numbered from `begin`, and count them; also return how many were logged."""
    batch = counting.LogBatch(operations)
    numbers: dict[str, int] = {}
    versions: dict[str, int] = {}
    places: dict[tuple[int, str], int] = {}
    for query, used in batch.times.items():
        advanced = connection.execute(_ADVANCE, (used, query)).fetchall()
        if not advanced:
            raise UnknownQuery(f"there is no query {query!r}; nothing was stored")
        [(numbers[query], versions[query], model, catalog)] = advanced
    if not operations:
        model, catalog = connection.execute("SELECT active_model, catalog FROM state").fetchone()
    for query, life in batch.lives.items():
        if life != versions[query] // LIFE:
            raise counting.other_life(query)
    if batch.names:
        named = [(numbers[query], item) for query, item in batch.names]
        found = matching(connection, tables.ITEMS, ("query", "id", "place"), _NAMED, named)
        for number, item, place in found:
            places[number, item] = place
    placed = batch.placed(numbers, places)
    keys = counting.event_keys(placed)
    fields = counting.Earlier._fields
    earlier: list[Any] = matching(connection, tables.EVENTS, fields, _REPEATED, keys)
    written = counting.decide(placed, earlier)
    entries = counting.logged(placed, written)
    _insert(connection, entries, begin)
    return Commit(written, versions, model, catalog), len(entries)


def _insert(connection: sqlite3.Connection, entries: Sequence[counting.Placed], begin: int) -> None:
    """Insert entries into the log, numbered from `begin`, and add them to the counts."""
    for codec, rows in counting.rows_of(entries, begin).items():
        try:
            connection.executemany(_inserting(codec.table, codec.columns), rows)
        except sqlite3.IntegrityError as problem:
            if codec is counting.EVENT:
                raise  # no duplicate gets here: the file is damaged
            raise StoreError(f"a ranking id already exists ({problem})") from problem
    epoch = counting.latest_epoch(entries)
    before: list[Any] = []
    if epoch:
        items = list(counting.named_places(entries))
        before = matching(connection, tables.EVIDENCE, COUNTS, _PLACED, items)
    counts, existing = counting.counted(entries, epoch, before)
    if counts:
        connection.executemany(_inserting(tables.EVIDENCE, COUNTS, existing), counts)
    firsts = counting.first_shown(entries)
    if firsts:
        connection.executemany(_SHOWN, firsts)
