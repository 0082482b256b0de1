"""Reading a store: what a server, a trainer, a replay and an export have in common.

>>> import tempfile
>>> from ebrank.service.store.sqlite.store import SqliteStore
>>> folder = tempfile.mkdtemp()
>>> server = SqliteStore(folder)
>>> with SqliteView(folder) as view:  # as from another process
...     server.set_meta("features", "2")
...     (view.meta("features"), server.meta("features"))
(None, '2')
>>> server.close()
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import Minute, ModelRecord, Operation, QueryState, RankingEntry
from ebrank.service.store.sqlite import books, candidates, journal, schema
from ebrank.service.store.sqlite.connection import connect, told

NAME = "log.db"


class Reader:
    """The methods of a store that change nothing, over one connection."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._reader = connection
        self._reading = threading.RLock()
        self._closed = False

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with told(self.path), self._reading:
            self._check_open()
            yield self._reader

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")

    def _fetch(self, sql: str, values: journal.Row) -> list[journal.Row]:
        with self._read() as connection:
            return connection.execute(sql, values).fetchall()

    def queries(self) -> list[str]:
        """Return the names of all queries, in the order in which they were first given."""
        with self._read() as connection:
            return candidates.queries(connection)

    def load(self, query: str) -> QueryState | None:
        """Return the state of a query, or None if it is unknown; the caller owns the arrays."""
        with self._read() as connection:
            return candidates.load(connection, query)

    def snapshot(self, query: str) -> QueryState | None:
        """Return a query's state as if only what was rolled up had happened."""
        with self._read() as connection:
            return candidates.load(connection, query, candidates.ROLLED_UP)

    def ranking(self, ranking_id: str) -> RankingEntry | None:
        """Return a list that is still in the log."""
        with self._read() as connection:
            return journal.ranking(connection, ranking_id)

    def log(self) -> Iterator[Operation]:
        """Yield the log in its order, up to what is its end now."""
        with self._read() as connection:
            end = journal.next_number(connection)
        return (entry for _, entry in journal.entries(self._fetch, end))

    def log_length(self) -> int:
        """Return about how many entries the log holds, without counting them."""
        with self._read() as connection:
            return journal.length(connection)

    def last_time(self) -> float:
        """Return the time of the latest entry, 0 if there is none: clocks may jump back."""
        with self._read() as connection:
            return books.last_time(connection)

    def minutes(self, since: float) -> list[Minute]:
        """Return what is known of the minutes since a time, in order."""
        with self._read() as connection:
            return books.minutes(connection, since)

    def models(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        with self._read() as connection:
            return books.models(connection)

    def model(self, version: int) -> bytes | None:
        """Return the file of a version."""
        with self._read() as connection:
            return books.model(connection, version)

    def active_model(self) -> int:
        """Return the active version, 0 before any training."""
        with self._read() as connection:
            return int(connection.execute("SELECT active_model FROM state").fetchone()[0])

    def meta(self, key: str) -> str | None:
        """Return a setting that belongs to the data, such as the feature schema."""
        return self.settings().get(key)

    def settings(self) -> dict[str, str]:
        """Return all such settings."""
        with self._read() as connection:
            return books.settings(connection)


class SqliteView(Reader):
    """A store as it was when it was opened, for another process than the one that serves.

    Args:
        path: the folder of a store, or a backup in one file.

    Raises:
        StoreError: if it is no store, or one that cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        database = database_of(Path(path))
        with told(database):
            connection = connect(database, read_only=True)
            try:
                connection.execute("BEGIN")
                version = schema.check(connection, database)
            except BaseException:
                connection.close()
                raise
        super().__init__(database, connection)
        if version < schema.VERSION:
            self.close()
            raise StoreError(
                f"{database}: a store of version {version}, older than {schema.VERSION}. "
                "Serve it once with this ebrank, which brings it up to date."
            )

    def close(self) -> None:
        """Let go of the store."""
        with self._reading:
            self._closed = True
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


def database_of(path: Path) -> Path:
    """Return the database of a store that must be there."""
    database = path / NAME if path.is_dir() else path
    if not database.is_file():
        raise StoreError(
            f"{path}: no store, for there is no {NAME}. Name the folder that was served."
        )
    return database
