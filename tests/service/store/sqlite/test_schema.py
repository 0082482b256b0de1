"""Versions of the schema: old stores are brought up to date, all the way or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ebrank.service.store.base import StoreError
from ebrank.service.store.sqlite import SqliteStore, schema
from ebrank.service.store.sqlite.view import SqliteView
from tests.service.store.samples import contents, fill


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path)
    fill(store)
    store.close()
    return tmp_path


def release(monkeypatch: pytest.MonkeyPatch, *steps: tuple[str, ...]) -> None:
    """Be a later ebrank, with more steps."""
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, *steps))
    monkeypatch.setattr(schema, "VERSION", len(schema.STEPS))


def version(folder: Path) -> int:
    database = sqlite3.connect(folder / "log.db")
    found = int(database.execute("PRAGMA user_version").fetchone()[0])
    database.close()
    return found


def test_an_old_store_is_brought_up_to_date(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteView(folder) as view:
        before = list(view.log())
    release(
        monkeypatch,
        ("ALTER TABLE items ADD COLUMN color TEXT",),
        ("UPDATE items SET color = 'red'", "CREATE TABLE colors (name TEXT)"),
    )
    with pytest.raises(StoreError, match=r"version 1, older than 3\. Serve it once"):
        SqliteView(folder)
    store = SqliteStore(folder)
    assert store._reader.execute("SELECT DISTINCT color FROM items").fetchall() == [("red",)]
    assert list(store.log()) == before
    store.close()
    assert version(folder) == 3


def test_a_step_that_fails_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        release(patch, ("CREATE TABLE colors (name TEXT)", "INSERT INTO nowhere VALUES (1)"))
        with pytest.raises(StoreError, match="no such table: nowhere"):
            SqliteStore(folder)
    assert version(folder) == 1
    store = SqliteStore(folder)
    assert contents(store)["log"]
    assert not store._reader.execute("SELECT 1 FROM sqlite_schema WHERE name = 'colors'").fetchall()
    store.close()
