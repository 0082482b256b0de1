"""Settings that belong to the data, sums of minutes, and the versions of the prior."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from ebrank.service.store.driver import Connection, StoreError, StoreGroup
from ebrank.service.store.records import ArmSums, Minute, ModelRecord
from ebrank.service.store.tables import ARM_SUMS, META, MINUTES, MODELS

_RECORD = MODELS.names[: MODELS.names.index("document")]


class StoredMeta(StoreGroup):
    """Settings that belong to the data, such as the feature schema, and sums per minute."""

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        rows = await self._fetch("SELECT value FROM meta WHERE key = ?1", key)
        return str(rows[0][0]) if rows else None

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        return dict(await self._fetch("SELECT key, value FROM meta ORDER BY key"))

    async def set(
        self,
        values: Mapping[str, str],
        minutes: Sequence[Minute] = (),
        arms: Sequence[ArmSums] = (),
    ) -> None:
        """Keep settings, and add sums of minutes and arms to those kept, in one transaction."""
        async with self._driver.write() as connection:
            await _add_sums(connection, minutes, arms)
            await set_meta(connection, values)

    async def add(
        self,
        key: str,
        numbers: Mapping[str, int],
        minutes: Sequence[Minute] = (),
        arms: Sequence[ArmSums] = (),
    ) -> dict[str, int]:
        """Add to the numbers that a setting holds, as JSON, and return the new ones.

        Sums of minutes and of arms are added to those kept, in the same transaction.
        """
        async with self._driver.write() as connection:
            sums = Counter[str](json.loads(await _held(connection, key)))
            sums.update(numbers)
            await _add_sums(connection, minutes, arms)
            await set_meta(connection, {key: json.dumps(sums)})
        return sums

    async def change(self, key: str, changed: Callable[[str], str]) -> str:
        """Replace a setting, `{}` if there is none, by what a function makes of it; return that.

        Others that change it wait. If the function raises, nothing changes.
        """
        async with self._driver.write() as connection:
            value = changed(await _held(connection, key))
            await set_meta(connection, {key: value})
        return value

    async def arm_sums(self, experiment: str | None = None) -> list[ArmSums]:
        """Return the sums of an experiment, or of all, in order."""
        columns, keys = ", ".join(ArmSums._fields), ", ".join(ArmSums._fields[:4])
        where, given = ("", ()) if experiment is None else ("WHERE experiment = ?1 ", (experiment,))
        sql = f"SELECT {columns} FROM arm_sums {where}ORDER BY {keys}"
        return await self._decoded(lambda rows: [*map(ArmSums._make, rows)], sql, *given)

    async def settle(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep the settings that are not set yet; return the current value of each."""
        async with self._driver.write() as connection:
            await connection.insert(META, sorted(values.items()), "keep")
        kept = await self.all()
        return {key: kept[key] for key in values}

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums of the minutes since a time, added up over spans of some seconds.

        Spans begin at multiples of their width. Empty spans are left out.
        """
        span = self._driver.texts["floor"].format("start / ?2") + " * ?2"
        return await self._minutes(
            f"SELECT {span} AS span, name, sum(value) FROM minutes WHERE start >= ?1 "
            "GROUP BY span, name ORDER BY span, name",
            since,
            float(width),
        )

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        sql = "SELECT start, name, value FROM minutes WHERE start >= ?1 ORDER BY start, name"
        return await self._minutes(sql, since)

    async def _minutes(self, sql: str, *given: float) -> list[Minute]:
        rows = await self._fetch_long(sql, *given)
        return [
            Minute(start, {name: value for _, name, value in group})
            for start, group in itertools.groupby(rows, key=lambda row: float(row[0]))
        ]


async def _held(connection: Connection, key: str) -> str:
    """Return a setting, `{}` if there is none; others that want to change it wait."""
    await connection.insert(META, [(key, "{}")], "keep")
    sql = "UPDATE meta SET value = value WHERE key = ?1 RETURNING value"
    [(held,)] = await connection.fetch(sql, key)
    return str(held)


async def set_meta(connection: Connection, values: Mapping[str, str]) -> None:
    """Keep settings, within a transaction."""
    await connection.insert(META, sorted(values.items()), "replace")


async def touch(connection: Connection, time: float) -> None:
    """Remember a time that no query holds, or will not hold any more; others wait to do so."""
    sql = "UPDATE state SET last_time = CASE WHEN last_time < ?1 THEN ?1 ELSE last_time END"
    await connection.execute(sql, time)


async def _add_sums(
    connection: Connection, minutes: Iterable[Minute], arms: Iterable[ArmSums]
) -> None:
    """Add to sums that are kept: in order, so that two servers do not wait for each other."""
    rows = sorted(
        (minute.start, name, value) for minute in minutes for name, value in minute.values.items()
    )
    await connection.insert(MINUTES, rows, "add")
    await connection.insert(ARM_SUMS, sorted(arms), "add")


class StoredModels(StoreGroup):
    """The versions of the prior."""

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        columns = ", ".join(_RECORD)
        async with self._driver.read() as connection:
            rows = await connection.fetch(f"SELECT {columns} FROM models ORDER BY version")
            return [
                ModelRecord(*[*row, bool(activated), reason, tuple(json.loads(features))])
                for *row, activated, reason, features in rows
            ]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        async with self._driver.read() as connection:
            return await _document(connection, version)

    async def arms(self, version: int) -> dict[str, str]:
        """Return the files of priors of a version that arms have for themselves, by policy."""
        rows = await self._fetch("SELECT arms FROM models WHERE version = ?1", version)
        return json.loads(rows[0][0]) if rows and rows[0][0] else {}

    async def newest(self) -> int:
        """Return the newest version, active or not, 0 before any training."""
        return await self._number("SELECT coalesce(max(version), 0) FROM models")

    async def active(self) -> int:
        """Return the active version, 0 before any training."""
        return await self._number("SELECT active_model FROM state")

    async def add(
        self,
        record: ModelRecord,
        document: bytes,
        arms: Mapping[str, str] | None = None,
        *,
        instead_of: int | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a version, its file and those of `arms`; return whether it is now the active one.

        It is if it is `activated`, unless a version other than `instead_of` is active now, or one
        of the settings has a value in `unless`: then it is kept as not activated.
        """
        async with self._driver.write() as connection:
            active = await _locked(connection)
            if record.version < 1 or await _document(connection, record.version) is not None:
                raise StoreError(f"there is a model {record.version} already")
            live = record.activated and instead_of in (None, active)
            if live and unless:
                settings = await connection.fetch("SELECT key, value FROM meta")
                live = not (unless.items() & {(key, value) for key, value in settings})
            values = {"activated": live, "features": json.dumps(record.features)}
            row = [values.get(name, getattr(record, name)) for name in _RECORD]
            others = json.dumps(dict(arms)) if arms else None
            await connection.insert(MODELS, [(*row, document, others)])
            if live:
                await _activate(connection, record.version)
        return live

    async def remove(self, versions: Sequence[int]) -> None:
        """Remove versions and their files; the active one cannot be removed."""
        async with self._driver.write() as connection:
            active = await _locked(connection)
            if active in versions:
                raise StoreError(f"model {active} is active and cannot be removed")
            sql = "DELETE FROM models WHERE version = ?1"
            await connection.many(sql, [(version,) for version in versions])

    async def activate(self, version: int, *, meta: Mapping[str, str] | None = None) -> None:
        """Activate a version; 0 goes back to before any training.

        Settings in `meta` are kept in the same transaction.
        """
        async with self._driver.write() as connection:
            await _activate(connection, version)
            await set_meta(connection, meta or {})


async def _locked(connection: Connection) -> int:
    """Return the active version, which no other server changes before the transaction ends."""
    sql = "UPDATE state SET active_model = active_model RETURNING active_model"
    [(version,)] = await connection.fetch(sql)
    return int(version)


async def _document(connection: Connection, version: int) -> bytes | None:
    rows = await connection.fetch("SELECT document FROM models WHERE version = ?1", version)
    return bytes(rows[0][0]) if rows else None


async def _activate(connection: Connection, version: int) -> None:
    await connection.execute("UPDATE state SET active_model = ?1", version)
    sql = "UPDATE models SET activated = true WHERE version = ?1"
    if version and not await connection.execute(sql, version):
        raise StoreError(f"there is no model {version}")
