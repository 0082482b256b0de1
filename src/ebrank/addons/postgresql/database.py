"""A PostgreSQL database: where it is, its connections, who uses which when, and how writes last.

One connection writes, for one caller at a time: the server's memory follows the order of its own
writes. It does not wait for the disk (`synchronous_commit = off`); `flush` does, once for all
waiting requests. Some others read. A server keeps at most `READERS` + 2 open.

A database that crashes loses writes that were not flushed, and every connection. So each time the
writing connection is opened again, an *incarnation* begins: what was read before may be wrong.

A statement that was given up, because it took too long or its caller was cancelled, is cancelled,
but if the database does not respond it may happen all the same. Its connection is closed: a later
statement must not become part of its transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from datetime import datetime
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from ebrank.addons.postgresql.schema import POSTGRESQL
from ebrank.service.store.driver import Mode, StoreError
from ebrank.service.store.urls import without_password

SCHEMA = "ebrank"
"""Where the tables are unless the URL says otherwise."""
READERS = 4
CONNECT_SECONDS, COMMAND_SECONDS, CANCEL_SECONDS = 10.0, 60.0, 1.0
MOST_SECONDS = 3600.0
"""How long a statement of a migration, or one that searches all tables, may take."""
MOST_SKEW_SECONDS = 60.0
"""How far the clocks of a server and the database may be apart."""

# Plans are made once, and must still fit when the tables have grown: never scan a whole table.
_PLANS = "SET jit = off; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off"
# A machine that is gone is noticed within seconds: then another server is elected for its jobs.
_WRITER = f"""{_PLANS}; SET synchronous_commit = off; SET tcp_keepalives_idle = 3;
    SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2"""
# Whatever the database's own setting is: `local` and the levels of replicas wait for the disk too.
_LASTING = """SELECT set_config('synchronous_commit', 'on', true)
    WHERE current_setting('synchronous_commit') = 'off'"""
# A commit, which is on disk when it returns. The database has one WAL, which it writes in order: so
# all commits before this one are on disk too, those of other connections included.
_FLUSH = f"{_LASTING}; SELECT pg_logical_emit_message(true, 'ebrank', '')"


class Address:
    """Where a store is.

    >>> place = Address("postgresql://ann:secret@db.example/shop?schema=ranking&sslmode=require")
    >>> place.schema, place.name
    ('ranking', 'postgresql://ann@db.example/shop?schema=ranking')
    >>> place.dsn
    'postgresql://ann:secret@db.example/shop?sslmode=require'

    Attributes:
        url: the whole address.
        dsn: the part for the driver.
        schema: where the tables are.
        name: for messages, without the password.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.url = url
        self.schema = options.pop("schema", SCHEMA)
        self.dsn = urlunsplit(parts._replace(query=urlencode(options, safe="/")))
        self.name = without_password(urlunsplit(parts._replace(query=f"schema={self.schema}")))

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of the driver and the database into errors that name both and the remedy."""
        try:
            yield
        except asyncpg.PostgresError as problem:
            raise StoreError(f"{self.name}: {_in_words(problem)}") from problem
        except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as problem:
            cause = str(problem) or type(problem).__name__
            raise StoreError(
                f"{self.name}: cannot be reached ({cause}). Is the database up, and the address "
                "right?"
            ) from problem
        except UnicodeEncodeError as problem:
            raise StoreError(f"{self.name}: a name is not valid Unicode text.") from problem

    async def connected(self, settings: str = "") -> asyncpg.Connection:
        """Return a connection whose tables are those of the schema."""
        connection = await asyncpg.connect(
            self.dsn, timeout=CONNECT_SECONDS, command_timeout=COMMAND_SECONDS
        )
        with _ended_on_failure(connection):
            await connection.execute(f"SET search_path = {quoted(self.schema)}; {settings}")
        return connection


def one_moment(connection: asyncpg.Connection) -> asyncpg.transaction.Transaction:
    """Return a transaction that sees one moment, and only reads."""
    return connection.transaction(isolation="repeatable_read", readonly=True)


@contextmanager
def _ended_on_failure(connection: asyncpg.Connection) -> Iterator[None]:
    """Close a connection at once if it cannot be set up."""
    try:
        yield
    except BaseException:
        connection.terminate()
        raise


@asynccontextmanager
async def _ended_if_unsure(connection: asyncpg.Connection) -> AsyncIterator[None]:
    """Close a connection if one of its statements was abandoned: it may still be running.

    The connection does not know either, before the database responds: `is_in_transaction` is false
    while a `BEGIN` is on its way.
    """
    try:
        yield
    except (asyncio.CancelledError, TimeoutError):
        with suppress(Exception):
            await connection.close(timeout=CANCEL_SECONDS)  # which cancels the statement first
        raise


def _in_words(problem: asyncpg.PostgresError) -> str:
    if isinstance(problem, asyncpg.InvalidAuthorizationSpecificationError):
        return f"{problem}. Give the user and password in the URL, or as PGUSER and PGPASSWORD."
    if isinstance(problem, asyncpg.InvalidCatalogNameError):
        return f"{problem}. Create it, or name another one in the URL."
    if isinstance(problem, asyncpg.InsufficientPrivilegeError):
        return f"{problem}. See docs/scale.md for what the user must be allowed to do."
    if isinstance(problem, asyncpg.ReadOnlySQLTransactionError):
        return f"{problem}. Name the primary server of the database, not a copy."
    return f"{problem} ({type(problem).__name__})."


class Session:
    """One connection in one transaction: to see one moment, or to write all or nothing.

    To browse, every use of it is a separate transaction.
    """

    def __init__(self, address: Address, connection: asyncpg.Connection, mode: Mode) -> None:
        self.address = address
        self.incarnation = 0
        self._connection = connection
        self._whole: asyncpg.transaction.Transaction | None = None
        self._mode = mode
        self._writes = mode == "new"
        self._turn = asyncio.Lock()
        self._closed = False

    @classmethod
    async def open(cls, address: Address, mode: Mode) -> Session:
        """Begin: a store to read must exist, a new one must not."""
        with address.explained():
            settings = _PLANS if mode == "new" else ""
            session = cls(address, await address.connected(settings), mode)
            with _ended_on_failure(session._connection):
                await session._begin()
        return session

    async def _begin(self) -> None:
        connection, address = self._connection, self.address
        if self._mode != "browse":
            self._whole = (
                one_moment(connection) if self._mode == "read" else connection.transaction()
            )
            await self._whole.start()
        there = await _store_exists(connection, address)
        if there and self._writes:
            raise StoreError(f"{address.name}: there is a store already. Name another schema.")
        if not (there or self._writes):
            raise StoreError(f"{address.name}: there is no store. Name one that was served.")
        if self._writes:
            await _make_tables(connection, address)

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[asyncpg.Connection]:
        """Lend the connection; a failure leaves it as it was."""
        raw = self._connection
        with self.address.explained():
            part = one_moment(raw) if self._mode == "browse" else raw.transaction()
            async with self._turn, _ended_if_unsure(raw), part:
                yield raw

    def writer(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        """Lend the connection, unless it was opened to be read."""
        if not self._writes:
            raise StoreError(f"{self.address.name}: opened to be read, not to be written")
        return self.reader()

    async def flush(self) -> None:
        """Do nothing: everything is on disk when it is closed."""

    async def close(self, *, discard: bool = False) -> None:
        """Commit or roll back; closing twice is harmless."""
        lost = self._connection.is_closed()
        if self._closed or (lost and (discard or not self._writes)):
            return
        self._closed = True
        with self.address.explained():
            async with _ended_if_unsure(self._connection):
                if not discard and self._whole is not None:
                    await self._connection.execute(_LASTING)
                    await self._whole.commit()
                await self._connection.close()


class Pool:
    """The connections of a server."""

    def __init__(self, address: Address, writer: asyncpg.Connection, started: datetime) -> None:
        self.address = address
        self.incarnation = 0
        self._writer = writer
        self._started = started  # when the server began that the writer is connected to
        self._turn = asyncio.Lock()
        self._flusher: asyncpg.Connection | None = None
        self._flushing = asyncio.Lock()
        self._idle: list[asyncpg.Connection] = []
        self._readers = asyncio.Semaphore(READERS)
        self._closed = False

    @classmethod
    async def open(cls, address: Address) -> Pool:
        """Connect, and make the tables if there are none."""
        with address.explained():
            writer, started = await _connected(address, _WRITER)
            with _ended_on_failure(writer):
                await _made(writer, address)
                await _check_clock(writer, address)
            return cls(address, writer, started)

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[asyncpg.Connection]:
        """Lend one of a few connections."""
        with self.address.explained():
            async with self._readers:
                self._check_open()
                while self._idle and self._idle[-1].is_closed():
                    self._idle.pop()
                lent = self._idle.pop() if self._idle else await self.address.connected(_PLANS)
                try:
                    async with _ended_if_unsure(lent):
                        yield lent
                finally:
                    if self._closed or lent.is_closed() or lent.is_in_transaction():
                        lent.terminate()
                    else:
                        self._idle.append(lent)

    @asynccontextmanager
    async def writer(self) -> AsyncIterator[asyncpg.Connection]:
        """Lend the connection that writes, opened again if it was lost."""
        with self.address.explained():
            async with self._turn:
                self._check_open()
                if self._writer.is_closed():
                    self._writer, self._started = await _connected(self.address, _WRITER)
                    self.incarnation += 1
                async with _ended_if_unsure(self._writer):
                    yield self._writer

    async def flush(self) -> None:
        """Return when all earlier writes are on disk."""
        with self.address.explained():
            async with self._flushing:
                self._check_open()
                incarnation = self.incarnation
                if self._flusher is None or self._flusher.is_closed():
                    self._flusher, started = await _connected(self.address)
                    # A lost machine does not say so: another one may have replaced it.
                    if started != self._started:
                        self._writer.terminate()
                async with _ended_if_unsure(self._flusher):
                    await self._flusher.execute(_FLUSH)
        if self._writer.is_closed() or self.incarnation != incarnation:
            raise StoreError(
                f"{self.address.name}: the connection was lost before all was on disk. Send the "
                "request again."
            )

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.address.name}: the store is closed")

    async def close(self, *, discard: bool = False) -> None:
        """Flush and release all connections; closing twice is harmless."""
        if self._closed:
            return
        try:
            if not self._writer.is_closed():
                await self.flush()
        finally:
            async with self._turn:
                self._closed = True
            with self.address.explained():
                for connection in (self._writer, self._flusher, *self._idle):
                    if connection is not None and not connection.is_closed():
                        connection.terminate() if discard else await connection.close()
            self._idle = []


async def _made(connection: asyncpg.Connection, address: Address) -> None:
    """Make a store in a schema, unless there is one."""
    if await _store_exists(connection, address):
        return
    # Not within the transaction: one that waits does not see what was made meanwhile.
    await connection.execute("SELECT pg_advisory_lock(hashtext($1))", address.schema)
    try:
        async with connection.transaction():
            if not await _store_exists(connection, address):
                await _make_tables(connection, address)
    finally:
        await connection.execute("SELECT pg_advisory_unlock(hashtext($1))", address.schema)


async def _connected(address: Address, settings: str = "") -> tuple[asyncpg.Connection, datetime]:
    """Return a connection, and when the server started that it leads to."""
    connection = await address.connected(settings)
    with _ended_on_failure(connection):
        return connection, await connection.fetchval("SELECT pg_postmaster_start_time()")


async def _check_clock(connection: asyncpg.Connection, address: Address) -> None:
    """Raise if the clock is far from the database's: times in the log come from all servers."""
    theirs = float(await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())"))
    apart = time.time() - theirs
    if abs(apart) > MOST_SKEW_SECONDS:
        raise StoreError(
            f"{address.name}: this machine's clock is {abs(apart):.0f} seconds "
            f"{'ahead of' if apart > 0 else 'behind'} the database's. Set both right (NTP)."
        )


