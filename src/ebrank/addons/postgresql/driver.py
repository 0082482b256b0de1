"""The PostgreSQL driver: reads a query in one statement, writes the log in one or two.

A write to the log is one statement; if there are events, another looks for earlier ones first. If
another server writes to a query in between, nothing is written, and the same two run again once a
transaction has locked the queries; so they do if counts fade.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import msgspec

from ebrank.addons.postgresql import database as connections
from ebrank.addons.postgresql.database import MOST_SECONDS, Pool, Session
from ebrank.addons.postgresql.schema import POSTGRESQL, TYPES
from ebrank.service.store import counting, tables
from ebrank.service.store.base import Store
from ebrank.service.store.counting import Codec, Placed
from ebrank.service.store.driver import (
    LATELY_SECONDS,
    WRITES_LOST,
    Connection,
    Mode,
    Progress,
    Remembered,
    StoreError,
    UnknownQuery,
)
from ebrank.service.store.records import (
    LIFE,
    Announced,
    Commit,
    Fault,
    News,
    Operation,
    StoreSize,
    Written,
)
from ebrank.service.store.tables import COUNTS, Existing, Names, Row, StoreTable, prefixed

T = TypeVar("T")

ORDINALS = 2**20
"""How many entries one write may hold: an entry's number is that of its write times this, and its
place there."""
TURNS = 16
"""How many recent writes to a query the store can repeat to a server that missed them."""
MOST_COUNTED = 10_000
"""Entries of a kind that are counted: to count more takes too long."""

# If there are more, as the database last estimated them; it has not yet if they are new.
_ENTRIES = """SELECT sum(CASE WHEN counted < $1 THEN counted ELSE greatest(counted, reltuples) END)
    FROM (SELECT 'rankings'::regclass, count(*) FROM (SELECT FROM rankings LIMIT $1) AS few
        UNION ALL SELECT 'events'::regclass, count(*) FROM (SELECT FROM events LIMIT $1) AS few
    ) AS kinds (kind, counted) JOIN pg_class ON oid = kind"""
_ELECT = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
_ANNOUNCE = """INSERT INTO servers VALUES ($1, clock_timestamp(), $2)
    ON CONFLICT (name) DO UPDATE SET seen = excluded.seen, about = excluded.about"""
_LEAVE = "DELETE FROM servers WHERE name = $1 AND $2::text IS NULL"
_SILENT = "extract(epoch FROM clock_timestamp() - seen)::float8"
_FORGET = f"DELETE FROM servers WHERE {_SILENT} > $1"
_SERVERS = (
    f'SELECT name, {_SILENT}, about FROM servers WHERE {_SILENT} <= $1 ORDER BY name COLLATE "C"'
)
_TABLES = """SELECT quote_ident(relname), pg_has_role(relowner, 'USAGE') FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'"""
_LOCK = "SELECT 1 FROM queries WHERE {} = ANY ($1) ORDER BY number FOR UPDATE"

_ARRAYS = """SELECT q.version, i.*, f.*, e.* FROM queries AS q
    CROSS JOIN LATERAL (SELECT array_agg(id ORDER BY place), array_agg(entered ORDER BY place),
        array_agg(active ORDER BY place), array_agg(first_shown ORDER BY place)
        FROM items WHERE query = q.number) AS i
    CROSS JOIN LATERAL (SELECT array_agg(numbers ORDER BY place)
        FROM features WHERE query = q.number) AS f
    CROSS JOIN LATERAL (SELECT array_agg(place), array_agg(outcome), array_agg(slot),
        array_agg(count), array_agg(epoch) FROM evidence WHERE query = q.number) AS e
    WHERE q.name = ?1"""


@cache
def _numbered(sql: str) -> str:
    """Return a statement with parameters as PostgreSQL writes them."""
    return re.sub(r"\?(\d+)", r"$\1", sql)


@cache
def _unnested(table: StoreTable, columns: Names, name: str, first: int = 1) -> str:
    """Return arrays, one for each of some columns, as a table in SQL."""
    kinds = {column.name: TYPES[column.kind].split()[0] for column in table.columns}
    arrays = ", ".join(f"${at}::{kinds[name]}[]" for at, name in enumerate(columns, start=first))
    names = ", ".join(f'"{column}"' for column in columns)
    return f"unnest({arrays}) AS {name} ({names})"


