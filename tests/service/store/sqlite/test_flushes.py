"""What is acknowledged is on disk: seen from a disk that keeps only what was flushed.

`Disk` keeps a copy of the store's files as they are whenever one of them is flushed. After a power
cut there would be nothing else; so whoever forgets a flush, or flushes too early, loses something.
SQLite flushes inside C, where nobody sees it: there the settings of each connection are looked at.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ebrank.service.store.records import ModelRecord
from ebrank.service.store.sqlite import SqliteStore, database
from tests.service.histories import new_items
from tests.service.scenes import Scene, better, click, played, settings
from tests.service.store.blocking import run

FILES = ("log.db", "log.db-wal")
NORMAL = 1


class Disk:
    """Copies of a store's files as they were when they were last flushed."""

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder = folder
        self._copies = copies

    def flush(self, descriptor: int) -> None:
        """Keep what the files hold now, if what is flushed is the write-ahead log."""
        if Path(f"/proc/self/fd/{descriptor}").readlink() != self._folder / "log.db-wal":
            return
        self._copies.mkdir(exist_ok=True)
        for name in FILES:
            shutil.copy(self._folder / name, self._copies / name)

    def column(self, sql: str) -> list[object]:
        """Return the values that SQL finds in what would be there after a power cut."""
        with closing(sqlite3.connect(self._copies / "log.db")) as connection:
            return [value for (value,) in connection.execute(sql)]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk, flush = Disk(tmp_path / "store", tmp_path / "disk"), os.fdatasync

    def watched(descriptor: int) -> None:
        flush(descriptor)
        disk.flush(descriptor)

    monkeypatch.setattr(os, "fdatasync", watched)
    monkeypatch.setattr(database, "INTERVAL_SECONDS", 3600.0)  # no checkpoint in between
    return disk


@played(on=SqliteStore, count=4)
async def test_acknowledged_feedback_survives_a_power_cut(
    engine: Scene, tmp_path: Path, disk: Disk
) -> None:
    for number in range(3):
        answer = await engine.ranked()
        await engine.feedback([click(f"e{number}", answer.ranking_id, "i0")])
        shutil.copytree(tmp_path / "disk", tmp_path / f"disk{number}")
    disks = [Disk(tmp_path / "store", tmp_path / f"disk{number}") for number in range(3)]
    seen = [disk.column("SELECT event_id FROM events ORDER BY seq") for disk in disks]
    assert seen == [["e0"], ["e0", "e1"], ["e0", "e1", "e2"]]


@played(settings(store={"durability": "disk"}), on=SqliteStore, count=4)
async def test_items_models_and_durable_lists_are_flushed_before_the_answer(
    engine: Scene, disk: Disk
) -> None:
    assert disk.column("SELECT count(*) FROM items") == [4]
    await engine.withdraw("q", "i3")
    assert disk.column("SELECT count(*) FROM items WHERE active") == [3]
    await engine.ranked()
    assert disk.column("SELECT count(*) FROM rankings") == [1]
    record = ModelRecord(1, 1.0, 1, None, None, activated=False)
    await engine.store.models.add(record, (better().document or "").encode())
    await engine.activate(1)
    assert disk.column("SELECT active_model FROM state") == [1]


def test_every_connection_that_writes_flushes_at_checkpoints(tmp_path: Path) -> None:
    """With `synchronous = OFF` a checkpoint would reuse the log before its pages are on disk."""
    store = SqliteStore(tmp_path / "store")
    opened = store.database
    assert isinstance(opened, database.Database)

    def look(connection: sqlite3.Connection) -> tuple[int, str]:
        [level] = connection.execute("PRAGMA synchronous").fetchone()
        [mode] = connection.execute("PRAGMA journal_mode").fetchone()
        return level, mode

    held = [opened._writer, opened._connection, opened._far_reader, opened._wal._connection]
    assert [look(connection) for connection in held] == [(NORMAL, "wal")] * 4
    run(store.items.put("q", new_items("a"), 1.0))
    run(store.close())
    reader = SqliteStore(tmp_path / "store", "read")
    with reader.database.read() as connection:
        assert look(connection) == (NORMAL, "wal")
    run(reader.close())