# --- the tables ----------------------------------------------------------------------------------


async def _version(connection: asyncpg.Connection, address: Address) -> int | None:
    """Return the version of a store, None if there is none."""
    table = f"{quoted(address.schema)}.state"
    if await connection.fetchval("SELECT to_regclass($1)", table) is None:
        return None
    return int(await connection.fetchval("SELECT schema_version FROM state"))


async def _store_exists(connection: asyncpg.Connection, address: Address) -> bool:
    """Return whether there is a store; if there is, it is one of this version.

    Raises:
        StoreError: if it belongs to another version of ebrank.
    """
    version = await _version(connection, address)
    if version is not None:
        POSTGRESQL.check(version, address.name)
    return version is not None


async def _make_tables(connection: asyncpg.Connection, address: Address) -> None:
    """Make the tables, within a transaction."""
    encoding = await connection.fetchval("SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{address.name}: its texts are {encoding}. Name a database in UTF8.")
    name = quoted(address.schema)
    if await connection.fetchval("SELECT to_regnamespace($1)::oid", name) is None:
        await connection.execute(f"CREATE SCHEMA {name}")
    for statement in POSTGRESQL.made:
        await connection.execute(statement)


async def migrate(connection: asyncpg.Connection, address: Address) -> int:
    """Bring a store up to this version; return the version that it had.

    Raises:
        StoreError: if there is none, or it is newer, or there is no way.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", address.schema)
        version = await _version(connection, address)
        if version is None:
            raise StoreError(f"{address.name}: there is no store. Run `ebrank store init`.")
        for statement in POSTGRESQL.steps(version, address.name):
            await connection.execute(statement, timeout=MOST_SECONDS)
        await _store_exists(connection, address)
    return version


def quoted(name: str) -> str:
    """Return an identifier as SQL.

    >>> quoted("my store")
    '"my store"'
    """
    return '"' + name.replace('"', '""') + '"'
