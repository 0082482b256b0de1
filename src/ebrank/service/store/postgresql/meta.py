"""Settings that belong to the data, sums of minutes, and the time of the latest write, by SQL."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ebrank.service.store.postgresql.database import Connections
from ebrank.service.store.records import Minute
from ebrank.service.store.rows import added

if TYPE_CHECKING:
    import asyncpg

_SET = (
    "INSERT INTO meta SELECT * FROM unnest($1::bytea[], $2::bytea[]) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_SETTLE = (
    "INSERT INTO meta SELECT * FROM unnest($1::bytea[], $2::bytea[]) ON CONFLICT (key) DO NOTHING"
)
# In order: two servers that add to the same minutes must not wait for each other.
_ADD = (
    "INSERT INTO minutes AS m SELECT * FROM unnest($1::float8[], $2::bytea[], $3::float8[]) "
    "AS g (start, name, value) ORDER BY start, name "
    "ON CONFLICT (start, name) DO UPDATE SET value = m.value + excluded.value"
)


_HELD = "SELECT value FROM meta WHERE key = $1 FOR UPDATE"


class PostgresMeta:
    """See `StoredMeta` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        async with self._database.reader() as connection:
            value = await connection.fetchval("SELECT value FROM meta WHERE key = $1", key.encode())
        return None if value is None else value.decode()

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        async with self._database.reader() as connection:
            rows = await connection.fetch("SELECT key, value FROM meta ORDER BY key")
        return {key.decode(): value.decode() for key, value in rows}

    async def set(self, values: Mapping[str, str], minutes: Sequence[Minute] = ()) -> None:
        """Keep settings, and add the sums of some minutes to those kept, in one transaction."""
        async with self._database.writer() as connection, connection.transaction():
            await _add_minutes(connection, minutes)
            await set_meta(connection, values)

    async def add(
        self, key: str, numbers: Mapping[str, int], minutes: Sequence[Minute] = ()
    ) -> dict[str, int]:
        """Add to the numbers that a setting holds, as JSON, and return the new ones."""
        async with self._database.writer() as connection, connection.transaction():
            # Others that add to it wait here, even if there is nothing yet.
            await connection.execute(_SETTLE, [key.encode()], [b"{}"])
            held = await connection.fetchval(_HELD, key.encode())
            sums = added(held.decode(), numbers)
            await _add_minutes(connection, minutes)
            await set_meta(connection, {key: json.dumps(sums)})
        return sums

    async def settle(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep the settings that are not set yet; return the current value of each."""
        keys, given = settings_as_arrays(values)
        async with self._database.writer() as connection, connection.transaction():
            await connection.execute(_SETTLE, keys, given)
            rows = await connection.fetch("SELECT key, value FROM meta WHERE key = ANY ($1)", keys)
        return {key.decode(): value.decode() for key, value in rows}

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums of the minutes since a time, added up over spans of some seconds."""
        sql = (
            "SELECT floor(start / $2) * $2 AS span, name, sum(value) FROM minutes "
            "WHERE start >= $1 GROUP BY span, name ORDER BY span, name"
        )
        async with self._database.reader() as connection:
            return _grouped(await connection.fetch(sql, since, width))

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        sql = "SELECT start, name, value FROM minutes WHERE start >= $1 ORDER BY start, name"
        async with self._database.reader() as connection:
            return _grouped(await connection.fetch(sql, since))


def _grouped(rows: Iterable[Sequence[Any]]) -> list[Minute]:
    return [
        Minute(start, {name.decode(): value for _, name, value in group})
        for start, group in itertools.groupby(rows, key=lambda row: float(row[0]))
    ]


async def _add_minutes(connection: asyncpg.Connection, minutes: Sequence[Minute]) -> None:
    """Add the sums of some minutes, within a transaction."""
    sums = [
        (one.start, name.encode(), value) for one in minutes for name, value in one.values.items()
    ]
    if sums:
        await connection.execute(_ADD, *map(list, zip(*sums, strict=True)))


async def set_meta(connection: asyncpg.Connection, values: Mapping[str, str]) -> None:
    """Keep settings, within a transaction."""
    if values:
        await connection.execute(_SET, *settings_as_arrays(values))


def settings_as_arrays(values: Mapping[str, str]) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of settings, in order, and their values."""
    pairs = sorted((key.encode(), value.encode()) for key, value in values.items())
    return [key for key, _ in pairs], [value for _, value in pairs]


async def touch(connection: asyncpg.Connection, time: float) -> None:
    """Remember a time that neither the log nor a query holds."""
    await connection.execute("UPDATE state SET last_time = greatest(last_time, $1)", time)


async def next_version(connection: asyncpg.Connection) -> int:
    """Return the version of the catalog that a write makes; other such writes wait for it."""
    return 1 + int(await connection.fetchval("SELECT catalog FROM state FOR UPDATE"))
