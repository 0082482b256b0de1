"""What is kept beside the log, by SQL: minutes for the dashboard, models, settings of the data."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping, Sequence

from ebrank.service.store.base import StoreError
from ebrank.service.store.records import Minute, ModelRecord

_ADD = (
    "INSERT INTO minutes VALUES (?, ?, ?) "
    "ON CONFLICT (start, name) DO UPDATE SET value = value + excluded.value"
)
_MODELS = (
    "SELECT version, created, rows, validation_loss, previous_loss, activated, reason FROM models "
    "ORDER BY version"
)


def add_minutes(connection: sqlite3.Connection, minutes: Sequence[Minute]) -> None:
    """Add the sums of some minutes to those kept."""
    rows = [(one.start, name, value) for one in minutes for name, value in one.values.items()]
    connection.executemany(_ADD, rows)


def minutes(connection: sqlite3.Connection, since: float) -> list[Minute]:
    """Return what is known of the minutes since a time, in order."""
    sql = "SELECT start, name, value FROM minutes WHERE start >= ? ORDER BY start, name"
    rows = connection.execute(sql, (since,))
    return [
        Minute(start, {name: value for _, name, value in group})
        for start, group in itertools.groupby(rows, key=lambda row: float(row[0]))
    ]


def models(connection: sqlite3.Connection) -> list[ModelRecord]:
    """Return all versions, oldest first."""
    return [
        ModelRecord(version, created, rows, loss, previous, bool(activated), reason)
        for version, created, rows, loss, previous, activated, reason in connection.execute(_MODELS)
    ]


def add_model(connection: sqlite3.Connection, record: ModelRecord, document: bytes) -> None:
    """Keep a version and its file, and make it the active one if it says so."""
    if record.version < 1 or model(connection, record.version) is not None:
        raise StoreError(f"there is a model {record.version} already")
    values = (
        record.version,
        record.created,
        record.rows,
        record.validation_loss,
        record.previous_loss,
        record.activated,
        record.reason,
        document,
    )
    connection.execute("INSERT INTO models VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    if record.activated:
        activate(connection, record.version)


def model(connection: sqlite3.Connection, version: int) -> bytes | None:
    """Return the file of a version."""
    sql = "SELECT document FROM models WHERE version = ?"
    row = connection.execute(sql, (version,)).fetchone()
    return None if row is None else bytes(row[0])


def activate(connection: sqlite3.Connection, version: int) -> None:
    """Make a version the active one."""
    sql = "UPDATE models SET activated = 1 WHERE version = ?"
    if version and not connection.execute(sql, (version,)).rowcount:
        raise StoreError(f"there is no model {version}")
    connection.execute("UPDATE state SET active_model = ?", (version,))


def set_meta(connection: sqlite3.Connection, settings: Mapping[str, str]) -> None:
    """Keep settings of the data."""
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(settings.items()))


def settings(connection: sqlite3.Connection) -> dict[str, str]:
    """Return all settings of the data."""
    return dict(connection.execute("SELECT key, value FROM meta ORDER BY key").fetchall())


def last_time(connection: sqlite3.Connection) -> float:
    """Return the time of the latest entry, 0 if there is none."""
    sql = (
        "SELECT max(last_time, "
        "coalesce((SELECT time FROM rankings ORDER BY seq DESC LIMIT 1), 0.0), "
        "coalesce((SELECT received FROM events ORDER BY seq DESC LIMIT 1), 0.0)) FROM state"
    )
    return float(connection.execute(sql).fetchone()[0])