def _columns(rows: Iterable[Row], width: int) -> list[list[Any]]:
    """Return rows as arrays, one for each column."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


class PostgresConnection:
    """A connection; see `Connection`."""

    def __init__(self, raw: asyncpg.Connection, timeout: float | None = None) -> None:
        self._raw = raw
        self._timeout = timeout

    async def fetch(self, sql: str, *given: object) -> list[Row]:
        """Return the rows of a statement."""
        rows: list[Row] = await self._raw.fetch(_numbered(sql), *given, timeout=self._timeout)
        return rows

    async def execute(self, sql: str, *given: object) -> int:
        """Run a statement, and return how many rows it changed."""
        status = await self._raw.execute(_numbered(sql), *given, timeout=self._timeout)
        return int(status.rpartition(" ")[2])

    async def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement with the values of each row."""
        await self._raw.executemany(_numbered(sql), rows)

    async def insert(
        self, table: StoreTable, rows: Sequence[Row], existing: Existing = "refuse"
    ) -> None:
        """Insert rows."""
        if rows:
            columns = _columns(rows, len(table.names))
            await self._raw.execute(_inserting(table, existing), *columns)

    async def matching(
        self, table: StoreTable, columns: Names, keys: Names, rows: Iterable[Row]
    ) -> list[Row]:
        """Return columns of the rows that have these keys."""
        arrays = _columns(rows, len(keys))
        matched: list[Row] = []
        if arrays[0]:
            matched = await self._raw.fetch(_matching(table, columns, keys), *arrays)
        return matched

    async def lock(self, queries: Iterable[int], *, wait: bool = True) -> bool:
        """Lock the rows of queries, in one order: two transactions never wait for each other."""
        numbers = list(queries)
        sql = _LOCK.format("number") + ("" if wait else " SKIP LOCKED")
        return len(await self._raw.fetch(sql, numbers)) == len(numbers)


@cache
def _inserting(table: StoreTable, existing: Existing) -> str:
    source = f"SELECT * FROM {_unnested(table, table.names, 'g')}"
    return table.inserted(source, existing=existing)


@cache
def _matching(table: StoreTable, columns: Names, keys: Names) -> str:
    equal = " AND ".join(f"t.{key} = w.{key}" for key in keys)
    source = f"{_unnested(table, keys, 'w')} JOIN {table.name} AS t ON {equal}"
    return f"SELECT {prefixed('t', columns)} FROM {source}"


