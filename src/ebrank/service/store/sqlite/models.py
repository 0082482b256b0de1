"""The versions of the prior, by SQL."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import ModelRecord
from ebrank.service.store.sqlite.database import Connections
from ebrank.service.store.sqlite.meta import set_meta

_ALL = (
    "SELECT version, created, rows, validation_loss, previous_loss, activated, reason, features "
    "FROM models ORDER BY version"
)


class SqliteModels:
    """See `StoredModels` for what the methods promise."""

    def __init__(self, database: Connections) -> None:
        self._database = database

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        with self._database.read() as connection:
            return [_record(*row) for row in connection.execute(_ALL)]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        with self._database.read() as connection:
            return _document(connection, version)

    async def active(self) -> int:
        """Return the active version, 0 before any training."""
        with self._database.read() as connection:
            return active_model(connection)

    async def add(
        self,
        record: ModelRecord,
        document: bytes,
        *,
        instead_of: int | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a version and its file; return whether it is now the active one."""
        with self._database.write() as connection:
            if record.version < 1 or _document(connection, record.version) is not None:
                raise StoreError(f"there is a model {record.version} already")
            live = record.activated and instead_of in (None, active_model(connection))
            sql = "SELECT 1 FROM meta WHERE key = ? AND value = ?"
            for setting in (unless or {}).items():
                live = live and connection.execute(sql, setting).fetchone() is None
            values = (
                record.version,
                record.created,
                record.rows,
                record.validation_loss,
                record.previous_loss,
                live,
                record.reason,
                json.dumps(record.features),
                document,
            )
            connection.execute("INSERT INTO models VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            if live:
                _activate(connection, record.version)
        return live

    async def remove(self, versions: Sequence[int]) -> None:
        """Remove versions and their files; the active one cannot be removed."""
        with self._database.write() as connection:
            active = active_model(connection)
            if active in versions:
                raise StoreError(f"model {active} is active and cannot be removed")
            connection.executemany(
                "DELETE FROM models WHERE version = ?", [(version,) for version in versions]
            )

    async def activate(self, version: int, *, meta: Mapping[str, str] | None = None) -> None:
        """Activate a version; 0 goes back to before any training."""
        with self._database.write() as connection:
            _activate(connection, version)
            set_meta(connection, meta or {})


def active_model(connection: sqlite3.Connection) -> int:
    """Return the active version."""
    return int(connection.execute("SELECT active_model FROM state").fetchone()[0])


def _record(
    version: int,
    created: float,
    rows: int,
    loss: float | None,
    previous: float | None,
    activated: int,
    reason: str,
    features: str,
) -> ModelRecord:
    learned = tuple(json.loads(features))
    return ModelRecord(version, created, rows, loss, previous, bool(activated), reason, learned)


def _document(connection: sqlite3.Connection, version: int) -> bytes | None:
    sql = "SELECT document FROM models WHERE version = ?"
    row = connection.execute(sql, (version,)).fetchone()
    return None if row is None else bytes(row[0])


def _activate(connection: sqlite3.Connection, version: int) -> None:
    sql = "UPDATE models SET activated = 1 WHERE version = ?"
    if version and not connection.execute(sql, (version,)).rowcount:
        raise StoreError(f"there is no model {version}")
    connection.execute("UPDATE state SET active_model = ?", (version,))
