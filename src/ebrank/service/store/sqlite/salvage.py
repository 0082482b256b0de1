"""What can be read of a damaged database, as a store that is sound.

Every table is read from its beginning and from its end, each up to what cannot be read, without its
indexes, which are made again. Counters are added up again from the snapshot and the log, if all of
these can be read; else they are taken as they are, and the log is left out. So are queries that are
not whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ebrank.service.store import counting
from ebrank.service.store.base import Store
from ebrank.service.store.driver import StoreError
from ebrank.service.store.sqlite.database import (
    SENSELESS,
    MemoryDatabase,
    connect,
    explained,
    is_empty,
)
from ebrank.service.store.sqlite.driver import SqliteDriver, ended
from ebrank.service.store.tables import (
    BEGIN,
    EVENTS,
    RANKINGS,
    SNAPSHOT,
    TABLES,
    Row,
    StoreColumn,
    StoreTable,
    prefixed,
)

_DEACTIVATE = """UPDATE state SET active_model = 0
    WHERE active_model NOT IN (SELECT version FROM models)"""


class SalvagedDatabase(MemoryDatabase):
    """A database on disk, which is gone when it is closed.

    Attributes:
        left_out: what could not be read, in words.
    """

    def __init__(self, source: Path) -> None:
        super().__init__("")
        self.path = source
        self.left_out: list[str] = []
        with explained(source), closing(connect(source, read_only=True)) as damaged:
            if is_empty(damaged, source):
                raise StoreError(f"{source}: an empty database. Name a store that was served.")
            with self.write() as connection:
                connection.execute("DELETE FROM state")
                whole = {table for table in TABLES if self._copied(damaged, connection, table)}
                connection.execute(BEGIN.replace("INSERT", "INSERT OR IGNORE"))
                if whole.issuperset((SNAPSHOT, RANKINGS, EVENTS)) and _is_readable(connection):
                    connection.execute("DELETE FROM evidence")
                else:
                    self._forget_log(connection)
                connection.execute("DELETE FROM models WHERE NOT json_valid(features)")
                connection.execute(_DEACTIVATE)
        self._sift()

    def _copied(
        self, damaged: sqlite3.Connection, connection: sqlite3.Connection, table: StoreTable
    ) -> bool:
        """Copy the rows of a table that can be read; return whether that is all."""
        values = ", ".join("?" * len(table.columns))
        insert = f"INSERT OR IGNORE INTO {table.name} VALUES ({values})"
        connection.executemany(insert, _readable(damaged, table))
        count = f"SELECT count(*) FROM {table.name}"
        [copied] = connection.execute(count).fetchone()
        try:
            [there] = damaged.execute(f"{count} NOT INDEXED").fetchone()
        except sqlite3.Error:
            there = "an unknown number of"
        if copied != there:
            self.left_out.append(f"{table.name}: {copied} of {there} rows could be read")
        return bool(copied == there)

    def _forget_log(self, connection: sqlite3.Connection) -> None:
        """Begin a new log: with a part of it, there would be clicks on what nobody saw."""
        for table in (SNAPSHOT, RANKINGS, EVENTS):
            connection.execute(f"DELETE FROM {table.name}")
        connection.execute("INSERT INTO snapshot SELECT * FROM evidence")
        self.left_out.append("the log: counters stay as they are, events on earlier lists are lost")

    def _sift(self) -> None:
        """Leave out queries that are not whole."""
        items, lost = Store(SqliteDriver(self)).items, list[str]()
        for query in ended(items.queries()):
            try:
                ended(items.snapshot(query))
            except StoreError:
                lost.append(query)
        self.left_out += (f"query {query!r}: put its items again" for query in lost)
        with self.write() as connection:
            gone = [(query,) for query in lost]
            connection.executemany("DELETE FROM queries WHERE name = ?", gone)


def _is_readable(connection: sqlite3.Connection) -> bool:
    """Return whether all entries of the log that belong to a query can be read."""
    for codec in counting.CODECS:
        columns, table = prefixed("t", codec.columns), codec.table.name
        sql = f"SELECT {columns}, size FROM {table} AS t JOIN queries ON number = t.query"
        for row in connection.execute(sql):
            try:
                codec.fields(row)
                if not all(0 <= place < row[-1] for place in counting.places_of(codec, row)):
                    return False
            except SENSELESS:
                return False
    return True


def _readable(damaged: sqlite3.Connection, table: StoreTable) -> Iterator[Row]:
    """Yield the rows of a table that can be read, some perhaps twice."""
    columns = prefixed(table.name, [column.name for column in table.columns])
    sql = f"SELECT {columns} FROM {table.name} NOT INDEXED ORDER BY 1"
    for order in ("ASC", "DESC"):
        try:
            for row in damaged.execute(f"{sql} {order}"):
                if all(map(StoreColumn.holds, table.columns, row)):
                    yield row
        except (sqlite3.Error, UnicodeDecodeError):
            continue
        return