class PostgresDriver:
    """A schema of a database, which many servers share; see `Driver` for its methods."""

    about = "PostgreSQL"
    touched: float | None = None
    shared = True
    portion = 2**62  # of the log, in one transaction: others can write meanwhile
    texts: Mapping[str, str] = {
        "floor": "floor({})",
        "arrays": _ARRAYS,
        "length": "SELECT (SELECT count(*) FROM rankings) + (SELECT count(*) FROM events)",
    }

    def __init__(self, database: Pool | Session) -> None:
        self.database = database
        self.url: str | None = database.address.url
        self.flush = database.flush
        self.close = database.close

    @property
    def incarnation(self) -> int:
        """How often the connection that writes was lost."""
        return self.database.incarnation

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Connection]:
        """Lend one of a few connections."""
        async with self.database.reader() as raw:
            yield PostgresConnection(raw)

    async def read_long(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Return what work reads."""
        async with self.database.reader() as raw:
            return await work(PostgresConnection(raw))

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Connection]:
        """Lend the connection that writes, in a transaction."""
        async with self.database.writer() as raw, raw.transaction():
            yield PostgresConnection(raw)

    @asynccontextmanager
    async def chore(self, *, erases: bool = False) -> AsyncIterator[Connection]:
        """Lend another connection than the one that writes, in a transaction."""
        async with self.database.reader() as raw, raw.transaction():
            if erases:
                await raw.execute("SET LOCAL enable_seqscan = on")
            yield PostgresConnection(raw, MOST_SECONDS if erases else None)

    async def log(
        self,
        operations: Sequence[Operation],
        *,
        incarnation: int | None = None,
        remembered: Remembered | None = None,
    ) -> Commit:
        """Log operations in one transaction."""
        if len(operations) > ORDINALS:
            raise StoreError(f"{len(operations)} entries at once; {ORDINALS} are the most")
        async with self.database.writer() as raw:
            if incarnation not in (None, self.database.incarnation):
                raise StoreError(WRITES_LOST)
            try:
                return await _Write(raw, operations, remembered).commit()
            except asyncpg.UniqueViolationError as problem:
                raise StoreError(f"a ranking id already exists ({problem.detail})") from problem

    async def size(self) -> StoreSize:
        """Return the bytes of the database; its server's disk is not visible from here."""
        async with self.database.reader() as raw:
            used = await raw.fetchval("SELECT pg_database_size(current_database())")
            entries = await raw.fetchval(_ENTRIES, MOST_COUNTED)
        return StoreSize(int(used), None, int(entries))

    async def elected(self, job: str) -> bool:
        """Return whether this server holds the lock of a job, which a lost connection releases."""
        async with self.database.writer() as raw:
            return bool(await raw.fetchval(_ELECT, f"{self.database.address.schema} {job}"))

    async def announce(self, server: str, about: str | None) -> None:
        """Record that a server is running, and what it reports; None when it leaves."""
        async with self.database.reader() as raw:
            await raw.execute(_LEAVE if about is None else _ANNOUNCE, server, about)
            await raw.execute(_FORGET, LATELY_SECONDS)

    async def servers(self) -> list[Announced]:
        """Return the servers that have announced themselves recently."""
        async with self.database.reader() as raw:
            return [Announced(*row) for row in await raw.fetch(_SERVERS, LATELY_SECONDS)]

    async def faults(self) -> list[Fault]:
        """Return nothing: PostgreSQL looks after its files."""
        return []

    async def backup(self, target: Path, progress: Progress | None = None) -> Path:
        """Refuse: PostgreSQL has its own tools."""
        raise StoreError(
            f"{self.database.address.name}: has no files to copy. Use pg_dump, or what backs up "
            "the database, or `ebrank store copy`."
        )

    async def purge(self) -> None:
        """Rewrite all tables; the write-ahead log and backups are the database's own."""
        name = self.database.address.name
        async with self.database.reader() as raw:
            if raw.is_in_transaction():
                raise StoreError(f"{name}: purged only where it is served, not read or copied")
            tables = await raw.fetch(_TABLES)
            if not all(ours for _, ours in tables):
                raise StoreError(
                    f"{name}: only the owner of the tables can rewrite them. Give the URL of that "
                    "user."
                )
            for table, _ in tables:
                await raw.execute(f"VACUUM (FULL) {table}", timeout=MOST_SECONDS)


# --- writing to the log --------------------------------------------------------------------------

_PLACES = """SELECT q.name, i.id, i.place FROM unnest($1::text[], $2::text[]) AS g (query, id)
    JOIN queries AS q ON q.name = g.query JOIN items AS i ON i.query = q.number AND i.id = g.id"""
_COUNTS_OF = """SELECT g.at, e.place, e.outcome, e.slot, e.count, e.epoch
    FROM unnest($1::bigint[], $2::text[], $3::integer[]) AS g (at, name, place)
    JOIN queries AS q USING (name) JOIN evidence AS e ON e.query = q.number AND e.place = g.place"""
_CHANGES = """SELECT query, news FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
    AS g (number, since, until) JOIN changes ON query = number AND version > since
    AND version < until ORDER BY query, version"""

# The queries that are named, by their places in the batch, with their versions; and the events that
# have the id, or are about the impression, of one of those given. A query without any has one row.
_LOOK = f"""WITH named AS MATERIALIZED (SELECT g.at, q.number, q.version
        FROM unnest($1::text[]) WITH ORDINALITY AS g (name, at) JOIN queries AS q USING (name)),
    wanted AS MATERIALIZED (SELECT n.number, g.* FROM
        unnest($2::bigint[], $3::text[], $4::text[], $5::integer[])
        AS g (at, event_id, ranking_id, place) JOIN named AS n USING (at)),
    earlier AS (SELECT e.* FROM wanted AS w JOIN events AS e
            ON e.query = w.number AND e.event_id = w.event_id
        UNION SELECT e.* FROM wanted AS w JOIN events AS e
            ON e.query = w.number AND e.ranking_id = w.ranking_id AND e.place = w.place)
    SELECT n.at, n.version, {prefixed("e", counting.Earlier._fields[1:])}
    FROM named AS n LEFT JOIN earlier AS e ON e.query = n.number"""

_COUNTS_AT = 7
_SHOWN = ("query", "place", "first_shown")


@cache
def _write(codecs: tuple[Codec, ...]) -> str:
    """Return the statement that advances queries, and logs and counts entries of some kinds.

    Rows give the places of their queries in the batch. If a query is not there, has another version
    than expected, or another life, nothing is written, and no query is returned.

    Queries are locked in one order: two transactions never wait for each other. A row for which it
    had to wait is checked again, unlike everything that is only read. Numbers are drawn once
    queries are locked: their entries are in the order in which they are counted.
    """
    at = _COUNTS_AT + len(COUNTS) + len(_SHOWN)
    parts = ""
    for codec in codecs:
        rows = f"""SELECT b.seq + g.seq, a.number, {prefixed("g", codec.columns[2:])}
            FROM begun AS b, {_unnested(codec.table, codec.columns, "g", at)}
            JOIN advanced AS a ON a.at = g.query"""
        parts += f"logged_{codec.table.name} AS ({codec.table.inserted(rows, codec.columns)}), "
        at += len(codec.columns)
    return f"""WITH locked AS MATERIALIZED (SELECT g.at, g.used, g.news, q.number
            FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::float8[], $5::text[])
                WITH ORDINALITY AS g (name, version, life, used, news, at)
            JOIN queries AS q USING (name) WHERE coalesce(q.version = g.version, true)
                AND coalesce(q.version / {LIFE} = g.life, true)
            ORDER BY q.number FOR UPDATE OF q),
        advanced AS (UPDATE queries AS q SET version = q.version + 1,
            used = greatest(q.used, g.used) FROM locked AS g WHERE q.number = g.number
            AND (SELECT count(*) FROM locked) = cardinality($1)
            RETURNING g.at, g.news, q.number, q.version),
        begun AS MATERIALIZED (
            SELECT nextval('writes') * {ORDINALS} AS seq FROM advanced LIMIT 1),
        noted AS (INSERT INTO changes
            SELECT number, version % {TURNS}, version, news FROM advanced WHERE news IS NOT NULL
            ON CONFLICT (query, turn) DO UPDATE SET version = excluded.version,
            news = excluded.news),
        {parts}
        counted AS (INSERT INTO evidence AS e ({", ".join(COUNTS)})
            SELECT a.number, {prefixed("g", COUNTS[1:])}
            FROM {_unnested(tables.EVIDENCE, COUNTS, "g", _COUNTS_AT)}
            JOIN advanced AS a ON a.at = g.query
            ON CONFLICT (query, place, outcome, slot) DO UPDATE SET epoch = excluded.epoch,
            count = excluded.count + CASE WHEN $6 THEN e.count ELSE 0 END),
        shown AS (UPDATE items AS i SET first_shown = g.first_shown
            FROM {_unnested(tables.ITEMS, _SHOWN, "g", _COUNTS_AT + len(COUNTS))}
            JOIN advanced AS a ON a.at = g.query
            WHERE i.query = a.number AND i.place = g.place AND i.first_shown IS NULL)
        SELECT a.number, a.version, s.active_model, s.catalog
        FROM advanced AS a CROSS JOIN state AS s ORDER BY a.at"""


class _Write:
    """A batch of operations on its way into the log."""

    def __init__(
        self, raw: asyncpg.Connection, operations: Sequence[Operation], versions: Remembered | None
    ) -> None:
        self._raw = raw
        self._batch = batch = counting.LogBatch(operations)
        self._times = batch.times
        self._at = {query: at for at, query in enumerate(batch.times, start=1)}
        self._remembered = [None if versions is None else versions(query) for query in batch.times]
        self._forgets = any(entry.epoch for entry in operations)

    async def commit(self) -> Commit:
        """Write, and return what was found and done."""
        if not self._batch.operations:
            sql = "SELECT active_model, catalog FROM state"
            return Commit([], {}, *await self._raw.fetchrow(sql))
        names = self._batch.names
        rows = await self._raw.fetch(_PLACES, *_columns(names, 2)) if names else []
        places = {(self._at[query], item): place for query, item, place in rows}
        placed = self._batch.placed(self._at, places)
        done = None if self._forgets else await self._written(placed)
        if done is None:
            async with self._raw.transaction():
                await self._raw.execute(_LOCK.format("name"), list(self._times))
                done = await self._written(placed)
                if done is None:
                    raise UnknownQuery("there is no such query; nothing was stored")
        return await self._with_news(*done)

    async def _written(self, placed: Sequence[Placed]) -> tuple[list[Written], list[Any]] | None:
        """Write, and return the queries; None if one is missing, or others write to it meanwhile.

        A caller that holds locks on the queries always succeeds, if they are there.
        """
        names, keys = list(self._times), counting.event_keys(placed)
        expected, earlier = dict[int, int](), list[counting.Earlier]()
        for row in await self._raw.fetch(_LOOK, names, *_columns(keys, 4)) if keys else ():
            expected[row["at"]] = row["version"]
            if row["event_id"] is not None:
                earlier.append(counting.Earlier(row["at"], *row[2:]))
        written = counting.decide(placed, earlier)
        entries = counting.logged(placed, written)
        rows, firsts = counting.rows_of(entries, 0), counting.first_shown(entries)
        epoch = counting.latest_epoch(entries)
        before = await self._counts(entries) if epoch else []
        counts, existing = counting.counted(entries, epoch, before)
        advanced = await self._raw.fetch(
            _write(tuple(rows)),
            names,
            [expected.get(at) for at in self._at.values()],
            [self._batch.lives.get(query) for query in names],
            list(self._times.values()),
            [None] * len(names) if self._forgets else self._news(counts, firsts),
            existing == "add",
            *_columns(counts, len(COUNTS)),
            *_columns(firsts, len(_SHOWN)),
            *chain.from_iterable(_columns(some, 0) for some in rows.values()),
        )
        return (written, advanced) if advanced else None

    async def _counts(self, entries: Sequence[Placed]) -> list[Any]:
        """Return the counts of the items that entries name; queries are locked."""
        names = list(self._times)
        keys = [(at, names[at - 1], place) for at, place in counting.named_places(entries)]
        counts: list[Any] = await self._raw.fetch(_COUNTS_OF, *_columns(keys, 3))
        return counts

    def _news(self, steps: Sequence[Row], firsts: Sequence[Row]) -> list[str | None]:
        """Return the increments of each query as JSON, for servers that have it in memory."""
        news: list[tuple[list[Row], list[Row]]] = [([], []) for _ in self._times]
        for at, place, outcome, slot, amount, _ in steps:
            news[at - 1][0].append((place, outcome, slot, amount))
        for at, place, time in firsts:
            news[at - 1][1].append((place, time))
        return [msgspec.json.encode(added).decode() for added in news]

    async def _with_news(self, written: list[Written], advanced: Sequence[Any]) -> Commit:
        """Return the commit, with what others have written since the remembered versions."""
        # `changes` is a ring of TURNS writes per query; older ones are overwritten. If this write
        # is the next one after `since`, nothing was missed.
        behind = {
            row["number"]: (query, since, row["version"])
            for query, since, row in zip(self._times, self._remembered, advanced, strict=True)
            if since is not None and row["version"] - TURNS <= since < row["version"] - 1
        }
        news: dict[str, News] = {}
        if behind:
            keys = [(number, since, until) for number, (_, since, until) in behind.items()]
            rows = await self._raw.fetch(_CHANGES, *_columns(keys, 3))
            for number, missed in groupby(rows, key=itemgetter(0)):
                changes: list[Any] = [msgspec.json.decode(text) for _, text in missed]
                query, since, until = behind[number]
                # A write of items, or one in which counts fade, leaves a gap: no news then.
                if len(changes) == until - since - 1:
                    steps = [tuple(step) for added, _ in changes for step in added]
                    firsts = [tuple(first) for _, shown in changes for first in shown]
                    news[query] = News(since, steps, firsts)
        versions = [row["version"] for row in advanced]
        model, catalog = advanced[0]["active_model"], advanced[0]["catalog"]
        return Commit(written, dict(zip(self._times, versions, strict=True)), model, catalog, news)


# --- the store -----------------------------------------------------------------------------------


class PostgresStore(Store):
    """A schema of a database, which many servers share.

    A `new` store is written in one transaction, and does not exist before that ends.
    """

    @classmethod
    async def open(cls, rest: str, mode: Mode = "serve") -> PostgresStore:
        """Return the store at an address, given without its scheme.

        Raises:
            StoreError: if it cannot be reached, or it is not a store.
        """
        address = connections.Address(f"postgresql:{rest}")
        if mode == "salvage":
            raise StoreError(f"{address.name}: damaged. Restore a backup of the database.")
        if mode != "serve":
            return cls(PostgresDriver(await Session.open(address, mode)))
        database = await Pool.open(address)
        store = cls(PostgresDriver(database))
        try:
            await store.deletions.finish()
        except BaseException:
            await database.close(discard=True)
            raise
        return store

    @classmethod
    async def migrate(cls, rest: str) -> tuple[str, int, int]:
        """Bring a store to this version; return its name and the versions before and now."""
        address = connections.Address(f"postgresql:{rest}")
        with address.explained():
            connection = await address.connected()
            try:
                before = await connections.migrate(connection, address)
            finally:
                await connection.close()
        return address.name, before, POSTGRESQL.version
