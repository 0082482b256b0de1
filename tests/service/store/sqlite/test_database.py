"""Flushes and checkpoints: the WAL stays short, and nobody waits for either."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ebrank.service.store.sqlite import SqliteStore, database
from ebrank.service.store.sqlite import store as backup
from ebrank.service.store.sqlite.database import Database, Wal
from tests.service.histories import new_items, ranking
from tests.service.store.blocking import Blocking, run


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Blocking]:
    monkeypatch.setattr(database, "INTERVAL_SECONDS", 3600.0)  # the tests checkpoint themselves
    monkeypatch.setattr(database, "LIMIT_PAGES", 50)
    opened = Blocking(SqliteStore(tmp_path / "store"))
    opened.items.put("q", new_items(*"abc"), 1.0)
    yield opened
    opened.close()


def fill(store: Blocking, begin: int, count: int) -> None:
    for number in range(begin, begin + count):
        store.log.write([ranking(f"r{number}", "abc")])


def wal_of(store: Blocking) -> Wal:
    database = store.wrapped.database
    assert isinstance(database, Database)
    return database._wal


def wal_size(store: Blocking) -> int:
    return int(store.database.path.with_name("log.db-wal").stat().st_size)


def test_a_long_wal_is_used_from_its_start_again_though_others_write(
    store: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 0, 100)
    size, checkpoints = wal_size(store), wal_of(store)
    passive = checkpoints._passive
    calls: list[int] = []

    def first_incomplete_then_complete() -> int:
        calls.append(len(calls))
        if calls[-1] % 2:
            return passive()
        reader = SqliteStore(store.database.path, "read")
        try:  # what comes now is not copied: somebody reads
            fill(store, 5000 + calls[-1], 1)
            return passive()
        finally:
            run(reader.close())

    monkeypatch.setattr(checkpoints, "_passive", first_incomplete_then_complete)
    for portion in range(1, 11):
        checkpoints.checkpoint()
        fill(store, 100 * portion, 40)
    assert len(calls) == 20
    assert wal_size(store) < size + 20 * 4096
    assert len(store.log.entries()) == 100 + 10 * 41


async def test_others_write_during_a_flush(
    store: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, sign = threading.Event(), threading.Event()
    flush = os.fdatasync

    def slow(file: int) -> None:
        began.set()
        assert sign.wait(timeout=10)
        flush(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    flushing = asyncio.create_task(store.wrapped.flush())
    await asyncio.to_thread(began.wait, 10)
    await store.wrapped.log.write([ranking("meanwhile", "abc")])
    assert await store.wrapped.log.ranking("meanwhile") is not None
    assert not flushing.done()
    sign.set()
    await flushing
    monkeypatch.undo()


def test_only_a_flush_flushes(store: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushes.append)
    store.log.write([ranking("r1", "abc")])
    store.items.put("q", new_items("d"), 2.0)
    store.items.withdraw("q", "d", 3.0)
    store.meta.set({"key": "value"})
    assert flushes == []
    store.flush()
    assert len(flushes) == 1


# --- who reads does not make the WAL grow -----------------------------------------------------


def rush(store: Blocking, begin: int) -> int:
    """Write a lot with a checkpoint now and then; return the size of the WAL at the end."""
    for portion in range(10):
        fill(store, begin + 40 * portion, 40)
        wal_of(store).checkpoint()
    return wal_size(store)


def test_views_keep_their_moment_and_the_wal_stays_short(store: Blocking) -> None:
    alone = rush(store, 0)
    view = Blocking(SqliteStore(store.database.path.parent, "read"))
    browsed = Blocking(SqliteStore(store.database.path.parent, "browse"))
    assert len(view.log.entries()) == len(browsed.log.entries()) == 400
    assert rush(store, 400) <= 2 * alone
    assert len(view.log.entries()) == 400
    assert len(browsed.log.entries()) == len(store.log.entries()) == 800
    view.close()
    browsed.close()
    names = {one.name for one in store.database.path.parent.iterdir()}
    assert names == {"lock", "log.db", "log.db-wal", "log.db-shm"}


def test_a_backup_holds_the_wal_no_longer_than_it_copies(
    store: Blocking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone = rush(store, 0)
    check, sizes = backup._check, []

    def meanwhile(*paths: Path) -> None:
        sizes.append(rush(store, 400))
        check(*paths)

    monkeypatch.setattr(backup, "_check", meanwhile)
    copy = backup.backup(store.database.path, tmp_path / "copy.db")
    assert len(Blocking(SqliteStore(copy, "read")).log.entries()) == 400
    assert sizes[0] <= 2 * alone


def test_a_wal_that_had_to_grow_shrinks_again(store: Blocking) -> None:
    with closing(sqlite3.connect(store.database.path)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM queries").fetchall()
        fill(store, 0, 400)
        wal_of(store).checkpoint()
        grown = wal_size(store)
    wal_of(store).checkpoint()
    fill(store, 400, 1)
    assert wal_size(store) <= 60 * 4096 < grown / 4


def test_the_database_is_flushed_before_writers_are_held_off(
    store: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 0, 100)
    flushes: list[bool] = []
    writing = wal_of(store)._writing

    def free(file: int) -> None:
        """Note whether another thread could write now."""
        taken = []

        def take() -> None:
            taken.append(writing.acquire(blocking=False))
            if taken[0]:
                writing.release()

        thread = threading.Thread(target=take)
        thread.start()
        thread.join()
        flushes.append(taken[0])

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", free)
        wal_of(store).checkpoint()
    assert flushes == [True]
