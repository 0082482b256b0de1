"""Settings that belong to the data, sums of minutes, and the time of the latest write, by SQL."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from ebrank.service.store.records import Minute
from ebrank.service.store.rows import added
from ebrank.service.store.sqlite.database import Connections

_ADD = (
    "INSERT INTO minutes VALUES (?, ?, ?) "
    "ON CONFLICT (start, name) DO UPDATE SET value = value + excluded.value"
)


class SqliteMeta:
    """See `StoredMeta` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        with self._database.read() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        with self._database.read() as connection:
            return dict(connection.execute("SELECT key, value FROM meta ORDER BY key").fetchall())

    async def set(self, values: Mapping[str, str], minutes: Sequence[Minute] = ()) -> None:
        """Keep settings, and add the sums of some minutes to those kept, in one transaction."""
        rows = [(one.start, name, value) for one in minutes for name, value in one.values.items()]
        with self._database.write() as connection:
            connection.executemany(_ADD, rows)
            set_meta(connection, values)

    async def add(
        self, key: str, numbers: Mapping[str, int], minutes: Sequence[Minute] = ()
    ) -> dict[str, int]:
        """Add to the numbers that a setting holds, as JSON, and return the new ones."""
        sums = added(await self.get(key), numbers)  # nobody else writes meanwhile
        await self.set({key: json.dumps(sums)}, minutes)
        return sums

    async def settle(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep the settings that are not set yet; return the current value of each."""
        with self._database.write() as connection:
            connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", values.items())
            kept = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        return {key: kept[key] for key in values}

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums of the minutes since a time, added up over spans of some seconds."""
        return await self._database.read_long(lambda connection: _sums(connection, since, width))

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        return await self._database.read_long(lambda connection: _minutes(connection, since))


def set_meta(connection: sqlite3.Connection, values: Mapping[str, str]) -> None:
    """Keep settings, within a transaction."""
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(values.items()))


def touch(connection: sqlite3.Connection, time: float) -> None:
    """Remember a time that the log does not hold, or will not hold any more."""
    connection.execute("UPDATE state SET last_time = max(last_time, ?)", (time,))


def _minutes(connection: sqlite3.Connection, since: float) -> list[Minute]:
    sql = "SELECT start, name, value FROM minutes WHERE start >= ? ORDER BY start, name"
    return _grouped(connection.execute(sql, (since,)))


def _sums(connection: sqlite3.Connection, since: float, width: float) -> list[Minute]:
    sql = (
        "SELECT CAST(start / :width AS INTEGER) * :width AS span, name, sum(value) FROM minutes "
        "WHERE start >= :since GROUP BY span, name ORDER BY span, name"
    )
    return _grouped(connection.execute(sql, {"since": since, "width": width}))


def _grouped(rows: Iterable[tuple[float, str, float]]) -> list[Minute]:
    return [
        Minute(start, {name: value for _, name, value in group})
        for start, group in itertools.groupby(rows, key=lambda row: float(row[0]))
    ]
