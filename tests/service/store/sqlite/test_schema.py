"""Versions of the schema: a store of another one is refused and left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from ebrank.service.store.base import Mode, StoreError
from ebrank.service.store.schema import SQLITE
from ebrank.service.store.sqlite import SqliteStore, database
from tests.service.store.blocking import run


@pytest.mark.parametrize("mode", ["serve", "read"])
@pytest.mark.parametrize(
    ("version", "remedy"),
    [(SQLITE.version + 1, "Upgrade ebrank"), (SQLITE.version - 1, "Run `ebrank store migrate`")],
)
def test_another_version_is_left_alone(
    tmp_path: Path, mode: Mode, version: int, remedy: str
) -> None:
    run(SqliteStore(tmp_path / "store").close())
    connection = sqlite3.connect(tmp_path / "store/log.db")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = (tmp_path / "store/log.db").read_bytes()
    told = f"a store of version {version}; this ebrank reads version {SQLITE.version}. {remedy}"
    with pytest.raises(StoreError, match=told):
        SqliteStore(tmp_path / "store", mode)
    assert (tmp_path / "store/log.db").read_bytes() == before


def test_a_schema_that_fails_leaves_an_empty_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database, "SQLITE", SQLITE._replace(done="INSERT INTO nowhere VALUES (1)"))
        with pytest.raises(StoreError, match="no such table: nowhere"):
            SqliteStore(tmp_path / "store")
    with pytest.raises(StoreError, match="an empty database"):
        SqliteStore(tmp_path / "store", "read")
    run(SqliteStore(tmp_path / "store").close())
