"""The versions of the prior, by SQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ebrank.service.store.base import StoreError
from ebrank.service.store.postgresql.database import Connections
from ebrank.service.store.postgresql.meta import set_meta, settings_as_arrays
from ebrank.service.store.records import ModelRecord

if TYPE_CHECKING:
    import asyncpg

_ALL = (
    "SELECT version, created, rows, validation_loss, previous_loss, activated, reason, features "
    "FROM models ORDER BY version"
)

_HELD = """SELECT EXISTS (SELECT 1 FROM unnest($1::bytea[], $2::bytea[]) AS g (key, value)
    JOIN meta AS m ON m.key = g.key AND m.value = g.value)"""


class PostgresModels:
    """See `StoredModels` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        async with self._database.reader() as connection:
            rows = await connection.fetch(_ALL)
        return [_record(**row) for row in rows]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        async with self._database.reader() as connection:
            return await _document(connection, version)

    async def active(self) -> int:
        """Return the active version, 0 before any training."""
        async with self._database.reader() as connection:
            return int(await connection.fetchval("SELECT active_model FROM state"))

    async def add(
        self,
        record: ModelRecord,
        document: bytes,
        *,
        instead_of: int | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a version and its file; return whether it is now the active one."""
        async with self._database.writer() as connection, connection.transaction():
            active = await _locked(connection)
            if record.version < 1 or await _document(connection, record.version) is not None:
                raise StoreError(f"there is a model {record.version} already")
            live = record.activated and instead_of in (None, active)
            if live and unless:
                keys, values = settings_as_arrays(unless)
                live = not await connection.fetchval(_HELD, keys, values)
            await connection.execute(
                "INSERT INTO models VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                record.version,
                record.created,
                record.rows,
                record.validation_loss,
                record.previous_loss,
                live,
                record.reason.encode(),
                json.dumps(record.features).encode(),
                document,
            )
            if live:
                await _activate(connection, record.version)
        return live

    async def remove(self, versions: Sequence[int]) -> None:
        """Remove versions and their files; the active one cannot be removed."""
        async with self._database.writer() as connection, connection.transaction():
            active = await _locked(connection)
            if active in versions:
                raise StoreError(f"model {active} is active and cannot be removed")
            sql = "DELETE FROM models WHERE version = ANY ($1::integer[])"
            await connection.execute(sql, list(versions))

    async def activate(self, version: int, *, meta: Mapping[str, str] | None = None) -> None:
        """Activate a version; 0 goes back to before any training."""
        async with self._database.writer() as connection, connection.transaction():
            await _locked(connection)
            await _activate(connection, version)
            await set_meta(connection, meta or {})


def _record(*, reason: bytes, features: bytes, **others: Any) -> ModelRecord:  # noqa: ANN401
    return ModelRecord(**others, reason=reason.decode(), features=tuple(json.loads(features)))


async def _locked(connection: asyncpg.Connection) -> int:
    """Return the active version, which no other server changes before the transaction ends."""
    return int(await connection.fetchval("SELECT active_model FROM state FOR UPDATE"))


async def _document(connection: asyncpg.Connection, version: int) -> bytes | None:
    found: bytes | None = await connection.fetchval(
        "SELECT document FROM models WHERE version = $1", version
    )
    return found


async def _activate(connection: asyncpg.Connection, version: int) -> None:
    sql = "UPDATE models SET activated = true WHERE version = $1 RETURNING version"
    if version and await connection.fetchval(sql, version) is None:
        raise StoreError(f"there is no model {version}")
    await connection.execute("UPDATE state SET active_model = $1", version)
